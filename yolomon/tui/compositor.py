"""Fewer bytes for the same picture.

Textual 8.2 writes a changed region from the beginning of its widget's line, and with a full set of colour
codes and a reset for every piece of text. Over a slow line that is most of what a monitor sends. Here only
the changed cells are written, and of their style only what differs from the piece before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from rich.color import Color, ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate
from textual.geometry import Region
from textual.screen import Screen

from yolomon.tui.canvas import Canvas
from yolomon.tui.words import cells_of

_ATTRIBUTES = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("reverse", "7"),
    ("strike", "9"),
)
Codes = tuple[str, str, str]
Piece = tuple[int, int, Iterable[Segment]]
_RESET: Codes = ("", "", "")


@lru_cache(maxsize=1024)
def style_codes(style: Style | None, system: ColorSystem | None) -> Codes:
    """The SGR parameters of a style: attributes, foreground, background."""
    if style is None or system is None:
        attributes = "" if style is None else _attributes(style)
        return (attributes, "", "")
    return (
        _attributes(style),
        _color(style.color, system, foreground=True),
        _color(style.bgcolor, system, foreground=False),
    )


def _attributes(style: Style) -> str:
    return ";".join(code for name, code in _ATTRIBUTES if getattr(style, name))


def _color(color: Color | None, system: ColorSystem, *, foreground: bool) -> str:
    if color is None or color.is_default:
        return ""
    return ";".join(color.downgrade(system).get_ansi_codes(foreground))


@lru_cache(maxsize=4096)
def transition(before: Codes, after: Codes) -> str:
    """The escape sequence that turns one style into another; empty where nothing differs."""
    if before == after:
        return ""
    if before[0] != after[0] or (before[1] and not after[1]) or (before[2] and not after[2]):
        codes = ";".join(code for code in after if code)
        full = f"\x1b[0;{codes}m" if codes else "\x1b[0m"
        if before[0] != after[0]:
            return full
        parts = []
        if before[1] != after[1]:
            parts.append(after[1] or "39")
        if before[2] != after[2]:
            parts.append(after[2] or "49")
        return f"\x1b[{';'.join(parts)}m"
    parts = [new for old, new in zip(before[1:], after[1:], strict=True) if old != new]
    return f"\x1b[{';'.join(parts)}m"


def written(pieces: Iterable[Piece], system: ColorSystem | None) -> str:
    """The bytes for pieces of lines (y, x, cells): moves where needed, colours where they differ."""
    out: list[str] = []
    style: Codes = _RESET
    at = (-1, -1)
    for y, x, segments in pieces:
        if at != (y, x):
            out.append(f"\x1b[{y + 1};{x + 1}H")
        for text, segment_style, control in segments:
            if control:
                continue
            codes = style_codes(segment_style, system)
            if codes != style:
                out.append(transition(style, codes))
                style = codes
            out.append(text)
            x += cells_of(text)
        at = (y, x)
    if style != _RESET:
        out.append("\x1b[0m")
    return "".join(out)


class SparingUpdate(ChopsUpdate):
    """A partial update that writes only the cells of its spans."""

    def render_segments(self, console: Console) -> str:
        """The update as text for the terminal."""
        return written(self._pieces(), console._color_system)

    def _pieces(self) -> Iterator[Piece]:
        for y, x1, x2 in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= x2 or end <= x1:
                    continue
                left, right = max(x, x1), min(end, x2)
                if left != x or right != end:
                    strip = strip.crop(left - x, right - x)
                yield y, left, strip


class DirectUpdate(CompositorUpdate):
    """Pieces of lines at their places, taken straight from the widgets."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """The update as text for the terminal."""
        return written(self.pieces, console._color_system)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The same for a console that wants segments (a recorded or web session)."""
        for y, x, segments in self.pieces:
            yield Control.move_to(x, y).segment
            yield from segments


class SparingCompositor(Compositor):
    """Textual's compositor with cheaper partial updates.

    Where only canvases are changed and none lies over another (an overview), their changed cells are taken
    from them directly; else Textual composes as always and only the writing is spared.
    """

    def render_partial_update(self) -> Any:  # noqa: ANN401 - CompositorUpdate | None, as Textual has it
        """The changed cells, or None."""
        direct = self._direct()
        if direct is not None:
            self._dirty_regions.clear()
            return direct
        update = super().render_partial_update()
        if update is None:
            return None
        return SparingUpdate(update.chops, update.spans, update.chop_ends)

    def _direct(self) -> DirectUpdate | None:
        canvases: list[tuple[Region, Canvas]] = []
        for widget, (region, _) in self.visible_widgets.items():
            if isinstance(widget, Canvas):
                canvases.append((region, widget))
            elif not isinstance(widget, Screen):
                return None  # something may lie over the canvases
        if not canvases:
            return None
        screen = self.size.region
        regions = [found for region in self._dirty_regions if (found := region.intersection(screen))]
        pieces: list[Piece] = []
        for y, x1, x2 in self._regions_to_spans(regions):
            covered = 0
            for region, canvas in canvases:
                if region.y <= y < region.bottom and region.x < x2 and region.right > x1:
                    left, right = max(x1, region.x), min(x2, region.right)
                    pieces.append((y, left, canvas.cells(y - region.y, left - region.x, right - region.x)))
                    covered += right - left
            if covered != x2 - x1:
                return None
        return DirectUpdate(pieces) if pieces else None
