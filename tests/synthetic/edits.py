"""Edits of a labelled run: time put in, spans repeated, ranks added, signals changed, clocks shifted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from tests.synthetic.labelled import Labelled, Truth
from tests.synthetic.recorded import changed, replaced
from yolomon.model import (
    GpuProcess,
    GpuSample,
    Header,
    HostSample,
    Item,
    ProcessSample,
    Telemetry,
    TrainRecord,
)

State = Callable[[GpuSample], GpuSample]


def idle(gpu: GpuSample) -> GpuSample:
    """No kernel at all."""
    return _state(gpu, 0.0, 121.0, 0.0, 0.0)


def spinning(gpu: GpuSample) -> GpuSample:
    """Waits in a collective, as measured on an H200: 100 % at 123 W, no tensor work."""
    return _state(gpu, 100.0, 123.0, 18.0, 0.0)


def working(gpu: GpuSample) -> GpuSample:
    """As in healthy training of a large model."""
    return _state(gpu, 92.0, 560.0, 75.0, 20.0)


def _state(gpu: GpuSample, busy: float, watts: float, sm: float, tensor: float) -> GpuSample:
    gpm = None
    if gpu.gpm is not None:
        gpm = replaced(
            gpu.gpm,
            graphics_active_percent=busy,
            sm_active_percent=sm,
            tensor_active_percent=tensor,
            nvlink_tx_mib_per_second=0.0,
            nvlink_rx_mib_per_second=0.0,
        )
    return replaced(
        gpu,
        utilization_percent=busy,
        memory_utilization_percent=0.0 if watts < 200 else 40.0,
        power_watts=watts,
        utilization_samples_percent=(busy,) * len(gpu.utilization_samples_percent),
        gpm=gpm,
    )


def telemetry_of(run: Labelled) -> list[Telemetry]:
    """All readings of a run."""
    return [item for item in run.items if isinstance(item, Telemetry)]


def with_time_put_in(
    run: Labelled,
    name: str,
    at_ts: float,
    seconds: float,
    states: dict[int, State],
    *,
    cpu_cores: float = 0.0,
    status: str | None = None,
    write_bytes_per_second: float = 0.0,
) -> Labelled:
    """The run stands still for so long: no record, GPUs in `states` (by index), processes as told.

    Everything after `at_ts` comes later by `seconds`; the CPU counters of the processes go on by `cpu_cores`
    cores each meanwhile. Truths after it move along.
    """
    before = [item for item in run.items if item.ts <= at_ts]
    after = [item for item in run.items if item.ts > at_ts]
    readings = [item for item in before if isinstance(item, Telemetry)]
    span = [item for item in readings if item.ts > at_ts - 2.0] or readings[-5:]
    held = [item for item in readings if item.processes is not None][-1].processes or ()
    pause: list[Item] = []
    spacing = 0.2 if len(span) > 1 else 1.0
    count = int(seconds / spacing)
    for number in range(1, count + 1):
        ts = at_ts + number * spacing
        pattern = span[number % len(span)]
        gpus = tuple(states.get(gpu.index, lambda g: g)(gpu) for gpu in pattern.gpus)
        processes = None
        if pattern.processes is not None:
            processes = tuple(
                replaced(
                    p,
                    cpu_seconds=None
                    if p.cpu_seconds is None
                    else p.cpu_seconds + cpu_cores * number * spacing,
                    status=status or p.status,
                )
                for p in held
            )
        pause.append(replaced(pattern, ts=ts, gpus=gpus, processes=processes))
    later: list[Item] = []
    for item in after:
        moved = replaced(item, ts=item.ts + seconds)
        if isinstance(moved, TrainRecord) and moved.own_ts is not None:
            moved = replaced(moved, own_ts=moved.own_ts + seconds)
        if isinstance(moved, Telemetry) and moved.processes is not None and cpu_cores:
            moved = replaced(
                moved,
                processes=tuple(
                    replaced(
                        p, cpu_seconds=None if p.cpu_seconds is None else p.cpu_seconds + cpu_cores * seconds
                    )
                    for p in moved.processes
                ),
            )
        later.append(moved)
    truths = [
        t if t.onset_ts <= at_ts else Truth(t.code, t.target, t.onset_ts + seconds, t.deadline_seconds)
        for t in run.truths
    ]
    return msgspec.structs.replace(
        run, name=f"{run.name} {name}", items=[*before, *pause, *later], truths=truths
    )


def repeated(
    run: Labelled, start_ts: float, end_ts: float, times: int, *, keep_rising: bool = False
) -> Labelled:
    """The span [start, end] comes `times` times in all; steps, epochs and CPU counters go on.

    With `keep_rising` memory goes on as well: each repetition starts where the one before ended.
    """
    before = [item for item in run.items if item.ts <= start_ts]
    span = [item for item in run.items if start_ts < item.ts <= end_ts]
    after = [item for item in run.items if item.ts > end_ts]
    steps = _range(span, "step")
    epochs = _range(span, "epoch")
    cpu = _cpu_span(span)
    memory = _memory_span(span) if keep_rising else {}
    torch = _torch_span(span) if keep_rising else {}
    length = end_ts - start_ts
    items: list[Item] = list(before)
    for turn in range(times):
        last = turn == times - 1
        for item in [*span, *after] if last else span:
            items.append(_moved(item, turn, length, steps, epochs, cpu, memory, torch))
    return msgspec.structs.replace(run, name=f"{run.name} x{times} long", items=items)


def _range(items: list[Item], field: str) -> int:
    values = [
        value
        for item in items
        if isinstance(item, TrainRecord) and (value := getattr(item, field)) is not None
    ]
    return max(values) - min(values) + (1 if field == "step" else 0) if values else 0


def _cpu_span(items: list[Item]) -> dict[int, float]:
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for item in items:
        if isinstance(item, Telemetry):
            for process in item.processes or ():
                if process.cpu_seconds is not None:
                    first.setdefault(process.pid, process.cpu_seconds)
                    last[process.pid] = process.cpu_seconds
    return {pid: last[pid] - first[pid] for pid in last}


def _memory_span(items: list[Item]) -> dict[int, int]:
    rows = [item for item in items if isinstance(item, Telemetry)]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for row in rows:
        for gpu in row.gpus:
            if gpu.memory_used_bytes is not None:
                first.setdefault(gpu.index, gpu.memory_used_bytes)
                last[gpu.index] = gpu.memory_used_bytes
    return {index: last[index] - first[index] for index in last}


def _torch_span(items: list[Item]) -> dict[int, float]:
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for item in items:
        if isinstance(item, TrainRecord) and item.roles.memory_allocated_bytes is not None:
            first.setdefault(item.rank or 0, item.roles.memory_allocated_bytes)
            last[item.rank or 0] = item.roles.memory_allocated_bytes
    return {rank: last[rank] - first[rank] for rank in last}


def _moved(
    item: Item,
    turn: int,
    length: float,
    steps: int,
    epochs: int,
    cpu: dict[int, float],
    memory: dict[int, int],
    torch: dict[int, float],
) -> Item:
    if turn == 0:
        return item
    ts = item.ts + turn * length
    if isinstance(item, TrainRecord):
        more = turn * torch.get(item.rank or 0, 0.0)
        roles = item.roles
        if more and roles.memory_allocated_bytes is not None:
            roles = replaced(
                roles,
                memory_allocated_bytes=roles.memory_allocated_bytes + more,
                memory_reserved_bytes=None
                if roles.memory_reserved_bytes is None
                else roles.memory_reserved_bytes + more,
            )
        return replaced(
            item,
            ts=ts,
            own_ts=None,
            step=None if item.step is None else item.step + turn * steps,
            epoch=None if item.epoch is None else item.epoch + turn * epochs,
            roles=roles,
        )
    if isinstance(item, Telemetry):
        gpus = item.gpus
        if memory:
            gpus = tuple(_fuller(gpu, turn * memory.get(gpu.index, 0)) for gpu in gpus)
        processes = item.processes
        if processes is not None:
            processes = tuple(
                replaced(
                    p,
                    cpu_seconds=None if p.cpu_seconds is None else p.cpu_seconds + turn * cpu.get(p.pid, 0.0),
                )
                for p in processes
            )
        return replaced(item, ts=ts, gpus=gpus, processes=processes)
    return replaced(item, ts=ts)


def _fuller(gpu: GpuSample, more: int) -> GpuSample:
    slow = gpu.slow
    if slow is not None and slow.processes:
        first, *rest = slow.processes
        held = None if first.memory_used_bytes is None else first.memory_used_bytes + more
        slow = replaced(slow, processes=(replaced(first, memory_used_bytes=held), *rest))
    used = None if gpu.memory_used_bytes is None else gpu.memory_used_bytes + more
    return replaced(gpu, memory_used_bytes=used, slow=slow)


def with_ranks(run: Labelled, ranks: int, copied: int = 1) -> Labelled:
    """A job of two GPUs as one of more: rank `copied` and its GPU come again as ranks 2, 3, ..."""

    def change(item: Item) -> Item:
        if isinstance(item, Header):
            more = tuple(replaced(item.gpus[copied], index=n, uuid=f"GPU-{n}") for n in range(2, ranks))
            return replaced(item, gpus=(*item.gpus, *more))
        if isinstance(item, Telemetry):
            gpu = next((g for g in item.gpus if g.index == copied), None)
            gpus = item.gpus
            if gpu is not None:
                gpus = (*gpus, *(_as_rank(gpu, n) for n in range(2, ranks)))
            processes = item.processes
            if processes is not None:
                own = next((p for p in processes if p.pid == _pid_on(run, copied)), None)
                if own is not None:
                    processes = (*processes, *(replaced(own, pid=700_000 + n) for n in range(2, ranks)))
            return replaced(item, gpus=gpus, processes=processes)
        return item

    out = changed(run, f"on {ranks} GPUs", change)
    items: list[Item] = []
    for item in out.items:
        if isinstance(item, TrainRecord) and item.run is not None and item.run.world_size is not None:
            item = replaced(item, run=replaced(item.run, world_size=ranks))
        items.append(item)
        if isinstance(item, TrainRecord) and item.rank == copied:
            items += [replaced(item, rank=n, pid=700_000 + n) for n in range(2, ranks)]
    return msgspec.structs.replace(out, items=items)


def _pid_on(run: Labelled, index: int) -> int | None:
    for item in reversed(run.items):
        if isinstance(item, TrainRecord) and item.rank == index and item.pid is not None:
            return item.pid
    return None


def _as_rank(gpu: GpuSample, number: int) -> GpuSample:
    slow = gpu.slow
    if slow is not None and slow.processes is not None:
        slow = replaced(slow, processes=tuple(replaced(p, pid=700_000 + number) for p in slow.processes[:1]))
    return replaced(gpu, index=number, slow=slow)


def with_log_clock_off(run: Labelled, seconds: float, ranks: tuple[int, ...] | None = None) -> Labelled:
    """The log's own clock is that much ahead of the machine's; records arrive when they did."""
    arriving: list[Item] = []
    for item in run.items:
        if isinstance(item, TrainRecord) and (ranks is None or (item.rank or 0) in ranks):
            item = replaced(item, ts=item.ts + seconds, own_ts=item.ts + seconds)
        arriving.append(item)
    return msgspec.structs.replace(run, name=f"{run.name} log clock {seconds:+g} s", items=arriving)


def with_log_stamps_off(run: Labelled, seconds: float) -> Labelled:
    """The same in a recording that was put in order by its stamps."""
    off = with_log_clock_off(run, seconds)
    return msgspec.structs.replace(off, items=sorted(off.items, key=lambda item: item.ts))


def with_process_lists_late(run: Labelled, seconds: float) -> Labelled:
    """What a GPU's process list says of memory is as old as that."""
    told: dict[int, list[tuple[float, tuple[GpuProcess, ...]]]] = {}

    def change(item: Item) -> Item:
        if not isinstance(item, Telemetry):
            return item
        gpus = []
        for gpu in item.gpus:
            if gpu.slow is not None and gpu.slow.processes is not None:
                rows = told.setdefault(gpu.index, [])
                rows.append((item.ts, gpu.slow.processes))
                old = next((p for ts, p in reversed(rows) if ts <= item.ts - seconds), ())
                gpu = replaced(gpu, slow=replaced(gpu.slow, processes=old))
            gpus.append(gpu)
        return replaced(item, gpus=tuple(gpus))

    return changed(run, f"process lists {seconds:g} s late", change)


def with_gaps(run: Labelled, share: float, seed: int) -> Labelled:
    """That share of the readings is lost at random."""
    rng = random.Random(seed)
    return changed(
        run,
        f"{100 * share:.0f} % of readings lost",
        lambda item: None if isinstance(item, Telemetry) and rng.random() < share else item,
    )


def with_hole(run: Labelled, start_ts: float, seconds: float) -> Labelled:
    """Nothing is read for a while (the connection was gone); the log is read as it was written."""
    return changed(
        run,
        f"hole of {seconds:g} s",
        lambda item: (
            None if isinstance(item, Telemetry) and start_ts < item.ts <= start_ts + seconds else item
        ),
    )


def with_gpus(run: Labelled, name: str, edit: Callable[[GpuSample, float], GpuSample]) -> Labelled:
    """Each GPU's reading edited; the edit is given its time."""

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry):
            return replaced(item, gpus=tuple(edit(gpu, item.ts) for gpu in item.gpus))
        return item

    return changed(run, name, change)


def with_infos(run: Labelled, name: str, **fields: Any) -> Labelled:
    """Static facts of all GPUs changed."""

    def change(item: Item) -> Item:
        if isinstance(item, Header):
            return replaced(item, gpus=tuple(replaced(g, **fields) for g in item.gpus))
        return item

    return changed(run, name, change)


def with_records(run: Labelled, name: str, edit: Callable[[TrainRecord], TrainRecord | None]) -> Labelled:
    """Each record edited, or left out."""
    return changed(run, name, lambda item: edit(item) if isinstance(item, TrainRecord) else item)


def with_processes(run: Labelled, name: str, add: Callable[[float], tuple[ProcessSample, ...]]) -> Labelled:
    """More processes in each reading of the process table."""

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry) and item.processes is not None:
            return replaced(item, processes=(*item.processes, *add(item.ts)))
        return item

    return changed(run, name, change)


def with_gpu_process(run: Labelled, index: int, pid: int, used_bytes: int, since_ts: float) -> Labelled:
    """A process more on that GPU from then on, with its memory."""

    def edit(gpu: GpuSample, ts: float) -> GpuSample:
        if gpu.index != index or ts < since_ts:
            return gpu
        slow = gpu.slow
        if slow is not None and slow.processes is not None:
            slow = replaced(
                slow, processes=(*slow.processes, GpuProcess(pid=pid, memory_used_bytes=used_bytes))
            )
        used = None if gpu.memory_used_bytes is None else gpu.memory_used_bytes + used_bytes
        return replaced(gpu, memory_used_bytes=used, slow=slow)

    return with_gpus(run, f"with pid {pid}", edit)


def with_growing_process(
    run: Labelled, index: int, pid: int, bytes_per_second: float, since_ts: float
) -> Labelled:
    """A process more on that GPU, which takes so much more each second."""

    def edit(gpu: GpuSample, ts: float) -> GpuSample:
        if gpu.index != index or ts < since_ts:
            return gpu
        held = int((ts - since_ts) * bytes_per_second)
        slow = gpu.slow
        if slow is not None and slow.processes is not None:
            slow = replaced(slow, processes=(*slow.processes, GpuProcess(pid=pid, memory_used_bytes=held)))
        used = None if gpu.memory_used_bytes is None else gpu.memory_used_bytes + held
        return replaced(gpu, memory_used_bytes=used, slow=slow)

    return with_gpus(run, f"with pid {pid} that grows", edit)


def slower_from(run: Labelled, ts: float, factor: float) -> Labelled:
    """Steps take `factor` times as long from then on: times, step times; truths after it likewise."""

    def later(at: float) -> float:
        return at if at <= ts else ts + (at - ts) * factor

    def change(item: Item) -> Item:
        if item.ts <= ts:
            return item
        if isinstance(item, TrainRecord):
            step = item.roles.step_seconds
            roles = replaced(item.roles, step_seconds=None if step is None else step * factor)
            return replaced(item, ts=later(item.ts), own_ts=None, roles=roles)
        return replaced(item, ts=later(item.ts))

    truths = [Truth(t.code, t.target, later(t.onset_ts), t.deadline_seconds) for t in run.truths]
    return msgspec.structs.replace(changed(run, f"x{factor:g} slower later", change), truths=truths)


def attached_at(run: Labelled, ts: float) -> Labelled:
    """Watched only from then on: readings before are lost, records before are backlog."""

    def change(item: Item) -> Item | None:
        if isinstance(item, Header):
            return replaced(item, ts=ts)
        if item.ts >= ts:
            return item
        if isinstance(item, TrainRecord):
            return replaced(item, backlog=True)
        return None

    out = changed(run, "attached late", change)
    return msgspec.structs.replace(
        out,
        items=[
            *(i for i in out.items if isinstance(i, Header)),
            *(i for i in out.items if not isinstance(i, Header)),
        ],
    )


def host_of(run: Labelled, edit: Callable[[HostSample, float], HostSample], name: str) -> Labelled:
    """Each reading of the host edited; the edit is given its time."""

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry) and item.host is not None:
            return replaced(item, host=edit(item.host, item.ts))
        return item

    return changed(run, name, change)
