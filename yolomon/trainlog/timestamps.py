"""Times as trainers write them, made UNIX seconds."""

from __future__ import annotations

import re
from datetime import datetime
from math import isfinite

_AHEAD_SECONDS = 120.0  # a record from further in the future has another clock
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_UNPADDED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})$")
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2}(?:\.\d+)?)$")
_DURATION = re.compile(r"(?:(-?\d+) days?,? *)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$")


def unix_seconds(value: object) -> float | None:
    """UNIX seconds of a number (s, ms, us or ns since 1970) or of an ISO 8601 text; None for anything else.

    A text without a zone is this host's local time.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        number = float(value)
        for unit in (1.0, 1e3, 1e6, 1e9):
            if 1e9 <= number / unit < 4e9:
                return number / unit
        return None
    if isinstance(value, str) and _ISO.match(value):
        text = value.strip().replace("Z", "+00:00").replace(",", ".")
        text = re.sub(r"\.(\d+)", lambda m: "." + (m[1] + "000000")[:6], text)  # 3.10 wants 3 or 6 digits
        try:
            return datetime.fromisoformat(text).astimezone().timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return None


def unpadded(date: object, clock: object) -> float | None:
    """UNIX seconds of "8/28/2026" and "8:50:8" (NVIDIA TAO: month first, local time, no zeros)."""
    if not isinstance(date, str) or not isinstance(clock, str):
        return None
    day, time = _UNPADDED.match(date.strip()), _CLOCK.match(clock.strip())
    if day is None or time is None:
        return None
    try:
        seconds = float(time[3])
        moment = datetime(
            int(day[3]), int(day[1]), int(day[2]), int(time[1]), int(time[2]), int(seconds)
        ).astimezone()
        return moment.timestamp() + seconds % 1
    except (ValueError, OverflowError, OSError):
        return None


def duration_seconds(text: str) -> float | None:
    """Seconds of a timedelta's text: "0:00:01.5", "1 day, 2:03:04", "12:30"; None for anything else."""
    match = _DURATION.match(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)


def place_in_time(own_ts: float | None, arrival_ts: float) -> float:
    """The record's place on the common time axis: its own time unless that comes from another clock."""
    if own_ts is None or not isfinite(own_ts) or own_ts > arrival_ts + _AHEAD_SECONDS:
        return arrival_ts
    return own_ts
