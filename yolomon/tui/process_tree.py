"""The processes of the job as a tree, and the others on the GPUs apart. Pure functions of the history."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yolomon.history import ProcessHistory
from yolomon.tui.choices import Order
from yolomon.tui.view import Frame
from yolomon.tui.words import plain


class Entry(msgspec.Struct, frozen=True):
    """One process with its place in the tree."""

    pid: int
    depth: int
    last: bool  # of its siblings
    foreign: bool  # none of the job's
    rank: int | None = None
    worker: bool = False  # below a rank
    name: str = ""
    cpu_percent: float | None = None
    memory_bytes: float | None = None
    is_pss: bool = False  # shared pages counted by share, else resident
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    gpu_memory_bytes: int | None = None
    gpus: tuple[int, ...] = ()
    status: str | None = None
    visible: bool = True  # False: NVML names a pid that we cannot look at

    @property
    def io_bytes_per_second(self) -> float | None:
        """Read and written together."""
        if self.read_bytes_per_second is None and self.write_bytes_per_second is None:
            return None
        return (self.read_bytes_per_second or 0.0) + (self.write_bytes_per_second or 0.0)


_KEYS: dict[str, Callable[[Entry], float | None]] = {
    "cpu": lambda entry: entry.cpu_percent,
    "memory": lambda entry: entry.memory_bytes,
    "gpu": lambda entry: entry.gpu_memory_bytes,
    "io": lambda entry: entry.io_bytes_per_second,
}


def process_entries(frame: Frame, order: Order = "tree") -> list[Entry]:
    """The job's processes, then the others on the GPUs; by a number the greatest first, in each part."""
    on_gpu = _memory_on_gpus(frame)
    alive = {process.sample.pid: process for process in frame.history.processes.alive()}
    job = frame.engine.job
    own = {pid: process for pid, process in alive.items() if pid in job.pids}
    if not job.pids:  # no job is known: all that we see is shown as it is
        own = {pid: process for pid, process in alive.items() if pid not in on_gpu} if not on_gpu else alive
    ranks = {member.pid: member.rank for member in job.members if member.pid is not None}
    entries = _tree(own, ranks, on_gpu)
    foreign = [
        _entry(pid, alive.get(pid), on_gpu, ranks, foreign=bool(job.pids)) for pid in on_gpu if pid not in own
    ]
    foreign.sort(key=lambda entry: -(entry.gpu_memory_bytes or 0))
    if order != "tree":
        key = _KEYS[order]
        entries = [msgspec.structs.replace(entry, depth=0) for entry in entries]
        entries.sort(key=lambda entry: -1.0 if key(entry) is None else key(entry) or 0.0, reverse=True)
        foreign.sort(key=lambda entry: -1.0 if key(entry) is None else key(entry) or 0.0, reverse=True)
    return [entry for entry in [*entries, *foreign] if _holds(entry, frame.filter)]


def _holds(entry: Entry, words: str) -> bool:
    text = f"{entry.pid} {entry.name} {entry.status or ''}".lower()
    return all(word in text for word in words.lower().split())


def _memory_on_gpus(frame: Frame) -> dict[int, list[tuple[int, int | None]]]:
    """Pid -> (GPU, memory) of all compute processes."""
    found: dict[int, list[tuple[int, int | None]]] = {}
    for gpu in frame.history.by_index():
        for process in (gpu.slow.processes if gpu.slow is not None else None) or ():
            if process.kind == "compute":
                found.setdefault(process.pid, []).append((gpu.info.index, process.memory_used_bytes))
    return found


def _tree(
    processes: dict[int, ProcessHistory],
    ranks: dict[int, int],
    on_gpu: dict[int, list[tuple[int, int | None]]],
) -> list[Entry]:
    children: dict[int, list[int]] = {}
    roots = []
    for pid, process in sorted(processes.items()):
        parent = process.sample.parent_pid
        if parent in processes and parent != pid:
            children.setdefault(parent, []).append(pid)
        else:
            roots.append(pid)
    entries: list[Entry] = []
    seen: set[int] = set()
    stack = [(pid, 0, True, False) for pid in reversed(roots)]
    while stack:
        pid, depth, last, below_rank = stack.pop()
        if pid in seen:  # a pid that was used again can make a ring
            continue
        seen.add(pid)
        entries.append(_entry(pid, processes[pid], on_gpu, ranks, depth=depth, last=last, worker=below_rank))
        below = sorted(children.get(pid, ()), key=lambda child: (ranks.get(child, 1 << 30), child))
        inside = below_rank or pid in ranks
        for place, child in enumerate(reversed(below)):
            stack.append((child, depth + 1, place == 0, inside))
    return entries


def _entry(
    pid: int,
    process: ProcessHistory | None,
    on_gpu: dict[int, list[tuple[int, int | None]]],
    ranks: dict[int, int],
    *,
    depth: int = 0,
    last: bool = True,
    foreign: bool = False,
    worker: bool = False,
) -> Entry:
    held = on_gpu.get(pid, [])
    known = [memory for _, memory in held if memory is not None]
    if process is None:
        return Entry(
            pid, depth, last, foreign, gpu_memory_bytes=sum(known) if known else None,
            gpus=tuple(index for index, _ in held), visible=False,
        )  # fmt: skip
    sample, point = process.sample, process.points[-1] if process.points else None
    return Entry(
        pid=pid,
        depth=depth,
        last=last,
        foreign=foreign,
        rank=ranks.get(pid),
        worker=worker,
        name=plain(sample.command or sample.name),
        cpu_percent=None if point is None else point.cpu_percent,
        memory_bytes=None if point is None else point.memory_bytes,
        is_pss=sample.pss_bytes is not None,
        read_bytes_per_second=process.read_bytes_per_second,
        write_bytes_per_second=process.write_bytes_per_second,
        gpu_memory_bytes=sum(known) if known else None,
        gpus=tuple(index for index, _ in held),
        status=sample.status,
    )
