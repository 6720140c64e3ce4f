"""Per-second means of each GPU, also while the job trained: the common ground of the GPU rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from yolomon.diagnosis.phases import Phases
from yolomon.model import GpuSample, Telemetry

ROWS_LIMIT = 600
SPANS_SECONDS = 160.0  # how far back training is told from the rest, at least
SPARSE_SECONDS = 1.5  # between two readings: a second holds one at most
OUTSIDE_SHARE = 0.1  # of a long span that may lie outside of training
LONG_SECONDS = 3.0
WATTS_SECONDS = 3.0  # of training that tell what power work draws
WATTS_WINDOW_SECONDS = 20.0  # looked at for it
SETTLE_SECONDS = 1.0  # NVML's utilization and power are means over up to 1 s before the read
_FIELDS = (
    "utilization_percent",
    "memory_utilization_percent",
    "power_watts",
    "sm_clock_mhz",
)


class GpuSecond(msgspec.Struct, gc=False):
    """Means of one second of one GPU.

    `busy_percent` is the share of time with a kernel running: GPM's where there is one (no aliasing), else
    the mean of the driver's buffered samples, else NVML's utilization. GPM's values span the time since
    `wide_from_ts`.
    """

    start_ts: float
    end_ts: float
    utilization_percent: float | None = None
    memory_utilization_percent: float | None = None
    power_watts: float | None = None
    sm_clock_mhz: float | None = None
    memory_used_bytes: float | None = None
    busy_percent: float | None = None
    sm_active_percent: float | None = None
    tensor_active_percent: float | None = None
    nvlink_mib_per_second: float | None = None
    wide_from_ts: float | None = None
    lowest_percent: float | None = None  # of the driver's buffered samples
    highest_percent: float | None = None


class Means(msgspec.Struct):
    """A GPU over some seconds of training. `busy_by` tells where `busy_percent` comes from."""

    first_ts: float
    last_ts: float
    seconds: float  # covered by the rows
    rows: int
    busy_percent: float | None
    busy_by: str  # "gpm", "buffer", "utilization"
    utilization_percent: float | None
    memory_utilization_percent: float | None
    power_watts: float | None
    sm_clock_mhz: float | None
    sm_active_percent: float | None
    tensor_active_percent: float | None
    nvlink_mib_per_second: float | None


class _Open:
    def __init__(self, second: int) -> None:
        self.second = second
        self.start_ts = 0.0
        self.end_ts = 0.0
        self.sums = [0.0] * len(_FIELDS)
        self.counts = [0] * len(_FIELDS)
        self.memory: float | None = None
        self.buffered: list[float] = []
        self.sample: GpuSample | None = None  # with GPM
        self.wide_from: float | None = None


class _Gpu:
    def __init__(self) -> None:
        self.rows: deque[GpuSecond] = deque(maxlen=ROWS_LIMIT)
        self.open: _Open | None = None
        self.gpm_ts: float | None = None
        self.read_ts: float | None = None
        self.has_gpm = False
        self.working_watts: float | None = None


class Seconds:
    """Per-second rows of all GPUs, by NVML index, of the last ten minutes."""

    def __init__(self) -> None:
        self._gpus: dict[int, _Gpu] = {}
        self._means: dict[tuple[int, float, float, float, float], Means | None] = {}

    def observe(self, telemetry: Telemetry) -> None:
        """Take one reading."""
        ts = telemetry.ts
        for sample in telemetry.gpus:
            gpu = self._gpus.get(sample.index)
            if gpu is None:
                gpu = self._gpus[sample.index] = _Gpu()
            self._add(gpu, ts, sample)
        self._means.clear()

    def _add(self, gpu: _Gpu, ts: float, sample: GpuSample) -> None:
        second = int(ts)
        row = gpu.open
        if row is None or second != row.second:
            if row is not None:
                gpu.rows.append(_close(row))
            row = gpu.open = _Open(second)
            row.start_ts = ts
        row.end_ts = ts
        for place, value in enumerate(
            (
                sample.utilization_percent,
                sample.memory_utilization_percent,
                sample.power_watts,
                sample.sm_clock_mhz,
            )
        ):
            if value is not None:
                row.sums[place] += value
                row.counts[place] += 1
        if sample.memory_used_bytes is not None:
            row.memory = float(sample.memory_used_bytes)
        if sample.utilization_samples_percent:
            row.buffered.extend(sample.utilization_samples_percent)
        if sample.gpm is not None:
            row.sample = sample
            row.wide_from = ts if gpu.gpm_ts is None else gpu.gpm_ts
            gpu.gpm_ts = ts
            gpu.has_gpm = gpu.has_gpm or sample.gpm.graphics_active_percent is not None
        if gpu.read_ts is not None and ts - gpu.read_ts >= SPARSE_SECONDS:
            gpu.rows.append(_close(row))  # no other reading will come in this second
            gpu.open = None
        gpu.read_ts = ts

    def rows(self, index: int, start_ts: float, end_ts: float) -> list[GpuSecond]:
        """Closed seconds of that GPU that lie in [start, end], oldest first."""
        gpu = self._gpus.get(index)
        if gpu is None:
            return []
        found = []
        for row in reversed(gpu.rows):
            if row.start_ts < start_ts:
                break
            if row.end_ts <= end_ts:
                found.append(row)
        found.reverse()
        return found

    def latest(self, index: int, count: int) -> list[GpuSecond]:
        """The newest closed seconds, oldest first."""
        gpu = self._gpus.get(index)
        if gpu is None:
            return []
        return list(islice(gpu.rows, max(len(gpu.rows) - count, 0), None))

    def training_rows(
        self,
        index: int,
        phases: Phases,
        now_ts: float,
        within_seconds: float,
        *,
        wide: bool = True,
        shift: float = 0.0,
    ) -> list[GpuSecond]:
        """The rows of the last `within_seconds` in which all ranks trained; all rows where no step is known.

        A row counts when its readings lie inside, the first `SETTLE_SECONDS` of each span left out; with
        `wide` the span of its GPM values must too, but for a tenth of a long one.
        """
        found = list(self._newest_training(index, phases, now_ts, within_seconds, wide, shift))
        found.reverse()
        return found

    def _newest_training(
        self, index: int, phases: Phases, now_ts: float, within_seconds: float, wide: bool, shift: float = 0.0
    ) -> Iterator[GpuSecond]:
        """The same, newest first, so that who needs few does not pay for all."""
        gpu = self._gpus.get(index)
        if gpu is None:
            return
        start = now_ts - within_seconds
        known = phases.known
        spans = phases.training_spans(now_ts - max(SPANS_SECONDS, within_seconds), now_ts) if known else []
        if shift:
            spans = [(begin + shift, end + shift) for begin, end in spans]
        needs_wide = wide and gpu.has_gpm
        place = len(spans) - 1
        for row in reversed(gpu.rows):
            if row.start_ts < start:
                return
            if row.end_ts > now_ts:
                continue
            if not known:
                yield row
                continue
            while place >= 0 and spans[place][0] > row.end_ts:
                place -= 1
            if place < 0:
                return
            begin, end = spans[place]
            if row.start_ts < begin + SETTLE_SECONDS or row.end_ts > end:
                continue
            if needs_wide:
                wide_from = row.wide_from_ts
                if wide_from is None or (wide_from < begin and wide_from < begin - _outside(row)):
                    continue
            yield row

    def training_means(
        self,
        index: int,
        phases: Phases,
        now_ts: float,
        seconds: float,
        *,
        within_seconds: float = 150.0,
        shift: float = 0.0,
    ) -> Means | None:
        """Means over the newest `seconds` of training (or what there is of it); None without any row.

        `shift` moves the log's phases by so many seconds, where its clock is known to be off.
        """
        key = (index, now_ts, seconds, within_seconds, shift)
        if key in self._means:
            return self._means[key]
        taken: list[GpuSecond] = []
        covered = 0.0
        for row in self._newest_training(index, phases, now_ts, within_seconds, True, shift):
            covered += _length(row)
            taken.append(row)
            if covered >= seconds:
                break
        gpu = self._gpus.get(index)
        found = self._means[key] = (
            None if not taken or gpu is None else _mean(taken[::-1], covered, gpu.has_gpm)
        )
        whole = phases.known and covered >= WATTS_SECONDS and seconds >= WATTS_WINDOW_SECONDS and not shift
        if whole and gpu is not None and found is not None and found.power_watts:
            gpu.working_watts = found.power_watts
        return found

    def working_watts(self, index: int) -> float | None:
        """Mean power of a GPU when its training was last looked at; it outlives the rows of ten minutes."""
        gpu = self._gpus.get(index)
        return None if gpu is None else gpu.working_watts

    def means(self, index: int, start_ts: float, end_ts: float) -> Means | None:
        """Means over all rows in [start, end]."""
        rows = self.rows(index, start_ts, end_ts)
        gpu = self._gpus.get(index)
        if not rows or gpu is None:
            return None
        return _mean(rows, sum(_length(row) for row in rows), gpu.has_gpm)


def _outside(row: GpuSecond) -> float:
    """Seconds of a row's GPM span that may lie outside: of spans of 5 s few lie wholly inside."""
    span = 0.0 if row.wide_from_ts is None else row.end_ts - row.wide_from_ts
    return OUTSIDE_SHARE * span if span >= LONG_SECONDS else 0.0


def _length(row: GpuSecond) -> float:
    """Seconds a row stands for: the span of its GPM values where it has them, at least one second."""
    return 1.0 if row.wide_from_ts is None else max(1.0, row.end_ts - row.wide_from_ts)


def _close(row: _Open) -> GpuSecond:
    utilization, memory_utilization, power, clock = (
        total / count if count else None for total, count in zip(row.sums, row.counts, strict=True)
    )
    out = GpuSecond(
        row.start_ts, row.end_ts, utilization, memory_utilization, power, clock, row.memory, utilization
    )
    if row.buffered:
        out.busy_percent = sum(row.buffered) / len(row.buffered)
        out.lowest_percent, out.highest_percent = min(row.buffered), max(row.buffered)
    gpm = row.sample.gpm if row.sample is not None else None
    if gpm is not None:
        out.wide_from_ts = row.wide_from
        if gpm.graphics_active_percent is not None:
            out.busy_percent = gpm.graphics_active_percent
        out.sm_active_percent = gpm.sm_active_percent
        out.tensor_active_percent = gpm.tensor_active_percent
        if gpm.nvlink_tx_mib_per_second is not None:
            out.nvlink_mib_per_second = gpm.nvlink_tx_mib_per_second
    return out


def _mean(rows: list[GpuSecond], seconds: float, has_gpm: bool) -> Means:
    def of(name: str) -> float | None:
        values = [value for row in rows if (value := getattr(row, name)) is not None]
        return sum(values) / len(values) if values else None

    buffered = any(row.lowest_percent is not None for row in rows)
    return Means(
        first_ts=rows[0].start_ts,
        last_ts=rows[-1].end_ts,
        seconds=seconds,
        rows=len(rows),
        busy_percent=of("busy_percent"),
        busy_by="gpm" if has_gpm else "buffer" if buffered else "utilization",
        utilization_percent=of("utilization_percent"),
        memory_utilization_percent=of("memory_utilization_percent"),
        power_watts=of("power_watts"),
        sm_clock_mhz=of("sm_clock_mhz"),
        sm_active_percent=of("sm_active_percent"),
        tensor_active_percent=of("tensor_active_percent"),
        nvlink_mib_per_second=of("nvlink_mib_per_second"),
    )
