"""A page with a list to choose from: fixed lines above, the list, what is said of the chosen entry below."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.tui.canvas import Line, fill
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.view import Frame

LEAST_ROWS = 3


class ListPage(BodyPage):
    """Subclasses give `head`, `rows` and `detail`; the arrow keys choose."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", id="up", show=False, tooltip="The entry above"),
        Binding("down,j", "move(1)", "Down", id="down", show=False, tooltip="The entry below"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0
        self.count = 0
        self._first_row = 0

    def head(self, frame: Frame, width: int) -> list[Line]:
        """The lines above the list."""
        raise NotImplementedError

    def rows(self, frame: Frame, width: int) -> list[Line]:
        """All entries of the list, a line each, without the mark of the chosen one (two cells)."""
        raise NotImplementedError

    def detail(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What is said of the chosen entry, in at most `height` lines."""
        return []

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Head, the part of the list around the choice, detail."""
        rows = self.rows(frame, width)
        self.count = len(rows)
        self.chosen = max(0, min(self.chosen, len(rows) - 1))
        head = self.head(frame, width)[: max(0, height - LEAST_ROWS) if rows else height]
        room = height - len(head)
        detail_room = max(0, room - min(max(len(rows), 1), max(LEAST_ROWS, room // 2)))
        detail = self.detail(frame, width, detail_room)[:detail_room]
        list_room = room - len(detail)
        self._first_row = min(self._first_row, self.chosen)
        self._first_row = max(self._first_row, self.chosen - list_room + 1)
        self._first_row = max(0, min(self._first_row, len(rows) - list_room))
        shown = rows[self._first_row : self._first_row + list_room]
        lines = [
            marked(line, width, chosen=place == self.chosen)
            for place, line in enumerate(shown, start=self._first_row)
        ]
        gap: list[Line] = [[]] if detail and len(lines) < list_room else []
        return [*head, *lines, *gap, *detail]

    def action_move(self, lines: int) -> None:
        """Choose another entry."""
        self.chosen = max(0, min(self.chosen + lines, self.count - 1))
        self.choice_changed()
        self.monitor.redraw()

    def scroll_lines(self, lines: int) -> None:
        """The wheel and the page keys move the choice too: it is always on screen."""
        self.action_move(lines)

    def choice_changed(self) -> None:
        """Another entry was chosen by a key."""


def marked(line: Line, width: int, *, chosen: bool) -> Line:
    """The line with room for the mark, or with the mark and in the ink of what is chosen."""
    if not chosen:
        return [("  ", "text"), *line]
    return [("> " + "".join(text for text, _ in fill(line, width - 2)), "selected")]
