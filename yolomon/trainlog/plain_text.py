"""Text of a log made harmless: no colours, no cursor movement, no control characters.

What a trainer prints is data. Before any of it is shown or matched, escape sequences and control
characters go (ECMA-48: CSI, OSC and the two-byte escapes), and Unicode's direction marks with them.
"""

from __future__ import annotations

import re

TEXT_LIMIT = 500  # characters of a line that are kept for display

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and its kin, up to BEL or ST
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def plain(line: bytes) -> str:
    """The line as text: invalid UTF-8 replaced, escapes and control characters removed; tabs stay."""
    text = line.decode("utf-8", "replace")
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    return _CONTROLS.sub("", text) if not text.isprintable() else text


def shown(text: str, limit: int = TEXT_LIMIT) -> str:
    """Text for one line of the screen: cleaned like `plain`, blanks collapsed, at most `limit` long."""
    words = " ".join(_CONTROLS.sub("", _ESCAPES.sub("", text)).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"
