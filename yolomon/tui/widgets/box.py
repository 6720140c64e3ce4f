"""Frames drawn as text: a title at the left, a judgement at the right of the upper edge."""

from __future__ import annotations

from collections.abc import Sequence

from yolomon.tui.canvas import Line, fill, width_of
from yolomon.tui.glyphs import Glyphs
from yolomon.tui.words import fit


def top_edge(
    glyphs: Glyphs, width: int, title: str, judgement: str = "", ink: str = "warn", *, joined: bool = False
) -> Line:
    """The upper edge: "╭ GPU 1 · rank 1 ───── ⚠ slow rank ─╮"."""
    left, right = ("├", "┤") if joined and glyphs.style != "ascii" else (glyphs.top_left, glyphs.top_right)
    if width < 4:
        return [(glyphs.horizontal * max(0, width), "frame")]
    room = width - 4
    judged = fit(judgement, max(0, room - 6), glyphs.ellipsis) if judgement else ""
    titled = fit(title, room - (width_of([(judged, "")]) + 3 if judged else 1), glyphs.ellipsis)
    line: Line = [(f"{left} ", "frame"), (titled, "title")]
    tail: Line = (
        [(" ", "frame"), (judged, ink), (f" {glyphs.horizontal}{right}", "frame")]
        if judged
        else [(right, "frame")]
    )
    rest = width - width_of(line) - width_of(tail)
    return [*line, (" " + glyphs.horizontal * (rest - 1), "frame"), *tail]


def bottom_edge(glyphs: Glyphs, width: int, marks: Sequence[tuple[int, str]] = ()) -> Line:
    """The lower edge with words at given columns: "╰─ −5 min ──── −2:30 ──── now ─╯"."""
    if width < 4:
        return [(glyphs.horizontal * max(0, width), "frame")]
    cells = [glyphs.horizontal] * (width - 2)
    line: Line = [(glyphs.bottom_left, "frame")]
    at = 0
    for place, word in marks:
        length = width_of([(word, "")])
        start = place - 1
        if start < at + 1 or start + length > len(cells) - 1:
            continue
        line.append((glyphs.horizontal * (start - at - 1) + " ", "frame"))
        line.append((word, "dim"))
        line.append((" ", "frame"))
        at = start + length + 1
    line.append((glyphs.horizontal * (len(cells) - at), "frame"))
    line.append((glyphs.bottom_right, "frame"))
    return line


def inside(glyphs: Glyphs, width: int, line: Line) -> Line:
    """A line of content between the two sides."""
    return [(glyphs.vertical, "frame"), *fill(line, width - 2), (glyphs.vertical, "frame")]
