"""A chart of curves over the run: smoothing, band, logarithm, marks of NaN, epochs and the best."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from math import floor, inf, isfinite, log10

import msgspec

from yolomon.history import Curve
from yolomon.tui.canvas import Line
from yolomon.tui.glyphs import Glyphs
from yolomon.tui.raster import Raster
from yolomon.tui.widgets.curves import nice_ticks
from yolomon.tui.words import fit, pad_left

AXIS_CELLS = 8
SMOOTHING = (0.0, 0.6, 0.9)
_Place = Callable[[float], int]


class Drawn(msgspec.Struct, frozen=True):
    """One curve of a chart."""

    curve: Curve
    ink: str
    best: str = ""  # "max" or "min": which of its points is the best; "": none
    earlier: bool = False  # of another run: dotted


class Look(msgspec.Struct, frozen=True):
    """How all charts are drawn. `x_from` and `x_to` are on the curves' axis."""

    x_from: float
    x_to: float
    logarithmic: bool = False
    smoothing: float = 0.0
    band: bool = True
    epochs: bool = True  # x counts epochs


def best_of(curve: Curve, best: str) -> tuple[float, float] | None:
    """Where and what the best point was."""
    values = curve.high if best == "max" else curve.low
    if not len(values) or not best:
        return None
    place = max(range(len(values)), key=lambda i: values[i] if best == "max" else -values[i])
    return curve.x[place], values[place]


def smoothed(values: list[float], strength: float) -> list[float]:
    """Exponential mean of the points so far, without its start at zero (as TensorBoard's slider does)."""
    if strength <= 0:
        return values
    mean, weight, result = 0.0, 0.0, []
    for value in values:
        mean = strength * mean + (1 - strength) * value
        weight = strength * weight + 1 - strength
        result.append(mean / weight)
    return result


def bounds(drawn: list[Drawn], look: Look) -> tuple[float, float] | None:
    """The least and greatest value within the window; the start of a long fall does not count."""
    low, high = inf, -inf
    settle = look.x_from + (look.x_to - look.x_from) * 0.05
    for entry in drawn:
        curve = entry.curve
        first, last = _within(curve, look)
        if last - first > 60:
            first = max(first, bisect_left(curve.x, settle, first, last))
        for place in range(first, last):
            lowest = curve.low[place] if look.band else curve.last[place]
            highest = curve.high[place] if look.band else curve.last[place]
            if look.logarithmic and lowest <= 0:
                lowest = curve.last[place]
                if lowest <= 0:
                    continue
            low, high = min(low, lowest), max(high, highest)
    if low > high:
        return None
    if low == high:
        if not low:
            return 0.0, 1.0
        margin = abs(low) * 0.1
        return (low / 1.1, high * 1.1) if look.logarithmic else (low - margin, high + margin)
    return low, high


def _within(curve: Curve, look: Look) -> tuple[int, int]:
    """The points within the window; all of a resumed run, whose x is not in order."""
    if curve.breaks:
        return 0, len(curve.x)
    return bisect_left(curve.x, look.x_from), bisect_right(curve.x, look.x_to)


def chart_lines(
    drawn: list[Drawn], look: Look, glyphs: Glyphs, width: int, height: int, unit: str = ""
) -> list[Line]:
    """The chart with numbers at the left and below, `height` lines; empty without a point in the window."""
    rows, columns = height - 1, width - AXIS_CELLS - 1
    found = bounds(drawn, look) if rows >= 2 and columns >= 8 else None
    if found is None:
        return []
    low, high = found
    raster = Raster(columns, rows, ascii_only=glyphs.style == "ascii")
    across, down = raster.dots
    span = max(look.x_to - look.x_from, 1e-9)

    def place_x(x: float) -> int:
        return round((x - look.x_from) / span * (across - 1))

    def place_y(y: float) -> int:
        if look.logarithmic:
            share = (log10(max(y, low)) - log10(low)) / (log10(high) - log10(low))
        else:
            share = (y - low) / (high - low)
        return round((1 - min(1.0, max(0.0, share))) * (down - 1))

    if look.band:
        for entry in drawn:
            if not entry.earlier:
                _band(raster, entry.curve, look, place_x, place_y)
    for entry in sorted(drawn, key=lambda e: not e.earlier):
        _line(raster, entry, look, place_x, place_y)
    ticks_x = nice_ticks(look.x_from, look.x_to, max(2, columns // 10))
    if look.epochs:
        for tick in ticks_x:
            for row in range(rows):
                raster.put(place_x(tick) // raster.across, row, glyphs.epoch, "frame", over=False)
    for entry in drawn:
        for x in entry.curve.non_finite if not entry.earlier else ():
            if look.x_from <= x <= look.x_to:
                raster.put(place_x(x) // raster.across, 0, glyphs.critical[:1], "crit")
        best = best_of(entry.curve, entry.best)
        if best is not None and look.x_from <= best[0] <= look.x_to:
            raster.put(place_x(best[0]) // raster.across, place_y(best[1]) // raster.down, "+", "ok")
    ticks_y = _ticks_y(low, high, max(2, rows // 3), logarithmic=look.logarithmic)
    labels: dict[int, str] = {}
    for tick in ticks_y:
        labels.setdefault(place_y(tick) // raster.down, f"{tick:.4g}")
    lines: list[Line] = [
        [(pad_left(labels.get(row, ""), AXIS_CELLS), "dim"), (glyphs.vertical, "frame"), *line]
        for row, line in enumerate(raster.lines())
    ]
    lines.append(
        [
            (
                pad_left(fit(unit, AXIS_CELLS), AXIS_CELLS)
                + " "
                + _axis(ticks_x, place_x, raster.across, columns),
                "dim",
            )
        ]
    )
    return lines


def _band(raster: Raster, curve: Curve, look: Look, place_x: _Place, place_y: _Place) -> None:
    spread: dict[int, tuple[float, float]] = {}
    for place in range(*_within(curve, look)):
        x = place_x(curve.x[place])
        low, high = curve.low[place], curve.high[place]
        known = spread.get(x)
        spread[x] = (low, high) if known is None else (min(low, known[0]), max(high, known[1]))
    for x, (low, high) in spread.items():
        raster.column(x, place_y(low), place_y(high), "band")


def _line(raster: Raster, entry: Drawn, look: Look, place_x: _Place, place_y: _Place) -> None:
    curve = entry.curve
    within = _within(curve, look)
    first, last = max(0, within[0] - 1), min(len(curve.x), within[1] + 1)
    values = smoothed(list(curve.last), 0.0 if entry.earlier else look.smoothing)
    ink = "dim" if entry.earlier else entry.ink
    before: tuple[int, int] | None = None
    for place in range(first, last):
        y = values[place]
        if (look.logarithmic and y <= 0) or not isfinite(y):
            before = None
            continue
        if place and curve.x[place] < curve.x[place - 1]:
            before = None  # a resumed run begins a new line
        here = (place_x(curve.x[place]), place_y(y))
        if before is None or here[0] < before[0] or here[0] - before[0] > 4 * raster.dots[0]:
            raster.dot(*here, ink)
        else:
            raster.line(*before, *here, ink, every=2 if entry.earlier else 1)
        before = here


def _ticks_y(low: float, high: float, count: int, *, logarithmic: bool) -> list[float]:
    if not logarithmic or high / low < 8:
        return nice_ticks(low, high, count)
    powers = [10.0**power for power in range(floor(log10(low)), floor(log10(high)) + 1)]
    ticks = [power * factor for power in powers for factor in (1, 2, 5) if low <= power * factor <= high]
    return ticks[:: max(1, -(-len(ticks) // (2 * count)))]


def _axis(ticks: list[float], place_x: _Place, across: int, columns: int) -> str:
    cells = [" "] * columns
    for tick in ticks:
        word = f"{tick:g}"
        at = min(max(0, place_x(tick) // across - len(word) // 2), columns - len(word))
        if all(cell == " " for cell in cells[max(0, at - 1) : at + len(word) + 1]):
            cells[at : at + len(word)] = list(word)
    return "".join(cells)
