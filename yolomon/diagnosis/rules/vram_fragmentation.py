"""vram-fragmentation: the allocator holds far more than was ever in use at once, near the limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import msg
from yolomon.model import Item
from yolomon.units import gibibytes

FRAGMENTED_USED = declare(
    "vram-fragmentation.used-share", 0.9, "share", "of the GPU's memory that torch has reserved"
)
FRAGMENTED_PEAK = declare(
    "vram-fragmentation.peak-share",
    0.7,
    "share",
    "of the reserved memory that was ever allocated at once, at most",
)


class VramFragmentation:
    """Compares what torch reserved with its peak of allocated memory, where the log tells both.

    Growth explains it (vram-growth). Fooled by: a peak before the log was followed, so a hundred steps are
    waited for.
    """

    codes: ClassVar[tuple[str, ...]] = ("vram-fragmentation",)

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """Claims by GPU."""
        for index in view.job.gpu_indices:
            gpu = view.history.gpu(index)
            claim = None if gpu is None else _fragmented(view, gpu)
            if claim is not None:
                yield claim


def _fragmented(view: View, gpu: GpuHistory) -> Claim | None:
    index = gpu.info.index
    total = gpu.info.memory_total_bytes
    rank = view.job.rank_of(index)
    told = view.history.train.ranks.get(rank) if rank is not None else None
    if told is None or not told.batches or total is None or told.batches[-1].backlog:
        return None
    told_bytes = (r.roles.memory_reserved_bytes for r in reversed(told.batches))
    reserved = next((b for b in told_bytes if b is not None), None)  # the newest step need not tell it
    if reserved is None or reserved < view.thresholds[FRAGMENTED_USED] * total or len(told.batches) < 100:
        return None
    known = [p for r in list(told.batches)[-200:] if (p := r.roles.memory_peak_bytes) is not None]
    peak = max(known, default=reserved)
    if peak > view.thresholds[FRAGMENTED_PEAK] * reserved:
        return None
    return Claim(
        code="vram-fragmentation",
        target=f"gpu{index}",
        severity="warning",
        onset_ts=told.batches[-1].ts,
        summary=msg(
            "GPU {gpu}: {reserved} of {total} are reserved, but never more than {peak} were allocated",
            gpu=index,
            reserved=gibibytes(reserved),
            total=gibibytes(total),
            peak=gibibytes(peak),
        ),
        cause=msg("the allocator's cache is in pieces: a large request may fail although memory is free"),
        remedy=msg("start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        evidence={
            "memory_reserved_bytes": reserved,
            "memory_peak_bytes": peak,
            "memory_total_bytes": total,
            "reserved_percent": round(100 * reserved / total, 1),
        },
        signals=("memory_reserved_bytes", "memory_used_bytes"),
        raise_after_seconds=30.0,
        clear_after_seconds=60.0,
    )
