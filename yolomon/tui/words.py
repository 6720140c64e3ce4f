"""Numbers, times and foreign text as short words for the screen."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

from yolomon.messages import Translate

_UNITS = "BKMGTP"
MISSING = "–"
# ASCII, Latin-1 letters and signs, arrows, box drawing, blocks, braille: one cell each.
_NARROW = re.compile(
    "[\\u0020-\\u007e\\u00a1-\\u00ac\\u00ae-\\u02af\\u2010-\\u2027\\u2190-\\u21ff\\u2212\\u2500-\\u259f\\u2800-\\u28ff]*"
).fullmatch


def cells_of(text: str) -> int:
    """How many cells a text takes; quick for what graphs and frames are made of."""
    return len(text) if text.isascii() or text.isspace() else _cells_of(text)


@lru_cache(maxsize=4096)
def _cells_of(text: str) -> int:
    return len(text) if _NARROW(text) else cell_len(text)


def plain(text: str) -> str:
    """Text from outside without control or format characters: it can move no cursor and turn no line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in at most `width` cells, cut at the end with an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - cell_len(ellipsis)).rstrip() + ellipsis if width > 1 else ellipsis


def fit_words(text: str, width: int, ellipsis: str = "…") -> str:
    """As `fit`, cut between words: no number and no command is cut in two."""
    if cell_len(text) <= width:
        return text
    lines = wrap(text, max(1, width - cell_len(ellipsis) - 1))
    return f"{lines[0]} {ellipsis}" if lines and width > 2 else ellipsis[: max(0, width)]


def fit_left(text: str, width: int, ellipsis: str = "…") -> str:
    """As `fit`, cut at the beginning: the end of a path says more."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    kept = text
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return ellipsis + kept


def pad(text: str, width: int) -> str:
    """The text in exactly `width` cells, left-aligned."""
    return set_cell_size(text, max(0, width))


def pad_left(text: str, width: int) -> str:
    """The text right-aligned in `width` cells; a longer one stays whole."""
    return " " * (width - cell_len(text)) + text


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells. Breaks at spaces, and between double-width characters."""
    return list(_wrapped(text, width)) if width > 0 else []


@lru_cache(maxsize=256)  # sentences stay for many pictures
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    lines: list[str] = []
    line, used = "", 0
    for word in _together(_pieces(text), width):
        cells = cell_len(word)
        if used + cell_len(word.rstrip()) > width and line:
            lines.append(line.rstrip())
            line, used = "", 0
            word = word.lstrip()
            cells = cell_len(word)
        while cells > width:
            head = _head(word, width)
            lines.append(head)
            word = word[len(head) :]
            cells = cell_len(word)
        line += word
        used += cells
    if line.strip():
        lines.append(line.rstrip())
    return tuple(lines)


def _head(word: str, width: int) -> str:
    end = 1
    while end < len(word) and cell_len(word[: end + 1]) <= width:
        end += 1
    return word[:end]


def _pieces(text: str) -> list[str]:
    """Words with the space behind them; a double-width character is a piece of its own."""
    pieces, piece = [], ""
    for character in text:
        if cell_len(character) > 1 and character not in "，。；：、）】？！":
            if piece:
                pieces.append(piece)
            pieces.append(character)
            piece = ""
        elif character == " ":
            pieces.append(piece + character)
            piece = ""
        elif not piece and pieces and cell_len(character) > 1:
            pieces[-1] += character
        else:
            piece += character
    return [*pieces, piece] if piece else pieces


# What is read as one: a number and its unit, and what bears a number and its number.
_NUMBER = re.compile(r"[(\u2212~<>=≤≥+-]*\d[\d.,:/]* ")
_UNIT = re.compile(
    r"(?:%|‰|ms|s|min|h|d|W|kW|[KMGT]|B|[kKMGT]i?B|[kKMG]?i?B/s|°C|[MG]Hz|img/s|epochs?|days?)[).,;:]* ?"
)
_BEARER = re.compile(r"\(?(?:GPUs?|ranks?|epochs?|batch|batches|steps?|--?pid|Xid|layers?) ", re.IGNORECASE)


def _together(pieces: list[str], width: int) -> Iterator[str]:
    """The pieces, those joined between which a line must not end; as long as they fit a line."""
    held = ""  # the last piece with all that it is joined to
    last = ""  # itself
    for piece in pieces:
        number = _NUMBER.fullmatch(last) and (_UNIT.fullmatch(piece) or cell_len(piece[0]) > 1)
        bearer = _BEARER.fullmatch(last) and piece[0].isdigit()
        if held and (number or bearer) and cell_len(held + piece.rstrip()) <= width:
            held += piece
        else:
            if held:
                yield held
            held = piece
        last = piece
    if held:
        yield held


def size(count: float | None) -> str:
    """Bytes with a binary unit: "39 G", "1.4 G", "512 M"."""
    if count is None or count != count:
        return MISSING
    value, unit = float(count), 0
    while abs(value) >= 1000 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    if unit == 0 or abs(value) >= 9.95:
        return f"{value:.0f} {_UNITS[unit]}"
    return f"{value:.1f} {_UNITS[unit]}"


def rate(bytes_per_second: float | None) -> str:
    """Bytes a second: "120 MB/s"."""
    if bytes_per_second is None or bytes_per_second != bytes_per_second:
        return MISSING
    text = size(bytes_per_second)
    return f"{text}/s" if text.endswith(" B") else f"{text}B/s"


def percent(value: float | None) -> str:
    """A share: "41 %"."""
    return MISSING if value is None or value != value else f"{value:.0f} %"


def number(value: float | None, digits: int = 3) -> str:
    """A metric in `digits` significant digits, never in more cells than a metric needs."""
    if value is None:
        return MISSING
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    magnitude = abs(value)
    if value == 0:
        return "0"
    if magnitude >= 1e5 or magnitude < 1e-4:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if magnitude >= 10 ** (digits - 1):
        return f"{value:.0f}"
    whole = len(str(int(magnitude))) if magnitude >= 1 else 1
    if magnitude < 0.1:
        return f"{value:.{digits + 1}f}".rstrip("0").rstrip(".")
    return f"{value:.{max(0, digits - whole + (1 if magnitude < 1 else 0))}f}"


def seconds(value: float | None) -> str:
    """A step or data time: "0.492 s"."""
    if value is None or value != value:
        return MISSING
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def duration(tr: Translate, value: float | None) -> str:
    """A span of time in its two largest units: "3 h 12 min"."""
    if value is None or value != value:
        return MISSING
    whole = max(0, round(value))
    if whole < 60:
        return tr("{s} s", s=whole)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return (
            tr("{m} min", m=minutes) if minutes >= 10 or not rest else tr("{m} min {s} s", m=minutes, s=rest)
        )
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return tr("{h} h {m} min", h=hours, m=minutes)
    days, hours = divmod(hours, 24)
    return tr("{d} d {h} h", d=days, h=hours)


def clock_time(ts: float, *, with_day: bool = False) -> str:
    """The local time of day: "14:02:11"; on request with its date."""
    return time.strftime("%m-%d %H:%M:%S" if with_day else "%H:%M:%S", time.localtime(ts))
