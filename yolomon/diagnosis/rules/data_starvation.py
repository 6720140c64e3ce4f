"""data-starvation: the GPU waits for input. Where it does not, bursty-load and gpu-underused are asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.bottleneck import find_bottleneck
from yolomon.diagnosis.rules.bursty_load import bursty_load
from yolomon.diagnosis.rules.gpu_underused import gpu_underused
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord

SHARE = declare("data-starvation.share", 0.30, "share", "of the step time spent waiting for data, sustained")
CLEAR_SHARE = declare("data-starvation.clear-share", 0.20, "share", "below which it is over")
SECONDS = declare("data-starvation.seconds", 30.0, "s", "of steps looked at")
BUSY = declare(
    "data-starvation.busy-percent", 35.0, "%", "busy GPU time below which telemetry alone can tell"
)
BUSY_PINNED = declare(
    "data-starvation.busy-pinned-percent", 60.0, "%", "the same while every loader worker is at its limit"
)
LEAST_SECONDS = 6.0
LEAST_BATCHES = 6
WAITS_SHARE = 0.3  # of a step
LEAST_WAITING = 3  # steps: with many workers only some steps wait, for long
SKIPPED_BATCHES = 2  # kernels are chosen, the loader starts


class _Share(msgspec.Struct, frozen=True):
    rank: int
    share: float
    data_seconds: float  # a step
    step_seconds: float
    batches: int
    seconds: float
    onset_ts: float
    waiting: int  # steps that waited for a good part of their time


class DataStarvation:
    """Waiting for input as a share of step time, where the stream has data_time; else by telemetry.

    The first batch of each epoch is left out (workers start then), and so are the first steps. Without
    data_time a GPU must be mostly idle while training AND the loader's processes, the trainer's one core or
    the disk must be at their limit. Fooled by: a small model (its data_time is near 0: gpu-underused), a
    first epoch that fills the page cache (then it ends by itself), asynchronous steps that hide waiting.
    """

    codes: ClassVar[tuple[str, ...]] = ("data-starvation", "bursty-load", "gpu-underused")

    def __init__(self) -> None:
        self._active: set[int] = set()
        self._windows: dict[int, _Window] = {}  # by rank
        self._slow: dict[int, tuple[float, Claim | None]] = {}  # GPU -> when looked at, what was seen

    def observe(self, item: Item, view: View) -> None:
        """Take each step's time and the part of it spent waiting."""
        if not isinstance(item, TrainRecord) or item.backlog:
            return
        if item.kind == "start":
            self._windows.pop(item.rank or 0, None)
        elif item.kind == "batch" and item.batch != 1:
            data, step = item.roles.data_seconds, item.roles.step_seconds
            if data is not None and step is not None and step > 0 and data >= 0:
                window = self._windows.get(item.rank or 0)
                if window is None:
                    window = self._windows[item.rank or 0] = _Window()
                window.add(item.ts, data, step, view.thresholds[SECONDS])

    def check(self, view: View) -> Iterable[Claim]:
        """Claims for each starving GPU (or the run), else for those that do little."""
        if not view.phases.known:
            return []
        shares = [
            share
            for rank, window in self._windows.items()
            if (share := window.share(rank, view.now_ts)) is not None
        ]
        starving = [
            s
            for s in shares
            if s.share >= view.thresholds[CLEAR_SHARE if s.rank in self._active else SHARE]
            and (s.rank in self._active or s.waiting >= LEAST_WAITING)  # not one batch that came late once
        ]
        self._active = {s.rank for s in starving}
        if starving:
            return self._say(view, shares, starving)
        last = view.phases.last_batch_ts()
        if last is None or view.now_ts - last > 10:
            return []
        claims: list[Claim] = []
        for index in view.job.gpu_indices:
            rank = view.job.rank_of(index)
            told = next((s for s in shares if s.rank == rank), None)
            claim = _by_telemetry(view, index, rank) if told is None else None
            claim = claim or self._little_work(view, index, told)
            if claim is not None:
                claims.append(claim)
        starved = [claim for claim in claims if claim.code == "data-starvation"]
        if len(starved) > 1 and len(starved) == len(view.job.gpu_indices):
            return [_of_run(starved)]
        return claims

    def _little_work(self, view: View, index: int, told: _Share | None) -> Claim | None:
        """Bursts and little work, looked at every 10 s: both are judged over minutes, and by GPUs in turn."""
        looked, seen = self._slow.get(index, (view.now_ts - index % 8, None))
        if not 0 <= view.now_ts - looked < 10:
            share = None if told is None else told.share
            seen = bursty_load(view, index, share) or gpu_underused(view, index, share)
            looked = view.now_ts
        self._slow[index] = (looked, seen)
        return seen

    def _say(self, view: View, shares: list[_Share], starving: list[_Share]) -> list[Claim]:
        several = view.job.size > 1 or len(shares) > 1
        if several and len(starving) == len(shares):
            worst = max(starving, key=lambda s: s.share)
            return [_claim(view, "run", worst, len(starving))]
        claims = []
        for share in starving:
            index = view.job.gpu_of(share.rank)
            target = f"gpu{index}" if index is not None else "run"
            claims.append(_claim(view, target, share, 1))
        return claims


class _Window:
    """One rank's newest steps: as many as make `seconds`, the first of each epoch left out."""

    def __init__(self) -> None:
        self.steps: deque[tuple[float, float, float]] = deque()  # time, data seconds, step seconds
        self.waiting = 0  # steps that waited for a good part of their time
        self.data = 0.0
        self.step = 0.0
        self.onset_ts: float | None = None
        self.seen = 0

    def add(self, ts: float, data: float, step: float, seconds: float) -> None:
        """Take one step."""
        self.seen += 1
        if self.seen <= SKIPPED_BATCHES:
            return
        data = min(data, step)
        self.steps.append((ts, data, step))
        self.waiting += data >= WAITS_SHARE * step
        self.data += data
        self.step += step
        while len(self.steps) > LEAST_BATCHES and self.step - self.steps[0][2] >= seconds:
            _, old_data, old_step = self.steps.popleft()
            self.waiting -= old_data >= WAITS_SHARE * old_step
            self.data -= old_data
            self.step -= old_step
        if data >= 0.15 * step:
            if self.onset_ts is None:
                self.onset_ts = ts - step
        elif self.data < 0.15 * self.step:
            self.onset_ts = None

    def share(self, rank: int, now_ts: float) -> _Share | None:
        """What they say; None before there are enough, or long after the last one."""
        count = len(self.steps)
        if count < LEAST_BATCHES or self.step < LEAST_SECONDS:
            return None
        newest = self.steps[-1][0]
        if now_ts - newest > max(60.0, 3 * self.step):
            return None
        onset = newest if self.onset_ts is None else self.onset_ts
        return _Share(
            rank,
            self.data / self.step,
            self.data / count,
            self.step / count,
            count,
            self.step,
            onset,
            self.waiting,
        )


def _claim(view: View, target: str, share: _Share, ranks: int) -> Claim:
    since = max(view.now_ts - 30, share.onset_ts)
    pid = view.job.pid_of(share.rank)
    found = find_bottleneck(view, pid, since)
    percent = 100 * share.share
    first = view.phases.leader
    cold = first is not None and first.epochs_done == 0 and found.where in ("disk", "unknown")
    summary: Message
    if target == "run" and ranks == 1:
        summary = msg(
            "training waits for input {share:.0f} % of each step ({data:.2f} of {step:.2f} s)",
            share=percent,
            data=share.data_seconds,
            step=share.step_seconds,
        )
    elif target == "run":
        summary = msg(
            "all {count} ranks wait for input {share:.0f} % of each step ({data:.2f} of {step:.2f} s)",
            count=ranks,
            share=percent,
            data=share.data_seconds,
            step=share.step_seconds,
        )
    else:
        summary = msg(
            "{gpu} waits for input {share:.0f} % of each step ({data:.2f} of {step:.2f} s)",
            gpu=target.upper().replace("GPU", "GPU "),
            share=percent,
            data=share.data_seconds,
            step=share.step_seconds,
        )
    index = view.job.gpu_of(share.rank)
    means = None if index is None else view.seconds.training_means(index, view.phases, view.now_ts, 20.0)
    return Claim(
        code="data-starvation",
        target=target,
        severity="warning",
        onset_ts=share.onset_ts,
        summary=summary,
        cause=found.cause,
        remedy=found.remedy,
        evidence={
            "data_share_percent": round(percent, 1),
            "data_seconds_per_step": round(share.data_seconds, 3),
            "step_seconds": round(share.step_seconds, 3),
            "steps": share.batches,
            "gpu_busy_percent": None
            if means is None or means.busy_percent is None
            else round(means.busy_percent, 1),
            "bottleneck": found.where,
            **found.evidence,
        },
        signals=("utilization_percent", "data_seconds", "step_seconds"),
        explains=("gpu-underused@*", "bursty-load@*", "load-imbalance", "slowdown"),
        confidence="medium" if cold else "high",
        unseen=(msg("the first epoch may only be filling the page cache"),) if cold else (),
        raise_after_seconds=3.0,
        clear_after_seconds=15.0,
    )


def _of_run(claims: list[Claim]) -> Claim:
    """All GPUs of the job starve: one finding, with the evidence of the one that does most."""
    busiest = max(claims, key=lambda claim: float(claim.evidence["gpu_busy_percent"] or 0.0))
    return msgspec.structs.replace(
        busiest,
        target="run",
        onset_ts=min(claim.onset_ts for claim in claims),
        summary=msg(
            "all {count} GPUs are busy at most {busy:.0f} % of the time while the input is at its limit",
            count=len(claims),
            busy=busiest.evidence["gpu_busy_percent"],
        ),
        explains=("gpu-underused@*", "bursty-load@*"),
    )


def _by_telemetry(view: View, index: int, rank: int | None) -> Claim | None:
    """No data_time in the log: an idle GPU while the loader or the disk is at its limit."""
    if view.job.size > 1 and len(view.phases.ranks) < view.job.size:
        peers = [i for i in view.job.gpu_indices if i != index]
        busy = [
            m.busy_percent
            for i in peers
            if (m := view.seconds.training_means(i, view.phases, view.now_ts, 20.0)) is not None
            and m.busy_percent
        ]
        if busy and max(busy) > 60:
            return None  # the others spin: a straggler, whatever holds it
    means = view.seconds.training_means(index, view.phases, view.now_ts, 20.0)
    if means is None or means.busy_percent is None or means.seconds < 10 or view.now_ts - means.last_ts > 30:
        return None
    if means.busy_percent >= view.thresholds[BUSY_PINNED]:
        return None
    pid = None if rank is None else view.job.pid_of(rank)
    found = find_bottleneck(view, pid, view.now_ts - 30)
    if means.busy_percent >= view.thresholds[BUSY] and found.where != "workers":
        return None  # workers that wait for room in the queue rest: all at their limit means too few
    trainer = found.evidence["trainer_cpu_percent"]
    pinned = isinstance(trainer, float) and trainer >= 80
    if trainer is None:  # its process is not visible: one core of the machine that is always busy stands in
        _, cores = view.history.host.table.window("cpu_busiest_core_percent", view.now_ts - 30, view.now_ts)
        pinned = len(cores) >= 5 and sorted(cores)[len(cores) // 4] >= 80
    if found.where in ("unknown", "main-process") or (found.where == "workers-0" and not pinned):
        return None
    return Claim(
        code="data-starvation",
        target=f"gpu{index}",
        severity="warning",
        onset_ts=means.first_ts,
        summary=msg(
            "GPU {gpu} is busy only {busy:.0f} % of the time while the input is at its limit",
            gpu=index,
            busy=means.busy_percent,
        ),
        cause=found.cause,
        remedy=found.remedy,
        evidence={
            "gpu_busy_percent": round(means.busy_percent, 1),
            "power_watts": None if means.power_watts is None else round(means.power_watts, 1),
            "window_seconds": round(means.seconds, 1),
            "bottleneck": found.where,
            **found.evidence,
        },
        signals=("utilization_percent", "power_watts"),
        explains=("gpu-underused", "bursty-load"),
        confidence="medium",
        unseen=(msg("the log has no data time: told from the GPU and the loader's processes"),),
        raise_after_seconds=5.0,
        clear_after_seconds=20.0,
    )
