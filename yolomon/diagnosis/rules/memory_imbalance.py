"""load-imbalance by memory: one process on several GPUs, or contexts of other ranks on one GPU."""

from __future__ import annotations

from statistics import median

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.units import gibibytes

MEMORY_SHARE = declare(
    "load-imbalance.memory-share", 0.15, "share", "difference of memory within a job over its median"
)


def memory_imbalance(view: View) -> list[Claim]:
    """One process on several GPUs (DataParallel), and contexts of other ranks on one GPU."""
    job = view.job
    if not job.processes_visible or view.phases.current in (None, "starting", "caching", "ended"):
        return []
    claim = _data_parallel(view) or _extra_contexts(view)
    return [] if claim is None else [claim]


def _per_process(view: View) -> dict[int, dict[int, float]]:
    """Bytes by pid and GPU, of the job's own processes."""
    held: dict[int, dict[int, float]] = {}
    for gpu in view.history.by_index():
        if gpu.slow is None or gpu.slow.processes is None:
            continue
        for process in gpu.slow.processes:
            if process.pid in view.job.pids and process.memory_used_bytes is not None:
                held.setdefault(process.pid, {})[gpu.info.index] = float(process.memory_used_bytes)
    return held


def _data_parallel(view: View) -> Claim | None:
    ranks = {m.pid for m in view.job.members}
    for pid, held in sorted(_per_process(view).items()):
        if pid not in ranks or len(held) < 2 or view.job.size > 1:
            continue
        means = {i: view.seconds.training_means(i, view.phases, view.now_ts, 20.0) for i in held}
        working = [
            i for i, m in means.items() if m is not None and m.seconds >= 8 and (m.busy_percent or 0) >= 10
        ]
        if len(working) < 2:
            continue
        main = max(working, key=lambda i: (held[i], -i))
        others = [held[i] for i in working if i != main]
        busy = {i: (m.busy_percent or 0.0) for i, m in means.items() if m is not None}
        return Claim(
            code="load-imbalance",
            target=f"gpu{main}",
            severity="warning",
            onset_ts=max((m.first_ts for m in means.values() if m is not None), default=view.now_ts),
            summary=msg(
                "one process drives {count} GPUs: GPU {gpu} does the gathering and limits the others",
                count=len(working),
                gpu=main,
            ),
            cause=msg(
                "pid {pid} uses {gpus}: DataParallel, with one Python process for all of them",
                pid=pid,
                gpus=", ".join(f"GPU {i}" for i in sorted(working)),
            ),
            remedy=msg(
                "use one process a GPU (DDP): torchrun --nproc_per_node={count}, or "
                "device=0,1,... in Ultralytics",
                count=len(working),
            ),
            evidence={
                "pid": pid,
                "gpus": ", ".join(str(i) for i in sorted(working)),
                "busy_percent": round(busy[main], 1),
                "peers_busy_percent": round(median([busy[i] for i in working if i != main]), 1),
                "memory_bytes": held[main],
                "peers_memory_bytes": median(others),
            },
            signals=("utilization_percent", "memory_used_bytes"),
            raise_after_seconds=15.0,
            clear_after_seconds=30.0,
        )
    return None


def _extra_contexts(view: View) -> Claim | None:
    held = _per_process(view)
    own_gpu = {m.pid: m.gpu_index for m in view.job.members if m.pid is not None}
    extra: dict[int, list[float]] = {}
    for pid, gpus in held.items():
        for index, used in gpus.items():
            if pid in own_gpu and own_gpu[pid] != index:
                extra.setdefault(index, []).append(used)
    if not extra:
        return None
    in_use = {
        g.info.index: float(g.sample.memory_used_bytes)
        for g in view.history.by_index()
        if g.info.index in view.job.gpu_indices and g.sample is not None and g.sample.memory_used_bytes
    }
    index = max(extra, key=lambda i: (sum(extra[i]), -i))
    if index not in in_use or len(in_use) < 2:
        return None
    peers = median([value for i, value in in_use.items() if i != index])
    more = in_use[index] - peers
    if more < max(2**30, view.thresholds[MEMORY_SHARE] * peers):
        return None
    count = len(extra[index])
    summary: Message = msg(
        "GPU {gpu} holds {count} extra contexts of other ranks: {more} more than its peers",
        gpu=index,
        count=count,
        more=gibibytes(more),
    )
    return Claim(
        code="load-imbalance",
        target=f"gpu{index}",
        severity="warning",
        onset_ts=view.now_ts,
        summary=summary,
        cause=msg(
            "{count} ranks touched CUDA before they chose their own GPU, and keep a context there",
            count=count,
        ),
        remedy=msg(
            "call torch.cuda.set_device(local_rank) before anything touches CUDA; load weights "
            "with map_location='cpu'"
        ),
        evidence={
            "extra_contexts": count,
            "extra_bytes": sum(extra[index]),
            "memory_used_bytes": in_use[index],
            "peers_memory_used_bytes": peers,
        },
        signals=("memory_used_bytes",),
        raise_after_seconds=20.0,
        clear_after_seconds=30.0,
    )
