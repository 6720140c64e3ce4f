"""Times that a log writes without a zone, read as this machine's local time."""

from __future__ import annotations

import time
from functools import lru_cache


@lru_cache(maxsize=256)
def local_minute(year: str, month: str, day: str, hour: str, minute: str) -> float | None:
    """UNIX seconds of the start of a minute, worked out once a minute; None for a date that is none."""
    try:
        return time.mktime((int(year), int(month), int(day), int(hour), int(minute), 0, 0, 0, -1))
    except (OverflowError, ValueError):
        return None
