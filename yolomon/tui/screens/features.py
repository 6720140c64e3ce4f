"""Statistics of the feature maps: a row a layer, now and over the run, what is dead or explodes in colour."""

from __future__ import annotations

from math import ceil, isfinite
from typing import ClassVar

import msgspec
from textual.binding import Binding, BindingType

from yolomon.diagnosis.thresholds import DECLARED
from yolomon.history import Curve
from yolomon.messages import Message, msg
from yolomon.tui.canvas import Line
from yolomon.tui.screens.list_page import ListPage
from yolomon.tui.view import Frame
from yolomon.tui.widgets.text_lines import cells, heading, paragraph
from yolomon.tui.words import MISSING, fit_left, number, plain

STATISTICS = ("mean", "std", "sparsity", "absmax", "dead_channels", "nonfinite")
HISTORY = ("std", "absmax", "sparsity", "dead_channels", "mean", "nonfinite")
_SHARES = frozenset({"sparsity", "dead_channels", "nonfinite"})


class Verdict(msgspec.Struct, frozen=True):
    """What is wrong with a layer, in a word and its ink; no word when nothing is."""

    word: str = ""
    ink: str = "dim"


class FeaturesPage(ListPage):
    """Left and right choose which statistic's history is drawn."""

    PAGE: ClassVar[str] = "features"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "statistic(-1)", "Statistic", id="statistic_before", show=False,
                tooltip="The history of the statistic before"),
        Binding("right", "statistic(1)", "Statistic", id="statistic_next",
                tooltip="The next statistic's history"),
    ]  # fmt: skip
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("up,down", msg("layer")),
        ("left,right", msg("statistic")),
        ("/", msg("filter")),
        ("Esc", msg("overview")),
        ("?", msg("help")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._layers: list[str] = []

    def rows(self, frame: Frame, width: int) -> list[Line]:
        """All layers in the order of the network."""
        words = frame.filter.lower().split()
        self._layers = [
            layer for layer in frame.history.train.features if all(word in layer.lower() for word in words)
        ]
        statistic = self.monitor.choices.statistic
        return [layer_row(frame, layer, statistic, width - 2) for layer in self._layers]

    def head(self, frame: Frame, width: int) -> list[Line]:
        """The number of layers and the step of the newest sample."""
        tr = frame.tr
        if not frame.history.train.features:
            return [heading(frame, tr("features"), width), *how_to(frame, width)]
        if not self._layers:
            return [
                heading(frame, tr("features"), width),
                *paragraph(tr("No layer's name holds these words."), width, "dim"),
            ]
        title = tr("features: {n} layers", n=len(self._layers))
        step = newest_step(frame)
        if step is not None:
            title += f" {frame.glyphs.dot} " + tr("step {step}", step=f"{step:.0f}")
        return [heading(frame, title, width), [("  ", "text"), *self._names(frame, width - 2)]]

    def _names(self, frame: Frame, width: int) -> Line:
        statistic = self.monitor.choices.statistic
        spans = [(frame.tr("layer"), -layer_cells(width), "label")]
        for name, least in shown_statistics(width):
            if width >= least:
                spans.append((stat_word(frame, name), 10, "title" if name == statistic else "label"))
        spans.append(("", 2, "text"))
        room = width - sum(abs(length) for _, length, _ in spans)
        if room >= 34:
            about = f"{stat_word(frame, statistic)} {frame.tr('over the run')}"
            spans += [(about, -(room - 22), "title"), (frame.tr("epoch"), 8, "label")]
        return cells(width, *spans)

    def detail(self, frame: Frame, width: int, height: int) -> list[Line]:
        """All statistics of the chosen layer with their histories."""
        if not self._layers or height < 4:
            return []
        layer = self._layers[self.chosen]
        lines = [heading(frame, plain(layer), width)]
        curves = frame.history.train.feature_curves.get(layer, {})
        newest = frame.history.train.features[layer]
        for name in HISTORY:
            curve = curves.get(name)
            value = newest.get(name)
            if curve is None and value is None:
                continue
            room = max(1, width - 38)
            lines.append(
                [
                    *cells(width, ("   " + stat_word(frame, name), -18, "label"),
                           (stat_value(name, value), 9, "number"), ("  ", -2, "text")),
                    *spark(frame, curve, room),
                ]
            )  # fmt: skip
        return lines

    def action_statistic(self, direction: int) -> None:
        """Draw another statistic's history."""
        now = self.monitor.choices.statistic
        place = HISTORY.index(now) if now in HISTORY else 0
        self.monitor.choices.statistic = HISTORY[(place + direction) % len(HISTORY)]
        self.monitor.redraw()


def how_to(frame: Frame, width: int) -> list[Line]:
    """How a training tells its feature statistics."""
    tr = frame.tr
    lines = paragraph(
        tr("This run tells no feature statistics. One line in the training script makes it tell them:"), width
    )
    lines += [[], *paragraph("import yolomon; yolomon.attach(model, features=True)", width, "title")]
    lines += [[], *paragraph(tr("or start the training with no change to its code:"), width)]
    lines += [[], *paragraph("yolomon run --features yolo detect train model=... data=...", width, "title")]
    lines += [
        [],
        *paragraph(
            tr(
                "Every 100 steps each watched layer's mean, spread, sparsity, greatest value, dead channels "
                "and NaN are measured on the GPU. The statistics appear here with the next sample."
            ),
            width,
            "dim",
        ),
    ]
    return lines


def newest_step(frame: Frame) -> float | None:
    """The step of the newest sample."""
    steps = [
        curve.x[-1]
        for curves in frame.history.train.feature_curves.values()
        for curve in curves.values()
        if len(curve)
    ]
    return max(steps, default=None)


def layer_cells(width: int) -> int:
    """Cells of the layers' names."""
    return 12 if width < 60 else 22 if width < 110 else 30


def shown_statistics(width: int) -> list[tuple[str, int]]:
    """Statistics with the width from which they are shown; the most telling stay longest."""
    return [
        ("mean", 110),
        ("std", 0),
        ("sparsity", 80),
        ("absmax", 66),
        ("dead_channels", 44),
        ("nonfinite", 96),
    ]


def stat_word(frame: Frame, name: str) -> str:
    """The name of a statistic, short enough for a column."""
    tr = frame.tr
    return {
        "mean": tr("mean"), "std": tr("std"), "sparsity": tr("sparsity"), "absmax": tr("absmax"),
        "dead_channels": tr("dead"), "nonfinite": tr("NaN/Inf"),
    }.get(name, plain(name))  # fmt: skip


def stat_value(name: str, value: float | None) -> str:
    """Shares in percent, the others as numbers; a little is never shown as none."""
    if value is None:
        return MISSING
    if name in _SHARES and isfinite(value):
        return "<1 %" if 0 < value < 0.005 else f"{100 * value:.0f} %"
    return number(value)


def verdict_of(frame: Frame, layer: str) -> Verdict:
    """Dead, sparse, explodes, NaN: by the same thresholds as the findings."""
    tr = frame.tr
    train = frame.history.train
    newest, curves = train.features[layer], train.feature_curves.get(layer, {})
    if (newest.get("nonfinite") or 0.0) > 0 or not isfinite(newest.get("absmax", 0.0)):
        return Verdict(tr("NaN or Inf"), "crit")
    dead, std = newest.get("dead_channels"), newest.get("std")
    if dead is not None and dead > DECLARED["dead-features.critical-share"].default:
        return Verdict(tr("dead"), "crit")
    if std is not None and std < DECLARED["dead-features.std"].default:
        return Verdict(tr("dead"), "crit")
    start = first_value(curves.get("std"))
    if std is not None and start and std > DECLARED["exploding-features.ratio"].default * start:
        return Verdict(tr("explodes"), "crit")
    if dead is not None and dead > DECLARED["dead-features.share"].default:
        return Verdict(tr("dying"), "warn")
    sparsity = newest.get("sparsity")
    before = first_value(curves.get("sparsity"))
    limit = DECLARED["dead-features.sparsity"].default
    if sparsity is not None and before is not None and sparsity > max(limit, before + 0.2):
        return Verdict(tr("sparse"), "warn")
    return Verdict()


def first_value(curve: Curve | None) -> float | None:
    """What it was at the start: the middle of the first samples."""
    if curve is None or not len(curve):
        return None
    first = sorted(curve.last[:5])
    return first[len(first) // 2]


def epoch_change(frame: Frame, curve: Curve | None) -> float | None:
    """The newest value over that of an epoch ago."""
    batches = frame.history.train.batches
    if curve is None or len(curve) < 2 or not batches:
        return None
    wanted = curve.x[-1] - batches
    before = [curve.last[place] for place in range(len(curve)) if curve.x[place] <= wanted + 0.5]
    if not before or before[-1] == 0:
        return None
    return curve.last[-1] / before[-1]


def change_words(frame: Frame, ratio: float | None) -> str:
    """As "x1.02": the newest over the epoch before."""
    if ratio is None or not isfinite(ratio):
        return MISSING
    return f"x{ratio:.2f}" if abs(ratio) < 100 else f"x{ratio:.0f}"


def layer_row(frame: Frame, layer: str, statistic: str, width: int) -> Line:
    """One layer: name, numbers, history, change over an epoch, verdict."""
    train = frame.history.train
    newest, curves = train.features[layer], train.feature_curves.get(layer, {})
    verdict = verdict_of(frame, layer)
    ink = verdict.ink if verdict.word else "text"
    room = layer_cells(width)
    spans = [(fit_left(plain(layer), room - 1, frame.glyphs.ellipsis), -room, ink)]
    for name, least in shown_statistics(width):
        if width >= least:
            spans.append((stat_value(name, newest.get(name)), 10, ink if verdict.word else "number"))
    spans.append(("", 2, "text"))
    used = sum(abs(length) for _, length, _ in spans)
    left = width - used
    line = cells(width, *spans)
    graph = max(0, left - 22)
    if graph >= 12:
        line += [*spark(frame, curves.get(statistic), graph, verdict)]
        line += cells(8, (change_words(frame, epoch_change(frame, curves.get(statistic))), 8, "dim"))
        left -= graph + 8
    return [*line, *cells(max(0, left), ("  " + verdict.word, -max(0, left), verdict.ink))]


def spark(frame: Frame, curve: Curve | None, room: int, verdict: Verdict | None = None) -> Line:
    """The history of a statistic from its least to its greatest value, the newest at the right."""
    if curve is None or not len(curve) or room < 1:
        return [(" " * max(0, room), "dim")]
    found = curve.bounds
    low, high = (0.0, 1.0) if found is None else found
    levels = frame.glyphs.levels
    full = len(levels) - 1
    stretch = max(1, -(-len(curve) // room))
    text = ""
    for first in range(0, len(curve), stretch):
        most = max(curve.high[first : first + stretch])
        share = (most - low) / (high - low) if high > low else 0.5
        text += levels[max(1, ceil(share * full))]
    ink = verdict.ink if verdict is not None and verdict.word else "work"
    return [(text[-room:], ink), (" " * (room - len(text[-room:])), "text")]
