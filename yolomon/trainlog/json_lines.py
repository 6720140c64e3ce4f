"""One line of a JSON-lines log made into objects, whatever has happened to the line.

Bare NaN and Infinity, as Python's json writes them, are values. Two records on one line (`}{`: two writers)
are two records. A half record before a whole one is told as broken, and the whole one is kept.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.plain_text import shown

Body = dict[str, Any]
_fast = msgspec.json.Decoder()
_tolerant = json.JSONDecoder()
_PADDING = b" \t\r\n\x00"
_BOM = b"\xef\xbb\xbf"
_WORDS = re.compile(r"(?<=[:,\[])(\s*)(-?)(?:nan(?:\(ind\))?|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_PLACES = frozenset(
    {"ts", "event", "epoch", "step", "iter", "iteration", "mode", "timestamp", "date", "record"}
)
_SALVAGE_LIMIT = 64  # places in one line that are tried as the start of a whole record


def objects(line: bytes) -> list[Body | BrokenLine]:
    """The objects of one line, in order, and what of it was broken. An empty or padded-out line gives [].

    Never raises.
    """
    line = line.strip(_PADDING)
    if line.startswith(_BOM):
        line = line[3:].lstrip(_PADDING)
    if not line:
        return []
    try:
        value = _fast.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _tolerantly(line)
    if type(value) is dict:
        return [value]
    return _not_object(value, line)


def _not_object(value: object, line: bytes) -> list[Body | BrokenLine]:
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        return list(value)
    return [broken(line, "not a JSON object")]


def _tolerantly(line: bytes) -> list[Body | BrokenLine]:
    text = line.decode("utf-8", "replace").replace("\x00", "")
    text = _WORDS.sub(_constant, text)
    found: list[Body | BrokenLine] = []
    place, tries = 0, 0
    while place < len(text):
        while place < len(text) and text[place] in " \t\r,":
            place += 1
        if place >= len(text):
            break
        try:
            value, end = _tolerant.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            found.append(BrokenLine(shown(text[place : place + 400], 120), reason))
            # A writer that was cut off, and another record glued behind: look for its start.
            place = text.find('{"', place + 1)
            tries += 1
            if place < 0 or tries > _SALVAGE_LIMIT:
                break
            continue
        if isinstance(value, dict) and found and _is_nested(value, text, place):
            place = text.find('{"', end)
            if place < 0:
                break
            continue
        found.extend(
            [value]
            if isinstance(value, dict)
            else _not_object(value, text[place:end].encode("utf-8", "replace"))
        )
        place = end
    return _one_complaint(found)


def _is_nested(value: Body, text: str, place: int) -> bool:
    """Whether an object behind a torn piece is part of that piece and no record of its own."""
    if not text[:place].rstrip().endswith((":", "[", "},")):
        return False
    return not _PLACES.intersection(value)


def _one_complaint(found: list[Body | BrokenLine]) -> list[Body | BrokenLine]:
    """Pieces of one torn record in a row are one broken line; objects nested in it are not records."""
    kept: list[Body | BrokenLine] = []
    for entry in found:
        if isinstance(entry, BrokenLine) and kept and isinstance(kept[-1], BrokenLine):
            continue
        kept.append(entry)
    return kept


def _constant(match: re.Match[str]) -> str:
    word = "NaN" if "nan" in match[0].lower() else "Infinity"
    return f"{match[1]}{match[2] if word == 'Infinity' else ''}{word}"


def broken(line: bytes, reason: str) -> BrokenLine:
    """A line that is no record, shortened and cleaned for the screen."""
    return BrokenLine(shown(line[:600].decode("utf-8", "replace"), 120), reason)


def complete(data: bytes) -> bool:
    """Whether these bytes are one whole JSON value (a file without a final newline, such as test metrics)."""
    data = data.strip(_PADDING)
    if not data.endswith((b"}", b"]")):
        return False
    try:
        json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True
