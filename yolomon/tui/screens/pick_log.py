"""The logs that were found, to pick one from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.tui.canvas import Line, fill
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.view import Frame
from yolomon.tui.words import duration, fit, fit_left, plain


class PickLogPage(BodyPage):
    """A list: the arrow keys choose, Enter attaches, Escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Attach", id="take", show=False, tooltip="Follow this log"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """A line a log: when it last grew, and where it lies."""
        tr = frame.tr
        found = self.monitor.feed.candidates()
        lines: list[Line] = [[], [(" " + tr("Training logs that were found"), "title")], []]
        if not found:
            return [
                *lines,
                [("   " + tr("None yet. The search goes on; a log is attached when one grows."), "dim")],
            ]
        self.chosen = max(0, min(self.chosen, len(found) - 1))
        for place, candidate in enumerate(found):
            marked = place == self.chosen
            age = duration(tr, max(0.0, time.time() - candidate.modified_ts))
            about = tr("grows now") if candidate.growing else tr("grew {age} ago", age=age)
            words = (plain(candidate.format), about, tr(candidate.reason))
            about = f" {frame.glyphs.dot} ".join(words)
            sign = frame.glyphs.arrow if marked else " " * len(frame.glyphs.arrow)
            path = fit_left(plain(candidate.path), width - 6, frame.glyphs.ellipsis)
            lines.append(fill([(f" {sign} {path}", "selected" if marked else "number")], width))
            lines.append([("     " + fit(about, width - 6, frame.glyphs.ellipsis), "dim")])
        return [*lines, [], [(" " + tr("Enter: attach   Esc: back"), "dim")]]

    def action_move(self, lines: int) -> None:
        """Choose another."""
        self.chosen += lines
        self.monitor.redraw()

    def action_take(self) -> None:
        """Follow the chosen log, and the others of its run."""
        feed = self.monitor.feed
        found = feed.candidates()
        if found:
            feed.attach([Path(path) for path in found[min(self.chosen, len(found) - 1)].paths])
        self.monitor.pop_screen()
