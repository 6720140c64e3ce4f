"""vram-growth, vram-fragmentation, oom-risk: device memory that is used up."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.forecast import Eta, eta
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.memory_series import Growing, MemorySeries
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord
from yolomon.units import duration, gibibytes, size

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
RISK_SECONDS = declare("oom-risk.seconds", 600.0, "s", "until the limit is reached, at the earliest")
FRAGMENTED_USED = declare(
    "vram-fragmentation.used-share", 0.9, "share", "of the GPU's memory that torch has reserved"
)
FRAGMENTED_PEAK = declare(
    "vram-fragmentation.peak-share",
    0.7,
    "share",
    "of the reserved memory that was ever allocated at once, at most",
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


class MemoryGrowth:
    """Follows each GPU of the job over the steps of the run, validation and the like left out.

    With torch's numbers, what is allocated at the end of a step decides: its lower envelope is flat in a
    healthy run, whatever the allocator reserves. Without them the device's memory must grow along a straight
    line over the steps. Fooled by: the step up at the first validation, multi-scale training (it climbs in
    stairs and settles), allocator plateaus, a GPU that is nearly full and stays so (yolov5 runs finished at
    99 %): none of these is growth.
    """

    codes: ClassVar[tuple[str, ...]] = ("vram-growth", "vram-fragmentation", "oom-risk")

    def __init__(self) -> None:
        self._gpus: dict[int, _Gpu] = {}
        self._batches: dict[int, int] = {}
        self._step_ts: deque[float] = deque(maxlen=512)  # of the rank that is ahead
        self._retry: tuple[float, str] | None = None
        self._checks = 0

    def observe(self, item: Item, view: View) -> None:
        """Take a step's memory."""
        if not isinstance(item, TrainRecord) or item.backlog:
            return
        if item.kind == "start":
            self._gpus.clear()
            self._batches.clear()
            self._step_ts.clear()
            self._retry = None
        elif item.kind == "message" and "out of memory" in item.text.lower():
            self._retry = (item.ts, item.text[:160])
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
                claims += _say(view, history, kind, growing, ends)
            else:
                claim = _fragmented(view, history)
                if claim is not None:
                    claims.append(claim)
        last = view.phases.last_batch_ts()
        if (
            self._retry is not None
            and view.now_ts - self._retry[0] < 120
            and last is not None
            and last > self._retry[0]
        ):
            claims.append(self._say_retry(view, self._retry))
        return claims

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

    @staticmethod
    def _say_retry(view: View, retry: tuple[float, str]) -> Claim:
        indices = view.job.gpu_indices
        target = f"gpu{indices[0]}" if len(indices) == 1 else "run"
        return Claim(
            code="oom-risk",
            target=target,
            severity="critical",
            onset_ts=retry[0],
            summary=msg("the trainer ran out of GPU memory and went on"),
            cause=msg("a step needed more memory than there is; the trainer caught it"),
            remedy=_remedy_batch(view),
            evidence={"log": retry[1]},
            signals=("memory_used_bytes",),
            clear_after_seconds=1.0,
        )


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


def _say(view: View, gpu: GpuHistory, kind: str, growing: Growing, ends: Eta | None) -> list[Claim]:
    index = gpu.info.index
    total = gpu.info.memory_total_bytes
    used = gpu.sample.memory_used_bytes if gpu.sample is not None else None
    slope = growing.trend.slope
    rate = growing.steps_per_second
    seconds: float | None = None
    earliest = latest = None
    if total is not None and used is not None and slope is not None and rate > 0 and slope.low > 0:
        room = max(total - used, 0)
        seconds = room / (slope.value * rate)
        earliest, latest = room / (max(slope.high, slope.value) * rate), room / (slope.low * rate)
    left = None if ends is None else ends.seconds
    fits = seconds is not None and earliest is not None and left is not None and earliest > 1.5 * left
    if left is None and earliest is not None and earliest > 86400:
        fits = True
    epoch = _epoch_at(view, seconds)
    per_step = growing.bytes_per_step
    if seconds is None:
        summary = msg("memory of GPU {gpu} grows by {step} a step", gpu=index, step=size(per_step))
    elif fits:
        summary = msg(
            "memory of GPU {gpu} grows by {step} a step; full in {time}, the run ends before that",
            gpu=index,
            step=size(per_step),
            time=duration(seconds),
        )
    elif epoch is not None:
        summary = msg(
            "memory of GPU {gpu} grows by {step} a step: full in {time} ({low} to {high}), in epoch {epoch}",
            gpu=index,
            step=size(per_step),
            time=duration(seconds),
            low=duration(earliest),
            high=duration(latest),
            epoch=epoch,
        )
    else:
        summary = msg(
            "memory of GPU {gpu} grows by {step} a step: full in {time} ({low} to {high})",
            gpu=index,
            step=size(per_step),
            time=duration(seconds),
            low=duration(earliest),
            high=duration(latest),
        )
    cause: Message
    remedy: Message
    if kind == "allocated":
        cause = msg(
            "tensors are kept from step to step: allocated memory rises, {first} to {last} in "
            "{steps:.0f} steps",
            first=gibibytes(growing.first_bytes),
            last=gibibytes(growing.last_bytes),
            steps=growing.steps,
        )
        remedy = msg(
            "look for a list, a callback or a running total that keeps tensors: store "
            "loss.item() or loss.detach().cpu()"
        )
    elif kind == "reserved":
        cause = msg("the allocator reserves more and more while allocated memory stays: fragmentation")
        remedy = msg(
            "start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; batches of one size fragment less"
        )
    else:
        cause = msg(
            "the device's memory rises with every step, {first} to {last} in {time}",
            first=gibibytes(growing.first_bytes),
            last=gibibytes(growing.last_bytes),
            time=duration(growing.seconds),
        )
        remedy = msg(
            "log torch.cuda.memory_allocated(): if it rises, tensors are kept; if not, the "
            "allocator fragments"
        )
    unseen = list(view.job.unseen)
    if kind == "device":
        unseen.append(msg("the log has no numbers of torch's allocator: a leak and fragmentation look alike"))
    evidence: dict[str, float | str | None] = {
        "kind": kind,
        "bytes_per_step": round(per_step),
        "bytes_per_second": round(per_step * rate),
        "rise_bytes": round(growing.last_bytes - growing.first_bytes),
        "steps": growing.steps,
        "span_seconds": round(growing.seconds, 1),
        "memory_used_bytes": used,
        "memory_total_bytes": total,
        "seconds_to_full": None if seconds is None else round(seconds),
        "seconds_to_full_low": None if earliest is None else round(earliest),
        "seconds_to_full_high": None if latest is None else round(latest),
        "epoch_when_full": epoch,
        "seconds_to_end_of_run": None if left is None else round(left),
        "mann_kendall_z": round(growing.trend.z, 1),
    }
    claims = [
        Claim(
            code="vram-growth",
            target=f"gpu{index}",
            severity="info" if fits else "warning",
            onset_ts=growing.onset_ts,
            summary=summary,
            cause=cause,
            remedy=remedy,
            evidence=evidence,
            signals=(
                "memory_used_bytes",
                "memory_allocated_bytes" if kind != "reserved" else "memory_reserved_bytes",
            ),
            explains=("vram-fragmentation",),
            confidence="high" if kind == "allocated" else "medium",
            unseen=tuple(unseen),
            clear_after_seconds=60.0,
        )
    ]
    if seconds is not None and earliest is not None and earliest < view.thresholds[RISK_SECONDS] and not fits:
        claims.append(
            Claim(
                code="oom-risk",
                target=f"gpu{index}",
                severity="critical",
                onset_ts=growing.onset_ts,
                summary=msg(
                    "GPU {gpu} runs out of memory in {time} ({low} to {high}): {used} of {total} used",
                    gpu=index,
                    time=duration(seconds),
                    low=duration(earliest),
                    high=duration(latest),
                    used=gibibytes(used),
                    total=gibibytes(total),
                ),
                cause=cause,
                remedy=msg(
                    "save a checkpoint now and restart before it is full: python process memory "
                    "is given back at its end"
                ),
                evidence=evidence,
                signals=("memory_used_bytes",),
                clear_after_seconds=60.0,
            )
        )
    return claims


def _epoch_at(view: View, seconds: float | None) -> int | None:
    """The epoch that will be on in `seconds`, by the run's own pace."""
    train = view.history.train
    leader = view.phases.leader
    if seconds is None or train.epoch is None or leader is None:
        return None
    started: float | None = None
    for record in train.epochs:
        if not record.backlog:
            started = record.ts
            break
    first_epoch = next((r.epoch for r in train.epochs if not r.backlog), None)
    last = train.epochs[-1] if train.epochs else None
    if (
        started is not None
        and last is not None
        and last.epoch
        and first_epoch is not None
        and last.epoch > first_epoch
    ):
        pace = (last.ts - started) / (last.epoch - first_epoch)
        since = view.now_ts - last.ts
        return int(last.epoch + 1 + (seconds + since) / pace) if pace > 0 else None
    gap = leader.typical_gap()
    if gap and train.batch is not None and train.batches:
        left = seconds - gap * (train.batches - train.batch)
        return train.epoch if left <= 0 else int(train.epoch + 1 + left / (gap * train.batches))
    return None


def _fragmented(view: View, gpu: GpuHistory) -> Claim | None:
    index = gpu.info.index
    total = gpu.info.memory_total_bytes
    rank = view.job.rank_of(index)
    told = view.history.train.ranks.get(rank) if rank is not None else None
    if told is None or not told.batches or total is None or told.batches[-1].backlog:
        return None
    told_bytes = (r.roles.memory_reserved_bytes for r in reversed(told.batches))
    reserved = next((b for b in told_bytes if b is not None), None)  # the newest step need not tell it
    if reserved is None or reserved < view.thresholds[FRAGMENTED_USED] * total or len(told.batches) < 100:
        return None
    known = [p for r in list(told.batches)[-200:] if (p := r.roles.memory_peak_bytes) is not None]
    peak = max(known, default=reserved)
    if peak > view.thresholds[FRAGMENTED_PEAK] * reserved:
        return None
    return Claim(
        code="vram-fragmentation",
        target=f"gpu{index}",
        severity="warning",
        onset_ts=told.batches[-1].ts,
        summary=msg(
            "GPU {gpu}: {reserved} of {total} are reserved, but never more than {peak} were allocated",
            gpu=index,
            reserved=gibibytes(reserved),
            total=gibibytes(total),
            peak=gibibytes(peak),
        ),
        cause=msg("the allocator's cache is in pieces: a large request may fail although memory is free"),
        remedy=msg("start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        evidence={
            "memory_reserved_bytes": reserved,
            "memory_peak_bytes": peak,
            "memory_total_bytes": total,
            "reserved_percent": round(100 * reserved / total, 1),
        },
        signals=("memory_reserved_bytes", "memory_used_bytes"),
        raise_after_seconds=30.0,
        clear_after_seconds=60.0,
    )


def _remedy_batch(view: View) -> Message:
    batch = view.history.train.run.batch_size
    if batch is not None and batch >= 2:
        return msg("use batch={half} (it is {batch})", half=int(batch) // 2, batch=int(batch))
    return msg("use a smaller batch or image size")
