"""What the input waits for: the loader's workers, one core, the disk, shared memory."""

from __future__ import annotations

from typing import Literal

import msgspec

from yolomon.diagnosis.rules.base import View
from yolomon.messages import Message, msg

Where = Literal["workers-0", "workers", "cores", "main-process", "disk", "unknown"]
PINNED_PERCENT = 85.0  # of one core


class Bottleneck(msgspec.Struct, frozen=True):
    """Where the input is held up, with the numbers that show it."""

    where: Where
    cause: Message
    remedy: Message
    evidence: dict[str, float | str | None]


def find_bottleneck(view: View, pid: int | None, since_ts: float) -> Bottleneck:
    """The bottleneck of a rank's input since then. `pid` is the rank's process, None where it is not seen."""
    run = view.history.train.run
    trainer, workers = _cpu(view, pid, since_ts)
    host = view.history.host.table
    _, cores_busy = host.window("cpu_percent", since_ts, view.now_ts)
    _, iowait = host.window("iowait_percent", since_ts, view.now_ts)
    _, pressure = host.window("io_pressure_some_percent", since_ts, view.now_ts)
    cpu = _mean(cores_busy)
    wait = _mean(iowait)
    stalled = _mean(pressure)
    count = view.history.host_info.cpu_limit_cores or view.history.host_info.cores
    evidence: dict[str, float | str | None] = {
        "workers": run.workers,
        "trainer_cpu_percent": _round(trainer),
        "worker_cpu_percent": _round(_mean(workers)),
        "workers_seen": len(workers),
        "host_cpu_percent": _round(cpu),
        "iowait_percent": _round(wait),
        "io_pressure_percent": _round(stalled),
    }
    in_blocked = _blocked(view, pid)
    if (wait is not None and wait > 20) or (stalled is not None and stalled > 20) or in_blocked:
        return Bottleneck(
            "disk",
            msg("the input waits for the disk or a network file system"),
            msg("put the data on a local disk, or cache=disk")
            if run.cache not in ("disk", "ram", "true", "True")
            else msg("put the data on a faster local disk"),
            evidence,
        )
    if run.workers == 0:
        cores = int(count or 0)
        wanted = max(2, min(8, cores // max(view.job.size, 1) - 1)) if cores else 8
        return Bottleneck(
            "workers-0",
            msg("workers=0: the training process reads and augments the images itself"),
            msg(
                "set workers={wanted} ({cores} cores, {gpus} GPU)",
                wanted=wanted,
                cores=cores,
                gpus=max(view.job.size, 1),
            )
            if cores
            else msg("set workers={wanted}", wanted=wanted),
            evidence,
        )
    if cpu is not None and cpu >= 90:
        return Bottleneck(
            "cores",
            msg("all {cores} cores are busy ({cpu:.0f} %)", cores=int(count or 0), cpu=cpu),
            msg(
                "resize the images once to the training size, use fewer augmentations, or a "
                "machine with more cores"
            ),
            evidence,
        )
    busiest = _mean(workers)
    if busiest is not None and busiest >= PINNED_PERCENT:
        cores = int(count or 0)
        more = min(2 * len(workers), max(cores // max(view.job.size, 1) - 1, len(workers)))
        if more > len(workers):
            return Bottleneck(
                "workers",
                msg(
                    "the {count} loader workers are at their limit ({cpu:.0f} % of a core each)",
                    count=len(workers),
                    cpu=busiest,
                ),
                msg("set workers={more} ({cores} cores)", more=more, cores=cores),
                evidence,
            )
        return Bottleneck(
            "workers",
            msg(
                "the {count} loader workers are at their limit ({cpu:.0f} % of a core each)",
                count=len(workers),
                cpu=busiest,
            ),
            msg("resize the images once to the training size, or cache them: cache=ram or cache=disk"),
            evidence,
        )
    if trainer is not None and trainer >= 95:
        return Bottleneck(
            "main-process",
            msg("the training process itself is at its limit ({cpu:.0f} % of a core)", cpu=trainer),
            msg("see what it does in one thread: py-spy top --pid {pid}", pid=pid),
            evidence,
        )
    return Bottleneck(
        "unknown",
        msg("nothing on this machine is at its limit: the loader may wait for a network or a lock"),
        msg("try more workers; if that does not help, look where a worker waits: py-spy dump on one of them"),
        evidence,
    )


def _cpu(view: View, pid: int | None, since_ts: float) -> tuple[float | None, list[float]]:
    """CPU of the trainer and of each of its loader workers that does anything, percent of one core."""
    if pid is None:
        return None, []
    trainer: float | None = None
    workers: list[float] = []
    for process in view.history.processes.alive():
        sample = process.sample
        if sample.pid != pid and sample.parent_pid != pid:
            continue
        values = [p.cpu_percent for p in process.points if p.ts >= since_ts and p.cpu_percent is not None]
        if not values:
            continue
        mean = sum(values) / len(values)
        if sample.pid == pid:
            trainer = mean
        elif mean > 1:  # validation's workers sleep while training
            workers.append(mean)
    return trainer, workers


def _blocked(view: View, pid: int | None) -> bool:
    """Whether most loader workers wait in the kernel for a disk."""
    states = [
        p.sample.status
        for p in view.history.processes.alive()
        if pid is not None and p.sample.parent_pid == pid
    ]
    return len(states) > 0 and sum(s == "disk-sleep" for s in states) > len(states) / 2


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
