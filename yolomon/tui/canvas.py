"""A widget that shows lines of inked text and redraws only the cells that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import eq

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from yolomon.tui import theme
from yolomon.tui.words import cells_of

Span = tuple[str, str]  # text and the name of its ink
Line = list[Span]


class Canvas(Widget):
    """Lines by the Line API. `show` compares with what is there and has only the difference repainted."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[Line] = []
        self._strips: list[Strip] = []
        self._inks: dict[str, Style] = {}

    @property
    def lines(self) -> list[Line]:
        """What is shown now."""
        return self._lines

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines from the top; what is below them is blank."""
        width, height = self.size
        new = list(lines[:height])
        old = self._lines
        regions: list[Region] = []
        strips = self._strips
        if len(strips) < len(new):
            strips.extend([Strip.blank(width)] * (len(new) - len(strips)))
        for y, line in enumerate(new):
            if y < len(old):
                if line == old[y]:
                    continue
                regions.extend(Region(x, y, w, 1) for x, w in differences(old[y], line, width))
            else:
                regions.append(Region(0, y, width, 1))
            strips[y] = self._strip(line, width)
        for y in range(len(new), len(old)):
            regions.append(Region(0, y, width, 1))
        del strips[len(new) :]
        self._lines = new
        if regions:
            self.refresh(*regions)

    def _strip(self, line: Line, width: int) -> Strip:
        inks = self._inks or self._take_inks()
        segments = [Segment(text, inks[ink]) for text, ink in line]
        if width_of(line) == width:
            return Strip(segments, width)
        return Strip(segments).adjust_cell_length(width, inks["text"])

    def cells(self, y: int, start: int, end: int) -> Iterable[Segment]:
        """The cells of a row as they go to the terminal, colour filters applied."""
        strip = self.render_line(y)
        place = 0
        found: list[Segment] = []
        for segment in strip:  # mostly whole segments are asked for: cheaper than `Strip.crop`
            if place >= end:
                break
            width = cells_of(segment.text)
            if place >= start and place + width <= end:
                found.append(segment)
            elif place + width > start:
                if len(segment.text) != width:  # a wide character may be cut
                    return self._filtered(strip.crop(start, end))
                part = segment.text[max(0, start - place) : end - place]
                found.append(Segment(part, segment.style))
            place += width
        return self._filtered(Strip(found)) if self.app.no_color else found

    def _filtered(self, strip: Strip) -> Strip:
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self._background())
        return strip

    def _background(self) -> Color:
        return Color.parse(self.app.current_theme.background or "ansi_default")

    def _take_inks(self) -> dict[str, Style]:
        self._inks = theme.inks(self.app.current_theme)
        return self._inks

    def notify_style_update(self) -> None:
        """Textual tells that colours may have changed."""
        super().notify_style_update()
        if self._inks:
            self._inks = {}
            width = self.size.width
            self._strips = [self._strip(line, width) for line in self._lines]

    def on_resize(self) -> None:
        """Another size: everything is drawn anew by the screen."""
        self._lines, self._strips = [], []

    def render_line(self, y: int) -> Strip:
        """One row of what is shown."""
        if y < len(self._strips):
            return self._strips[y]
        inks = self._inks or self._take_inks()
        return Strip.blank(self.size.width, inks["text"])

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as there is room."""
        return container.width


def differences(old: Line, new: Line, width: int) -> list[tuple[int, int]]:
    """The cells in which two lines differ, as (first cell, cells).

    Lines of the same build are compared piece by piece, others of one length cell by cell (a graph whose
    newest column moves on has pieces of other lengths), the rest up to their end.
    """
    if len(old) == len(new):
        found: list[tuple[int, int]] = []
        x = 0
        for before, after in zip(old, new, strict=True):
            cells = cells_of(after[0])
            if before != after:
                if cells_of(before[0]) != cells:
                    found = []
                    break
                first, last = _trimmed(before, after)
                if found and found[-1][0] + found[-1][1] == x + first:
                    found[-1] = (found[-1][0], found[-1][1] + cells - first - last)
                else:
                    found.append((x + first, cells - first - last))
            x += cells
        else:
            return [(x, min(w, width - x)) for x, w in found if x < width and w > 0]
    spread_old, spread_new = _spread(old), _spread(new)
    if len(spread_old) == len(spread_new):
        return [(x, min(w, width - x)) for x, w in _differing(spread_old, spread_new) if x < width]
    first = 0
    x = 0
    while first < len(old) and first < len(new) and old[first] == new[first]:
        x += cells_of(new[first][0])
        first += 1
    end = max(width_of(old), width_of(new))
    if first < len(old) and first < len(new):
        x += _trimmed(old[first], new[first])[0]
    return [(x, max(0, min(end, width) - x))] if x < width else []


NEAR_CELLS = 5  # to go to another place costs as much as to send so many cells again


def _differing(before: list[Span], after: list[Span]) -> list[tuple[int, int]]:
    """Where the cells of two lines of one width differ; places that are near one another are one."""
    found: list[tuple[int, int]] = []
    same = list(map(eq, before, after))
    at = -1
    for _ in range(same.count(False)):
        at = x = same.index(False, at + 1)
        last = x + 1
        while last < len(after) and not (before[last][0] and after[last][0]):
            last += 1  # the other half of a wide character
        while not (before[x][0] and after[x][0]):
            x -= 1
        if found and x <= found[-1][0] + found[-1][1] + NEAR_CELLS:
            found[-1] = (found[-1][0], max(last - found[-1][0], found[-1][1]))
        else:
            found.append((x, last - x))
    return found


def _spread(line: Line) -> list[Span]:
    """A span a cell; the second half of a wide character is empty."""
    cells: list[Span] = []
    for text, ink in line:
        if cells_of(text) == len(text):
            cells += zip(text, repeat(ink))
        else:
            for sign in text:
                wide = cells_of(sign)
                if wide:
                    cells += [(sign, ink), *([("", ink)] * (wide - 1))]
                elif cells:  # it is drawn over the one before
                    cells[-1] = (cells[-1][0] + sign, ink)
    return cells


def _trimmed(before: Span, after: Span) -> tuple[int, int]:
    """How many cells two pieces have in common at the beginning, and of the rest at the end."""
    old, new = before[0], after[0]
    if before[1] != after[1] or cells_of(old) != len(old) or cells_of(new) != len(new):
        return 0, 0
    least = min(len(old), len(new))
    first = _common(least, lambda cells: old[:cells] == new[:cells])
    last = _common(least - first, lambda cells: old[len(old) - cells :] == new[len(new) - cells :])
    return first, last


def _common(most: int, equal: Callable[[int], bool]) -> int:
    """The greatest number of cells that are equal, by halving."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if equal(middle):
            least = middle
        else:
            most = middle - 1
    return least


def width_of(line: Line) -> int:
    """Cells of a line."""
    return sum(cells_of(text) for text, _ in line)


def fill(line: Line, width: int, ink: str = "text") -> Line:
    """The line with blanks up to `width` cells."""
    missing = width - width_of(line)
    return [*line, (" " * missing, ink)] if missing > 0 else line
