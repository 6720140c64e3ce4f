"""collective-hang: some ranks spin in a collective that one rank never joins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.progress import WORKS_LOAD, Silence, job_cpu_percent, silence
from yolomon.diagnosis.seconds import Means
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import msg
from yolomon.model import Item
from yolomon.units import duration

SPIN = declare("collective-hang.spin-percent", 90.0, "%", "utilization of a GPU that spins in a collective")
POWER_OF_OWN = declare(
    "collective-hang.power-of-own",
    0.65,
    "share",
    "power of a spinning GPU over its own while training, at most",
)
POWER_OF_LIMIT = declare(
    "collective-hang.power-of-limit",
    0.35,
    "share",
    "the same over the power limit where the GPU was never seen training; hangs in public "
    "reports draw 14 to 22 %, "
    "healthy GPUs at 95 % utilization never less than 47 %",
)
POWER_OF_WORK = 0.65  # of its own while training: more is no waiting
IDLE = declare("collective-hang.idle-percent", 50.0, "%", "utilization below which a rank does not spin")


class CollectiveHang:
    """No step for many times the usual, at least one GPU of the job at 100 % with the power of an idle one.

    The GPU that does not spin is the one that stopped. Fooled by: a rank that validates or saves alone (the
    phases tell, or the patience for epoch turns), label assignment on the CPU (no GPU spins then), the first
    steps, a loader that is late on one rank (it ends before the patience does).
    """

    codes: ClassVar[tuple[str, ...]] = ("collective-hang",)

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """One claim, on the GPU that stopped."""
        job = view.job
        quiet = silence(view)
        if quiet is None or job.size < 2 or len(job.gpu_indices) < 2 or not quiet.overdue:
            return []
        for index in job.gpu_indices:  # so that what work draws is known
            view.seconds.training_means(index, view.phases, view.now_ts, 20.0, within_seconds=600.0)
        means: dict[int, Means] = {}
        since = max(quiet.since_ts + 2.0, view.now_ts - 30)
        for index in job.gpu_indices:
            found = view.seconds.means(index, since, view.now_ts)
            if found is None or found.utilization_percent is None:
                return []
            means[index] = found
        spinning = [index for index, m in means.items() if _spins(view, index, m)]
        if not spinning:
            return []
        idle = [i for i, m in means.items() if (m.utilization_percent or 0.0) < view.thresholds[IDLE]]
        others = [i for i in means if i not in spinning]
        confidence = "high" if idle and job.certain else "medium"
        if idle:
            suspect = min(idle, key=lambda i: (means[i].utilization_percent or 0.0, i))
            if (means[suspect].utilization_percent or 0.0) >= WORKS_LOAD:
                return []  # it validates, with pauses between the batches
        elif others:
            if any(_works(view, index, means[index]) for index in others):
                return []  # a rank that validates or computes: the others wait for it rightly
            suspect, confidence = others[0], "low"
        else:
            suspect, confidence = _last_to_step(view, list(means)), "low"
        return [self._claim(view, quiet, suspect, spinning, means, confidence)]

    @staticmethod
    def _claim(
        view: View,
        quiet: Silence,
        suspect: int,
        spinning: list[int],
        means: dict[int, Means],
        confidence: str,
    ) -> Claim:
        waiting = [i for i in spinning if i != suspect]
        shown = waiting[0] if waiting else suspect
        rank = view.job.rank_of(suspect)
        pid = None if rank is None else view.job.pid_of(rank)
        waits = ", ".join(f"GPU {i}" for i in waiting) or f"GPU {suspect}"
        cpu = job_cpu_percent(view, pid, quiet.since_ts + 1) if pid is not None else None
        process = None if pid is None else view.history.processes.by_pid.get(pid)
        stopped = process is not None and process.sample.status == "stopped"
        how_long = view.now_ts - quiet.since_ts
        return Claim(
            code="collective-hang",
            target=f"gpu{suspect}",
            severity="critical",
            onset_ts=quiet.since_ts + (quiet.typical_seconds or 0.0),
            summary=msg(
                "GPU {gpu} stopped: no step for {time}; {waits} at {util:.0f} % and {power:.0f} "
                "W wait in a collective",
                gpu=suspect,
                time=duration(how_long),
                waits=waits,
                util=means[shown].utilization_percent or 0.0,
                power=means[shown].power_watts or 0.0,
            ),
            cause=msg(
                "rank {rank} is stopped by a signal (Ctrl-Z, kill -STOP)", rank="?" if rank is None else rank
            )
            if stopped
            else msg(
                "rank {rank} does not join a collective that the others are in; it would end "
                "only at the collective's own timeout",
                rank="?" if rank is None else rank,
            ),
            remedy=msg("let it go on: kill -CONT {pid}", pid=pid)
            if stopped
            else msg(
                "see where it stands: py-spy dump --pid {pid}; then stop the run and start again "
                "from last.pt",
                pid=pid,
            )
            if pid is not None
            else msg(
                "see where each rank stands with py-spy dump; then stop the run and start again from last.pt"
            ),
            evidence={
                "rank": rank,
                "pid": pid,
                "seconds_without_step": round(how_long, 1),
                "usual_step_seconds": None
                if quiet.typical_seconds is None
                else round(quiet.typical_seconds, 3),
                "utilization_percent": round(means[suspect].utilization_percent or 0.0, 1),
                "power_watts": None
                if means[suspect].power_watts is None
                else round(means[suspect].power_watts or 0.0, 1),
                "waiting_gpus": ", ".join(str(i) for i in waiting),
                "waiting_utilization_percent": round(means[shown].utilization_percent or 0.0, 1),
                "waiting_power_watts": None
                if means[shown].power_watts is None
                else round(means[shown].power_watts or 0.0, 1),
                "waiting_nvlink_mib_per_second": means[shown].nvlink_mib_per_second,
                "process_cpu_percent": None if cpu is None else round(cpu, 1),
                "last_step": view.history.train.step,
            },
            signals=("utilization_percent", "power_watts"),
            explains=(
                "load-imbalance@*",
                "stall",
                "sync-wait@*",
                "data-starvation@*",
                "gpu-underused@*",
                "bursty-load@*",
                "log-silent",
                "slowdown",
                "gpu-idle@*",
                "orphan-memory@*",
            ),
            confidence=confidence,
            unseen=view.job.unseen,
            raise_after_seconds=0.0,
            clear_after_seconds=5.0,
        )


def _spins(view: View, index: int, means: Means) -> bool:
    """Busy all the time with the power of an idle GPU."""
    busy = max(means.utilization_percent or 0.0, means.busy_percent or 0.0 if means.busy_by == "gpm" else 0.0)
    if busy < view.thresholds[SPIN]:
        return False
    if means.tensor_active_percent is not None and means.tensor_active_percent > 3:
        return False
    if means.power_watts is None:
        return means.sm_active_percent is not None and means.sm_active_percent < 30
    own = view.seconds.working_watts(index)
    if own is not None:
        return means.power_watts <= view.thresholds[POWER_OF_OWN] * own
    gpu = view.history.gpu(index)
    limit = None if gpu is None else gpu.info.power_limit_watts
    return bool(limit) and means.power_watts <= view.thresholds[POWER_OF_LIMIT] * (limit or 0.0)


def _works(view: View, index: int, means: Means) -> bool:
    """At real work: tensor cores or the power of training."""
    if means.tensor_active_percent is not None and means.tensor_active_percent > 3:
        return True
    own = view.seconds.working_watts(index)
    if means.power_watts is None or own is None:
        return False
    return means.power_watts > POWER_OF_WORK * own


def _last_to_step(view: View, indices: list[int]) -> int:
    """All spin: the GPU of the rank that is behind in steps, else the one whose record is the oldest."""
    ranks = view.history.train.ranks

    def behind(index: int) -> tuple[float, float, int]:
        rank = view.job.rank_of(index)
        history = ranks.get(rank) if rank is not None else None
        last = history.batches[-1] if history is not None and history.batches else None
        if last is None:
            return (float("inf"), float("inf"), index)
        return (float(last.step or 0), last.ts, index)

    return min(indices, key=behind)
