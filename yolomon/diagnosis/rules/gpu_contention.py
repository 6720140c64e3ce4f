"""gpu-contention: a process that is no rank of the job works on one of its GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.job import CONTEXT_BYTES
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.other_processes import Judged, OtherProcesses, name_of
from yolomon.diagnosis.rules.progress import trains
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import msg
from yolomon.model import Item
from yolomon.units import gibibytes

OTHER_SECONDS = declare(
    "gpu-contention.seconds", 10.0, "s", "that a process of another job is on a GPU of this one"
)
UNKNOWN_TIMES = 3.0  # so much longer where nothing tells whether it works
_WORKERS = ("pt_data_worker", "pt_data_pin")


class GpuContention:
    """Processes of other jobs, and children of the trainer that compute beside it.

    Another job's works when it uses the CPU or when it costs the job time; a child of the trainer is only
    told by what it costs, as it may be there by intent. Fooled by: a job that sleeps (orphan-memory), a
    process that is in no process table (told after longer, with less confidence), a loader's workers.
    """

    codes: ClassVar[tuple[str, ...]] = ("gpu-contention",)

    def __init__(self) -> None:
        self._others = OtherProcesses()

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """One claim a GPU of the job."""
        claims: dict[int, Claim] = {}
        keep: set[tuple[int, int]] = set()
        running = trains(view)
        for index in view.job.gpu_indices:
            gpu = view.history.gpu(index)
            if gpu is None:
                continue
            here = [o for o in view.job.foreign if o.gpu_index == index and _counts(o.memory_used_bytes)]
            own = [
                o
                for o in view.job.children
                if o.gpu_index == index
                and _counts(o.memory_used_bytes)
                and not name_of(o).startswith(_WORKERS)
            ]
            keep |= {(index, other.pid) for other in (*here, *own)}
            for judged in (
                *self._others.judge(view, gpu, here, child=False),
                *self._others.judge(view, gpu, own, child=True),
            ):
                if running and index not in claims and _is_contention(view, judged):
                    claims[index] = _claim(judged)
        self._others.forget(keep)
        return claims.values()


def _counts(memory_bytes: int | None) -> bool:
    return (memory_bytes or 0) >= CONTEXT_BYTES


def _is_contention(view: View, judged: Judged) -> bool:
    held = view.now_ts - judged.since_ts
    least = view.thresholds[OTHER_SECONDS]
    if judged.child:
        return judged.doing == "works" and judged.by_effect and held >= least
    if judged.doing == "works":
        return held >= least
    unseen = judged.doing == "unknown" and judged.other.process is None
    return unseen and held >= UNKNOWN_TIMES * least


def _claim(judged: Judged) -> Claim:
    other, cpu = judged.other, judged.cpu_percent
    words = {
        "gpu": other.gpu_index,
        "pid": other.pid,
        "name": name_of(other),
        "held": gibibytes(other.memory_used_bytes),
    }
    known = cpu is not None or judged.by_effect
    return Claim(
        code="gpu-contention",
        target=f"gpu{other.gpu_index}",
        severity="warning",
        onset_ts=judged.since_ts,
        summary=msg(
            "a child of the trainer works on GPU {gpu} beside it: pid {pid} ({name}), {held}", **words
        )
        if judged.child
        else msg("another job works on GPU {gpu}: pid {pid} ({name}), {held}", **words),
        cause=msg("the trainer and its child share the GPU's time, and each slows the other")
        if judged.child
        else msg("two jobs share the GPU's time, and each slows the other"),
        remedy=msg(
            "see what it does: py-spy dump --pid {pid}; give it another GPU, or let it wait", pid=other.pid
        )
        if judged.child
        else msg(
            "move one to another GPU (device=, CUDA_VISIBLE_DEVICES), or let them run one after the other"
        ),
        evidence={
            "pid": other.pid,
            "user": None if other.process is None else other.process.user,
            "process": name_of(other),
            "memory_used_bytes": other.memory_used_bytes,
            "process_cpu_percent": None if cpu is None else round(cpu, 1),
        },
        signals=("utilization_percent", "memory_used_bytes"),
        explains=("slowdown", "gpu-underused"),
        confidence="high" if known else "medium",
        unseen=() if known else (msg("that process is not visible: whether it works is not known"),),
        clear_after_seconds=10.0,
    )
