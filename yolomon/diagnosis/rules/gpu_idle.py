"""gpu-idle: a GPU that the trainer could see but no process uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.progress import trains
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import msg
from yolomon.model import Item

IDLE_SECONDS = declare(
    "gpu-idle.seconds", 15.0, "s", "that the job trains while a GPU has no process and no work"
)
EMPTY_BYTES = declare("gpu-idle.memory-bytes", 500e6, "bytes", "in use on a GPU that nobody uses, at most")
SILENT_SECONDS = 30.0  # a reading that is older tells nothing about now


class GpuIdle:
    """Looks at the GPUs that the job does not use while it trains.

    Fooled by: a container where no process of a GPU is visible (then nothing is said), a GPU that somebody
    reserved (it is only told), one that the trainer's environment leaves out (nothing is said).
    """

    codes: ClassVar[tuple[str, ...]] = ("gpu-idle",)

    def __init__(self) -> None:
        self._since: dict[int, float] = {}  # GPU -> since when it is idle
        self._seen: set[int] = set()

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """Claims by GPU."""
        claims: list[Claim] = []
        self._seen = set()
        for gpu in view.history.by_index():
            if gpu.sample is None or gpu.sample.state != "ok" or gpu.sample_ts is None:
                continue
            if view.now_ts - gpu.sample_ts > SILENT_SECONDS:
                continue
            claim = self._idle(view, gpu)
            if claim is not None:
                claims.append(claim)
        self._since = {index: since for index, since in self._since.items() if index in self._seen}
        return claims

    def _idle(self, view: View, gpu: GpuHistory) -> Claim | None:
        index = gpu.info.index
        used = gpu.sample.memory_used_bytes if gpu.sample is not None else None
        if index in view.job.gpu_indices or not view.job.gpu_indices:
            return None
        if gpu.slow is None or gpu.slow.processes is None or gpu.slow.processes:
            return None
        if used is None or used > view.thresholds[EMPTY_BYTES]:
            return None
        rows = view.seconds.latest(index, 10)
        if not rows or max((row.utilization_percent or 0.0) for row in rows) > 3:
            return None
        if not _visible_to_trainer(view, gpu):
            return None
        self._seen.add(index)
        since = self._since.setdefault(index, view.now_ts)
        held = view.now_ts - since
        if held < view.thresholds[IDLE_SECONDS] or not trains(view):
            return None
        asked = _asked_for(view.history.train.run.device)
        wanted = asked is not None and index in asked and len(asked) > len(view.job.gpu_indices)
        first = min(
            (r.first_batch_ts for r in view.phases.ranks.values() if r.first_batch_ts), default=view.now_ts
        )
        onset = max(first, since)
        uses = ", ".join(str(i) for i in view.job.gpu_indices)
        power = gpu.sample.power_watts if gpu.sample is not None else None
        count = len(view.job.gpu_indices) + 1
        return Claim(
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
