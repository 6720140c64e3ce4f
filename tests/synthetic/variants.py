"""The real recordings in many variations: slower, sparser, poorer in signals, on other GPUs, with noise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.synthetic import recorded
from tests.synthetic.labelled import Labelled, Truth
from yolomon.model import Header, Telemetry, TrainRecord

GIB = 2**30


def variants(traces: Path, *, thorough: bool) -> Iterator[Labelled]:
    """Every recording as it is and changed; `thorough` gives all changes, else a few of each kind."""
    for folder in sorted(p for p in traces.iterdir() if (p / "label.json").exists()):
        run = recorded.load(folder)
        yield run
        long = run.seconds > 200
        yield recorded.without(run, "gpm")
        yield _later(recorded.sampled(run, 1.0), 2.0)
        if long and not thorough:
            continue
        yield recorded.stretched(run, 1.6)
        yield recorded.on_other_gpus(run, "NVIDIA GeForce RTX 4090", 450.0, 150 * GIB)
        yield recorded.noisy(run, 0.05, seed=7)
        if len(run.items) and "ddp" in run.name:
            yield recorded.swapped_gpus(run)
            yield recorded.without(run, "ranks")
        if thorough:
            yield recorded.stretched(run, 0.7)
            yield recorded.stretched(run, 3.0)
            yield _later(recorded.sampled(run, 2.0), 5.0)
            yield _later(recorded.sampled(run, 5.0), 15.0)
            yield recorded.without(run, "gpm", "buffer")
            yield recorded.without(run, "pids")
            yield recorded.noisy(run, 0.1, seed=8)
            yield _without_truth(recorded.without(run, "processes", "gpm"), "gpu-idle")
            yield _without_truth(recorded.without(run, "host"), "")


def mixed(first: Labelled, second: Labelled) -> Labelled:
    """Two jobs on one machine: the second one's GPUs come after the first one's; its log is not followed.

    Only the first job's truths are asked for; the second is somebody else's.
    """
    shift = first.items[0].ts - second.items[0].ts
    count = max((len(item.gpus) for item in first.items if isinstance(item, Header)), default=1)
    others = []
    for item in second.items:
        if isinstance(item, TrainRecord):
            continue
        if isinstance(item, Header):
            continue
        if isinstance(item, Telemetry):
            gpus = []
            for gpu in item.gpus:
                slow = gpu.slow
                if slow is not None and slow.processes is not None:
                    slow = recorded.replaced(
                        slow,
                        processes=tuple(recorded.replaced(p, pid=p.pid + 100_000) for p in slow.processes),
                    )
                gpus.append(recorded.replaced(gpu, index=gpu.index + count, slow=slow))
            others.append(
                recorded.replaced(item, ts=item.ts + shift, gpus=tuple(gpus), host=None, processes=None)
            )
    infos = [
        recorded.replaced(info, index=info.index + count, uuid=f"GPU-other-{info.index}")
        for item in second.items
        if isinstance(item, Header)
        for info in item.gpus
    ]
    items = []
    for item in first.items:
        if isinstance(item, Header):
            item = recorded.replaced(item, gpus=(*item.gpus, *infos))
        items.append(item)
    end = min(first.items[-1].ts, others[-1].ts)
    merged = sorted([item for item in (*items, *others) if item.ts <= end], key=lambda item: item.ts)
    return Labelled(f"{first.name} beside {second.name}", merged, first.truths, first.allowed)


def _later(run: Labelled, seconds: float) -> Labelled:
    """Sparser readings need some more time."""
    truths = [Truth(t.code, t.target, t.onset_ts, t.deadline_seconds + seconds) for t in run.truths]
    return msgspec.structs.replace(run, truths=truths)


def _without_truth(run: Labelled, code: str) -> Labelled:
    """A truth that needs the signal taken away is not asked for, but may be told."""
    kept = [t for t in run.truths if t.code != code]
    return msgspec.structs.replace(run, truths=kept, allowed=run.allowed | {code})
