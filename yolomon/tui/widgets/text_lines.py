"""Pieces of text pages: headings, paragraphs, tables of names and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from yolomon.tui.canvas import Line, Span, width_of
from yolomon.tui.view import Frame
from yolomon.tui.words import cells_of, fit, pad, pad_left, plain, wrap


def heading(frame: Frame, text: str, width: int, ink: str = "title") -> Line:
    """A rule with a title: " Evidence ─────────"."""
    line: Line = [(" ", "text"), (fit(text, max(0, width - 4), frame.glyphs.ellipsis), ink), (" ", "text")]
    return [*line, (frame.glyphs.horizontal * max(0, width - width_of(line) - 1), "frame")]


def paragraph(text: str, width: int, ink: str = "text", *, first: str = "   ", rest: str = "") -> list[Line]:
    """Text in lines of at most `width` cells; `first` is before the first one, blanks of its length later."""
    indent = rest or " " * cells_of(first)
    pieces = wrap(plain(text), max(1, width - cells_of(first) - 1))
    return [[(first if place == 0 else indent, ink), (piece, ink)] for place, piece in enumerate(pieces)]


def pairs(entries: Sequence[tuple[str, str, str]], width: int, *, indent: int = 3) -> list[Line]:
    """Names and values in as many columns as have room.

    Args:
        entries: (name, value, ink of the value).
        width: of the page, in cells.
        indent: blanks at the left.
    """
    if not entries:
        return []
    names = min(max(cells_of(name) for name, _, _ in entries), max(8, width - indent - 12))
    values = max(cells_of(value) for _, value, _ in entries)
    each = names + values + 5
    columns = max(1, (width - indent) // each)
    count = -(-len(entries) // columns)
    lines: list[Line] = []
    for row in range(count):
        line: Line = [(" " * indent, "text")]
        for place in range(row, len(entries), count):
            name, value, ink = entries[place]
            room = width - width_of(line) - names - 2
            if cells_of(value) <= room or columns > 1:
                line += [(pad(fit(name, names), names) + "  ", "label"), (pad_left(value, values), ink)]
                line.append(("   ", "text"))
            else:  # a long value, alone in its column: wrapped under its name
                pieces = wrap(value, max(1, room))
                line += [(pad(fit(name, names), names) + "  ", "label"), (pieces[0] if pieces else "", ink)]
                lines.append(line)
                lines += [[(" " * (indent + names + 2), "text"), (piece, ink)] for piece in pieces[1:]]
                line = []
        if line:
            lines.append(line)
    return lines


def cells(width: int, *spans: tuple[str, int, str]) -> Line:
    """A row of a table: (text, cells, ink); positive widths align right, negative left. Cut at `width`."""
    line: list[Span] = []
    used = 0
    for text, size, ink in spans:
        length = abs(size)
        if used + length > width:
            break
        shown = pad(fit(text, length), length) if size < 0 else pad_left(text, length)
        line.append((shown, ink))
        used += cells_of(shown)
    return line
