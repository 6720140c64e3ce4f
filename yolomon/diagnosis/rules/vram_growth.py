"""vram-growth: device memory of the job that grows without end, and oom-risk where the end is near."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.forecast import Eta, eta
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.memory_series import Growing, MemorySeries
from yolomon.diagnosis.rules.oom_retry import OomRetry
from yolomon.diagnosis.rules.vram_growth_claims import growth_claims
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.model import Item, TrainRecord

RISE = declare("vram-growth.rise-bytes", 256e6, "bytes", "of what torch has allocated, at least")
STRAIGHT_RISE = declare(
    "vram-growth.straight-rise-bytes",
    200e6,
    "bytes",
    "the same where it rises along a straight line over the steps",
)
RISE_SHARE = declare("vram-growth.rise-share", 0.005, "share", "of the GPU's memory, at least")
DEVICE_RISE = declare(
    "vram-growth.device-rise-bytes", 1e9, "bytes", "the same where only NVML's memory is known"
)
DEVICE_RISE_SHARE = declare("vram-growth.device-rise-share", 0.015, "share", "likewise, of the GPU's memory")
RESERVED_SECONDS = declare(
    "vram-growth.reserved-seconds", 240.0, "s", "that reserved memory must grow while allocated does not"
)
OWN_SHARE = 0.4  # of the device's rise that the job's own processes must show where they are listed
LISTED_LIMIT = 1024  # an hour of readings each 3.5 s
LISTED_SPACING_SECONDS = 3.5
SKIP_BATCHES = 10
SKIP_BATCHES_DEVICE = 40  # kernels and the allocator find their sizes
TESTED_A_PASS = 2  # GPUs in turn: a test takes up to a millisecond, and a leak takes minutes
LONGEST_TURN = 5  # passes


class _Gpu:
    """What is kept for one GPU."""

    def __init__(self) -> None:
        self.allocated = MemorySeries(min)
        self.reserved = MemorySeries(median)
        self.device = MemorySeries(median, least_records=1, least_seconds=0.0)
        self.tested = (0, 0, 0)
        self.growing: tuple[str, Growing] | None = None
        self.listed: deque[tuple[float, float]] = deque(maxlen=LISTED_LIMIT)  # the job's own, by NVML
        self.row_ts = 0.0
        self.has_torch = False


class VramGrowth:
    """Follows each GPU of the job over the steps of the run, validation and the like left out.

    With torch's numbers, what is allocated at the end of a step decides: its lower envelope is flat in a
    healthy run, whatever the allocator reserves. Without them the device's memory must grow along a straight
    line over the steps. Fooled by: the step up at the first validation, multi-scale training (it climbs in
    stairs and settles), allocator plateaus, a GPU that is nearly full and stays so (yolov5 runs finished at
    99 %): none of these is growth.
    """

    codes: ClassVar[tuple[str, ...]] = ("vram-growth", "oom-risk")

    def __init__(self) -> None:
        self._gpus: dict[int, _Gpu] = {}
        self._batches: dict[int, int] = {}
        self._step_ts: deque[float] = deque(maxlen=512)  # of the rank that is ahead
        self._retry = OomRetry()
        self._checks = 0

    def observe(self, item: Item, view: View) -> None:
        """Take a step's memory."""
        if not isinstance(item, TrainRecord) or item.backlog:
            return
        self._retry.observe(item)
        if item.kind == "start":
            self._gpus.clear()
            self._batches.clear()
            self._step_ts.clear()
        elif item.kind == "batch":
            rank = item.rank or 0
            count = self._batches[rank] = self._batches.get(rank, 0) + 1
            if count == max(self._batches.values()):
                self._step_ts.append(item.ts)
            index = view.job.gpu_of(rank)
            if index is None or count <= SKIP_BATCHES:
                return
            gpu = self._gpus.setdefault(index, _Gpu())
            allocated, reserved = item.roles.memory_allocated_bytes, item.roles.memory_reserved_bytes
            if allocated is not None:
                gpu.has_torch = True
                gpu.allocated.add(item.ts, allocated, count)  # not every step tells it
            if reserved is not None and count > SKIP_BATCHES_DEVICE:
                gpu.reserved.add(item.ts, reserved, count)

    def check(self, view: View) -> Iterable[Claim]:
        """Claims by GPU."""
        claims: list[Claim] = []
        self._checks += 1
        indices = view.job.gpu_indices
        turns = min(max(1, len(indices) // TESTED_A_PASS), LONGEST_TURN)
        ends: Eta | None = None
        for place, index in enumerate(indices):
            history = view.history.gpu(index)
            if history is None:
                continue
            gpu = self._gpus.setdefault(index, _Gpu())
            self._read_device(view, index, gpu)
            _read_listed(view, history, gpu)
            closed = (gpu.allocated.closed, gpu.reserved.closed, gpu.device.closed)
            if closed != gpu.tested and (place + self._checks) % turns == 0:
                gpu.tested = closed
                gpu.growing = _grows(view, history, gpu)
            if gpu.growing is not None:
                kind, growing = gpu.growing
                ends = ends or eta(view.history, view.phases)
                claims += growth_claims(view, history, kind, growing, ends)
        return [*claims, *self._retry.check(view)]

    def _read_device(self, view: View, index: int, gpu: _Gpu) -> None:
        """The device's memory at each training second."""
        if not view.phases.known or max(self._batches.values(), default=0) <= SKIP_BATCHES_DEVICE:
            gpu.row_ts = view.now_ts
            return
        rows = view.seconds.training_rows(index, view.phases, view.now_ts, 12.0, wide=False)
        for row in rows:
            if row.start_ts > gpu.row_ts and row.memory_used_bytes is not None:
                gpu.row_ts = row.start_ts
                gpu.device.add(row.end_ts, row.memory_used_bytes, self._steps_until(row.end_ts))

    def _steps_until(self, ts: float) -> int:
        """How many steps the job had made at that time (rows are read a moment after they end)."""
        place = bisect_right(self._step_ts, ts)
        return max(self._batches.values(), default=0) - len(self._step_ts) + place


def _grows(view: View, history: GpuHistory, gpu: _Gpu) -> tuple[str, Growing] | None:
    total = history.info.memory_total_bytes
    thresholds = view.thresholds
    if gpu.has_torch:
        found = gpu.allocated.grows(
            total, least_rise=thresholds[STRAIGHT_RISE], rise_share=0.0, straight=0.12
        ) or gpu.allocated.grows(total, least_rise=thresholds[RISE], rise_share=thresholds[RISE_SHARE])
        if found is not None:
            return "allocated", found
        found = gpu.reserved.grows(
            total,
            least_rise=thresholds[DEVICE_RISE],
            rise_share=thresholds[DEVICE_RISE_SHARE],
            least_span_seconds=thresholds[RESERVED_SECONDS],
        )
        if found is not None:
            return "reserved", found
    found = gpu.device.grows(
        total,
        least_rise=thresholds[DEVICE_RISE],
        rise_share=thresholds[DEVICE_RISE_SHARE],
        straight=0.08,
        least_span_seconds=thresholds[RESERVED_SECONDS] if gpu.has_torch else 10.0,
    )
    return None if found is None or not _is_own(gpu, found) else ("device", found)


def _read_listed(view: View, history: GpuHistory, gpu: _Gpu) -> None:
    """What NVML's list of processes says that the job's own hold."""
    slow, ts = history.slow, history.slow_ts
    if slow is None or ts is None or not slow.processes:
        return
    if gpu.listed and 0 <= ts - gpu.listed[-1][0] < LISTED_SPACING_SECONDS:
        return
    own = [p.memory_used_bytes for p in slow.processes if p.pid in view.job.pids]
    known = [value for value in own if value is not None]
    if known and len(known) == len(own):
        gpu.listed.append((ts, float(sum(known))))


def _is_own(gpu: _Gpu, found: Growing) -> bool:
    """Whether the job's own processes grew with the device: another's growth is no leak of this run.

    The list of processes may be late, which only delays this. True where it tells nothing.
    """
    if not gpu.listed:
        return True
    start = max((value for ts, value in gpu.listed if ts <= found.onset_ts), default=gpu.listed[0][1])
    return gpu.listed[-1][1] - start >= OWN_SHARE * (found.last_bytes - found.first_bytes)
