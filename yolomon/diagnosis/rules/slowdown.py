"""Steps that take longer than before in the same phase, with the cause that changed with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.statistics import Cusum
from yolomon.diagnosis.thresholds import declare
from yolomon.history import Bucket
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord
from yolomon.units import duration

RATIO = declare(
    "slowdown.ratio", 1.15, "times", "the step time of the baseline, as median of the newest 30 steps"
)
BASELINE = declare("slowdown.baseline", 50.0, "steps", "that are learnt after warm-up")
WARMUP = declare("slowdown.warm-up", 30.0, "steps", "at the start that are left out")
HELD = declare("slowdown.held", 45.0, "s", "how long it must last, so that its cause can be told first")
EPOCH_TURN_STEPS = 3  # the first steps of an epoch wait for a loader that starts
Pooled = Callable[[str, float, float, int], list[Bucket | None]]
CUSUM_DRIFT, CUSUM_LIMIT, SIGMA_FLOOR = 0.5, 20.0, 0.02


class Slowdown:
    """A CUSUM on the log of rank 0's step times, verified by the median of the newest steps."""

    codes: ClassVar[tuple[str, ...]] = ("slowdown",)

    def __init__(self) -> None:
        self._cusum: Cusum | None = None
        self._segment = 0
        self._steps = 0
        self._in_epoch = 0
        self._epoch: int | None = None
        self._image_size: float | None = None
        self._baseline_ts: tuple[float, float] | None = None
        self._baseline_data: list[float] = []
        self._recent_data: list[float] = []

    def observe(self, item: Item, view: View) -> None:
        """Take a step of rank 0."""
        if not isinstance(item, TrainRecord) or (item.rank or 0) != 0 or item.backlog:
            return
        if item.kind == "start" or item.segment != self._segment:
            self._segment = item.segment
            self._reset(warm=False)
        if item.kind == "epoch_start" and _closes_mosaic(item, view):
            self._reset(warm=True)
        if item.kind != "batch":
            return
        if item.epoch != self._epoch:
            self._epoch, self._in_epoch = item.epoch, 0
        self._steps += 1
        self._in_epoch += 1
        seconds = _step_seconds(item)
        if seconds is None or seconds <= 0 or self._in_epoch <= EPOCH_TURN_STEPS:
            return
        if self._steps <= view.thresholds[WARMUP]:
            return
        size = item.roles.image_size
        if size:  # work grows with the image's area
            self._image_size = self._image_size or size
            seconds *= (self._image_size / size) ** 2
        if self._cusum is None:
            self._cusum = Cusum(
                baseline_count=int(view.thresholds[BASELINE]),
                drift=CUSUM_DRIFT,
                limit=CUSUM_LIMIT,
                sigma_floor=SIGMA_FLOOR,
            )
        learning = self._cusum.center is None
        self._cusum.add(item.ts, seconds)
        data = item.roles.data_seconds
        if learning:
            first = self._baseline_ts[0] if self._baseline_ts else item.ts
            self._baseline_ts = (first, item.ts)
            if data is not None:
                self._baseline_data.append(data)
        elif data is not None:
            self._recent_data.append(data)
            del self._recent_data[:-30]

    def _reset(self, *, warm: bool) -> None:
        self._cusum = None
        self._steps = 20 if warm else 0
        self._in_epoch = 0
        self._baseline_ts = None
        self._baseline_data, self._recent_data = [], []
        self._image_size = None

    def check(self, view: View) -> Iterator[Claim]:
        """At most one claim."""
        cusum = self._cusum
        if cusum is None or not cusum.alarm or cusum.since_ts is None or view.phases.current == "ended":
            return
        ratio, baseline = cusum.ratio, cusum.baseline
        if ratio is None or baseline is None or ratio < view.thresholds[RATIO]:
            return
        cause, remedy, evidence = self._cause(view, baseline, ratio, cusum.since_ts)
        yield Claim(
            code="slowdown",
            target="run",
            severity="warning",
            onset_ts=cusum.since_ts,
            summary=msg(
                "A step takes {now}, {before} before: {percent} % slower",
                now=duration(baseline * ratio),
                before=duration(baseline),
                percent=f"{100 * (ratio - 1):.0f}",
            ),
            cause=cause,
            remedy=remedy,
            evidence={
                "step_seconds": round(baseline * ratio, 4),
                "step_seconds_before": round(baseline, 4),
                "ratio": round(ratio, 3),
                **evidence,
            },
            signals=("step_seconds",),
            raise_after_seconds=view.thresholds[HELD],
            clear_after_seconds=20.0,
        )

    def _cause(
        self, view: View, baseline: float, ratio: float, since_ts: float
    ) -> tuple[Message, Message, dict[str, float | str | None]]:
        """What changed with the step time, in the order of how sure it is."""
        now = view.now_ts
        added = baseline * (ratio - 1)
        evidence: dict[str, float | str | None] = {}
        if self._baseline_data and len(self._recent_data) >= 10:
            before, after = median(self._baseline_data), median(self._recent_data)
            evidence |= {"data_seconds": round(after, 4), "data_seconds_before": round(before, 4)}
            if after - before >= 0.5 * added:
                return (
                    msg("The added time is wait for data: the loader or the disk became slower"),
                    msg("See the disk and the CPU cores; is another job reading from them?"),
                    evidence,
                )
        if view.job.foreign and any(f.gpu_index in view.job.gpu_indices for f in view.job.foreign):
            other = next(f for f in view.job.foreign if f.gpu_index in view.job.gpu_indices)
            evidence["other_pid"] = float(other.pid)
            return (
                msg("Another process is on GPU {index} (pid {pid})", index=other.gpu_index, pid=other.pid),
                msg("Move one of them to another GPU with CUDA_VISIBLE_DEVICES"),
                evidence,
            )
        early = self._baseline_ts
        for index in view.job.gpu_indices if early is not None else ():
            gpu = view.history.gpu(index)
            if gpu is None or early is None:
                continue
            clocks = _pair(gpu.fast.pooled, "sm_clock_mhz", early, (max(since_ts, now - 60.0), now))
            if clocks is not None and clocks[1] < 0.92 * clocks[0]:
                temperature = gpu.fast.latest("temperature_celsius")
                evidence |= {
                    "sm_clock_mhz": round(clocks[1]),
                    "sm_clock_before_mhz": round(clocks[0]),
                    "temperature_celsius": None if temperature is None else temperature[1],
                }
                return (
                    msg("The clock of GPU {index} fell from {before} to {after} MHz", index=index,
                        before=f"{clocks[0]:.0f}", after=f"{clocks[1]:.0f}"),
                    msg("Check temperature and power limit: nvidia-smi -q -d PERFORMANCE"),
                    evidence,
                )  # fmt: skip
        if early is not None:
            span = (max(since_ts, now - 60.0), now)
            cpu = _pair(view.history.host.table.pooled, "cpu_percent", early, span)
            swap = _pair(view.history.host.table.pooled, "swap_used_bytes", early, span)
            if swap is not None and swap[1] > swap[0] + 100e6:
                evidence["swap_used_bytes"] = round(swap[1])
                return (
                    msg("The host began to swap"),
                    msg("Fewer workers, cache=disk, or more memory"),
                    evidence,
                )
            if cpu is not None and cpu[1] > 90.0 and cpu[1] > cpu[0] + 10.0:
                evidence |= {"cpu_percent": round(cpu[1], 1), "cpu_before_percent": round(cpu[0], 1)}
                return (
                    msg("The host's CPU is fully used, which it was not before"),
                    msg("See `top` for what else runs"),
                    evidence,
                )
        return (
            msg(
                "No signal that is seen changed with it: more objects in the images, or a host busy "
                "with other work"
            ),
            msg("py-spy dump --pid of the trainer shows where its time goes"),
            evidence,
        )


def _step_seconds(record: TrainRecord) -> float | None:
    roles = record.roles
    if roles.step_seconds is not None:
        return roles.step_seconds
    if roles.images_per_second and roles.images_per_second > 0:
        return (roles.images or 1.0) / roles.images_per_second
    return None


def _closes_mosaic(record: TrainRecord, view: View) -> bool:
    closing = view.history.train.run.close_mosaic
    total = record.epochs or view.history.train.total_epochs
    return bool(closing and total and record.epoch == total - closing + 1)


def _pair(
    pooled: Pooled, name: str, before: tuple[float, float], after: tuple[float, float]
) -> tuple[float, float] | None:
    """Means of a column over two spans."""
    found = []
    for start, end in (before, after):
        bucket = pooled(name, start, max(end, start + 1.0), 1)[0]
        if bucket is None:
            return None
        found.append(bucket.mean)
    return found[0], found[1]
