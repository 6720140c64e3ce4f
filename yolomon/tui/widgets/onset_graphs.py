"""The signals that a finding names, as graphs around its onset."""

from __future__ import annotations

import msgspec

from yolomon.history import Table
from yolomon.history.machine import FAST_COLUMNS, HOST_COLUMNS, SLOW_COLUMNS
from yolomon.history.training import RANK_COLUMNS
from yolomon.model import Finding
from yolomon.tui import plots
from yolomon.tui.canvas import Line
from yolomon.tui.plots import Style, TimeAxis
from yolomon.tui.signal_words import value_words, word_of
from yolomon.tui.view import Frame
from yolomon.tui.words import clock_time, fit, pad, pad_left

LABEL_CELLS = 20
GRAPHS_LIMIT = 8
LEAST_SECONDS = 120.0
MOST_SECONDS = 3600.0


class Signal(msgspec.Struct, frozen=True):
    """One column of one table, and whose it is."""

    owner: str
    table: Table
    column: str


def signals_of(frame: Frame, finding: Finding) -> list[Signal]:
    """Where the named series are: on the GPU, on all GPUs of the job, on the host, of the ranks."""
    history = frame.history
    gpus = history.by_index()
    if finding.target.startswith("gpu"):
        gpus = [gpu for gpu in gpus if f"gpu{gpu.info.index}" == finding.target]
    elif frame.engine.job.gpu_indices:
        gpus = [gpu for gpu in gpus if gpu.info.index in frame.engine.job.gpu_indices]
    found: list[Signal] = []
    for name in finding.signals:
        on_gpu = finding.target != "host" and name in FAST_COLUMNS + SLOW_COLUMNS
        if on_gpu:
            for gpu in gpus:
                table = gpu.fast if name in FAST_COLUMNS else gpu.slow_table
                found.append(Signal(f"GPU {gpu.info.index}", table, name))
        if name in HOST_COLUMNS and not on_gpu:
            found.append(Signal(frame.tr("host"), history.host.table, name))
        if name in RANK_COLUMNS:
            for number, rank in sorted(history.train.ranks.items()):
                found.append(Signal(frame.tr("rank {rank}", rank=number), rank.table, name))
    return found


def span_of(frame: Frame, finding: Finding) -> tuple[float, float]:
    """The time around the onset: as much before it as after, from two minutes to an hour in all."""
    until = frame.now_ts if finding.cleared_ts is None else finding.cleared_ts
    length = min(MOST_SECONDS, max(LEAST_SECONDS, 2 * (until - finding.onset_ts)))
    end = min(frame.now_ts, finding.onset_ts + length / 2)
    return end - length, end


def onset_lines(frame: Frame, finding: Finding, width: int, rows: int = 2) -> list[Line]:
    """A graph a signal with its least and greatest value, the onset marked; a time axis below."""
    narrow = width < 56
    labels = 14 if narrow else LABEL_CELLS
    count = width - labels - 14
    if count < 8:
        return []
    start, end = span_of(frame, finding)
    each = (end - start) / count
    axis = TimeAxis(end, each)
    first = (axis.last - count + 1) * each
    lines: list[Line] = []
    found = signals_of(frame, finding)
    several = len({signal.owner for signal in found}) > 1
    for signal in found[:GRAPHS_LIMIT]:
        buckets = signal.table.pooled(signal.column, first, first + count * each, count)
        known = [bucket for bucket in buckets if bucket is not None]
        if not known:
            continue
        least, most = min(b.minimum for b in known), max(b.maximum for b in known)
        style = Style(scale=_scale(signal.column, most), ink=lambda _: "work")
        graph = plots.many_rows(buckets, style, frame.glyphs, rows)
        name = word_of(frame.tr, signal.column)
        for place, row in enumerate(graph):
            plots.mark(row, axis.place(finding.onset_ts, count), frame.glyphs.onset, "onset")
            label = (signal.owner if several else name) if place == 0 else (name if several else "")
            value = value_words(signal.column, most if place == 0 else least)
            lines.append(
                [
                    ("   " + pad(fit(label, labels - 3), labels - 3), "label"),
                    (" ", "text"),
                    *plots.runs(row),
                    (" ", "text"),
                    (pad_left(value, 10), "number" if place == 0 else "dim"),
                ]
            )
    if lines:
        lines.append(_axis_line(frame, finding, axis, labels + 1, count, start, end))
    return lines


def _scale(column: str, most: float) -> float:
    return 100.0 if column.endswith("_percent") and most <= 100 else most * 1.05 if most > 0 else 1.0


def _axis_line(
    frame: Frame, finding: Finding, axis: TimeAxis, left: int, count: int, start: float, end: float
) -> Line:
    """The times at both ends and at the onset, those that do not touch."""
    cells = [" "] * count
    place = axis.place(finding.onset_ts, count)
    words = [(0, clock_time(start)), (count - 8, clock_time(end))]
    if place is not None:
        words.insert(0, (min(max(0, place - 4), count - 8), clock_time(finding.onset_ts)))
    for at, word in words:
        around = cells[max(0, at - 1) : at + len(word) + 1]
        if at >= 0 and all(cell == " " for cell in around) and at + len(word) <= count:
            cells[at : at + len(word)] = list(word)
    return [(" " * left, "text"), ("".join(cells), "dim")]
