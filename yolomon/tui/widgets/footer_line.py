"""The last line: at most six keys, and what yolomon itself costs."""

from __future__ import annotations

from collections.abc import Sequence

from yolomon.messages import Message
from yolomon.tui.canvas import Canvas, Line, fill, width_of
from yolomon.tui.view import Frame
from yolomon.tui.words import cells_of, fit, fit_left, fit_words, plain, size


class FooterLine(Canvas):
    """Keys and own cost."""

    def draw(self, frame: Frame, width: int, keys: Sequence[tuple[str, Message]] = ()) -> None:
        """Draw this moment; `keys` are the page's own, in place of the overview's."""
        self.show([footer_line(frame, width, keys)])


def footer_line(frame: Frame, width: int, own_keys: Sequence[tuple[str, Message]] = ()) -> Line:
    """As "? help  Tab page  ←→ time  +- window  s silence  q quit      own cost 1.1 % CPU · 45 M"."""
    tr = frame.tr
    if frame.typing is not None:
        typed: Line = [(" ", "text"), (fit_left(plain(frame.typing), width - 3), "title"), ("_", "cursor")]
        ends = tr("Enter: done  Esc: cancel")
        gap = width - width_of(typed) - cells_of(ends) - 1
        if gap >= 2:
            typed += [(" " * gap, "text"), (ends, "dim")]
        return fill(typed, width)
    if frame.notice:
        return fill([(" ", "text"), (fit_words(frame.notice, width - 2), "info")], width)
    arrows = "<>" if frame.glyphs.style == "ascii" else "←→"
    keys = [
        ("?", tr("help")),
        ("Tab", tr("page")),
        (arrows, tr("cursor")),
        ("+-", tr("window")),
        ("[]", tr("time")),
        ("q", tr("quit")),
    ]
    if own_keys:
        keys = [(_shown(key, arrows), tr(about)) for key, about in own_keys]
    line: Line = [(" ", "text")]
    if frame.filter:
        line += [(fit(f" /{plain(frame.filter)} ", max(4, width // 3)), "selected"), ("  ", "text")]
    pieces: list[Line] = [[(key, "info"), (f" {about}  ", "label")] for key, about in keys]
    # Where not all have room, the help, which tells all others, and the way out are not the ones that go.
    ways = [piece for piece, (key, _) in zip(pieces, keys, strict=True) if key in ("?", "q")]
    for piece in pieces:
        kept = sum(width_of(way) for way in ways if way is not piece and way[0] not in line)
        if width_of(line) + width_of(piece) - 2 + kept <= width:
            line += piece
    line[-1] = (line[-1][0].removesuffix("  "), line[-1][1]) if width_of(line) > width else line[-1]
    cost = ""
    if frame.own_cpu_percent is not None:
        cost = tr("own cost {cpu} % CPU", cpu=f"{frame.own_cpu_percent:.1f}")
        if frame.own_rss_bytes:
            cost += f" {frame.glyphs.dot} {size(frame.own_rss_bytes)}"
    gap = width - width_of(line) - width_of([(cost, "")]) - 1
    if cost and gap >= 1:
        line += [(" " * gap, "text"), (cost, "dim"), (" ", "text")]
    return fill(line, width)


def _shown(key: str, arrows: str) -> str:
    return (
        arrows
        if key == "left,right"
        else "^v"
        if key == "up,down" and arrows == "<>"
        else _SIGNS.get(key, key)
    )


_SIGNS = {"up,down": "↑↓"}
