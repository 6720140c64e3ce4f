"""The overview's states that nobody opens by hand, as recordings: for the pictures and for the tests."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

from tests.tui.recordings import (
    GIB,
    SLOW_RANK,
    START,
    Always,
    StoredFeed,
    batch,
    gpu_sample,
    header,
    run,
    sample,
    slow_rank,
)
from yolomon.diagnosis.rules.base import Claim
from yolomon.messages import msg
from yolomon.model import GpuSample, Header, HostInfo, Item, SourceStatus, TrainRecord


def _claim(code: str, target: str, severity: str, summary: str, remedy: str, signal: str) -> Claim:
    return Claim(
        code=code,
        target=target,
        severity=severity,  # type: ignore[arg-type]
        onset_ts=START + 80,
        summary=msg(summary),
        cause=msg("the numbers of the last minute say so"),
        remedy=msg(remedy),
        signals=(signal,),
    )


def _silent(index: int, state: str) -> GpuSample:
    return gpu_sample(
        index, 121.0, state=state, utilization_percent=None, memory_utilization_percent=None,
        memory_used_bytes=None, temperature_celsius=None, power_watts=None,
    )  # fmt: skip


def _last(state: str) -> StoredFeed:
    """Two GPUs, of which the second ends in a state."""
    later = [sample(2, s, (gpu_sample(0, s), _silent(1, state))) for s in range(121, 131)]
    return StoredFeed([*run(2), *later])


def no_gpu() -> StoredFeed:
    """The driver is missing, and the source says why."""
    status = SourceStatus(
        ts=START + 1,
        source="nvml",
        ok=False,
        cause=msg("The NVIDIA driver's library libnvidia-ml.so.1 was not found."),
        remedy=msg("Install the NVIDIA driver; in a container start it with --gpus all."),
    )
    bare = Header(ts=START, host=HostInfo(cores=32, memory_total_bytes=251 * GIB), gpus=())
    return StoredFeed([bare, status, *run(0)[1:]])


def no_log() -> StoredFeed:
    """GPUs at work, and no trainer's log."""
    return StoredFeed([item for item in run(2) if not isinstance(item, TrainRecord)])


def nan_loss() -> StoredFeed:
    """A loss that became NaN, and was said to be."""
    items: list[Item] = run(2)
    for second in range(121, 141):
        bad = {"train/box_loss": nan, "train/cls_loss": nan}
        items += [sample(2, second), batch(second + 0.1, 6, second - 119, loss=nan, losses=bad)]
    claim = _claim(
        "nan-loss", "run", "critical", "The loss is NaN since epoch 6, batch 2",
        "stop now: nothing that is trained from here on is of use", "loss",
    )  # fmt: skip
    return StoredFeed(items, [Always(claim, START + 121)])


def many_findings() -> StoredFeed:
    """One critical, two warnings, one remark."""
    claims = [
        SLOW_RANK,
        _claim(
            "vram-growth",
            "gpu0",
            "critical",
            "GPU 0 runs out of memory in 9 min",
            "save and restart",
            "memory_used_bytes",
        ),
        _claim(
            "thermal-throttle",
            "gpu1",
            "warning",
            "GPU 1 is slowed by heat",
            "look at the fans",
            "temperature_celsius",
        ),
        _claim(
            "disk-low", "host", "info", "The disk is full in 4 h", "delete old checkpoints", "disk_free_bytes"
        ),
    ]
    return StoredFeed(
        [*run(2, 120)],
        [
            rule
            for claim in claims
            for rule in [type("R", (Always,), {"codes": (claim.code,)})(claim, START + 81)]
        ],
    )


def slow_epochs() -> StoredFeed:
    """Epochs of 24 s: far enough from one another to be marked."""
    return StoredFeed(run(1))


# name -> (the recording, by how many seconds the clock is ahead of it, keys)
STATES: dict[str, tuple[Callable[[], StoredFeed], float, tuple[str, ...]]] = {
    "starting": (lambda: StoredFeed([]), 0.0, ()),
    "first-seconds": (lambda: StoredFeed([header(2), sample(2, 1.0), sample(2, 2.0)]), 0.0, ()),
    "no-gpu": (no_gpu, 0.0, ()),
    "no-log": (no_log, 0.0, ()),
    "healthy": (lambda: StoredFeed(run(2)), 0.0, ()),
    "slow-rank": (slow_rank, 0.0, ()),
    "cursor": (slow_rank, 0.0, ("left",) * 40),
    "paused": (lambda: StoredFeed(run(2)), 0.0, ("p",)),
    "stale": (lambda: StoredFeed(run(2)), 12.0, ()),
    "lost-gpu": (lambda: _last("lost"), 0.0, ()),
    "hung-gpu": (lambda: _last("no-answer"), 0.0, ()),
    "nan": (nan_loss, 0.0, ()),
    "many-findings": (many_findings, 0.0, ()),
    "epochs": (slow_epochs, 0.0, ()),
}
