"""gpu-underused: sustained low real work with no cause found."""

from __future__ import annotations

from statistics import median

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.units import gibibytes

UNDERUSED = declare("gpu-underused.busy-percent", 50.0, "%", "busy GPU time below which a GPU is underused")


def gpu_underused(view: View, index: int, data_share: float | None) -> Claim | None:
    """Sustained low real work with no cause found."""
    means = view.seconds.training_means(index, view.phases, view.now_ts, 60.0, within_seconds=300.0)
    if means is None or means.busy_percent is None or means.seconds < 55 or view.now_ts - means.last_ts > 30:
        return None
    if means.busy_percent >= view.thresholds[UNDERUSED]:
        return None
    gpu = view.history.gpu(index)
    used = None if gpu is None or gpu.sample is None else gpu.sample.memory_used_bytes
    total = None if gpu is None else gpu.info.memory_total_bytes
    run = view.history.train.run
    batch = run.batch_size
    room = used is not None and total is not None and used < 0.5 * total
    remedy: Message
    if room and batch is not None and batch > 0:
        remedy = msg(
            "batch {batch:.0f} uses {used} of {total} and the GPU is {busy:.0f} % busy: try "
            "batch=-1 or a larger batch",
            batch=batch,
            used=gibibytes(used, 0),
            total=gibibytes(total, 0),
            busy=means.busy_percent,
        )
    elif room:
        remedy = msg(
            "{used} of {total} are used: try a larger batch",
            used=gibibytes(used, 0),
            total=gibibytes(total, 0),
        )
    else:
        remedy = msg(
            "a larger model, image size or batch would use more of this GPU; compile=True shortens launches"
        )
    step = [r.roles.step_seconds for t in view.history.train.ranks.values() for r in list(t.batches)[-30:]]
    steps = [s for s in step if s is not None and s == s]
    return Claim(
        code="gpu-underused",
        target=f"gpu{index}",
        severity="info",
        onset_ts=means.first_ts,
        summary=msg(
            "GPU {gpu} is busy only {busy:.0f} % of the time, and nothing holds it up",
            gpu=index,
            busy=means.busy_percent,
        ),
        cause=msg("the work of a step is small for this GPU"),
        remedy=remedy,
        evidence={
            "busy_percent": round(means.busy_percent, 1),
            "sm_active_percent": None
            if means.sm_active_percent is None
            else round(means.sm_active_percent, 1),
            "memory_used_bytes": used,
            "memory_total_bytes": total,
            "batch_size": batch,
            "step_seconds": round(median(steps), 3) if steps else None,
            "data_share_percent": None if data_share is None else round(100 * data_share, 1),
        },
        signals=("utilization_percent",),
        confidence="high" if data_share is not None else "medium",
        unseen=()
        if data_share is not None
        else (msg("the log has no data time: waiting for input cannot be ruled out"),),
        raise_after_seconds=30.0,
        clear_after_seconds=60.0,
    )
