"""All signals of one GPU as graphs on fixed scales: the number, the graph, the judgement."""

from __future__ import annotations

from math import floor

import msgspec

from yolomon.history import GpuHistory, Table
from yolomon.messages import Message, Translate, msg
from yolomon.tui import plots
from yolomon.tui.canvas import Line
from yolomon.tui.plots import Style
from yolomon.tui.signal_words import value_words, word_of
from yolomon.tui.signals import add_marks, graph, heat_ink, power_limit, reading, style_of
from yolomon.tui.view import Frame
from yolomon.tui.words import MISSING, cells_of, fit, pad, pad_left, percent

VALUE_CELLS = 9
TAIL_CELLS = 10
STALE_SECONDS = 30.0
HEIGHT_LIMIT = 5
_OF_CARD = {
    "utilization_percent": "util",
    "memory_used_bytes": "memory",
    "temperature_celsius": "temperature",
    "power_watts": "power",
}
# NVML's nvmlClocksEventReasons bits.
_EVENTS: tuple[tuple[int, Message, str], ...] = (
    (0x8, msg("hardware slowdown"), "warn"),
    (0x40, msg("hot: slowed by hardware"), "crit"),
    (0x20, msg("hot: slowed by the driver"), "warn"),
    (0x80, msg("power brake"), "warn"),
    (0x4, msg("at the power limit"), "info"),
    (0x10, msg("synchronised with other GPUs"), "dim"),
    (0x2, msg("clocks set by the user"), "dim"),
    (0x100, msg("limited by the display"), "dim"),
    (0x1, msg("idle"), "dim"),
)


class Entry(msgspec.Struct):
    """One signal to draw."""

    label: str
    table: Table
    column: str
    style: Style
    tail: str = ""
    tail_ink: str = "dim"


def clock_events(tr: Translate, mask: int | None) -> tuple[str, str]:
    """Why the clocks are where they are, in words, and the ink of the gravest."""
    if mask is None:
        return MISSING, "dim"
    found = [(tr(word), ink) for bit, word, ink in _EVENTS if mask & bit]
    if not found:
        return tr("nothing holds the clocks down"), "ok"
    return ", ".join(word for word, _ in found), found[0][1]


def value_at(frame: Frame, table: Table, column: str) -> float | None:
    """A signal's value at the moment shown; None when it is older than half a minute."""
    if frame.live and frame.view.cursor_ts is None:
        found = table.latest(column)
        return None if found is None or frame.now_ts - found[0] > STALE_SECONDS else found[1]
    bucket = table.pooled(column, frame.at_ts - 6, frame.at_ts + 0.05, 1)[0]
    return None if bucket is None else bucket.mean


def entries(frame: Frame, gpu: GpuHistory) -> tuple[list[Entry], list[str]]:
    """The signals that were read in the window, and the names of those that this GPU does not tell."""
    tr, info = frame.tr, gpu.info
    fast, slow = gpu.fast, gpu.slow_table
    share = Style(scale=100.0, measure="mean", ink=lambda _: "work")
    now = reading(frame, gpu)
    found: list[Entry] = []
    missing: list[str] = []
    start, end = frame.end_ts - frame.window_seconds, frame.end_ts

    def add(table: Table, column: str, style: Style, tail: str = "", tail_ink: str = "dim") -> None:
        if not _was_read(frame, table, column, start, end):
            missing.append(word_of(tr, column))
        else:
            found.append(Entry(word_of(tr, column), table, column, style, tail, tail_ink))

    def flow(column: str) -> Style:
        return Style(scale=round_scale(slow, column, start, end), ink=lambda _: "power")

    waits = tr("waits") if now.waits else ""
    add(fast, "utilization_percent", style_of(gpu, "util"), waits, "wait")
    for column in (
        "sm_active_percent",
        "sm_occupancy_percent",
        "tensor_active_percent",
        "dram_active_percent",
    ):
        add(slow, column, share)
    add(fast, "memory_utilization_percent", share)
    add(fast, "memory_used_bytes", style_of(gpu, "memory"), percent(now.memory_percent))
    rank = frame.engine.job.rank_of(info.index)
    told = None if rank is None else frame.history.train.ranks.get(rank)
    if told is not None:
        inside = Style(scale=info.memory_total_bytes, ink=lambda _: "memory")
        for column in ("memory_reserved_bytes", "memory_allocated_bytes"):
            value = value_at(frame, told.table, column)
            of = (
                ""
                if value is None or not info.memory_total_bytes
                else percent(100 * value / info.memory_total_bytes)
            )
            add(told.table, column, inside, of)
    limit = info.temperature_slowdown_celsius
    add(
        fast, "temperature_celsius", style_of(gpu, "temperature"),
        "" if limit is None else f"/ {limit:.0f} {frame.glyphs.degree}C",
    )  # fmt: skip
    add(slow, "memory_temperature_celsius", Style(scale=110.0, base=20.0, ink=lambda v: heat_ink(v, None)))
    watts = power_limit(gpu)
    add(fast, "power_watts", style_of(gpu, "power"), "" if watts is None else f"/ {watts:.0f} W")
    top = info.sm_clock_max_mhz
    clock = Style(scale=None if top is None else float(top), ink=lambda _: "work")
    if top is None:
        clock = Style(scale=round_scale(fast, "sm_clock_mhz", start, end), ink=lambda _: "work")
    add(fast, "sm_clock_mhz", clock, "" if top is None else f"/ {top:.0f}")
    for column in ("pcie_tx_kib_per_second", "pcie_rx_kib_per_second",
                   "nvlink_tx_kib_per_second", "nvlink_rx_kib_per_second"):  # fmt: skip
        add(slow, column, flow(column))
    return found, missing


def _was_read(frame: Frame, table: Table, column: str, start: float, end: float) -> bool:
    """Whether a signal has a value in the window; cheap while the newest data is looked at."""
    newest = table.latest(column)
    if frame.live:
        return newest is not None and newest[0] >= start
    return table.pooled(column, start, end + 1, 1)[0] is not None


def round_scale(table: Table, column: str, start: float, end: float) -> float:
    """A scale for what has no limit: 1, 2 or 5 times a power of ten above what the window held."""
    bucket = table.pooled(column, start, end + 1, 1)[0]
    most = 0.0 if bucket is None else bucket.maximum
    scale = 1.0
    while True:
        for factor in (1.0, 2.0, 5.0):
            if most <= scale * factor:
                return scale * factor
        scale *= 10


def signal_lines(frame: Frame, gpu: GpuHistory, found: list[Entry], width: int, room: int) -> list[Line]:
    """The graphs; with more rows than signals the first ones grow, utilization first."""
    heights = [1] * len(found)
    spare = room - len(found)
    order = sorted(range(len(found)), key=lambda place: found[place].column not in _OF_CARD)
    while spare > 0 and any(height < HEIGHT_LIMIT for height in heights):
        for place in order:
            if spare > 0 and heights[place] < HEIGHT_LIMIT:
                heights[place] += 1
                spare -= 1
    labels = label_cells(width)
    tails = TAIL_CELLS if width >= 56 else 0
    count = max(1, width - labels - VALUE_CELLS - tails - 3)
    lines: list[Line] = []
    for entry, height in zip(found, heights, strict=True):
        rows = _rows(frame, gpu, entry, count, height)
        value = value_at(frame, entry.table, entry.column)
        pale = any(ink.endswith("band") for row in rows for _, ink in row)
        for place, row in enumerate(rows):
            first = place == 0
            line = (
                _head(frame, entry, value, labels) if first else [(" " * (labels + VALUE_CELLS + 1), "text")]
            )
            if place == 1 and pale:
                line = _peak(frame, entry, labels, count)
            line += plots.runs(row)
            if tails:
                line += [(" ", "text"), (pad_left(entry.tail if first else "", tails), entry.tail_ink)]
            lines.append(line)
    return lines


def _head(frame: Frame, entry: Entry, value: float | None, labels: int) -> Line:
    """A signal's name and its number."""
    return [
        (" " + pad(fit(entry.label, labels - 1, frame.glyphs.ellipsis), labels - 1), "label"),
        (pad_left(value_words(entry.column, value), VALUE_CELLS), "number" if value is not None else "dim"),
        (" ", "text"),
    ]


def _peak(frame: Frame, entry: Entry, labels: int, count: int) -> Line:
    """What the pale part of a graph is: up to the greatest value; of the newest column, or the cursor's."""
    axis = frame.axis(count)
    start = floor(frame.at_ts / axis.seconds_per_column) * axis.seconds_per_column
    bucket = entry.table.pooled(entry.column, start, start + axis.seconds_per_column, 1)[0]
    most = None if bucket is None else bucket.maximum
    word = frame.tr("peak")
    return [
        (" " + pad(word, cells_of(word) + 1), "label"),
        (pad(frame.glyphs.levels[4], labels - cells_of(word) - 2), "band"),
        (pad_left("" if most is None else value_words(entry.column, most), VALUE_CELLS), "dim"),
        (" ", "text"),
    ]


def label_cells(width: int) -> int:
    """Cells of the signals' names: the longest, "NVLink received", stays whole."""
    return 20 if width >= 76 else 17


def axis_place(width: int) -> tuple[int, int]:
    """Where the graphs begin, and how many columns they have."""
    labels = label_cells(width)
    tails = TAIL_CELLS if width >= 56 else 0
    return labels + VALUE_CELLS + 1, max(1, width - labels - VALUE_CELLS - tails - 3)


def _rows(frame: Frame, gpu: GpuHistory, entry: Entry, count: int, height: int) -> list[list[plots.Column]]:
    card = _OF_CARD.get(entry.column)
    if card is not None and entry.table is gpu.fast:
        return graph(frame, gpu, card, count, height)
    axis = frame.axis(count)
    key = (gpu.info.uuid, id(entry.table))
    columns = frame.columns.get(key, entry.table, entry.column, axis, count)
    if entry.table is not gpu.fast:
        columns = bridged(columns, axis.seconds_per_column)
    rows = plots.many_rows(columns, entry.style, frame.glyphs, height)
    add_marks(frame, gpu, entry.column, rows, count)
    return rows


def bridged(columns: plots.Columns, seconds: float, longest_seconds: float = 6.0) -> plots.Columns:
    """Columns of a signal that is read every 5 s: gaps of one reading are no holes."""
    reach = int(longest_seconds / seconds)
    if reach < 1:
        return columns
    filled = list(columns)
    last: int | None = None
    for place, bucket in enumerate(columns):
        if bucket is not None:
            last = place
        elif last is not None and place - last <= reach:
            filled[place] = columns[last]
    return filled
