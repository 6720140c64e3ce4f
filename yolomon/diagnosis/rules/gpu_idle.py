"""gpu-idle, gpu-contention, orphan-memory: who is on the GPUs besides the job, and who is not."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.job import CONTEXT_BYTES, Foreign
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.progress import job_cpu_percent
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.model import Item, Severity
from yolomon.units import gibibytes

IDLE_SECONDS = declare(
    "gpu-idle.seconds", 15.0, "s", "that the job trains while a GPU has no process and no work"
)
EMPTY_BYTES = declare("gpu-idle.memory-bytes", 500e6, "bytes", "in use on a GPU that nobody uses, at most")
OTHER_SECONDS = declare(
    "gpu-contention.seconds", 10.0, "s", "that a process of another job is on a GPU of this one"
)
WORKING_CPU = declare(
    "gpu-contention.cpu-percent", 15.0, "%", "of a core: a process of another job that works"
)
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
TRAINING_SECONDS = 8.0
SLOWED = 1.2  # times the step before a process came
LEFT_OVER_SECONDS = 120.0  # after the end of the run


class OtherUsers:
    """Looks at the processes and the memory of each GPU while a job trains.

    Fooled by: a previous process that still frees its memory (so nothing is said at once), a display,
    a container where no process of a GPU is visible (then nothing is said), a GPU that somebody reserved.
    """

    codes: ClassVar[tuple[str, ...]] = ("gpu-idle", "gpu-contention", "orphan-memory")

    def __init__(self) -> None:
        self._since: dict[tuple[str, int, int], float] = {}  # (what, GPU, pid) -> since when
        self._working: set[tuple[str, int, int]] = set()  # those that slowed the job when they came

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """Claims by GPU."""
        claims: list[Claim] = []
        seen: set[tuple[str, int, int]] = set()
        for gpu in view.history.by_index():
            if gpu.sample is None or gpu.sample.state != "ok" or gpu.sample_ts is None:
                continue
            if view.now_ts - gpu.sample_ts > 30:
                continue
            for claim, key in (
                *self._idle(view, gpu),
                *self._foreign(view, gpu),
                *self._ownerless(view, gpu),
                *self._left_over(view, gpu),
            ):
                seen.add(key)
                if claim is not None:
                    claims.append(claim)
        self._since = {key: since for key, since in self._since.items() if key in seen}
        self._working &= seen
        return claims

    def _held(self, key: tuple[str, int, int], now_ts: float) -> float:
        """Seconds since the condition `key` began; called once a check while it holds."""
        return now_ts - self._since.setdefault(key, now_ts)

    def _idle(self, view: View, gpu: GpuHistory) -> list[tuple[Claim | None, tuple[str, int, int]]]:
        index = gpu.info.index
        used = gpu.sample.memory_used_bytes if gpu.sample is not None else None
        if index in view.job.gpu_indices or not view.job.gpu_indices:
            return []
        if gpu.slow is None or gpu.slow.processes is None or gpu.slow.processes:
            return []
        if used is None or used > view.thresholds[EMPTY_BYTES]:
            return []
        rows = view.seconds.latest(index, 10)
        if not rows or max((row.utilization_percent or 0.0) for row in rows) > 3:
            return []
        if not _visible_to_trainer(view, gpu):
            return []
        key = ("idle", index, 0)
        held = self._held(key, view.now_ts)
        if held < view.thresholds[IDLE_SECONDS] or not _trains(view):
            return [(None, key)]
        asked = _asked_for(view.history.train.run.device)
        wanted = asked is not None and index in asked and len(asked) > len(view.job.gpu_indices)
        first = min(
            (r.first_batch_ts for r in view.phases.ranks.values() if r.first_batch_ts), default=view.now_ts
        )
        onset = max(first, self._since[key])
        uses = ", ".join(str(i) for i in view.job.gpu_indices)
        power = gpu.sample.power_watts if gpu.sample is not None else None
        count = len(view.job.gpu_indices) + 1
        claim = Claim(
            code="gpu-idle",
            target=f"gpu{index}",
            severity="warning" if wanted else "info",
            onset_ts=onset,
            summary=msg(
                "GPU {gpu} is asked for (device={device}) but does nothing",
                gpu=index,
                device=view.history.train.run.device,
            )
            if wanted
            else msg(
                "GPU {gpu} is free: no process uses it, the job runs on GPU {uses}", gpu=index, uses=uses
            ),
            cause=msg("the trainer did not start a process there")
            if wanted
            else msg("the run was not given this GPU"),
            remedy=msg(
                "check how it was started: CUDA_VISIBLE_DEVICES and device; on several GPUs: "
                "device={devices}",
                devices=",".join(str(i) for i in range(count)),
            ),
            evidence={
                "utilization_percent": 0.0,
                "memory_used_bytes": used,
                "power_watts": power,
                "processes": 0,
                "job_gpus": uses,
                "idle_seconds": round(held, 1),
            },
            signals=("utilization_percent",),
            confidence="high" if view.job.certain else "medium",
            clear_after_seconds=5.0,
        )
        return [(claim, key)]

    def _foreign(self, view: View, gpu: GpuHistory) -> list[tuple[Claim | None, tuple[str, int, int]]]:
        index = gpu.info.index
        ours = index in view.job.gpu_indices
        if not view.job.gpu_indices:
            return []
        out: list[tuple[Claim | None, tuple[str, int, int]]] = []
        for other in view.job.foreign:
            if other.gpu_index != index or (other.memory_used_bytes or 0) < CONTEXT_BYTES:
                continue
            key = ("foreign", index, other.pid)
            held = self._held(key, view.now_ts)
            since = max(self._since[key], view.now_ts - 20)
            cpu = job_cpu_percent(view, other.pid, since) if other.process is not None else None
            if ours and other.process is None and _slowed_since(view, self._since[key]):
                self._working.add(key)  # remembered: the steps before it leave the history
            slowed = key in self._working
            gone = (
                other.process is None and not slowed and view.job.processes_visible and _lists_everyone(view)
            )
            sleeps = cpu is not None and cpu < 3
            status = None if other.process is None else other.process.status
            dead = status in ("zombie", "dead", "stopped") or gone
            if ours and cpu is not None and cpu >= view.thresholds[WORKING_CPU]:
                claim = self._contention(view, other, cpu) if held >= view.thresholds[OTHER_SECONDS] else None
            elif (other.memory_used_bytes or 0) >= view.thresholds[ORPHAN_BYTES] and (sleeps or dead):
                wait = view.thresholds[ORPHAN_SECONDS if dead else ORPHAN_ALIVE_SECONDS]
                if held < wait or (not ours and _busy(view, index)):
                    claim = None
                else:  # a sleeping process elsewhere may be somebody's notebook: for long it is only told
                    serious = dead or ours or held >= view.thresholds[ORPHAN_FREE_SECONDS]
                    claim = self._orphan(view, other, cpu, dead, "warning" if serious else "info")
            elif (
                ours
                and cpu is None
                and not gone
                and held >= (1 if slowed else 3) * view.thresholds[OTHER_SECONDS]
            ):
                claim = self._contention(view, other, None)
            else:
                claim = None
            out.append((claim if _trains(view) else None, key))
        return out

    def _ownerless(self, view: View, gpu: GpuHistory) -> list[tuple[Claim | None, tuple[str, int, int]]]:
        """Memory in use that no listed process holds."""
        index = gpu.info.index
        slow = gpu.slow
        if slow is None or slow.processes is None or gpu.slow_ts is None:
            return []
        if not view.job.processes_visible or view.history.host_info.pid_namespace_shared is False:
            return []  # a container: processes of others are not listed
        _, recent = gpu.fast.window("memory_used_bytes", gpu.slow_ts - 3, gpu.slow_ts + 0.1)
        if not recent or gpu.info.mig_enabled or gpu.info.unified_memory:
            return []
        if any(p.memory_used_bytes is None for p in slow.processes):
            return []
        listed = sum(p.memory_used_bytes or 0 for p in slow.processes)
        reserved = (gpu.info.memory_reserved_bytes or 0) if gpu.info.memory_api == "v1" else 0
        nobody = min(recent) - listed - reserved
        key = ("nobody", index, 0)
        if nobody < view.thresholds[ORPHAN_BYTES]:
            return []
        held = self._held(key, view.now_ts)
        if held < view.thresholds[ORPHAN_SECONDS] or not _trains(view):
            return [(None, key)]
        claim = Claim(
            code="orphan-memory",
            target=f"gpu{index}",
            severity="warning",
            onset_ts=self._since[key],
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
        return [(claim, key)]

    def _left_over(self, view: View, gpu: GpuHistory) -> list[tuple[Claim | None, tuple[str, int, int]]]:
        """Processes of the job itself that stay on a GPU long after its end (YOLOX#958, ultralytics#3544)."""
        index = gpu.info.index
        if view.phases.current != "ended" or gpu.slow is None or _busy(view, index):
            return []
        out: list[tuple[Claim | None, tuple[str, int, int]]] = []
        for process in gpu.slow.processes or ():
            if (
                process.pid not in view.job.pids
                or (process.memory_used_bytes or 0) < view.thresholds[ORPHAN_BYTES]
            ):
                continue
            key = ("foreign", index, process.pid)
            held = self._held(key, view.now_ts)
            known = view.history.processes.by_pid.get(process.pid)
            other = Foreign(
                index, process.pid, process.memory_used_bytes, None if known is None else known.sample
            )
            cpu = job_cpu_percent(view, process.pid, view.now_ts - 20)
            idle = cpu is None or cpu < 3
            claim = (
                self._orphan(view, other, cpu, False, "warning")
                if idle and held >= LEFT_OVER_SECONDS
                else None
            )
            out.append((claim, key))
        return out

    def _contention(self, view: View, other: Foreign, cpu: float | None) -> Claim:
        name = _name(other)
        return Claim(
            code="gpu-contention",
            target=f"gpu{other.gpu_index}",
            severity="warning",
            onset_ts=self._since[("foreign", other.gpu_index, other.pid)],
            summary=msg(
                "another job works on GPU {gpu}: pid {pid} ({name}), {held}",
                gpu=other.gpu_index,
                pid=other.pid,
                name=name,
                held=gibibytes(other.memory_used_bytes),
            ),
            cause=msg("two jobs share the GPU's time, and each slows the other"),
            remedy=msg(
                "move one to another GPU (device=, CUDA_VISIBLE_DEVICES), or let them run one after the other"
            ),
            evidence={
                "pid": other.pid,
                "user": None if other.process is None else other.process.user,
                "process": name,
                "memory_used_bytes": other.memory_used_bytes,
                "process_cpu_percent": None if cpu is None else round(cpu, 1),
            },
            signals=("utilization_percent", "memory_used_bytes"),
            explains=("slowdown", "gpu-underused"),
            confidence="high" if cpu is not None else "medium",
            unseen=()
            if cpu is not None
            else (msg("that process is not visible: whether it works is not known"),),
            raise_after_seconds=0.0,
            clear_after_seconds=10.0,
        )

    def _orphan(self, view: View, other: Foreign, cpu: float | None, dead: bool, severity: Severity) -> Claim:
        cause: Message = (
            msg("it ended without giving its memory back")
            if dead
            else msg("it sleeps: {cpu:.0f} % of a core; left over, or waiting", cpu=cpu or 0.0)
        )
        return Claim(
            code="orphan-memory",
            target=f"gpu{other.gpu_index}",
            severity=severity,
            onset_ts=self._since[("foreign", other.gpu_index, other.pid)],
            summary=msg(
                "pid {pid} ({name}) holds {held} on GPU {gpu} and does no work",
                pid=other.pid,
                name=_name(other),
                held=gibibytes(other.memory_used_bytes),
                gpu=other.gpu_index,
            ),
            cause=cause,
            remedy=msg(
                "look at it: ps -o pid,user,stat,etime,args -p {pid}; if it is a left-over of "
                "yours: kill {pid}",
                pid=other.pid,
            ),
            evidence={
                "pid": other.pid,
                "user": None if other.process is None else other.process.user,
                "process": _name(other),
                "memory_used_bytes": other.memory_used_bytes,
                "process_cpu_percent": None if cpu is None else round(cpu, 1),
                "process_status": None if other.process is None else other.process.status,
            },
            signals=("memory_used_bytes",),
            clear_after_seconds=5.0,
        )


def _name(other: Foreign) -> str:
    return "?" if other.process is None else other.process.name or "?"


def _trains(view: View) -> bool:
    """Whether a job is seen that makes steps and has for some seconds."""
    first = min((r.first_batch_ts for r in view.phases.ranks.values() if r.first_batch_ts), default=None)
    last = view.phases.last_batch_ts()
    if first is None or last is None or view.phases.current == "ended":
        return False
    return view.now_ts - first >= TRAINING_SECONDS and view.now_ts - last < 120


def _busy(view: View, index: int) -> bool:
    rows = view.seconds.latest(index, 30)
    return not rows or max((row.utilization_percent or 0.0) for row in rows) > 5


def _slowed_since(view: View, since_ts: float) -> bool:
    """Whether the job's steps became longer when a process came that is in no process table.

    Then it works: one that ended and only keeps its memory costs no time.
    """
    leader = view.phases.leader
    told = None if leader is None else view.history.train.ranks.get(leader.rank)
    if told is None:
        return False
    before, after = [], []
    for record in told.batches:
        step = record.roles.step_seconds
        if step is None or step != step or record.batch == 1:
            continue
        if record.ts < since_ts - 1.0:
            before.append(step)
        elif record.ts > since_ts + 2.0:
            after.append(step)
    # The first steps choose kernels and are slower than the rest: a median needs more than those.
    return len(before) >= 20 and len(after) >= 10 and median(after[-30:]) > SLOWED * median(before[-60:])


def _lists_everyone(view: View) -> bool:
    """Whether the process table holds the job's own processes, so that one that is missing is gone."""
    table = view.history.processes.by_pid
    pids = [m.pid for m in view.job.members if m.pid is not None]
    return (
        bool(pids)
        and all(pid in table for pid in pids)
        and view.history.host_info.pid_namespace_shared is not False
    )


def _visible_to_trainer(view: View, gpu: GpuHistory) -> bool:
    """False where the trainer's environment leaves that GPU out."""
    for member in view.job.members:
        process = None if member.pid is None else view.history.processes.by_pid.get(member.pid)
        visible = None if process is None else process.sample.cuda_visible_devices
        if visible is None:
            return True
        names = [name.strip() for name in visible.split(",")]
        if str(gpu.info.index) in names or any(n and gpu.info.uuid.startswith(n) for n in names):
            return True
    return not view.job.members


def _asked_for(device: str | None) -> list[int] | None:
    """The GPUs of a `device=0,1` setting."""
    if device is None:
        return None
    parts = [part.strip().removeprefix("cuda:") for part in device.strip("[]()").split(",")]
    return [int(part) for part in parts if part.isdigit()] or None
