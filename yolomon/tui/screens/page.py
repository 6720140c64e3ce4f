"""What all pages share: they are drawn from a frame, and use the sparing compositor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual._styles_cache import StylesCache
from textual.binding import Binding, BindingType
from textual.screen import Screen

from yolomon.tui.compositor import SparingCompositor
from yolomon.tui.view import Frame

if TYPE_CHECKING:
    from yolomon.tui.app import MonitorApp


class Page(Screen[Any]):
    """One page. `draw` is called by the app when there is something new and the page is on top."""

    PAGE: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.next_page(1)", "Next page", id="next_page", tooltip="Show the next page"),
        Binding(
            "shift+tab", "app.next_page(-1)", "Page before", id="previous_page", show=False,
            tooltip="Show the page before",
        ),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._compositor = SparingCompositor()

    @property
    def monitor(self) -> MonitorApp:
        """The application, as what it is."""
        return cast("MonitorApp", self.app)

    def on_unmount(self) -> None:
        """Let go of what was drawn: Textual's cache of borders keeps the last 1024 widgets, 30 kB each."""
        forget = getattr(StylesCache.get_inner_outer, "cache_clear", None)
        if forget is not None:
            forget()

    def draw(self, frame: Frame) -> None:
        """Draw this moment."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Another size: draw for it, once the widgets have it too."""
        self.call_after_refresh(self.monitor.redraw)

    def on_screen_resume(self) -> None:
        """Back on top: what was missed is drawn."""
        self.call_after_refresh(self.monitor.redraw)
