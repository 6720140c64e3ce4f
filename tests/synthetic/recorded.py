"""The labelled real recordings as items, and what is done to them to make others with the same truth."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.synthetic.labelled import Labelled, Truth
from yolomon.model import Header, Item, Roles, Telemetry, TrainRecord
from yolomon.sources.recording import RecordingReader, merge_by_time
from yolomon.trainlog.formats.yolomon_events import YolomonParser

Change = Callable[[Item], Item | None]


def load(folder: Path) -> Labelled:
    """One labelled recording: telemetry and all ranks' streams in time's order."""
    label = json.loads((folder / "label.json").read_text())
    streams: list[Iterable[Item]] = [RecordingReader(folder / "gpu.jsonl")]
    for log in sorted(folder.glob("train*.jsonl")):
        parser = YolomonParser(log.name)
        records: list[Item] = []
        for line in log.read_bytes().splitlines(keepends=True):
            for record in parser.feed(line, 0.0):
                if isinstance(record, TrainRecord):
                    records.append(replaced(record, ts=record.own_ts))
        streams.append(records)
    truths = [Truth(t["finding"], t["target"], t["onset_ts"], t["deadline_s"]) for t in label["truth"]]
    return Labelled(label["name"], list(merge_by_time(*streams)), truths, frozenset(label["allowed"]))


def changed(run: Labelled, name: str, change: Change) -> Labelled:
    """The run with every item changed; the truth stays."""
    items = [new for item in run.items if (new := change(item)) is not None]
    return msgspec.structs.replace(run, name=f"{run.name} {name}", items=items)


def stretched(run: Labelled, factor: float) -> Labelled:
    """Everything takes `factor` times as long: times, step and data times; deadlines too."""
    start = run.items[0].ts

    def later(ts: float) -> float:
        return start + (ts - start) * factor

    def change(item: Item) -> Item:
        if isinstance(item, TrainRecord):
            roles = scaled(item.roles, factor, "step_seconds", "data_seconds", "epoch_seconds")
            return replaced(item, ts=later(item.ts), own_ts=None, roles=roles)
        if isinstance(item, Telemetry) and item.processes is not None:
            processes = tuple(
                replaced(p, cpu_seconds=None if p.cpu_seconds is None else p.cpu_seconds * factor)
                for p in item.processes
            )
            return replaced(item, ts=later(item.ts), processes=processes)
        return replaced(item, ts=later(item.ts))

    truths = [
        Truth(t.code, t.target, later(t.onset_ts), t.deadline_seconds * max(factor, 1.0)) for t in run.truths
    ]
    return msgspec.structs.replace(changed(run, f"x{factor:g}", change), truths=truths)


def sampled(run: Labelled, seconds: float) -> Labelled:
    """At most one reading every `seconds`. Each reading is whole: slow values are carried along."""
    kept_ts = float("-inf")
    held: dict[int, Any] = {}
    host: Any = None
    processes: Any = None

    def change(item: Item) -> Item | None:
        nonlocal kept_ts, host, processes
        if not isinstance(item, Telemetry):
            return item
        host = item.host or host
        processes = item.processes or processes
        for gpu in item.gpus:
            if gpu.slow is not None or gpu.gpm is not None:
                held[gpu.index] = (gpu.slow, gpu.gpm)
        if item.ts - kept_ts < seconds:
            return None
        kept_ts = item.ts
        gpus = tuple(
            replaced(gpu, slow=held[gpu.index][0], gpm=held[gpu.index][1]) if gpu.index in held else gpu
            for gpu in item.gpus
        )
        whole = replaced(item, gpus=gpus, host=host, processes=processes)
        held.clear()
        host = processes = None
        return whole

    return changed(run, f"every {seconds:g} s", change)


def without(run: Labelled, *signals: str) -> Labelled:
    """Signals taken away: "gpm", "buffer", "data-time", "ranks", "processes", "host"."""

    def change(item: Item) -> Item | None:
        if isinstance(item, TrainRecord):
            if "ranks" in signals and (item.rank or 0) > 0:
                return None
            if "pids" in signals:
                item = replaced(item, pid=None)
            if "data-time" in signals:
                return replaced(item, roles=replaced(item.roles, data_seconds=None))
            return item
        if isinstance(item, Telemetry):
            gpus = []
            for gpu in item.gpus:
                if "gpm" in signals:
                    gpu = replaced(gpu, gpm=None)
                if "buffer" in signals:
                    gpu = replaced(gpu, utilization_samples_percent=())
                if "processes" in signals and gpu.slow is not None:
                    gpu = replaced(gpu, slow=replaced(gpu.slow, processes=None))
                gpus.append(gpu)
            return replaced(
                item,
                gpus=tuple(gpus),
                host=None if "host" in signals else item.host,
                processes=None if "processes" in signals or "host" in signals else item.processes,
            )
        return item

    return changed(run, "without " + ", ".join(signals), change)


def noisy(run: Labelled, share: float, seed: int) -> Labelled:
    """Utilization, power and step times with some per cent of noise."""
    rng = random.Random(seed)

    def off(value: float | None, most: float) -> float | None:
        return None if value is None else min(max(value * rng.gauss(1, share), 0.0), most)

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry):
            gpus = tuple(
                replaced(
                    gpu,
                    utilization_percent=off(gpu.utilization_percent, 100.0),
                    power_watts=off(gpu.power_watts, 2000.0),
                )
                for gpu in item.gpus
            )
            return replaced(item, gpus=gpus)
        return item

    return changed(run, f"noise {share:g}", change)


def on_other_gpus(run: Labelled, name: str, power_limit_watts: float, memory_bytes: int) -> Labelled:
    """The same work on another model: power scaled to its limit, its memory size, its name."""
    ratio = power_limit_watts / 700.0

    def change(item: Item) -> Item:
        if isinstance(item, Header):
            gpus = tuple(
                replaced(g, name=name, power_limit_watts=power_limit_watts, memory_total_bytes=memory_bytes)
                for g in item.gpus
            )
            return replaced(item, gpus=gpus)
        if isinstance(item, Telemetry):
            return replaced(
                item,
                gpus=tuple(
                    replaced(g, power_watts=None if g.power_watts is None else g.power_watts * ratio)
                    for g in item.gpus
                ),
            )
        return item

    return changed(run, f"on {name}", change)


def swapped_gpus(run: Labelled) -> Labelled:
    """GPU 0 and 1 change places, so that the slow one is another index; ranks stay."""
    other = {0: 1, 1: 0}

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry):
            gpus = sorted((replaced(g, index=other[g.index]) for g in item.gpus), key=lambda g: g.index)
            return replaced(item, gpus=tuple(gpus))
        return item

    truths = [
        Truth(t.code, f"gpu{other[int(t.target[3:])]}" if t.target.startswith("gpu") else t.target,
              t.onset_ts, t.deadline_seconds)
        for t in run.truths
    ]  # fmt: skip
    return msgspec.structs.replace(changed(run, "swapped", change), truths=truths)


def scaled(roles: Roles, factor: float, *names: str) -> Roles:
    """Roles with some of them multiplied."""
    return replaced(roles, **{n: getattr(roles, n) * factor for n in names if getattr(roles, n) is not None})


def replaced(struct: Any, **fields: Any) -> Any:
    """A struct with other fields."""
    return msgspec.structs.replace(struct, **fields)
