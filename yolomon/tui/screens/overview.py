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
from yolomon.tui.widgets.findings_panel import FindingsPanel, wanted_rows
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
        self._planned: tuple[int, int, int, int] | None = None
        self._wanted: tuple[tuple[object, ...], int] = ((), 0)  # by the worst finding: rows
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
        wanted = (width, height, len(frame.history.gpus), self._finding_rows(frame))
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

    def _finding_rows(self, frame: Frame) -> int:
        """What the worst finding needs; less only for another one: numbers in it may come and go.

        While an earlier moment is looked at nothing moves because of findings that were not yet there.
        """
        width, height = self.size
        worst = next(iter(frame.findings_at()), None)
        key = (width, height, *((worst.code, worst.target) if worst is not None else ()))
        rows = wanted_rows(frame, width, height)
        before, kept = self._wanted
        still = not frame.live or frame.view.cursor_ts is not None
        if before == key or (still and before[:2] == key[:2]):
            rows = max(rows, kept)
        self._wanted = (key, rows)
        return rows

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
