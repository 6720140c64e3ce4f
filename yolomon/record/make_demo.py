"""Makes the recording that `yolomon demo` plays: `python -m yolomon.record.make_demo TRACES_DIR OUT`.

It is stitched together from four real runs on H200s and says so in its header and in a record:

1. `ddp_healthy`: two GPUs train; its epochs 2 to 5 come again and again.
2. `ddp_straggler`: rank 1 is slow before each batch; epoch 2 comes again and again.
3. `vramleak_x` on GPU 0, its epochs 2 to 4 three times (each time from the memory where the last ended),
   beside readings of GPU 1 out of `ddp_healthy`: training ones while GPU 0 trains, waiting ones while it
   saves. Host and processes are those of `ddp_healthy`; rank 1's steps are those of rank 0.

The losses, learning rate and metrics are those of one whole run, `healthy_long`, one of its epochs an epoch,
as far as the memory lasts: the last epochs of its 44 would come after GPU 0 is full.
Memory levels are joined at the seams by a constant; counters go on.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from yolomon.model import Item, TrainRecord
from yolomon.record.stitching import (
    Body,
    Counters,
    Curves,
    Pool,
    ProcessNames,
    Trace,
    training_spans,
    waiting_spans,
)
from yolomon.telemetry import decode, encode
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.registry import recognise

STITCHED = "Demo: stitched together from recordings of four real training runs on NVIDIA H200"
HEALTHY_ROUNDS = 6
STRAGGLER_ROUNDS = 5
LEAK_ROUNDS = 3
LEAD_IN_SECONDS = 3.0


class Demo:
    """Assembles the pieces, each at the end of the one before."""

    def __init__(self, traces: Path) -> None:
        """Read the traces.

        Raises:
            OSError, ValueError: a trace is missing or damaged.
        """
        self.healthy = Trace(traces / "ddp_healthy")
        self.straggler = Trace(traces / "ddp_straggler")
        self.leak = Trace(traces / "vramleak_x")
        self.curves = Curves(Trace(traces / "healthy_long"))
        self.samples: list[Body] = []
        self.events: tuple[list[Body], list[Body]] = ([], [])
        self.now = self.healthy.start_ts - LEAD_IN_SECONDS
        self.first_ts = self.now
        self._epoch = 0
        self._steps = [0, 0]
        self._counters = Counters()
        self._names = ProcessNames()
        self._lift = [0, 0]  # bytes added to each GPU's memory in the piece under way
        self._leaked_bytes = 0
        epochs = range(2, 6)
        self._peer_trains = self._peer_readings(training_spans(self.healthy, epochs, 1.2))
        self._peer_waits = self._peer_readings(waiting_spans(self.healthy, epochs, 1.2))
        self._surroundings = Pool(self.healthy.samples_between(*self._span(self.healthy, epochs)))
        last = next(body for body in reversed(self.healthy.events[1]) if "mem_allocated" in body)
        self._peer_memory = {key: last[key] for key in ("mem_allocated", "mem_reserved", "mem_peak")}

    def assemble(self) -> list[Item]:
        """All items in the order of time."""
        self._piece(self.healthy, range(1, 2), lead_in_seconds=LEAD_IN_SECONDS)
        for _ in range(HEALTHY_ROUNDS):
            self._piece(self.healthy, range(2, 6))
        self._join(self.straggler)
        for _ in range(STRAGGLER_ROUNDS):
            self._piece(self.straggler, range(2, 3))
        for _ in range(LEAK_ROUNDS):
            self._leak_piece(range(2, 5))
        items: list[Item] = [self._header(), self._note()]
        items += [_item(body) for body in self.samples]
        for rank, events in enumerate(self.events):
            items += _records(events, "train.jsonl" if rank == 0 else "train.rank1.jsonl")
        return sorted(items, key=lambda item: item.ts)

    # ------------------------------------------------------------ pieces

    def _piece(self, trace: Trace, epochs: range, lead_in_seconds: float = 0.0) -> None:
        """Whole epochs of a trace of two GPUs."""
        first, last = self._span(trace, epochs)
        first -= lead_in_seconds
        move = self.now - (trace.start_ts + first)
        self._counters.seam()
        for sample in trace.samples_between(first, last):
            self._add_sample(sample, move)
        for rank in (0, 1):
            for event in trace.events_of(rank, epochs, first, last):
                self._add_event(rank, event, move, epochs)
        self._epoch += len(epochs)
        self.now += last - first

    def _leak_piece(self, epochs: range) -> None:
        """The leak on GPU 0 beside GPU 1 of the healthy run, in step."""
        first, last = self._span(self.leak, epochs)
        move = self.now - (self.leak.start_ts + first)
        saves = list(waiting_spans(self.leak, epochs, 0.5))
        samples = self.leak.samples_between(first, last)
        level, peer_level = (gpu["memory_used_bytes"] for gpu in self.samples[-1]["gpus"])
        lift = level - samples[0]["gpus"][0]["memory_used_bytes"]
        self._counters.seam()
        for sample in samples:
            at = sample["ts"] - self.leak.start_ts
            base = self._surroundings.next()
            peer = (self._peer_waits if any(a <= at < b for a, b in saves) else self._peer_trains).next()
            own = sample["gpus"][0]
            own["processes"][0]["pid"] = base["gpus"][0]["processes"][0]["pid"]
            base.update(ts=sample["ts"], gpus=[own, peer])
            self._lift = [lift, peer_level - peer["memory_used_bytes"]]
            self._add_sample(base, move)
        events = self.leak.events_of(0, epochs, first, last)
        for event in events:
            if "mem_allocated" in event:
                event["mem_allocated"] += self._leaked_bytes
            self._add_event(0, event, move, epochs)
        self._lift[1] = 0
        for event in events:
            if event["event"] in ("epoch_start", "batch", "epoch_end"):
                known = self._peer_memory if event["event"] == "batch" else {}
                self._add_event(1, {**event, "rank": 1, **known}, move, epochs)
        allocated = [event["mem_allocated"] for event in events if "mem_allocated" in event]
        self._leaked_bytes += allocated[-1] - allocated[0]
        self._epoch += len(epochs)
        self.now += last - first

    @staticmethod
    def _span(trace: Trace, epochs: range) -> tuple[float, float]:
        return trace.when("epoch_start", epochs[0]), trace.when("epoch_start", epochs[-1] + 1)

    def _peer_readings(self, spans: Iterable[tuple[float, float]]) -> Pool:
        return Pool(
            [
                sample["gpus"][1]
                for first, last in spans
                for sample in self.healthy.samples_between(first, last)
            ]
        )

    def _join(self, trace: Trace) -> None:
        """Let the memory of both GPUs go on where it was."""
        begin = trace.when("epoch_start", 2)
        ahead = trace.samples_between(begin, begin + 3)[0]
        self._lift = [
            now["memory_used_bytes"] - then["memory_used_bytes"]
            for now, then in zip(self.samples[-1]["gpus"], ahead["gpus"], strict=True)
        ]

    # ------------------------------------------------------------ one sample, one event

    def _add_sample(self, sample: Body, move: float) -> None:
        sample["ts"] = round(sample["ts"] + move, 3)
        for gpu in sample["gpus"]:
            gpu.pop("energy_joules", None)  # a counter of three machines
            lift = self._lift[gpu["index"]]
            gpu["memory_used_bytes"] += lift
            for process in gpu.get("processes", ()):
                process["memory_used_bytes"] = (process["memory_used_bytes"] or 0) + lift
        self._names.rename(sample)
        for process in sample["processes"]:
            spent = self._counters.go_on(("cpu", process["pid"]), process["cpu_seconds"])
            process["cpu_seconds"] = round(spent, 2)
        host = sample["host"]
        host["disk_read_bytes"] = int(self._counters.go_on("disk", host["disk_read_bytes"]))
        host["memory_total_bytes"] = self.healthy.header["host"]["memory_total_bytes"]
        self.samples.append(sample)

    def _add_event(self, rank: int, event: Body, move: float, epochs: range) -> None:
        pid = self._names.known[f"rank{rank}"]
        event = {**event, "ts": round(event["ts"] + move, 4), "pid": pid}
        if "epoch" in event:
            event["epoch"] += self._epoch + 1 - epochs[0]
        if "epochs" in event:
            event["epochs"] = self.curves.epochs
        if event["event"] == "batch":
            self._steps[rank] += 1
            event["step"] = self._steps[rank]
            event["mem_reserved"] += self._lift[rank]
        self.curves.put_into(event)
        self.events[rank].append(event)

    # ------------------------------------------------------------ what says that it is a demo

    def _header(self) -> Item:
        body = {**self.healthy.header, "ts": self.first_ts}
        body["host"] = {**body["host"], "hostname": STITCHED}
        return _item(body)

    def _note(self) -> TrainRecord:
        return TrainRecord(ts=self.first_ts, kind="message", source="train.jsonl", rank=0, text=STITCHED)


def _item(body: Body) -> Item:
    item = decode(msgspec.json.encode(body))
    if not isinstance(item, Item):
        raise ValueError(f"not an item: {body}")
    return item


def _records(events: list[Body], source: str) -> list[TrainRecord]:
    """The events through the very parser that reads a live log."""
    lines = [msgspec.json.encode(event) for event in events]
    found = recognise(Head(name=source, parent="demo", data=b"\n".join(lines[:50]) + b"\n"))
    if found is None:
        raise ValueError("the traces' events are in no known format")
    parser = found.parser(source)
    records = []
    for line, event in zip(lines, events, strict=True):
        for record in parser.feed(line, event["ts"]):
            if not isinstance(record, TrainRecord):
                raise ValueError(f"broken event: {line!r}")
            records.append(msgspec.structs.replace(record, ts=event["ts"]))
    return records


def main(arguments: list[str] | None = None) -> int:
    """Write the recording; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m yolomon.record.make_demo", description=__doc__)
    parser.add_argument("traces", type=Path, help="folder of the labelled traces")
    parser.add_argument("out", type=Path, help="the recording, .jsonl.gz")
    options = parser.parse_args(arguments)
    items = Demo(options.traces).assemble()
    data = b"".join(encode(item) + b"\n" for item in items)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(gzip.compress(data, 9, mtime=0))
    seconds = items[-1].ts - items[0].ts
    sys.stdout.write(
        f"{options.out}: {len(items)} items, {seconds:.0f} s, {options.out.stat().st_size} bytes\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
