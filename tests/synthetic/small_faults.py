"""Faults at small sizes and in shapes that the recordings do not have, made by editing the recordings."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from pathlib import Path

import msgspec

from tests.synthetic import edits
from tests.synthetic.edits import idle, spinning
from tests.synthetic.labelled import Labelled, Truth
from tests.synthetic.lookalikes import GIB, Recordings, event, named, started, without_torch
from tests.synthetic.recorded import changed, replaced, sampled, without
from yolomon.model import Item, ProcessSample, Telemetry, TrainRecord


def small_faults(traces: Path) -> Iterator[Labelled]:
    """Faults at small sizes and in shapes that the recordings do not have."""
    real = Recordings(traces)
    yield from _hangs(real)
    yield from _leaks(real)
    yield from _others(real)
    yield from _numbers(real)
    yield from _stalls(real)


def _hangs(real: Recordings) -> Iterator[Labelled]:
    hang = real["ddp_hang"]
    for ranks in (4, 8):
        many = edits.with_ranks(hang, ranks, copied=0)
        yield named(many, f"hang on {ranks} GPUs", *hang.truths)
        yield named(without(many, "ranks"), f"hang on {ranks} GPUs, rank 0 logs", *hang.truths)
        yield named(
            without(many, "ranks", "host"),
            f"hang on {ranks} GPUs, rank 0 logs, no process table",
            *hang.truths,
        )
    for spacing, more in ((0.5, 0.0), (2.0, 5.0), (5.0, 10.0)):
        truths = [Truth(t.code, t.target, t.onset_ts, t.deadline_seconds + more) for t in hang.truths]
        yield named(sampled(hang, spacing), f"hang read every {spacing:g} s", *truths)
    for seconds in (-6.0, 6.0):
        yield named(
            edits.with_log_clock_off(hang, seconds), f"hang, log's clock {seconds:+g} s off",
            *[Truth(t.code, t.target, t.onset_ts, t.deadline_seconds + 8) for t in hang.truths],
        )  # fmt: skip
    lag = real["ddp_straggler"]
    for seconds in (-6.0, 6.0):
        yield named(
            edits.with_log_clock_off(lag, seconds), f"straggler, log's clock {seconds:+g} s off", *lag.truths
        )
    for seconds in (-5.0, -2.0, 2.0, 5.0):
        yield named(
            edits.with_log_stamps_off(lag, seconds),
            f"straggler, log's stamps {seconds:+g} s off",
            *lag.truths,
        )
    for ranks in (4, 8):
        many = edits.with_ranks(lag, ranks, copied=0)
        yield named(many, f"straggler on {ranks} GPUs", *lag.truths)
        yield named(without(many, "ranks"), f"straggler on {ranks} GPUs, rank 0 logs", *lag.truths)
    for spacing, more in ((0.5, 0.0), (2.0, 5.0), (5.0, 15.0)):
        truths = [Truth(t.code, t.target, t.onset_ts, t.deadline_seconds + more) for t in lag.truths]
        yield named(sampled(lag, spacing), f"straggler read every {spacing:g} s", *truths)
    healthy = real["ddp_healthy"]
    for number in (1, 3):
        at = event(healthy, "val_start", number) + 0.2
        run = edits.with_time_put_in(healthy, "", at, 150.0, {0: idle, 1: spinning}, cpu_cores=0.0)
        cut = [i for i in run.items if i.ts <= at + 150.0]
        yield named(
            msgspec.structs.replace(run, items=cut), f"rank 0 hangs in its validation {number + 1}",
            Truth("collective-hang", "gpu0", at, 60.0), allowed=("stall",),
        )  # fmt: skip


def _leaks(real: Recordings) -> Iterator[Labelled]:
    leak = real["vramleak_x"]
    onset = leak.truths[0].onset_ts
    for late in (2.0, 6.0, 12.0):
        yield named(
            edits.with_process_lists_late(leak, late), f"leak, process lists {late:g} s late", *leak.truths
        )
    for spacing in (2.0, 5.0):
        yield named(
            sampled(leak, spacing), f"leak read every {spacing:g} s",
            Truth("vram-growth", "gpu0", onset, 25.0),
        )  # fmt: skip
    begin, end = event(leak, "epoch_start", 1), event(leak, "epoch_start", 4)
    for size, deadline in ((0.5, 30.0), (0.1, 60.0), (0.04, 120.0)):
        longer = _with_leak_of(edits.repeated(leak, begin, end, 6, keep_rising=True), size)
        yield named(
            longer, f"leak of {192 * size:.0f} MB a step", Truth("vram-growth", "gpu0", onset, deadline),
            allowed=("oom-risk",),
        )  # fmt: skip
        yield named(
            edits.with_records(longer, "", lambda r: replaced(r, roles=without_torch(r))),
            f"leak of {192 * size:.0f} MB a step, no numbers of torch",
            Truth("vram-growth", "gpu0", onset, 2 * deadline), allowed=("oom-risk",),
        )  # fmt: skip


def _with_leak_of(run: Labelled, share: float) -> Labelled:
    """Its growth scaled: of torch's numbers and of the device's."""
    base: dict[str, float] = {}

    def less(name: str, value: float) -> float:
        least = base.setdefault(name, value)
        return least + (value - least) * share if value > least else value

    def change(item: Item) -> Item:
        if isinstance(item, TrainRecord) and item.roles.memory_allocated_bytes is not None:
            roles = item.roles
            leaked = (roles.memory_allocated_bytes or 0.0) - base.setdefault(
                "torch", roles.memory_allocated_bytes or 0
            )
            cut = max(leaked, 0.0) * (1 - share)
            return replaced(
                item,
                roles=replaced(
                    roles,
                    memory_allocated_bytes=(roles.memory_allocated_bytes or 0) - cut,
                    memory_reserved_bytes=None
                    if roles.memory_reserved_bytes is None
                    else roles.memory_reserved_bytes - cut,
                ),
            )
        if isinstance(item, Telemetry):
            gpus = []
            for gpu in item.gpus:
                used = gpu.memory_used_bytes
                if used is not None and used > 20 * GIB:
                    cut = int(used - less("device", used))
                    slow = gpu.slow
                    if slow is not None and slow.processes:
                        less_held = (
                            replaced(p, memory_used_bytes=(p.memory_used_bytes or 0) - cut)
                            for p in slow.processes
                        )
                        slow = replaced(slow, processes=tuple(less_held))
                    gpu = replaced(gpu, memory_used_bytes=used - cut, slow=slow)
                gpus.append(gpu)
            return replaced(item, gpus=tuple(gpus))
        return item

    return changed(run, f"leak x{share:g}", change)


def _others(real: Recordings) -> Iterator[Labelled]:
    x = real["healthy_x"]
    begin, end = event(x, "epoch_start", 1), event(x, "epoch_start", 5)
    base = edits.repeated(x, begin, end, 4)
    since = event(base, "epoch_start", 5) + 1.0
    pid = next(i.pid for i in x.items if isinstance(i, TrainRecord) and i.pid is not None)
    allowed = ("slowdown", "gpu-underused", "bursty-load", "data-starvation")

    def burner(name: str, parent: int, cores: float, share: float = 1.8) -> Labelled:
        slow = edits.slower_from(base, since, share)
        held = edits.with_gpu_process(slow, 0, 88, 4 * GIB, since)
        busier = edits.with_gpus(
            held, "", lambda g, ts: replaced(g, utilization_percent=100.0) if ts >= since else g
        )
        return named(
            edits.with_processes(
                busier, "",
                lambda ts: (ProcessSample(pid=88, parent_pid=parent, name="python3", rss_bytes=GIB,
                                          cpu_seconds=max(ts - since, 0) * cores, status="running"),)
                if ts >= since else (),
            ),
            name, Truth("gpu-contention", "gpu0", since, 60.0), allowed=allowed,
        )  # fmt: skip

    yield burner("another job works on the GPU", 1, 1.0)
    yield burner("another job with little CPU works on the GPU", 1, 0.05)
    yield burner("a child of the trainer works on the GPU", pid, 1.0)
    yield burner("a child of the trainer with little CPU works on the GPU", pid, 0.05)
    zombie = edits.with_gpu_process(x, 0, 721, 19 * GIB, 0.0)
    yield named(zombie, "19 GiB of a process that is gone", Truth("orphan-memory", "gpu0", started(x), 60.0))


def _numbers(real: Recordings) -> Iterator[Labelled]:
    x = real["healthy_x"]
    onset = event(x, "batch", 150)

    def amp(record: TrainRecord) -> TrainRecord:
        if record.kind != "batch":
            return record
        fallen = max((record.step or 0) - 150, 0)
        return replaced(record, numbers={**record.numbers, "amp_scale": 65536.0 / 2.0**fallen})

    yield named(
        edits.with_records(x, "", amp),
        "the loss scale collapses",
        Truth("amp-underflow", "run", onset, 20.0),
    )

    def stuck(record: TrainRecord) -> TrainRecord:
        if record.kind != "batch" or (record.step or 0) <= 150:
            norm = {"grad_norm": 3.0} if record.kind == "batch" else {}
            return replaced(record, numbers={**record.numbers, **norm},
                            roles=replaced(record.roles, gradient_norm=norm.get("grad_norm")))  # fmt: skip
        return replaced(record, numbers={**record.numbers, "grad_norm": 0.0},
                        roles=replaced(record.roles, gradient_norm=0.0))  # fmt: skip

    yield named(
        edits.with_records(x, "", stuck),
        "gradients are zero",
        Truth("amp-underflow", "run", onset, 20.0),
    )

    def one_part(record: TrainRecord) -> TrainRecord:
        if record.kind != "batch" or (record.step or 0) < 150 or not record.roles.losses:
            return record
        first = next(iter(record.roles.losses))
        return replaced(
            record, roles=replaced(record.roles, losses={**record.roles.losses, first: nan}, loss=nan)
        )

    yield named(
        edits.with_records(x, "", one_part),
        "one part of the loss is NaN",
        Truth("nan-loss", "run", onset, 3.0),
    )


def _stalls(real: Recordings) -> Iterator[Labelled]:
    x = real["healthy_x"]
    at = event(x, "batch", 150) + 0.01
    for status, cores in (("sleeping", 0.0), ("disk-sleep", 0.0), ("stopped", 0.0), ("running", 1.0)):
        run = edits.with_time_put_in(x, "", at, 60.0, {0: idle}, cpu_cores=cores, status=status)
        yield named(run, f"a loop that stands still for a minute, {status}", Truth("stall", "run", at, 20.0))
    starved = real["starved_n"]
    for spacing in (0.5, 2.0, 5.0):
        yield named(
            sampled(starved, spacing), f"starved, read every {spacing:g} s",
            *[Truth(t.code, t.target, t.onset_ts, t.deadline_seconds + 5) for t in starved.truths],
        )  # fmt: skip
    nan_x = real["nan_x"]
    for seconds in (-6.0, 6.0):
        yield named(
            edits.with_log_clock_off(nan_x, seconds), f"NaN, log's clock {seconds:+g} s off",
            *[replaced(t, onset_ts=t.onset_ts + min(seconds, 0), deadline_seconds=11) for t in nan_x.truths],
        )  # fmt: skip
