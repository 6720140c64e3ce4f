"""Numbers and durations as trainers spell them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

_DURATION = re.compile(r"(?:(\d{1,9}) days?,? *)?(?:(?:(\d{1,9}):)?(\d{1,9}):)?(\d{1,9}(?:\.\d+)?)s?$")


def number(cell: str) -> float | None:
    """The number in a cell: also `nan`, `-nan`, `inf`. None for an empty cell, `NA`, words and lists.

    NaN is a value (the trainer computed it); an empty cell is a missing number.
    """
    try:
        return float(cell)
    except ValueError:
        pass
    word = cell.strip().lower()
    if word in ("-nan", "-nan(ind)", "nan(ind)"):  # C's printf, glibc and MSVC
        return math.nan
    return None


def whole(cell: str) -> int | None:
    """The whole number in a cell ("12", "12.0"), else None."""
    value = number(cell)
    return int(value) if value is not None and math.isfinite(value) else None


def numbers_of(cells: Mapping[str, str]) -> dict[str, float]:
    """The cells that hold a number, under their names."""
    found = {}
    for name, cell in cells.items():
        value = number(cell) if cell else None
        if value is not None:
            found[name] = value
    return found


def total(parts: Iterable[float]) -> float | None:
    """The sum of loss parts; NaN if one is NaN, None if there are none."""
    values = list(parts)
    return sum(values) if values else None


def duration(text: str) -> float | None:
    """Seconds of "10.2s", "1:01", "1:02:03", "1 day, 2:03:04" or "7:39:28"; None for anything else.

    A rounding bug of some trainers prints 60 seconds as "1:60"; it reads as 120 s.
    """
    match = _DURATION.match(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds)


def sane_map(value: float | None) -> float | None:
    """A mean average precision of 0 to 1, or None: COCO tools write -1 or NaN for "no such objects"."""
    return value if value is not None and 0.0 <= value <= 1.0 else None
