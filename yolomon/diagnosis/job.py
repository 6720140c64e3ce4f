"""Which processes and GPUs are ONE training job: ranks, their GPUs, and who else is there.

Unrelated jobs on one machine must never be compared with one another. What is used, best first: the process
ids in the log's records matched with those on the GPUs, the process tree, the environment (RANK, LOCAL_RANK,
WORLD_SIZE, MASTER_PORT, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER), and, where no process is visible, which
GPUs hold memory. `unseen` says what was missing.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yolomon.history import History
from yolomon.messages import Message, msg
from yolomon.model import GpuProcess, ProcessSample

How = Literal["pid", "environment", "order", "memory"]
CONTEXT_BYTES = 100e6  # less is no CUDA context that holds anything
HELD_BYTES = 500e6  # a GPU with this much in use is somebody's
_LAUNCHERS = ("torchrun", "pt_elastic", "torch.distributed", "accelerate", "deepspeed", "mpirun", "launch")


class Member(msgspec.Struct, frozen=True):
    """One rank and its GPU. `gpu_index` is NVML's, `cuda_index` the trainer's own number for it."""

    rank: int
    gpu_index: int | None
    pid: int | None
    how: How
    cuda_index: int | None = None


class Foreign(msgspec.Struct, frozen=True):
    """A process on a GPU that is none of the job's ranks."""

    gpu_index: int
    pid: int
    memory_used_bytes: int | None
    process: ProcessSample | None  # None: not visible to us


class Job(msgspec.Struct):
    """The job that the log (or, without one, the GPUs) tells of."""

    members: tuple[Member, ...] = ()
    pids: frozenset[int] = frozenset()  # ranks, launchers, loader workers
    gpu_pids: dict[int, tuple[int, ...]] = {}  # the job's own pids on each GPU, by NVML index
    foreign: tuple[Foreign, ...] = ()
    children: tuple[Foreign, ...] = ()  # of a rank, with a context of their own beside it on its GPU
    world_size: int | None = None
    certain: bool = False  # the ranks' GPUs are known by pid or environment
    processes_visible: bool = False
    unseen: tuple[Message, ...] = ()

    @property
    def gpu_indices(self) -> tuple[int, ...]:
        """The GPUs of the job, in NVML's order."""
        return tuple(sorted({m.gpu_index for m in self.members if m.gpu_index is not None}))

    @property
    def size(self) -> int:
        """How many ranks the job has, as far as is known."""
        return max(self.world_size or 0, len(self.members))

    def gpu_of(self, rank: int) -> int | None:
        """The NVML index of a rank's GPU."""
        return next((m.gpu_index for m in self.members if m.rank == rank), None)

    def rank_of(self, gpu_index: int) -> int | None:
        """The rank that computes on that GPU."""
        return next((m.rank for m in self.members if m.gpu_index == gpu_index), None)

    def pid_of(self, rank: int) -> int | None:
        """The process id of a rank."""
        return next((m.pid for m in self.members if m.rank == rank), None)


def find_job(history: History) -> Job:
    """The job as it stands now. Cheap enough for once a second (a few hundred processes)."""
    table = {process.sample.pid: process.sample for process in history.processes.alive()}
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        if process.parent_pid is not None:
            children.setdefault(process.parent_pid, []).append(pid)
    on_gpu: dict[int, tuple[GpuProcess, ...]] = {}
    for gpu in history.by_index():
        if gpu.slow is not None and gpu.slow.processes is not None:
            on_gpu[gpu.info.index] = tuple(p for p in gpu.slow.processes if p.kind == "compute")
    gpus_of: dict[int, list[tuple[int, int]]] = {}  # pid -> (memory, GPU)
    for index, processes in on_gpu.items():
        for entry in processes:
            gpus_of.setdefault(entry.pid, []).append((entry.memory_used_bytes or 0, index))

    ranks = {rank: told.pid for rank, told in history.train.ranks.items()}
    world_size = history.train.run.world_size
    logged = {pid for pid in ranks.values() if pid is not None}
    if not logged & (gpus_of.keys() | table.keys()):
        logged = set()
    roots = dict(ranks) if logged else {}
    if logged:
        roots |= _missing_ranks(roots, world_size, table, children, gpus_of)
    elif gpus_of:
        roots = _without_log_pids(ranks, world_size, table, gpus_of)
    members = tuple(
        _member(rank, pid, table, gpus_of, history) for rank, pid in sorted(roots.items()) if pid is not None
    )
    unseen: list[Message] = []
    visible = any(on_gpu.values())
    if not any(member.gpu_index is not None for member in members):
        members, reason = _by_memory(history, ranks, world_size)
        if members and reason is not None:
            unseen.append(reason)
    elif any(member.gpu_index is None for member in members):
        unseen.append(msg("the GPU of some ranks is not known"))
    if history.train.ranks and not logged and visible and members:
        unseen.append(msg("the log's process is not among those on the GPUs: matched by other signs"))
    own = _tree({m.pid for m in members if m.pid is not None}, table, children)
    gpu_pids: dict[int, tuple[int, ...]] = {}
    foreign: list[Foreign] = []
    beside: list[Foreign] = []
    rank_pids = {m.pid for m in members if m.pid is not None}
    for index, processes in on_gpu.items():
        mine = tuple(p.pid for p in processes if p.pid in own)
        if rank_pids & set(mine):
            beside += [
                Foreign(index, p.pid, p.memory_used_bytes, table.get(p.pid))
                for p in processes
                if p.pid in own and p.pid not in rank_pids and _descends(p.pid, rank_pids, table)
            ]
        if mine:
            gpu_pids[index] = mine
        if members and any(m.pid is not None for m in members):
            foreign += [
                Foreign(index, p.pid, p.memory_used_bytes, table.get(p.pid))
                for p in processes
                if p.pid not in own
            ]
    return Job(
        members=members,
        pids=frozenset(own),
        gpu_pids=gpu_pids,
        foreign=tuple(foreign),
        children=tuple(beside),
        world_size=world_size,
        certain=bool(members) and all(m.how in ("pid", "environment") for m in members),
        processes_visible=visible,
        unseen=tuple(unseen),
    )


def cuda_to_nvml(process: ProcessSample, cuda_index: int, history: History) -> int | None:
    """The NVML index of the trainer's `cuda:N`, from its environment.

    CUDA_VISIBLE_DEVICES lists indices or UUIDs; plain indices follow NVML's (PCI bus) order only with
    CUDA_DEVICE_ORDER=PCI_BUS_ID or where all GPUs are alike, else None (tensorflow#32881).
    """
    gpus = history.by_index()
    visible = process.cuda_visible_devices
    if visible is None:
        names: list[str] = [str(gpu.info.index) for gpu in gpus]
    else:
        names = [name.strip() for name in visible.split(",") if name.strip()]
    if not 0 <= cuda_index < len(names):
        return None
    name = names[cuda_index]
    if name.startswith(("GPU-", "MIG-")):
        return next((g.info.index for g in gpus if g.info.uuid.startswith(name)), None)
    alike = len({gpu.info.name for gpu in gpus}) <= 1
    if not name.isdigit() or not (alike or process.cuda_device_order == "PCI_BUS_ID"):
        return None
    return int(name) if any(g.info.index == int(name) for g in gpus) else None


def _member(
    rank: int,
    pid: int,
    table: dict[int, ProcessSample],
    gpus_of: dict[int, list[tuple[int, int]]],
    history: History,
) -> Member:
    process = table.get(pid)
    held = gpus_of.get(pid)
    local = process.local_rank if process is not None else None
    if held:
        return Member(rank, max(held, key=lambda item: (item[0], -item[1]))[1], pid, "pid", local)
    if process is not None and (local is not None or process.cuda_visible_devices is not None):
        cuda = local if local is not None else 0
        return Member(rank, cuda_to_nvml(process, cuda, history), pid, "environment", cuda)
    return Member(rank, None, pid, "pid")


def _missing_ranks(
    roots: dict[int, int | None],
    world_size: int | None,
    table: dict[int, ProcessSample],
    children: dict[int, list[int]],
    gpus_of: dict[int, list[tuple[int, int]]],
) -> dict[int, int]:
    """Ranks of the job that write no log: siblings on GPUs under one launcher, or by their environment."""
    known = {pid for pid in roots.values() if pid is not None}
    ports = {table[p].master_port for p in known if p in table and table[p].master_port}
    candidates: set[int] = set()
    for pid in known:
        process = table.get(pid)
        if process is None or process.parent_pid is None:
            continue
        parent = table.get(process.parent_pid)
        word = "" if parent is None else f"{parent.name} {parent.command or ''}"
        if (world_size or 1) > 1 or any(launcher in word for launcher in _LAUNCHERS):
            candidates |= {p for p in children.get(process.parent_pid, ()) if p in gpus_of}
    candidates |= {p for p in gpus_of if p in table and table[p].master_port in ports and ports}
    candidates -= known
    if not candidates and world_size is not None and not known & table.keys():
        candidates = _as_many_as_missing(known, world_size, gpus_of)
    found: dict[int, int] = {}
    free = (r for r in range(len(known) + len(candidates) + max(roots, default=0) + 1) if r not in roots)
    by_gpu = sorted(candidates, key=lambda p: (min(index for _, index in gpus_of[p]), p))
    for pid in by_gpu:
        rank = table[pid].rank if pid in table else None
        if rank is None or rank in roots or rank in found:
            rank = next((r for r in free if r not in found), None)
        if rank is not None and (world_size is None or len(known) + len(found) < max(world_size, 1)):
            found[rank] = pid
    return found


def _as_many_as_missing(
    known: set[int], world_size: int, gpus_of: dict[int, list[tuple[int, int]]]
) -> set[int]:
    """Where no process table is read: the other pids on GPUs, if they are just as many as the missing ranks.

    Each must be alone on one GPU; with one more or one less somebody else may be among them.
    """
    others = {
        pid
        for pid, held in gpus_of.items()
        if pid not in known and max(memory for memory, _ in held) >= CONTEXT_BYTES
    }
    where = {index for pid in others for _, index in gpus_of[pid]}
    taken = {index for pid in known for _, index in gpus_of.get(pid, ())}
    alone = all(len(gpus_of[pid]) == 1 for pid in others) and len(where) == len(others)
    return others if alone and not where & taken and len(others) == world_size - len(known) else set()


def _without_log_pids(
    ranks: dict[int, int | None],
    world_size: int | None,
    table: dict[int, ProcessSample],
    gpus_of: dict[int, list[tuple[int, int]]],
) -> dict[int, int | None]:
    """The job when the log names no process that is visible: the group on the GPUs that fits best."""
    groups: dict[object, list[int]] = {}
    for pid in gpus_of:
        if max(memory for memory, _ in gpus_of[pid]) < CONTEXT_BYTES and len(gpus_of) > 1:
            continue
        process = table.get(pid)
        key: object = pid
        if process is not None and process.master_port:
            key = ("port", process.master_port)
        elif process is not None and process.parent_pid in table:
            parent = table[process.parent_pid]
            if any(word in f"{parent.name} {parent.command or ''}" for word in _LAUNCHERS):
                key = ("parent", parent.pid)
        groups.setdefault(key, []).append(pid)
    if not groups:
        return {}
    wanted = world_size or max(len(ranks), 1)
    alone = list(groups.values())
    if len(alone) > 1 and len(alone) == wanted and all(len(g) == 1 for g in alone):
        alone = [[pid for group in alone for pid in group]]  # as many single processes as there are ranks
    best = max(
        alone,
        key=lambda pids: (len(pids) == wanted, sum(m for p in pids for m, _ in gpus_of[p]), -min(pids)),
    )
    out: dict[int, int | None] = {}
    for place, pid in enumerate(sorted(best, key=lambda p: (min(index for _, index in gpus_of[p]), p))):
        told = table[pid].rank if pid in table else None
        rank = told if told is not None and told not in out else place
        while rank in out:
            rank += 1
        out[rank] = pid
    return out


def _by_memory(
    history: History, ranks: dict[int, int | None], world_size: int | None
) -> tuple[tuple[Member, ...], Message | None]:
    """Members by which GPUs hold memory, when no process on a GPU is visible (containers, MIG)."""
    held = [
        gpu.info.index
        for gpu in history.by_index()
        if gpu.sample is not None
        and ((gpu.sample.memory_used_bytes or 0) >= HELD_BYTES or (gpu.sample.utilization_percent or 0) > 5)
    ]
    if not held or not ranks:
        return (), None
    wanted = world_size or len(ranks)
    pids = [ranks.get(rank) for rank in range(max(wanted, 1))]
    if len(held) != wanted:
        if wanted == 1 and len(held) > 1:
            return (), msg("no process is visible on the GPUs: which one the job uses is not known")
        wanted = min(wanted, len(held))
    members = tuple(
        Member(rank, index, pids[rank] if rank < len(pids) else None, "memory")
        for rank, index in enumerate(held[:wanted])
    )
    return members, msg("no process is visible on the GPUs: ranks are matched with GPUs by memory in use")


def _descends(pid: int, ancestors: set[int], table: dict[int, ProcessSample]) -> bool:
    """Whether one of `ancestors` started that process, itself or through others."""
    process = table.get(pid)
    for _ in range(16):
        if process is None or process.parent_pid is None:
            return False
        if process.parent_pid in ancestors:
            return True
        process = table.get(process.parent_pid)
    return False


def _tree(pids: set[int], table: dict[int, ProcessSample], children: dict[int, list[int]]) -> set[int]:
    """The ranks, all that descends from them, and the launchers above them."""
    own = set(pids)
    for pid in pids:
        process = table.get(pid)
        for _ in range(16):
            if process is None or process.parent_pid is None or process.parent_pid not in table:
                break
            process = table[process.parent_pid]
            own.add(process.pid)
    stack = list(pids)
    while stack:
        for child in children.get(stack.pop(), ()):
            if child not in own:
                own.add(child)
                stack.append(child)
    return own
