"""bursty-load: work comes in bursts with idle gaps within epochs."""

from __future__ import annotations

import itertools

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.statistics import quantile
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import msg

BURST_SHARE = declare("bursty-load.idle-share", 0.10, "share", "of training seconds with an idle GPU")


def bursty_load(view: View, index: int, data_share: float | None) -> Claim | None:
    """Idle seconds between busy ones, within epochs, regularly, for two minutes."""
    rows = view.seconds.training_rows(index, view.phases, view.now_ts, 240.0)
    busy = [row.busy_percent for row in rows if row.busy_percent is not None]
    if len(busy) < 90 or view.now_ts - rows[-1].end_ts > 30:
        return None
    idle = [value < 10 for value in busy]
    share = sum(idle) / len(busy)
    gaps = sum(1 for a, b in itertools.pairwise(idle) if b and not a)
    if share < view.thresholds[BURST_SHARE] or share > 0.7 or gaps < 6 or quantile(busy, 0.95) < 70:
        return None
    halves = [sum(part) for part in (idle[: len(idle) // 2], idle[len(idle) // 2 :])]
    if min(halves) < 0.3 * max(halves):
        return None  # it settles: warm-up, kernels tuned for new sizes
    return Claim(
        code="bursty-load",
        target=f"gpu{index}",
        severity="warning",
        onset_ts=next(row.start_ts for row in rows if row.busy_percent is not None and row.busy_percent < 10),
        summary=msg(
            "GPU {gpu} works in bursts: {gaps} idle gaps in {seconds} s of training, {share:.0f} "
            "% of the time",
            gpu=index,
            gaps=gaps,
            seconds=len(busy),
            share=100 * share,
        ),
        cause=msg("steps come in groups with pauses between them, not from validation or saving"),
        remedy=msg(
            "look for work between steps: uneven loading (more workers, larger prefetch), "
            "logging, plots, changing image sizes"
        ),
        evidence={
            "idle_percent_of_training": round(100 * share, 1),
            "gaps": gaps,
            "training_seconds": len(busy),
            "data_share_percent": None if data_share is None else round(100 * data_share, 1),
        },
        signals=("utilization_percent",),
        explains=("gpu-underused",),
        confidence="medium",
        raise_after_seconds=30.0,
        clear_after_seconds=60.0,
    )
