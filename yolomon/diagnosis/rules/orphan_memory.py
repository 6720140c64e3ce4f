"""orphan-memory: memory held on a GPU by a process that does no work, or by none that can be seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.job import CONTEXT_BYTES, Foreign
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.other_processes import Judged, OtherProcesses, name_of
from yolomon.diagnosis.rules.progress import trains
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.model import Item, Severity
from yolomon.units import gibibytes

ORPHAN_SECONDS = declare("orphan-memory.seconds", 15.0, "s", "that memory is held without work or owner")
ORPHAN_ALIVE_SECONDS = declare(
    "orphan-memory.alive-seconds",
    30.0,
    "s",
    "the same for a process that is alive and sleeps on a GPU of the job",
)
ORPHAN_FREE_SECONDS = declare(
    "orphan-memory.elsewhere-seconds",
    900.0,
    "s",
    "on a GPU that the job does not use, before it is a warning (gpu-pulse: 15 min)",
)
ORPHAN_BYTES = declare("orphan-memory.bytes", 2.0**30, "bytes", "held, at least")
LIST_LATE_SECONDS = 20.0  # NVML's list of processes may tell of memory so much later than the device does
LEFT_OVER_SECONDS = 120.0  # after the end of the run
SILENT_SECONDS = 30.0  # a reading that is older tells nothing about now


class OrphanMemory:
    """Looks at the processes and the memory of each GPU while a job trains, and at its own after its end.

    Fooled by: a previous process that still frees its memory (so nothing is said at once), a list of
    processes that comes late, a display, a container where no process of a GPU is visible (then nothing is
    said), somebody's notebook on another GPU (only told, for long).
    """

    codes: ClassVar[tuple[str, ...]] = ("orphan-memory",)

    def __init__(self) -> None:
        self._others = OtherProcesses()
        self._nobody: dict[int, float] = {}  # GPU -> since when memory is nobody's
        self._nobody_seen: set[int] = set()

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """At most one claim a GPU."""
        claims: list[Claim] = []
        keep: set[tuple[int, int]] = set()
        self._nobody_seen = set()
        for gpu in view.history.by_index():
            if gpu.sample is None or gpu.sample.state != "ok" or gpu.sample_ts is None:
                continue
            if view.now_ts - gpu.sample_ts > SILENT_SECONDS:
                continue
            others = [
                other
                for other in (view.job.foreign if view.job.gpu_indices else ())
                if other.gpu_index == gpu.info.index and (other.memory_used_bytes or 0) >= CONTEXT_BYTES
            ]
            rest = _rest_of_job(view, gpu)
            keep |= {(gpu.info.index, other.pid) for other in (*others, *rest)}
            found = [
                *(self._foreign(view, j) for j in self._others.judge(view, gpu, others, child=False)),
                self._ownerless(view, gpu),
                *(_left_over(view, j) for j in self._others.judge(view, gpu, rest, child=True)),
            ]
            claims += [claim for claim in found if claim is not None]
        self._others.forget(keep)
        self._nobody = {index: since for index, since in self._nobody.items() if index in self._nobody_seen}
        return claims

    @staticmethod
    def _foreign(view: View, judged: Judged) -> Claim | None:
        other = judged.other
        if (other.memory_used_bytes or 0) < view.thresholds[ORPHAN_BYTES] or not trains(view):
            return None
        if judged.doing not in ("sleeps", "gone"):
            return None
        dead = judged.doing == "gone"
        held = view.now_ts - judged.still_since_ts
        ours = other.gpu_index in view.job.gpu_indices
        if held < view.thresholds[ORPHAN_SECONDS if dead else ORPHAN_ALIVE_SECONDS]:
            return None
        if not ours and _busy(view, other.gpu_index):
            return None
        # A sleeping process elsewhere may be somebody's notebook: for long it is only told.
        serious = dead or ours or held >= view.thresholds[ORPHAN_FREE_SECONDS]
        return _claim(judged, "warning" if serious else "info")

    def _ownerless(self, view: View, gpu: GpuHistory) -> Claim | None:
        """Memory in use that no listed process holds, and did not some time ago either.

        What is listed now is compared with the least that the device held lately: while a process grows, a
        list that comes late leaves memory without owner that has one.
        """
        index = gpu.info.index
        slow = gpu.slow
        if slow is None or slow.processes is None or gpu.slow_ts is None:
            return None
        if not view.job.processes_visible or view.history.host_info.pid_namespace_shared is False:
            return None  # a container: processes of others are not listed
        rows = view.seconds.rows(index, gpu.slow_ts - LIST_LATE_SECONDS - 1.0, gpu.slow_ts + 0.1)
        recent = [row.memory_used_bytes for row in rows if row.memory_used_bytes is not None]
        if not recent or rows[0].start_ts > gpu.slow_ts - LIST_LATE_SECONDS + 5.0:
            return None  # not watched for long enough to know that the list is not only late
        if gpu.info.mig_enabled or gpu.info.unified_memory:
            return None
        if any(p.memory_used_bytes is None for p in slow.processes):
            return None
        listed = sum(p.memory_used_bytes or 0 for p in slow.processes)
        reserved = (gpu.info.memory_reserved_bytes or 0) if gpu.info.memory_api == "v1" else 0
        nobody = min(recent) - listed - reserved
        if nobody < view.thresholds[ORPHAN_BYTES]:
            return None
        since = self._nobody.setdefault(index, view.now_ts)
        self._nobody_seen.add(index)
        held = view.now_ts - since
        if held < view.thresholds[ORPHAN_SECONDS] or not trains(view):
            return None
        return Claim(
            code="orphan-memory",
            target=f"gpu{index}",
            severity="warning",
            onset_ts=since,
            summary=msg(
                "{held} on GPU {gpu} are held by no process that can be seen",
                held=gibibytes(nobody),
                gpu=index,
            ),
            cause=msg("a process that ended abnormally, or one in another container, keeps them"),
            remedy=msg(
                "see who: sudo fuser -v /dev/nvidia{gpu}; if nobody, reset the GPU when no job "
                "runs: nvidia-smi -r -i {gpu}",
                gpu=index,
            ),
            evidence={
                "unowned_bytes": nobody,
                "memory_used_bytes": min(recent),
                "listed_processes_bytes": listed,
                "processes": len(slow.processes),
                "held_seconds": round(held, 1),
            },
            signals=("memory_used_bytes",),
            clear_after_seconds=5.0,
        )


def _rest_of_job(view: View, gpu: GpuHistory) -> list[Foreign]:
    """Processes of the job itself that hold memory after its end (YOLOX#958, ultralytics#3544)."""
    if view.phases.current != "ended" or gpu.slow is None or _busy(view, gpu.info.index):
        return []
    found = []
    for process in gpu.slow.processes or ():
        held = process.memory_used_bytes or 0
        if process.pid in view.job.pids and held >= view.thresholds[ORPHAN_BYTES]:
            known = view.history.processes.by_pid.get(process.pid)
            sample = None if known is None else known.sample
            found.append(Foreign(gpu.info.index, process.pid, process.memory_used_bytes, sample))
    return found


def _left_over(view: View, judged: Judged) -> Claim | None:
    idle = judged.cpu_percent is None or judged.doing in ("sleeps", "gone")
    if not idle or view.now_ts - judged.since_ts < LEFT_OVER_SECONDS:
        return None
    return _claim(judged, "warning")


def _claim(judged: Judged, severity: Severity) -> Claim:
    other, cpu, dead = judged.other, judged.cpu_percent, judged.doing == "gone"
    cause: Message = (
        msg("it ended without giving its memory back")
        if dead
        else msg("it sleeps: {cpu:.0f} % of a core; left over, or waiting", cpu=cpu or 0.0)
    )
    return Claim(
        code="orphan-memory",
        target=f"gpu{other.gpu_index}",
        severity=severity,
        onset_ts=judged.since_ts,
        summary=msg(
            "pid {pid} ({name}) holds {held} on GPU {gpu} and does no work",
            pid=other.pid,
            name=name_of(other),
            held=gibibytes(other.memory_used_bytes),
            gpu=other.gpu_index,
        ),
        cause=cause,
        remedy=msg(
            "look at it: ps -o pid,user,stat,etime,args -p {pid}; if it is a left-over of yours: kill {pid}",
            pid=other.pid,
        ),
        evidence={
            "pid": other.pid,
            "user": None if other.process is None else other.process.user,
            "process": name_of(other),
            "memory_used_bytes": other.memory_used_bytes,
            "process_cpu_percent": None if cpu is None else round(cpu, 1),
            "process_status": None if other.process is None else other.process.status,
        },
        signals=("memory_used_bytes",),
        clear_after_seconds=5.0,
    )


def _busy(view: View, index: int) -> bool:
    rows = view.seconds.latest(index, 30)
    return not rows or max((row.utilization_percent or 0.0) for row in rows) > 5
