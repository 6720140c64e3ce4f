"""The overview: all that matters on one screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.geometry import Offset
from textual.widget import Widget

from yolomon.tui.layout import Plan, Rect, plan
from yolomon.tui.screens.page import Page
from yolomon.tui.view import Frame
from yolomon.tui.widgets.curves import Curves
from yolomon.tui.widgets.findings_panel import FindingsPanel
from yolomon.tui.widgets.footer_line import FooterLine
from yolomon.tui.widgets.gpu_panel import GpuPanel
from yolomon.tui.widgets.host_line import HostPanel
from yolomon.tui.widgets.top_line import TopLine
from yolomon.tui.widgets.trainer_panel import TrainerPanel


class Overview(Page):
    """GPUs, host, trainer and findings."""

    PAGE: ClassVar[str] = "overview"

    def __init__(self) -> None:
        super().__init__()
        self.top = TopLine(id="top")
        self.gpus = GpuPanel(id="gpus")
        self.host = HostPanel(id="host")
        self.curves = Curves(id="curves")
        self.trainer = TrainerPanel(id="trainer")
        self.findings_panel = FindingsPanel(id="findings")
        self.foot = FooterLine(id="footer")
        self._planned: tuple[int, int, int] | None = None
        self._plan = Plan()

    def compose(self) -> ComposeResult:
        """All parts; the plan gives each its place."""
        yield self.top
        yield self.gpus
        yield self.host
        yield self.curves
        yield self.trainer
        yield self.findings_panel
        yield self.foot

    def _place_parts(self, frame: Frame) -> None:
        """Give the parts their places for this size and number of GPUs."""
        width, height = self.size
        wanted = (width, height, len(frame.history.gpus))
        if wanted == self._planned:
            return
        self._planned = wanted
        self._plan = plan(*wanted)
        places = self._plan.rectangles()
        parts: dict[str, Widget] = {
            "top": self.top, "gpus": self.gpus, "host": self.host, "curves": self.curves,
            "trainer": self.trainer, "findings": self.findings_panel, "footer": self.foot,
        }  # fmt: skip
        for name, part in parts.items():
            place(part, places.get(name))

    def draw(self, frame: Frame) -> None:
        """Draw this moment."""
        self._place_parts(frame)
        plan_ = self._plan
        self.top.draw(frame, *_size(plan_.top))
        self.gpus.draw(frame, plan_)
        self.host.draw(frame, plan_)
        if plan_.curves is not None:
            self.curves.draw(frame, plan_.curves.width, plan_.curves.height)
        if plan_.trainer is not None:
            self.trainer.draw(frame, plan_.trainer.width, plan_.trainer.height)
        if plan_.findings is not None:
            self.findings_panel.draw(frame, plan_.findings.width, plan_.findings.height)
        if plan_.footer is not None:
            self.foot.draw(frame, plan_.footer.width)


def _size(rect: Rect | None) -> tuple[int, int]:
    return (rect.width, rect.height) if rect is not None else (0, 0)


def place(part: Widget, rect: Rect | None) -> None:
    """Put a widget at a rectangle, or hide it."""
    if rect is None or rect.width < 1 or rect.height < 1:
        part.display = False
        return
    part.display = True
    part.styles.width = rect.width
    part.styles.height = rect.height
    part.styles.offset = Offset(rect.x, rect.y)
