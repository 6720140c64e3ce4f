"""A page of the top line, one scrolling body and the footer: most pages only say what their lines are."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import MouseScrollDown, MouseScrollUp

from yolomon.messages import Message, msg
from yolomon.tui.canvas import Canvas, Line
from yolomon.tui.layout import Rect
from yolomon.tui.screens.overview import place
from yolomon.tui.screens.page import Page
from yolomon.tui.view import Frame
from yolomon.tui.widgets.footer_line import FooterLine
from yolomon.tui.widgets.top_line import TopLine


class BodyPage(Page):
    """Subclasses give `body_lines`; lines beyond the height are reached with the arrow keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", id="up", show=False, tooltip="Up by a line"),
        Binding("down,j", "move(1)", "Down", id="down", show=False, tooltip="Down by a line"),
        Binding("pageup", "leaf(-1)", "Page up", id="page_up", show=False, tooltip="Up by a screen"),
        Binding("pagedown", "leaf(1)", "Page down", id="page_down", show=False, tooltip="Down by a screen"),
        Binding("home,g", "move(-100000)", "First", id="first", show=False, tooltip="To the top"),
        Binding("G", "move(100000)", "Last", id="last", show=False, tooltip="To the bottom"),
    ]

    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("?", msg("help")),
        ("Tab", msg("page")),
        ("up,down", msg("scroll")),
        ("Esc", msg("overview")),
        ("q", msg("quit")),
    )

    def __init__(self) -> None:
        super().__init__()
        self.top = TopLine(id="top")
        self.body = Canvas(id="body")
        self.foot = FooterLine(id="footer")
        self.first_line = 0
        self._placed: tuple[int, int] | None = None
        self._length = 0
        self.room = 0  # rows of the body

    def compose(self) -> ComposeResult:
        """Top line, body, footer."""
        yield self.top
        yield self.body
        yield self.foot

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """All lines of the body, also those that do not fit in `height`."""
        raise NotImplementedError

    def draw(self, frame: Frame) -> None:
        """Draw this moment."""
        width, height = self.size
        foot = 1 if height >= 6 else 0
        if self._placed != (width, height):
            self._placed = (width, height)
            place(self.top, Rect(0, 0, width, 1))
            place(self.body, Rect(0, 1, width, height - 1 - foot) if height > 1 + foot else None)
            place(self.foot, Rect(0, height - 1, width, 1) if foot else None)
        room = self.room = max(0, height - 1 - foot)
        self.top.draw(frame, width, 1)
        lines = self.body_lines(frame, width, room)
        self._length = len(lines)
        self.first_line = max(0, min(self.first_line, len(lines) - room))
        self.body.show(lines[self.first_line : self.first_line + room])
        if foot:
            self.foot.draw(frame, width, self.KEYS)

    def action_move(self, lines: int) -> None:
        """Scroll by that many lines; a page with a selection moves that instead."""
        self.scroll_lines(lines)

    def action_leaf(self, screens: int) -> None:
        """Scroll by nearly the height of the body."""
        self.scroll_lines(screens * max(1, self.room - 2))

    def scroll_lines(self, lines: int) -> None:
        """Scroll, whatever the arrow keys choose."""
        self.first_line = max(0, min(self.first_line + lines, self._length))
        self.monitor.redraw()

    def on_mouse_scroll_down(self, _event: MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.scroll_lines(3)

    def on_mouse_scroll_up(self, _event: MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.scroll_lines(-3)
