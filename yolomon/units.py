"""Numbers as people read them: one unit for one kind of number, never more digits than mean something."""

from __future__ import annotations

GIBIBYTE = 2**30


def gibibytes(size_bytes: float | None, digits: int = 1) -> str:
    """Bytes as "39.0 GiB"; "n/a" for None."""
    return "n/a" if size_bytes is None else f"{size_bytes / GIBIBYTE:.{digits}f} GiB"


def size(size_bytes: float | None) -> str:
    """Bytes in the unit that gives 1 to 4 digits: "512 B", "8.0 MiB", "140 GiB"; "n/a" for None."""
    if size_bytes is None:
        return "n/a"
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def duration(seconds: float | None) -> str:
    """Seconds as "0.16 s", "12 s", "1 min 9 s", "3 h 12 min", "2 d 4 h"; "n/a" for None."""
    if seconds is None or seconds != seconds:
        return "n/a"
    if abs(seconds) < 10:
        return f"{seconds:.2g} s"
    if abs(seconds) < 60:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def number(value: float | None, unit: str = "", digits: int = 0) -> str:
    """A number with its unit, "n/a" for None; NaN and infinity are said as such."""
    if value is None:
        return "n/a"
    text = f"{value:.{digits}f}"
    return f"{text} {unit}" if unit else text


def clock(ts: float) -> str:
    """A UNIX time as the reader's "14:02:11"."""
    from datetime import datetime

    return datetime.fromtimestamp(ts).astimezone().strftime("%H:%M:%S")
