"""What all pages share: they are drawn from a frame, and use the sparing compositor."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.screen import Screen

from yolomon.tui.compositor import SparingCompositor
from yolomon.tui.view import Frame


class Page(Screen[Any]):
    """One page. `draw` is called by the app when there is something new and the page is on top."""

    PAGE: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = SparingCompositor()

    def draw(self, frame: Frame) -> None:
        """Draw this moment."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Another size: draw for it, once the widgets have it too."""
        self.call_after_refresh(self.app.redraw)  # type: ignore[attr-defined]

    def on_screen_resume(self) -> None:
        """Back on top: what was missed is drawn."""
        self.call_after_refresh(self.app.redraw)  # type: ignore[attr-defined]
