"""Cuts pieces out of labelled traces and sews them to one recording: times, counters and levels go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

Body = dict[str, Any]


class Trace:
    """One recorded run: telemetry at 1 Hz (the samples with the slow tier too), and each rank's events."""

    def __init__(self, folder: Path) -> None:
        """Read a folder of traces.

        Raises:
            OSError, ValueError: a file is missing or no JSON.
        """
        lines = _objects(folder / "gpu.jsonl")
        self.header = lines[0]
        self.samples = [body for body in lines[1:] if "host" in body]
        self.events = [_objects(file) for file in sorted(folder.glob("train*.jsonl"))]
        self.start_ts: float = next(e["ts"] for e in self.events[0] if e["event"] == "train_start")

    def samples_between(self, first: float, last: float) -> list[Body]:
        """Samples of a span, seconds since the start of training; each a copy of its own."""
        return [_copy(body) for body in self.samples if first <= body["ts"] - self.start_ts < last]

    def events_of(self, rank: int, epochs: range, first: float, last: float) -> list[Body]:
        """One rank's events of some epochs; those that name none by their time."""
        return [
            _copy(body)
            for body in self.events[rank]
            if (body["epoch"] in epochs if "epoch" in body else first <= body["ts"] - self.start_ts < last)
        ]

    def when(self, event: str, epoch: int) -> float:
        """Seconds since the start of training at which rank 0 told an event of that epoch."""
        return next(
            float(body["ts"]) - self.start_ts
            for body in self.events[0]
            if body["event"] == event and body.get("epoch") == epoch
        )


class Curves:
    """Losses, learning rate and metrics of a whole run, by epoch and by how much of the epoch is done."""

    def __init__(self, trace: Trace) -> None:
        self.batches: dict[int, list[Body]] = {}
        self.ends: dict[int, Body] = {}
        for body in trace.events[0]:
            if body["event"] == "batch":
                self.batches.setdefault(body["epoch"], []).append(body)
            elif body["event"] == "fit_epoch_end":
                self.ends[body["epoch"]] = body
        self.epochs = int(trace.events[0][0]["epochs"])

    def put_into(self, event: Body) -> None:
        """Replace the event's losses, learning rate and metrics by those of this run at the same place."""
        epoch = event.get("epoch")
        if event["event"] == "batch" and epoch in self.batches:
            rows = self.batches[epoch]
            row = rows[min(len(rows) - 1, len(rows) * event["batch"] // (event["batches"] + 1))]
            event.update({k: v for k, v in row.items() if k.startswith(("train/", "lr/"))})
        elif event["event"] == "fit_epoch_end" and epoch in self.ends:
            event["metrics"] = self.ends[epoch]["metrics"]


class Pool:
    """Readings of one GPU in one state, handed out in turn."""

    def __init__(self, readings: list[Body]) -> None:
        """Keep the readings.

        Raises:
            ValueError: there are none.
        """
        if not readings:
            raise ValueError("no reading of that state in the trace")
        self._readings = readings
        self._turn = 0

    def next(self) -> Body:
        """The next reading, a copy."""
        reading = _copy(self._readings[self._turn % len(self._readings)])
        self._turn += 1
        return reading


class Counters:
    """Lets counters go on rising over the seams: each grows by what it grew in its own trace."""

    def __init__(self) -> None:
        self._seen: dict[object, tuple[float, float]] = {}  # raw, told

    def go_on(self, key: object, raw: float) -> float:
        """The value to tell; a counter that fell (a seam) stands still once."""
        before = self._seen.get(key)
        told = raw if before is None else before[1] + (raw - before[0] if raw >= before[0] else 0.0)
        self._seen[key] = (raw, told)
        return told

    def seam(self) -> None:
        """The next raw values belong to another piece: take them as a new zero."""
        self._seen = {key: (float("inf"), told) for key, (_, told) in self._seen.items()}


class ProcessNames(msgspec.Struct):
    """Gives the processes of all pieces the pids of the first one: the job stays the same."""

    known: dict[str, int] = msgspec.field(default_factory=dict)

    def rename(self, sample: Body) -> None:
        """Keep the job's processes and give them their lasting pids, also among the GPUs' processes."""
        processes = sample["processes"]
        mains = [gpu["processes"][0]["pid"] for gpu in sample["gpus"] if gpu.get("processes")]
        names: dict[int, str] = {pid: f"rank{rank}" for rank, pid in enumerate(mains)}
        for main in mains:
            workers = sorted(p["pid"] for p in processes if p["parent_pid"] == main)
            names.update({pid: f"{names[main]}/worker{n}" for n, pid in enumerate(workers)})
        pids = {pid: self.known.setdefault(name, pid) for pid, name in names.items()}
        sample["processes"] = [
            {**p, "pid": pids[p["pid"]], "parent_pid": pids.get(p["parent_pid"], 1)}
            for p in processes
            if p["pid"] in pids
        ]
        for gpu in sample["gpus"]:
            for process in gpu.get("processes", ()):
                process["pid"] = pids.get(process["pid"], process["pid"])


def training_spans(trace: Trace, epochs: range, margin: float) -> Iterator[tuple[float, float]]:
    """Spans in which all ranks trained for `margin` seconds already."""
    for epoch in epochs:
        yield trace.when("epoch_start", epoch) + margin, trace.when("epoch_end", epoch)


def waiting_spans(trace: Trace, epochs: range, margin: float) -> Iterator[tuple[float, float]]:
    """Spans in which rank 0 validated and saved, and the others waited for it."""
    for epoch in epochs:
        yield trace.when("epoch_end", epoch) + margin, trace.when("fit_epoch_end", epoch)


def _objects(file: Path) -> list[Body]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def _copy(body: Body) -> Body:
    copied: Body = msgspec.json.decode(msgspec.json.encode(body))
    return copied
