"""The training curves: losses and mAP over epochs, by plotext, drawn anew only when they changed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from math import ceil, floor, inf, log10
from typing import Any

from yolomon.history import Curve, History
from yolomon.lean import import_plotext
from yolomon.tui.canvas import Canvas, Line, Span, fill, width_of
from yolomon.tui.glyphs import Glyphs
from yolomon.tui.view import Frame
from yolomon.tui.widgets.box import bottom_edge, inside, top_edge
from yolomon.tui.words import cells_of, fit, number, plain

REDRAW_SECONDS = 20.0
POINTS = 240
SPIKES = 12
INKS = ("work", "data", "memory", "power", "heat", "wait")
_PIECE = re.compile(r"(\x1b\[[0-9;]*m)|([^\x1b\n]+)")
_COLOR = re.compile(r"\x1b\[38;5;(\d+)m")
_METRICS = ("map50_95", "map50", "precision", "recall", "fitness")
WARM_UP_SHARE = 0.08  # of a run: where losses fall steeply
LONG_CURVE = 60  # points
Series = tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
_plotext: Any = None


def prepare() -> None:
    """Load plotext in a thread of its own: it takes a third of a second, and keys must answer meanwhile."""
    threading.Thread(target=_load, name="plotext", daemon=True).start()


def _load() -> Any:  # noqa: ANN401 - plotext has no types
    global _plotext
    plotext = import_plotext()
    plotext.terminal.limit(False, False)
    _plotext = plotext
    return plotext


class Curves(Canvas):
    """Losses and metrics."""

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - Widget's own
        super().__init__(**arguments)
        self._drawn: tuple[object, ...] = ()
        self._drawn_at = -1e9

    def draw(self, frame: Frame, width: int, height: int) -> None:
        """Draw if there is something new, at most once in a few seconds."""
        state = (
            width,
            height,
            frame.history.train.count,
            frame.view.cursor_ts,
            frame.glyphs.style,
            _plotext is None,
        )
        now = time.monotonic()
        same_shape = self._drawn[:2] == state[:2] and self._drawn[4:] == state[4:]
        if state == self._drawn or (same_shape and now - self._drawn_at < REDRAW_SECONDS):
            return
        self._drawn, self._drawn_at = state, now
        self.show(curve_lines(frame, width, height))

    def on_resize(self) -> None:
        """Another size: draw at once."""
        super().on_resize()
        self._drawn = ()


def loss_names(history: History) -> list[str]:
    """The training losses that have a curve, parts before the total."""
    train = history.train
    names: dict[str, None] = {}
    for record in reversed(train.records):
        for name in record.roles.losses:
            names.setdefault(name)
        if len(names) >= 1:
            break
    if not names:
        for epoch in reversed(train.epochs):
            names.update(dict.fromkeys(epoch.roles.losses))
            break
    found = [name for name in names if len(train.curves.get(name, ())) > 0][: len(INKS)]
    return found or (["loss"] if len(train.curves.get("loss", ())) else [])


def metric_names(history: History) -> list[str]:
    """MAP and, where there is none, what else the trainer measures."""
    known = [name for name in _METRICS if len(history.train.curves.get(name, ())) > 0]
    return known[:2]


SHORT_METRIC = {"map50_95": "mAP50-95", "map50": "mAP50", "precision": "precision", "recall": "recall",
                "fitness": "fitness", "loss": "loss"}  # fmt: skip


def short(name: str) -> str:
    """As "train/box_loss" as "box"."""
    if name in SHORT_METRIC:
        return SHORT_METRIC[name]
    last = plain(name).split("/")[-1]
    return last.removesuffix("_loss").removeprefix("loss_") or last


def curve_lines(frame: Frame, width: int, height: int) -> list[Line]:
    """The framed curves: side by side where wide, one above the other where high, else the losses alone."""
    glyphs, history = frame.glyphs, frame.history
    losses, metrics = loss_names(history), metric_names(history)
    groups = [group for group in (losses, metrics) if group]
    lines = [top_edge(glyphs, width, frame.tr("training curves"))]
    inner_width, inner_height = width - 2, height - 2
    if not groups:
        text = frame.tr("No losses yet.") if history.train.count else frame.tr("No training log yet.")
        body: list[Line] = [[(" " + text, "dim")]]
    elif len(groups) == 2 and inner_width >= 56:
        left = inner_width // 2
        a = chart(frame, groups[0], left, inner_height)
        b = chart(frame, groups[1], inner_width - left, inner_height)
        body = [[*fill(x, left), *y] for x, y in zip(a, b, strict=False)]
    elif len(groups) == 2 and inner_height >= 14:
        upper = inner_height // 2
        body = [
            *chart(frame, groups[0], inner_width, upper),
            *chart(frame, groups[1], inner_width, inner_height - upper),
        ]
    else:
        body = chart(frame, groups[0], inner_width, inner_height)
    body = body[:inner_height]
    lines += [inside(glyphs, width, line) for line in [*body, *([[]] * (inner_height - len(body)))]]
    lines.append(bottom_edge(glyphs, width))
    return lines


def legend(frame: Frame, names: list[str], width: int) -> Line:
    """The curves' names in their inks, each with its last value."""
    curves = frame.history.train.curves
    values = [number(curves[name].last[-1]) if len(curves[name]) else "" for name in names]
    pieces: list[Line] = [
        [(short(name), INKS[place % len(INKS)]), (f" {value}  ", "number")]
        for place, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    if 1 + sum(width_of(piece) for piece in pieces) > width:  # every line has its name before any its value
        pieces = [[(short(name) + "  ", INKS[place % len(INKS)])] for place, name in enumerate(names)]
    line: Line = [(" ", "text")]
    for piece in pieces:
        if width_of(line) + width_of(piece) > width:
            break
        line += piece
    return line


def chart(frame: Frame, names: list[str], width: int, height: int) -> list[Line]:
    """One chart with its legend above."""
    curves = [frame.history.train.curves[name] for name in names]
    head = legend(frame, names, width)
    bad = sum(curve.non_finite_count for curve in curves)
    if bad:
        told = frame.tr("{sign} {n} values are NaN", sign=frame.glyphs.critical, n=bad)
        if width_of(head) + cells_of(told) > width:
            told = f"{frame.glyphs.critical} {bad} NaN"
        head = legend(frame, names, max(1, width - cells_of(told)))
        head = [*head, (fit(told, width - width_of(head)), "crit")]
    if height < 5 or width < 20:
        return [head]
    unit = frame.tr("epoch") if frame.history.train.epoch is not None else frame.tr("step")
    series = tuple(drawn_points(curve) for curve in curves)
    ends = tuple(short(name).removeprefix("mAP")[:6] for name in names)
    rows = _labelled(plot_rows(series, width - 1, height - 1, frame.glyphs, ends), unit, width - 1)
    return [head, *[[(" ", "text"), *row] for row in rows]]


def _labelled(rows: list[Line], unit: str, width: int) -> list[Line]:
    """The rows with what the numbers below the axis count: before them, or behind them."""
    if not rows or not rows[-1]:
        return rows
    text = "".join(piece for piece, _ in rows[-1]).ljust(width)
    cells = cells_of(unit)
    if text[: cells + 1].isspace():
        text = unit + text[cells:]
    elif text[width - cells - 1 :].isspace():
        text = text[: width - cells] + unit
    return [*rows[:-1], [(text.rstrip(), "dim")]]


def drawn_points(curve: Curve) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most about `POINTS` points: the middle of each stretch, and its extremes where they are a spike.

    A spike is what lies further from the middle than a sixth of all that the curve's second half spans; the
    noise of batches would make a broad band of every line. Where more than `SPIKES` stretches have one, the
    greatest are drawn: a solid band says no more, and plotext keeps some 800 bytes for each pixel of a line.
    """
    kept = newest_run(curve.x)
    x, last = [curve.x[i] for i in kept], [curve.last[i] for i in kept]
    count = len(kept)
    if count < 2:
        return tuple(x), tuple(last)
    low, high = [curve.low[i] for i in kept], [curve.high[i] for i in kept]
    half = count // 2
    spike = (max(high[half:]) - min(low[half:])) / 6 + (max(high) - min(low)) / 50
    stretch = max(1, -(-2 * count // POINTS))
    starts = range(0, count, stretch)
    middles, lows, highs = [], [], []
    for start in starts:
        end = min(count, start + stretch)
        middles.append(sum(last[start:end]) / (end - start))
        lows.append(min(low[start:end]))
        highs.append(max(high[start:end]))
    heights = [max(top - mid, mid - least) for least, mid, top in zip(lows, middles, highs, strict=True)]
    if len(heights) > SPIKES:
        spike = max(spike, sorted(heights)[-SPIKES - 1])
    xs: list[float] = []
    ys: list[float] = []
    for start, least, middle, top in zip(starts, lows, middles, highs, strict=True):
        values = [middle]
        if top - middle > spike:
            values.append(top)
        if middle - least > spike:
            values.append(least)
        if len(values) > 1:
            values.append(middle)
        xs += [x[min(count, start + stretch) - 1]] * len(values)
        ys += values
    return tuple(xs), tuple(ys)


def newest_run(xs: Sequence[float]) -> list[int]:
    """The places of the points that no later one replaces, x rising.

    A resumed run repeats some epochs, a log that several runs wrote to starts over; a line through all of it
    would go to and fro.
    """
    kept: list[int] = []
    least = inf
    for i in range(len(xs) - 1, -1, -1):
        if xs[i] < least or (xs[i] == least and kept[-1] == i + 1):
            least = xs[i]
            kept.append(i)
    return kept[::-1]


@lru_cache(maxsize=8)
def plot_rows(
    series: Series, width: int, height: int, glyphs: Glyphs, ends: tuple[str, ...] = ()
) -> list[Line]:
    """Plotext's rows in our inks, with axes left and below. Empty lines while plotext is being loaded.

    `ends` are the words at the curves' last points: without them colour alone would tell which is which.
    """
    if _plotext is None:
        return [[] for _ in range(height)]
    plotext = _plotext
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    figure.axes(False, axis="x", side="upper")
    figure.axes(False, axis="y", side="right")
    least_x, most_x = min(xs[0] for xs, _ in series), max(xs[-1] for xs, _ in series)
    low, high = y_bounds(series, least_x + WARM_UP_SHARE * (most_x - least_x))
    if low == high:
        low, high = (low - abs(low) * 0.1, high + abs(high) * 0.1) if low else (0.0, 1.0)
    if most_x <= least_x:
        most_x = least_x + 1
    y_ruler, x_ruler = figure.ruler("y", "left"), figure.ruler("x", "lower")
    y_ruler.lim(low, high)
    x_ruler.lim(least_x, most_x)
    y_values = nice_ticks(low, high, max(2, min(6, height // 3)))
    y_ruler.ticks(y_values, [f"{value:g}" for value in y_values])
    x_values = nice_ticks(least_x, most_x, max(2, width // 9))
    x_values = [value for value in x_values if value == int(value)] or x_values  # there is no epoch 1.5
    x_ruler.ticks(x_values, [f"{value:g}" for value in x_values])
    for place, (xs, ys) in enumerate(series):
        symbol = "*" if glyphs.style == "ascii" else "braille"
        shown = within(xs, ys, low, high)
        figure.draw(figure.signal(*shown, marker=plotext.marker(symbol, place + 1)).lines())
    text = figure.build().string()
    rows = [_inked(row, glyphs) for row in text.rstrip("\n").split("\n")][:height]
    down = height - 2 if height > 3 else 0  # the axis and its numbers are below
    places = [round((high - min(max(ys[-1], low), high)) / (high - low) * (down - 1)) for _, ys in series]
    taken: set[int] = set()
    order = sorted(range(len(ends)), key=lambda place: -series[place][1][-1]) if down > len(ends) else []
    for place in order:
        row = next((r for r in _near(places[place], down) if r not in taken), None)
        if row is not None:
            taken.add(row)
            rows[row] = _ending(rows[row], ends[place], INKS[place % len(INKS)], width)
    return rows


def _near(row: int, rows: int) -> list[int]:
    """A row, then those beside it."""
    return [r for r in (row, row + 1, row - 1, row + 2, row - 2) if 0 <= r < rows]


def _ending(line: Line, word: str, ink: str, width: int) -> Line:
    """The line with a word at its right end, in place of what was there."""
    room = width - cells_of(word) - 1
    kept: Line = []
    for text, other in line:
        free = room - width_of(kept)
        if free > 0:
            kept.append((text[:free], other))  # all signs of a plot are one cell wide
    return [*fill(kept, room), (" " + word, ink)]


def within(
    xs: tuple[float, ...], ys: tuple[float, ...], low: float, high: float
) -> tuple[list[float], list[float]]:
    """A curve's points within the bounds, and where it enters and leaves them: none runs along the edge."""
    last = len(ys) - 1
    kept = [
        i
        for i, y in enumerate(ys)
        if low <= y <= high or low <= ys[max(0, i - 1)] <= high or low <= ys[min(last, i + 1)] <= high
    ]
    return [xs[i] for i in kept], [min(max(ys[i], low), high) for i in kept]


def y_bounds(series: Series, settled_x: float) -> tuple[float, float]:
    """The least and greatest value; of long curves without their first part, whose fall flattens the rest."""
    values = [
        y for xs, ys in series for x, y in zip(xs, ys, strict=True) if len(xs) < LONG_CURVE or x >= settled_x
    ]
    return min(values), max(values)


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten) within the bounds, never one alone."""
    span = high - low
    if not span > 0 or count < 1:
        return [low]
    power = 10.0 ** floor(log10(span / count))
    steps = [power * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5, 10)]
    chosen = next((place for place, step in enumerate(steps) if place > 2 and span / step <= count), 6)
    for step in reversed(steps[: chosen + 1]):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last > first:  # one number alone says nothing of the scale
            return [round(place * step, 12) for place in range(first, last + 1)]
    return [low]


def _inked(row: str, glyphs: Glyphs) -> Line:
    """One row of plotext with its colours turned into inks."""
    line: list[Span] = []
    codes = ""
    for code, text in _PIECE.findall(row):
        if code:
            codes = code if code == "\x1b[0m" else codes + code
            continue
        ink = _ink_of(codes)
        if glyphs.style == "ascii":
            text = text.translate(_TO_ASCII)
        if line and line[-1][1] == ink:
            line[-1] = (line[-1][0] + text, ink)
        else:
            line.append((text, ink))
    return line


_TO_ASCII = str.maketrans("┌┐└┘─│┤├┬┴┼", "++++-|||--+")


@lru_cache(maxsize=64)
def _ink_of(codes: str) -> str:
    found = _COLOR.findall(codes)
    color = int(found[-1]) if found else 0
    if 1 <= color <= len(INKS):
        return INKS[color - 1]
    return "dim" if color > len(INKS) else "frame"
