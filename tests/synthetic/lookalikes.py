"""Runs that look wrong and are not: the real recordings edited."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from pathlib import Path

import msgspec

from tests.synthetic import edits
from tests.synthetic.edits import idle, spinning, working
from tests.synthetic.labelled import Labelled, Truth
from tests.synthetic.recorded import load, replaced, sampled, stretched, without
from yolomon.model import (
    Header,
    HostSample,
    Item,
    ProcessSample,
    Roles,
    Telemetry,
    TrainRecord,
)

GIB = 2**30


class Recordings:
    """The labelled recordings, each read once."""

    def __init__(self, traces: Path) -> None:
        self._traces = traces
        self._loaded: dict[str, Labelled] = {}

    def __getitem__(self, name: str) -> Labelled:
        if name not in self._loaded:
            self._loaded[name] = load(self._traces / name)
        return self._loaded[name]


def started(run: Labelled) -> float:
    """When the trainer said that it starts."""
    return next(i.ts for i in run.items if isinstance(i, TrainRecord) and i.kind == "start")


def named(run: Labelled, name: str, *truths: Truth, allowed: tuple[str, ...] = ()) -> Labelled:
    """The run under another name, with other truths and more that is allowed."""
    return msgspec.structs.replace(run, name=name, truths=list(truths), allowed=run.allowed | set(allowed))


def event(run: Labelled, kind: str, number: int = 0, rank: int = 0) -> float:
    """When the `number`-th event of that kind came."""
    found = [
        i.ts for i in run.items if isinstance(i, TrainRecord) and i.kind == kind and (i.rank or 0) == rank
    ]
    return found[number]


def without_torch(record: TrainRecord) -> Roles:
    """The numbers of a record without those of torch's allocator."""
    return replaced(
        record.roles, memory_allocated_bytes=None, memory_reserved_bytes=None, memory_peak_bytes=None
    )


def lookalikes(traces: Path) -> Iterator[Labelled]:
    """Healthy all of them: what is `allowed` may be said, nothing else."""
    real = Recordings(traces)
    x, ddp, multi, long = real["healthy_x"], real["ddp_healthy"], real["multiscale_x"], real["healthy_long"]
    yield from _pauses(x, ddp)
    yield from _steps(x, ddp, multi)
    yield from _machine(x, ddp, long)
    yield from _log(x, ddp)
    yield from _starts(x)
    yield from _sizes(x, ddp, multi)
    yield from _sparse_and_off(ddp)
    yield from _few_epochs_and_off(ddp)


def _pauses(x: Labelled, ddp: Labelled) -> Iterator[Labelled]:
    for seconds in (30.0, 100.0, 300.0):
        for number in (0, 3):
            at = event(x, "val_start", number) + 0.3
            yield named(
                edits.with_time_put_in(x, "", at, seconds, {0: working}, cpu_cores=0.5),
                f"validation {number + 1} of {seconds:g} s",
            )
    for seconds in (30.0, 100.0, 300.0):
        for number in (0, 3):
            at = event(ddp, "val_start", number) + 0.3
            yield named(
                edits.with_time_put_in(ddp, "", at, seconds, {0: working, 1: spinning}, cpu_cores=0.5),
                f"validation {number + 1} of rank 0 of {seconds:g} s",
            )
    at = event(ddp, "val_start", 0) + 0.3
    yield named(
        edits.with_time_put_in(ddp, "", at, 200.0, {0: idle, 1: spinning}, cpu_cores=1.0),
        "first validation of rank 0 with 200 s of work on the CPU",
    )
    at = event(ddp, "val_start", 3) + 0.3
    yield named(
        edits.with_time_put_in(ddp, "", at, 90.0, {0: idle, 1: spinning}, cpu_cores=1.0),
        "a later validation of rank 0 with 90 s of work on the CPU",
    )
    for run, states in ((x, {0: idle}), (ddp, {0: idle, 1: spinning})):
        at = event(run, "val_end", 2) + 0.2
        yield named(
            edits.with_time_put_in(run, "", at, 45.0, states, status="disk-sleep"),
            f"{run.name} saves for 45 s on a slow disk",
        )
        at = event(run, "epoch_start", 3) + 0.1
        yield named(
            edits.with_time_put_in(run, "", at, 15.0, states, cpu_cores=0.2),
            f"{run.name} rebuilds its loader for 15 s",
        )
    at = event(x, "batch", 100)
    yield named(
        edits.with_time_put_in(x, "", at, 8.0, {0: idle}, cpu_cores=1.0),
        "one slow step of 8 s",
    )
    for seconds in (5.0, 8.0):
        at = event(ddp, "batch", 70)
        yield named(
            edits.with_time_put_in(ddp, "", at, seconds, {0: idle, 1: spinning}, cpu_cores=1.0),
            f"rank 0 keeps the others waiting once, for {seconds:g} s",
        )
    at = event(x, "batch", 60)
    once = edits.with_time_put_in(x, "", at, 9.0, {0: idle}, cpu_cores=1.0)
    yield named(
        edits.with_time_put_in(once, "", event(once, "batch", 200), 9.0, {0: idle}, cpu_cores=1.0),
        "two slow steps of 9 s",
    )


def _steps(x: Labelled, ddp: Labelled, multi: Labelled) -> Iterator[Labelled]:
    begin, end = event(multi, "batch", 40), event(multi, "batch", 75)
    yield named(
        edits.repeated(multi, begin, end, 12),
        "multi-scale for minutes",
        allowed=("bursty-load", "gpu-underused"),
    )
    begin, end = event(x, "epoch_start", 1), event(x, "epoch_start", 5)
    hours = edits.repeated(x, begin, end, 20)
    yield named(hours, "ten minutes of healthy epochs")
    begin, end = event(ddp, "epoch_start", 1), event(ddp, "epoch_start", 5)
    longer = edits.repeated(ddp, begin, end, 20)
    yield named(longer, "ten minutes of healthy DDP epochs")
    yield named(
        edits.with_records(x, "", lambda r: replaced(r, roles=_accumulating(r)) if r.kind == "batch" else r),
        "gradient accumulation: memory alternates over four steps",
    )
    yield named(edits.slower_from(hours, event(hours, "epoch_start", 30), 1.1), "ten per cent slower later")
    yield named(
        edits.with_records(hours, "", lambda r: _without_events(r)), "a log of steps alone for ten minutes"
    )
    yield named(
        edits.with_records(longer, "", lambda r: _without_events(r)),
        "a DDP log of steps alone for ten minutes",
        allowed=("sync-wait",),
    )
    yield named(
        edits.with_records(ddp, "", lambda r: None if r.kind == "batch" else r),
        "a DDP log of epochs alone",
        allowed=("sync-wait",),
    )
    yield named(
        edits.with_records(x, "", lambda r: None if r.kind == "batch" else r), "a log of epochs alone"
    )
    yield named(
        edits.with_records(x, "", lambda r: r if r.kind != "batch" or (r.batch or 0) % 10 == 0 else None),
        "a log of each tenth step",
    )


def _accumulating(record: TrainRecord) -> Roles:
    held = record.roles.memory_allocated_bytes
    more = 400e6 * ((record.step or 0) % 4)
    return replaced(record.roles, memory_allocated_bytes=None if held is None else held + more)


def _without_events(record: TrainRecord) -> TrainRecord | None:
    return record if record.kind in ("batch", "start", "epoch", "stopping") else None


def _machine(x: Labelled, ddp: Labelled, long: Labelled) -> Iterator[Labelled]:
    for late in (2.0, 6.0, 12.0):
        yield named(edits.with_process_lists_late(x, late), f"process lists {late:g} s late")
        yield named(edits.with_process_lists_late(ddp, late), f"process lists of two ranks {late:g} s late")
    for share in (0.3, 0.7):
        yield named(edits.with_gaps(ddp, share, 3), f"{100 * share:.0f} % of DDP readings lost")
        yield named(edits.with_gaps(x, share, 4), f"{100 * share:.0f} % of readings lost")
    yield named(edits.with_hole(ddp, started(ddp) + 15, 20.0), "a hole of 20 s in a DDP run's readings")
    yield named(edits.with_hole(x, started(x) + 20, 14.0), "a hole of 14 s in the readings")
    yield named(edits.with_hole(long, started(long) + 100, 60.0), "a hole of 60 s in a long run's readings")
    yield named(
        edits.with_gpus(x, "", lambda g, _: replaced(g, power_watts=None, sm_clock_mhz=None)),
        "neither power nor clock",
    )
    yield named(
        edits.with_gpus(x, "", lambda g, _: replaced(g, utilization_percent=None, gpm=None,
                                                     utilization_samples_percent=())),
        "no utilization (MIG)",
    )  # fmt: skip
    yield named(
        edits.with_infos(
            edits.with_gpus(x, "", lambda g, _: replaced(g, utilization_percent=None, gpm=None,
                                                         utilization_samples_percent=())),
            "", mig_enabled=True, memory_total_bytes=40 * GIB,
        ),
        "a MIG instance",
    )  # fmt: skip
    yield named(
        edits.with_gpus(x, "", lambda g, _: replaced(g, memory_used_bytes=None, slow=None)),
        "no memory (unified)",
    )
    capped = edits.with_gpus(
        long, "", lambda g, _: replaced(g, clock_event_reasons=4, sm_clock_mhz=(g.sm_clock_mhz or 0) * 0.62)
    )
    yield named(
        edits.with_infos(capped, "", power_limit_watts=90.0), "a laptop at its power limit all the time"
    )
    hot = edits.with_gpus(x, "", lambda g, _: replaced(g, temperature_celsius=86.0))
    yield named(hot, "86 degrees without a lower clock")
    yield named(
        edits.with_gpus(
            x, "", lambda g, _: replaced(g, clock_event_reasons=(g.clock_event_reasons or 0) | 0x20)
        ),
        "a thermal bit without a lower clock",
    )
    begin, end = event(x, "epoch_start", 1), event(x, "epoch_start", 5)
    hours = edits.repeated(x, begin, end, 12)
    since = begin + 30
    for torch in (True, False):
        grown = edits.with_growing_process(hours, 0, 99, 80e6, since)
        if not torch:
            grown = edits.with_records(grown, "", lambda r: replaced(r, roles=without_torch(r)))
        yield named(
            grown, f"another process on the GPU grows, {'with' if torch else 'without'} numbers of torch",
            allowed=("gpu-contention", "orphan-memory"),
        )  # fmt: skip
    sleeper = ProcessSample(
        pid=77, parent_pid=1, name="jupyter", cpu_seconds=30.0, rss_bytes=GIB, status="sleeping"
    )
    notebook = edits.with_gpu_process(ddp, 1, 77, 900 * 2**20, 0.0)
    yield named(
        edits.with_processes(notebook, "", lambda _: (sleeper,)), "a small idle notebook on the job's GPU"
    )
    yield named(
        edits.host_of(x, lambda h, ts: _cached(h, ts), ""),
        "the page cache fills with images",
    )


def _cached(host: HostSample, ts: float) -> HostSample:
    return replaced(host, disk_read_bytes=int((ts % 100_000) * 1.5e9), iowait_percent=12.0)


def _log(x: Labelled, ddp: Labelled) -> Iterator[Labelled]:
    for seconds in (-20.0, -6.0, -2.0, 2.0, 6.0, 20.0, 3600.0):
        yield named(edits.with_log_clock_off(ddp, seconds), f"DDP log's clock {seconds:+g} s off")
        yield named(edits.with_log_clock_off(x, seconds), f"log's clock {seconds:+g} s off")
    for seconds in (-10.0, -5.0, -3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0):
        yield named(edits.with_log_stamps_off(ddp, seconds), f"DDP log's stamps {seconds:+g} s off")
        yield named(edits.with_log_stamps_off(x, seconds), f"log's stamps {seconds:+g} s off")
    for seconds in (-4.0, 4.0):
        yield named(edits.with_log_clock_off(ddp, seconds, (1,)), f"rank 1's clock {seconds:+g} s off")
    at = event(x, "epoch", 3)
    yield named(
        edits.with_records(
            x, "", lambda r: replaced(r, roles=replaced(r.roles, map50=nan)) if r.kind == "epoch" else r
        ),
        "mAP is NaN",
    )
    yield named(edits.with_records(x, "", _skipping), "AMP skips three steps")
    yield named(edits.with_records(x, "", _halving), "the loss scale is halved three times")
    yield named(edits.attached_at(ddp, started(ddp) + 18), "attached late to a DDP run")
    yield named(edits.attached_at(x, at), "attached late")


def _skipping(record: TrainRecord) -> TrainRecord:
    if record.kind != "batch" or record.step not in (2, 3, 40):
        return record
    roles = replaced(record.roles, gradient_norm=nan)
    return replaced(record, roles=roles, numbers={**record.numbers, "grad_norm": nan})


def _halving(record: TrainRecord) -> TrainRecord:
    scale = 65536.0 / 2 ** min((record.step or 0) // 60, 3)
    return (
        replaced(record, numbers={**record.numbers, "amp_scale": scale}) if record.kind == "batch" else record
    )


def _starts(x: Labelled) -> Iterator[Labelled]:
    first = event(x, "epoch_start", 0) + 0.5
    for seconds, state, cores in ((60.0, idle, 8.0), (300.0, idle, 8.0), (90.0, spinning, 1.0)):
        yield named(
            edits.with_time_put_in(x, "", first, seconds, {0: state}, cpu_cores=cores),
            f"{seconds:g} s before the first step, GPU {'idle' if state is idle else 'at 100 %'}",
        )
    done = event(x, "batch", 0)
    yield named(
        edits.with_time_put_in(x, "", done + 0.01, 40.0, {0: spinning}, cpu_cores=1.0),
        "the second step compiles for 40 s",
    )
    yield named(_resumed(x), "a run that was stopped and resumed")
    yield named(_ended(x), "a proper end, then nothing", allowed=("trainer-ended",))
    yield named(
        edits.with_records(x, "", lambda r: r if r.kind in ("validation", "val_start", "val_end") else None),
        "evaluation alone",
    )
    yield named(edits.with_records(x, "", lambda r: None), "no log at all")


def _resumed(x: Labelled) -> Labelled:
    """Stopped properly after the third epoch; its memory is free; it comes again as another process."""
    at = event(x, "epoch_start", 3)
    start = started(x)
    first = [i for i in x.items if i.ts < at]
    pid = next(i.pid for i in x.items if isinstance(i, TrainRecord) and i.pid is not None)
    first.append(TrainRecord(ts=at, kind="stopping", rank=0, pid=pid))
    idle_items: list[Item] = []
    empty = [i for i in x.items if isinstance(i, Telemetry) and i.ts < start - 6]
    for turn in range(5):
        shift = at - empty[0].ts + 0.2 + turn * (empty[-1].ts - empty[0].ts + 0.2)
        idle_items += [replaced(i, ts=i.ts + shift) for i in empty]
    again = idle_items[-1].ts - start + 0.5
    rest = []
    for item in x.items:
        if item.ts <= start - 1 and not isinstance(item, TrainRecord):
            continue
        item = replaced(item, ts=item.ts + again + 1)
        if isinstance(item, TrainRecord):
            item = replaced(
                item, pid=9999, segment=1, own_ts=None,
                epoch=None if item.epoch is None else item.epoch + 3,
                step=None if item.step is None else item.step + 168,
            )  # fmt: skip
        elif isinstance(item, Telemetry):
            item = _renumbered(item, {pid: 9999})
        if not isinstance(item, Header):
            rest.append(item)
    return msgspec.structs.replace(x, items=[*first, *idle_items, *sorted(rest, key=lambda i: i.ts)])


def _renumbered(item: Telemetry, pids: dict[int, int]) -> Telemetry:
    gpus = []
    for gpu in item.gpus:
        if gpu.slow is not None and gpu.slow.processes is not None:
            named_ = tuple(replaced(p, pid=pids.get(p.pid, p.pid)) for p in gpu.slow.processes)
            gpu = replaced(gpu, slow=replaced(gpu.slow, processes=named_))
        gpus.append(gpu)
    processes = item.processes
    if processes is not None:
        processes = tuple(
            replaced(p, pid=pids.get(p.pid, p.pid), parent_pid=pids.get(p.parent_pid or -1, p.parent_pid))
            for p in processes
        )
    return replaced(item, gpus=tuple(gpus), processes=processes)


def _ended(x: Labelled) -> Labelled:
    at = event(x, "epoch_start", 4)
    start = started(x)
    items: list[Item] = [i for i in x.items if i.ts < at]
    items.append(TrainRecord(ts=at, kind="end", rank=0, epoch=4, epochs=4))
    empty = [i for i in x.items if isinstance(i, Telemetry) and i.ts < start - 6]
    for turn in range(30):
        shift = at - empty[0].ts + 0.2 + turn * (empty[-1].ts - empty[0].ts + 0.2)
        items += [replaced(i, ts=i.ts + shift) for i in empty]
    return msgspec.structs.replace(x, items=items)


def _sparse_and_off(ddp: Labelled) -> Iterator[Labelled]:
    """Several weaknesses at once: a log's clock that is off, readings lost, no process seen."""
    for seconds, seed, spacing in ((-8.0, 1, 0.5), (3.0, 2, 0.5), (4.0, 1, 1.0), (4.0, 2, 1.0)):
        run = without(without(edits.with_ranks(ddp, 6), "ranks"), "processes")
        run = edits.with_gaps(sampled(run, spacing), 0.3, seed)
        yield named(
            edits.with_log_clock_off(run, seconds),
            f"6 GPUs read every {spacing:g} s, a third lost, clock {seconds:+g} s off",
        )


def _few_epochs_and_off(ddp: Labelled) -> Iterator[Labelled]:
    """Rank 0 validates for half a minute after few epochs; the log's clock is behind the machine's."""
    for seconds in (-9.3, -7.0, -5.3, -4.0):
        for number, state in ((0, idle), (1, working)):
            at = event(ddp, "val_start", number) + 0.3
            run = edits.with_time_put_in(ddp, "", at, 30.0, {0: state, 1: spinning}, cpu_cores=0.5)
            yield named(
                edits.with_log_clock_off(sampled(run, 1.0), seconds),
                f"read every 1 s, a validation of 30 s, clock {seconds:+g} s off",
            )
    for number in (0, 1):
        slower = stretched(ddp, 1.6)
        at = event(slower, "val_start", number) + 0.3
        run = edits.with_time_put_in(slower, "", at, 30.0, {0: idle, 1: spinning}, cpu_cores=0.5)
        yield named(
            edits.with_log_stamps_off(sampled(run, 1.0), -1.1),
            f"slow epochs, validation {number + 1} of 30 s, stamps -1.1 s off",
        )


def _sizes(x: Labelled, ddp: Labelled, multi: Labelled) -> Iterator[Labelled]:
    for ranks in (3, 4, 8):
        yield named(edits.with_ranks(ddp, ranks), f"healthy on {ranks} GPUs")
        more = edits.with_ranks(ddp, ranks)
        yield named(without(more, "ranks"), f"healthy on {ranks} GPUs, rank 0 logs")
        at = event(more, "val_start", 2) + 0.3
        states = {0: working, **dict.fromkeys(range(1, ranks), spinning)}
        yield named(
            edits.with_time_put_in(without(more, "ranks"), "", at, 60.0, states, cpu_cores=1.0),
            f"a validation of 60 s on {ranks} GPUs, rank 0 logs",
        )
    for spacing in (0.5, 1.0, 2.0, 5.0, 10.0):
        for run in (x, ddp, multi):
            yield named(sampled(run, spacing), f"{run.name} read every {spacing:g} s")
