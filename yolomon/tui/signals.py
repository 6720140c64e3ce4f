"""A GPU's four signals: their values at a moment, their fixed scales, their columns on the time axis."""

from __future__ import annotations

import msgspec

from yolomon.history import GpuHistory
from yolomon.model import Finding
from yolomon.tui import plots
from yolomon.tui.canvas import Line
from yolomon.tui.plots import Column, Style
from yolomon.tui.short_names import WHOLE_JOB
from yolomon.tui.view import Frame
from yolomon.tui.widgets.time_axis import epoch_places

COLUMN_OF = {
    "util": "utilization_percent",
    "memory": "memory_used_bytes",
    "temperature": "temperature_celsius",
    "power": "power_watts",
}
IDLE_CELSIUS = 20.0
RENEWED_SECONDS = 2.0
STALE_INTERVALS = 4.0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one GPU at one moment. With `age_seconds` the values are the last that were read."""

    util: float | None = None
    memory: float | None = None
    temperature: float | None = None
    power: float | None = None
    memory_total: float | None = None
    power_limit: float | None = None
    state: str = "ok"
    age_seconds: float | None = None
    waits: bool = False

    @property
    def stale(self) -> bool:
        """Whether the values are old."""
        return self.age_seconds is not None

    @property
    def memory_percent(self) -> float | None:
        """Share of the GPU's memory that is used."""
        return _share(self.memory, self.memory_total)

    @property
    def power_percent(self) -> float | None:
        """Power as a share of its limit."""
        return _share(self.power, self.power_limit)


def _share(value: float | None, total: float | None) -> float | None:
    return None if value is None or not total else 100 * value / total


def power_limit(gpu: GpuHistory) -> float | None:
    """The limit that holds now, in watts."""
    if gpu.slow is not None and gpu.slow.power_limit_watts is not None:
        return gpu.slow.power_limit_watts
    return gpu.info.power_limit_watts


def reading(frame: Frame, gpu: GpuHistory) -> Reading:
    """The GPU's numbers at the moment shown."""
    at = frame.at_ts
    fast = gpu.fast
    total, limit = gpu.info.memory_total_bytes, power_limit(gpu)
    newest = frame.live and frame.view.cursor_ts is None
    values: dict[str, float | None] = {}
    state, age = "ok", None
    if newest:
        sample = gpu.sample
        state = sample.state if sample is not None else "no-answer"
        answered = gpu.answer_ts
        stale_after = max(3.0, STALE_INTERVALS * frame.interval_seconds)
        if state != "ok" or answered is None or frame.now_ts - answered > stale_after:
            age = frame.now_ts - answered if answered is not None else -1.0
            for name, column in COLUMN_OF.items():
                found = fast.latest(column)
                values[name] = None if found is None else found[1]
        elif sample is not None:
            values = {
                "util": sample.utilization_percent,
                "memory": sample.memory_used_bytes,
                "temperature": sample.temperature_celsius,
                "power": sample.power_watts,
            }
            memory_busy = sample.memory_utilization_percent
            values["memory_busy"] = memory_busy
    else:
        width = frame.axis(40).seconds_per_column
        for name, column in [*COLUMN_OF.items(), ("memory_busy", "memory_utilization_percent")]:
            bucket = fast.pooled(column, at - max(width, 2.5), at + 0.05, 1)[0]
            values[name] = None if bucket is None else bucket.mean
    busy, memory_busy, watts = values.get("util"), values.pop("memory_busy", None), values.get("power")
    waits = (
        age is None
        and busy is not None
        and memory_busy is not None
        and watts is not None
        and bool(limit)
        and busy >= 90
        and memory_busy <= 0.04 * busy
        and watts <= 0.45 * (limit or 0.0)
    )
    return Reading(memory_total=total, power_limit=limit, state=state, age_seconds=age, waits=waits, **values)


def style_of(gpu: GpuHistory, name: str) -> Style:
    """The fixed scale of a signal: 0 to 100 %, the total, the slowdown temperature, the power limit."""
    if name == "util":
        return Style(scale=100.0, measure="mean", ink=lambda _: "work")
    if name == "memory":
        total = gpu.info.memory_total_bytes
        return Style(scale=None if not total else float(total), ink=lambda v: memory_ink(v, total))
    if name == "temperature":
        limit = gpu.info.temperature_slowdown_celsius
        return Style(scale=limit or 100.0, base=IDLE_CELSIUS, ink=lambda v: heat_ink(v, limit))
    return Style(scale=power_limit(gpu), ink=lambda _: "power")


def memory_ink(used: float | None, total: float | None) -> str:
    """The ink of memory in use: warns when 8 % are left, alarms at 3 %."""
    if used is None or not total:
        return "memory"
    share = used / total
    return "crit" if share >= 0.97 else "warn" if share >= 0.92 else "memory"


def heat_ink(celsius: float | None, slowdown: float | None) -> str:
    """The ink of a temperature: warns 4 degrees before the GPU slows down."""
    if celsius is None or slowdown is None:
        return "heat"
    return "crit" if celsius >= slowdown else "warn" if celsius >= slowdown - 4 else "heat"


def graph(frame: Frame, gpu: GpuHistory, name: str, count: int, height: int = 1) -> list[list[Column]]:
    """The rows of a signal's graph with the marks of findings, epochs and the cursor on it."""
    if count < 1:
        return [[] for _ in range(height)]
    axis = frame.axis(count)
    key = (gpu.info.uuid,)
    columns = frame.columns.get(key, gpu.fast, COLUMN_OF[name], axis, count)
    waits: list[bool] = []
    if name == "util":
        waits = frame.columns.waiting(
            key,
            columns,
            frame.columns.get(key, gpu.fast, "memory_utilization_percent", axis, count),
            frame.columns.get(key, gpu.fast, "power_watts", axis, count),
            power_limit(gpu),
        )
    if frame.glyphs.style == "braille":
        fine = frame.columns.get(key, gpu.fast, COLUMN_OF[name], plots.halves(axis), 2 * count, filling=2)
        rows = plots.braille_rows(fine, style_of(gpu, name), frame.glyphs, height, waits)
    else:
        rows = frame.columns.rows((*key, name), columns, style_of(gpu, name), frame.glyphs, height, waits)
    add_marks(frame, gpu, COLUMN_OF[name], rows, count)
    return rows


def graph_pieces(frame: Frame, gpu: GpuHistory, name: str, count: int, height: int) -> list[Line]:
    """The rows of `graph` as pieces of one ink.

    While the newest data is looked at they are renewed every `RENEWED_SECONDS` of the readings, and when
    there is another column, finding or epoch: the numbers beside them tell each reading.
    """
    times = gpu.fast.times
    axis = frame.axis(count)
    state = (
        int(times[-1] / RENEWED_SECONDS) if times else None,
        axis.newest,
        axis.last,
        axis.seconds_per_column,
        frame.view.cursor_ts,
        style_of(gpu, name).scale,
        tuple((f.code, f.severity, f.onset_ts, f.signals) for f in concerning(frame, f"gpu{gpu.info.index}")),
        len(frame.history.train.epochs) if height > 1 else 0,
    )
    return frame.columns.kept(
        ("pieces", gpu.info.uuid, name, count, height, frame.glyphs.style),
        state,
        lambda: [plots.runs(row) for row in graph(frame, gpu, name, count, height)],
    )


def add_marks(frame: Frame, gpu: GpuHistory, column: str, rows: list[list[Column]], count: int) -> None:
    """Put epochs, onsets and the cursor on the rows of a GPU's graph, and the ink of a finding about it."""
    axis = frame.axis(count)
    if len(rows) > 1:  # behind the graph, never over a bar
        for _, start in epoch_places(frame, count):
            for row in rows:
                if row[start][0] == " ":
                    row[start] = (frame.glyphs.epoch, "frame")
    target = f"gpu{gpu.info.index}"
    for finding in reversed(concerning(frame, target)):
        place = axis.place(finding.onset_ts, count)
        own = finding.target in (target, "run") and concerns(finding, column)
        if own:
            first = 0 if place is None and finding.onset_ts < axis.start_of(0, count) else place
            ink = "crit" if finding.severity == "critical" else "hot"
            if first is not None:
                for row in rows:
                    for i in range(first, count):
                        sign, before = row[i]
                        if sign != " " and before not in ("wait", "band"):  # what is paler stays paler
                            row[i] = (sign, f"{ink}/band" if before.endswith("/band") else ink)
        if place is not None:
            for row in rows:
                plots.mark(row, place, frame.glyphs.onset, "onset")
    cursor = frame.view.cursor_ts
    if cursor is not None:
        for row in rows:
            plots.mark(row, axis.place(cursor, count), frame.glyphs.cursor, "cursor")


def concerning(frame: Frame, target: str) -> list[Finding]:
    """The findings of weight that concern a GPU, worst first."""
    return [
        finding
        for finding in frame.findings_at()
        if finding.severity != "info"
        and (finding.target == target or finding.target == "run" or finding.code in WHOLE_JOB)
    ]


def concerns(finding: Finding, column: str) -> bool:
    """Whether a finding is about that signal; one that names none is about all."""
    return not finding.signals or column in finding.signals


def silent_gpus(frame: Frame) -> list[GpuHistory]:
    """The GPUs that give no answer or are lost; known for the newest data only."""
    if not frame.live or frame.view.cursor_ts is not None:
        return []
    stale_after = max(3.0, STALE_INTERVALS * frame.interval_seconds)
    return [
        gpu
        for gpu in frame.history.gpus.values()
        if (gpu.sample is not None and gpu.sample.state != "ok")
        or (gpu.answer_ts is not None and frame.now_ts - gpu.answer_ts > stale_after)
    ]
