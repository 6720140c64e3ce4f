"""The last line: at most six keys, and what yolomon itself costs."""

from __future__ import annotations

from yolomon.tui.canvas import Canvas, Line, fill, width_of
from yolomon.tui.view import Frame
from yolomon.tui.words import size


class FooterLine(Canvas):
    """Keys and own cost."""

    def draw(self, frame: Frame, width: int) -> None:
        """Draw this moment."""
        self.show([footer_line(frame, width)])


def footer_line(frame: Frame, width: int) -> Line:
    """As "? help  Tab page  ←→ time  +- window  s silence  q quit      own cost 1.1 % CPU · 45 M"."""
    tr = frame.tr
    arrows = "<>" if frame.glyphs.style == "ascii" else "←→"
    keys = [
        ("?", tr("help")),
        ("Tab", tr("page")),
        (arrows, tr("cursor")),
        ("+-", tr("window")),
        ("[]", tr("time")),
        ("q", tr("quit")),
    ]
    line: Line = [(" ", "text")]
    for key, about in keys:
        piece: Line = [(key, "info"), (f" {about}  ", "label")]
        if width_of(line) + width_of(piece) > width:
            break
        line += piece
    cost = ""
    if frame.own_cpu_percent is not None:
        cost = tr("own cost {cpu} % CPU", cpu=f"{frame.own_cpu_percent:.1f}")
        if frame.own_rss_bytes:
            cost += f" {frame.glyphs.dot} {size(frame.own_rss_bytes)}"
    gap = width - width_of(line) - width_of([(cost, "")]) - 1
    if cost and gap >= 1:
        line += [(" " * gap, "text"), (cost, "dim"), (" ", "text")]
    return fill(line, width)
