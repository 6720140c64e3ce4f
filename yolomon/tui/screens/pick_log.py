"""The logs that were found, to pick one from; or a path that the user types."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.messages import Message, msg
from yolomon.trainlog.discover import Candidate, logs_in
from yolomon.tui.canvas import Line
from yolomon.tui.entry import Entry
from yolomon.tui.screens.list_page import ListPage
from yolomon.tui.view import Frame
from yolomon.tui.widgets.text_lines import cells, heading, paragraph
from yolomon.tui.words import cells_of, duration, fit_left, plain


class PickLogPage(ListPage):
    """A list: the arrow keys choose, Enter attaches, Escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Attach", id="take", tooltip="Follow this log"),
        Binding("o", "other", "Other file", id="other", tooltip="Type the path of another log or run folder"),
    ]
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("up,down", msg("choose")),
        ("Enter", msg("follow")),
        ("o", msg("other file")),
        ("/", msg("filter")),
        ("Esc", msg("back")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._found: list[Candidate] = []

    def rows(self, frame: Frame, width: int) -> list[Line]:
        """A line a log: when it last grew, and where it lies."""
        words = frame.filter.lower().split()
        self._found = [
            candidate
            for candidate in self.monitor.feed.candidates()
            if all(word in candidate.path.lower() for word in words)
        ]
        return [candidate_row(frame, candidate, width - 3) for candidate in self._found]

    def head(self, frame: Frame, width: int) -> list[Line]:
        """What the list is."""
        tr = frame.tr
        lines = [heading(frame, tr("Training logs that were found"), width)]
        if not self._found:
            text = (
                tr("No log's path holds these words.")
                if frame.filter
                else tr("None yet. The search goes on; a log is attached when one grows.")
            )
            return [*lines, *paragraph(text, width, "dim")]
        if self.monitor.feed.needs_choice:
            text = tr("Several runs fit equally well: choose the one to follow.")
            lines += paragraph(text, width, "info", first=" ")
        return lines

    def detail(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Why the chosen one is offered, its whole path, and the other logs of its run."""
        if not self._found or height < 2:
            return []
        tr = frame.tr
        candidate = self._found[self.chosen]
        lines = [heading(frame, plain(candidate.format), width)]
        lines += paragraph(tr(candidate.reason), width)
        lines += paragraph(candidate.path, width, "number")
        for path in candidate.paths[1:4]:
            lines += paragraph(tr("with {path}", path=path), width, "dim")
        return lines

    def action_take(self) -> None:
        """Follow the chosen log, and the others of its run."""
        if self._found:
            paths = self._found[min(self.chosen, len(self._found) - 1)].paths
            self._follow([Path(path) for path in paths])

    def action_other(self) -> None:
        """Type a path; it is looked at in a thread, as it may lie on a network."""

        def typed(text: str | None) -> None:
            if text and text.strip():
                self.run_worker(
                    lambda: self._look(text.strip()), thread=True, exclusive=True, exit_on_error=False
                )

        self.monitor.type_into(Entry(self.monitor.tr("path: "), on_done=typed))

    def _look(self, text: str) -> None:
        """In the thread: a folder stands for the logs of the run in it."""
        try:
            path = Path(text).expanduser()
            found = [Path(file) for file in logs_in(path)] if path.is_dir() else [path]
            known = bool(found) and found[0].is_file()
        except (OSError, RuntimeError, ValueError):  # no such home, a path with a zero byte
            found, known = [], False
        self.app.call_from_thread(self._looked, text, found if known else None)

    def _looked(self, text: str, found: Sequence[Path] | None) -> None:
        if found is None:
            self.monitor.say(self.monitor.tr("There is no log at {path}.", path=plain(text)))
        elif self.is_current:
            self._follow(found)

    def _follow(self, paths: Sequence[Path]) -> None:
        self.monitor.feed.attach(paths)
        self.monitor.pop_screen()
        self.monitor.say(self.monitor.tr("Following {path}", path=plain(str(paths[0]))))


def candidate_row(frame: Frame, candidate: Candidate, width: int) -> Line:
    """The end of the path, and when it grew."""
    tr = frame.tr
    age = duration(tr, max(0.0, time.time() - candidate.modified_ts))
    about = tr("grows now") if candidate.growing else tr("grew {age} ago", age=age)
    room = max(8, width - cells_of(about) - 2)
    path = fit_left(plain(candidate.path), room, frame.glyphs.ellipsis)
    return [
        *cells(width, (path, -room, "number"), ("  ", -2, "text")),
        (about, "ok" if candidate.growing else "dim"),
    ]
