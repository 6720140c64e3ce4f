"""What the processes beside the job on a GPU do: work, sleep, or none of either because they are gone.

The common ground of gpu-contention and orphan-memory. A process works when it uses the CPU, when the job's
steps became longer as it came, or when the GPU computes while the job itself rests between epochs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Literal

import msgspec

from yolomon.diagnosis.job import Foreign
from yolomon.diagnosis.rules.base import View
from yolomon.diagnosis.rules.progress import job_cpu_percent
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory, RankHistory

WORKING_CPU = declare(
    "gpu-contention.cpu-percent", 15.0, "%", "of a core: a process of another job that works"
)
BUSY_AT_REST = declare(
    "gpu-contention.busy-at-rest-percent",
    40.0,
    "%",
    "utilization of the job's GPU while the job saves or turns to the next epoch: somebody else computes",
)
SLOWED = 1.2  # times the step before a process came
SLEEPS_CPU = 3.0  # % of a core
CPU_SECONDS = 20.0  # looked at
SETTLE_SECONDS = 0.8  # NVML's utilization spans up to a second before the reading
RESTS = ("checkpoint", "epoch-turn", "close-mosaic")
REST_READINGS = 3
SAME_MEMORY = 0.01  # share by which memory in use may change and still be held without work

Doing = Literal["works", "sleeps", "gone", "unknown"]


class Judged(msgspec.Struct, frozen=True):
    """A process beside the job: what it does, since when it is there, since when its memory stays."""

    other: Foreign
    doing: Doing
    since_ts: float
    still_since_ts: float
    cpu_percent: float | None
    by_effect: bool  # known from what it does to the job
    child: bool  # started by the job itself


class _Seen:
    def __init__(self, now_ts: float) -> None:
        self.since_ts = now_ts
        self.still_since_ts = now_ts
        self.memory = 0
        self.slowed = False
        self.at_rest: deque[float] = deque(maxlen=30)  # utilization while the job rests, percent


class OtherProcesses:
    """Remembers each process that is no rank of the job for as long as it is on a GPU."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], _Seen] = {}  # by GPU and pid

    def judge(self, view: View, gpu: GpuHistory, others: Iterable[Foreign], *, child: bool) -> list[Judged]:
        """What each of `others` on that GPU does; called once a check."""
        return [self._judge(view, gpu, other, child) for other in others]

    def forget(self, keep: set[tuple[int, int]]) -> None:
        """Drop those that are gone from the list; `keep` holds (GPU, pid)."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keep}

    def _judge(self, view: View, gpu: GpuHistory, other: Foreign, child: bool) -> Judged:
        key = (other.gpu_index, other.pid)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = _Seen(view.now_ts)
        held = other.memory_used_bytes or 0
        if abs(held - seen.memory) > SAME_MEMORY * max(held, 1):
            seen.memory, seen.still_since_ts = held, view.now_ts
        since = max(seen.since_ts, view.now_ts - CPU_SECONDS)
        cpu = job_cpu_percent(view, other.pid, since) if other.process is not None else None
        ours = other.gpu_index in view.job.gpu_indices
        if ours:
            seen.slowed = seen.slowed or _slowed_since(view, seen.since_ts)  # kept: steps leave the history
            _read_at_rest(view, gpu, seen)
        # A sleeping notebook must not pay for a validation that the log does not tell of.
        awake = cpu is None or cpu >= SLEEPS_CPU
        by_effect = ours and (seen.slowed or (awake and _busy_at_rest(view, seen)))
        return Judged(
            other=other,
            doing=_doing(view, other, cpu, by_effect, view.now_ts - seen.still_since_ts),
            since_ts=seen.since_ts,
            still_since_ts=seen.still_since_ts,
            cpu_percent=cpu,
            by_effect=by_effect,
            child=child,
        )


def _doing(view: View, other: Foreign, cpu: float | None, by_effect: bool, still_seconds: float) -> Doing:
    status = None if other.process is None else other.process.status
    if status in ("zombie", "dead", "stopped"):
        return "gone"
    if by_effect or (cpu is not None and cpu >= view.thresholds[WORKING_CPU]):
        return "works"
    if other.process is None:
        listed = view.job.processes_visible and _lists_everyone(view)
        return "gone" if listed and still_seconds >= 1.0 else "unknown"
    return "sleeps" if cpu is not None and cpu < SLEEPS_CPU else "unknown"


def _read_at_rest(view: View, gpu: GpuHistory, seen: _Seen) -> None:
    """The GPU's utilization in the pauses of the rank that computes on it; other ranks spin in theirs."""
    leader = view.phases.leader
    if leader is None or leader.current is None or view.job.gpu_of(leader.rank) != gpu.info.index:
        return
    now = leader.current
    if now.phase not in RESTS or now.inferred or gpu.sample is None or gpu.sample_ts is None:
        return
    load = gpu.sample.utilization_percent
    if load is not None and gpu.sample_ts >= max(now.start_ts, seen.since_ts) + SETTLE_SECONDS:
        seen.at_rest.append(load)


def _busy_at_rest(view: View, seen: _Seen) -> bool:
    return len(seen.at_rest) >= REST_READINGS and median(seen.at_rest) >= view.thresholds[BUSY_AT_REST]


def _slowed_since(view: View, since_ts: float) -> bool:
    """Whether the job's steps became longer when a process came, at once and for good.

    Then it works: one that ended or sleeps and only keeps its memory costs no time.
    """
    leader = view.phases.leader
    told = None if leader is None else view.history.train.ranks.get(leader.rank)
    if told is None or view.now_ts - since_ts > 300:
        return False
    before, after = [], []
    for ts, step in _steps(told):
        if ts < since_ts - 1.0:
            before.append(step)
        elif ts > since_ts + 2.0:
            after.append(step)
    # The first steps choose kernels and are slower than the rest: a median needs more than those.
    if len(before) < 20 or len(after) < 10:
        return False
    least = SLOWED * median(before[-60:])
    return median(after[:20]) > least and median(after[-30:]) > least


def _steps(told: RankHistory) -> Iterable[tuple[float, float]]:
    """Time and length of each step but the first of an epoch; from the records' distance where not told."""
    for earlier, record in pairwise(told.batches):
        step = record.roles.step_seconds
        if record.batch == 1 or record.backlog:
            continue
        if step is None and earlier.epoch == record.epoch and earlier.step is not None and record.step:
            count = record.step - earlier.step
            step = (record.ts - earlier.ts) / count if count > 0 else None
        if step is not None and step == step:
            yield record.ts, step


def _lists_everyone(view: View) -> bool:
    """Whether the process table holds the job's own processes, so that one that is missing is gone."""
    table = view.history.processes.by_pid
    pids = [m.pid for m in view.job.members if m.pid is not None]
    return (
        bool(pids)
        and all(pid in table for pid in pids)
        and view.history.host_info.pid_namespace_shared is not False
    )


def name_of(other: Foreign) -> str:
    """The process's name, or a question mark."""
    return "?" if other.process is None else other.process.name or "?"
