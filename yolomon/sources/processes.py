"""The processes of a training job: those that use a GPU, and their children, the loader's workers.

Read from /proc directly, and only for the tree: iterating over all processes of a busy machine each second
would cost more than all else together.
"""

from __future__ import annotations

import os
import stat as stat_flags
from collections.abc import Iterable

import msgspec

from yolomon.model import ProcessSample
from yolomon.sources.identity import Identity, UserNames, cwd, read_identity
from yolomon.sources.procfs import REAL, Roots, keyed_int, printable, read_bytes

__all__ = ["LIMIT", "ProcessTree", "Stat", "cwd", "list_pids", "open_files", "parse_stat", "read_stat"]

LIMIT = 512
"""Processes read at most: 8 ranks with 16 training and 32 validation workers each are 392."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SEARCH_SECONDS = 30.0
"""How often all threads of a tree are asked for children; in between only a root's threads that had some."""

_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk-sleep",
    "T": "stopped",
    "t": "tracing-stop",
    "Z": "zombie",
    "X": "dead",
    "I": "idle",
    "P": "parked",
}


class Stat(msgspec.Struct, frozen=True, gc=False):
    """What one line of /proc/PID/stat tells (proc_pid_stat(5))."""

    pid: int
    name: str
    state: str
    parent_pid: int
    cpu_ticks: int
    threads: int
    start_ticks: int
    rss_pages: int


def parse_stat(data: bytes) -> Stat:
    """Parse a stat line; the name may hold spaces and parentheses.

    Raises:
        ValueError: the line is not what proc_pid_stat(5) says.
    """
    opening, closing = data.find(b"("), data.rfind(b")")
    fields = data[closing + 2 :].split()
    if opening < 1 or closing < opening or len(fields) < 22:
        raise ValueError("not a stat line")
    return Stat(
        int(data[:opening]),
        printable(data[opening + 1 : closing].decode("utf-8", "replace")),
        fields[0].decode("ascii", "replace"),
        int(fields[1]),
        int(fields[11]) + int(fields[12]),
        int(fields[17]),
        int(fields[19]),
        int(fields[21]),
    )


def read_stat(pid: int, roots: Roots = REAL) -> Stat | None:
    """The stat line of a process; None when it is gone."""
    try:
        return parse_stat(read_bytes(f"{roots.proc}/{pid}/stat", 4096))
    except (OSError, ValueError):
        return None


def list_pids(roots: Roots = REAL) -> list[int]:
    """All pids that can be seen; empty where /proc cannot be read."""
    try:
        return [int(name) for name in os.listdir(roots.proc) if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def open_files(pid: int, roots: Roots = REAL, limit: int = 1024) -> tuple[str, ...]:
    """Regular files that a process holds open for writing, by path; empty where we may not look.

    A file that was deleted is left out. At most `limit` descriptors are looked at.
    """
    folder = f"{roots.proc}/{pid}/fd"
    found: dict[str, None] = {}
    try:
        names = os.listdir(folder)[:limit]  # noqa: PTH208
    except OSError:
        return ()
    for name in names:
        try:
            path = os.readlink(f"{folder}/{name}")  # noqa: PTH115
            if not path.startswith("/") or path.startswith(("/dev/", "/proc/", "/sys/")):
                continue
            link = os.lstat(f"{folder}/{name}")  # the link's own mode says how the file was opened
        except OSError:
            continue
        if link.st_mode & stat_flags.S_IWUSR and not path.endswith(" (deleted)"):
            found[path] = None
    return tuple(found)


class _Known(msgspec.Struct):
    """What is kept of a process between reads."""

    start_ticks: int
    identity: Identity
    parents: set[int]  # its threads that have had children
    searched_at: float = -1e9
    may_read_io: bool = True
    is_root: bool = False


class ProcessTree:
    """Reads a job's processes. Not safe for several threads; `pids` may be read from others."""

    def __init__(self, roots: Roots = REAL, limit: int = LIMIT) -> None:
        self.pids: tuple[int, ...] = ()  # of the last read
        self._roots = roots
        self._limit = limit
        self._known: dict[int, _Known] = {}
        self._users = UserNames()
        self._boot_ts = _boot_ts(roots)
        self._has_children_files: bool | None = None

    def read(self, root_pids: Iterable[int], now: float) -> tuple[ProcessSample, ...]:
        """Read the roots that are alive and all below them, roots first; `now` is any rising clock."""
        roots = tuple(dict.fromkeys(root_pids))
        samples: dict[int, ProcessSample] = {}
        alive: dict[int, _Known] = {}
        queue = list(roots)
        position = 0
        while position < len(queue) and len(samples) < self._limit:
            pid = queue[position]
            position += 1
            stat = None if pid in samples else read_stat(pid, self._roots)
            if stat is not None:
                queue += self._add(stat, samples, alive, now)
        for pid, known in self._known.items():  # those that the children's lists did not name this time
            stat = None if pid in samples or known.is_root else read_stat(pid, self._roots)
            if stat is None or stat.start_ticks != known.start_ticks or len(samples) >= self._limit:
                continue
            if stat.parent_pid in samples or stat.parent_pid == 1:  # a worker may outlive its trainer
                self._add(stat, samples, alive, now)
        for pid in roots:
            if pid in alive:
                alive[pid].is_root = True
        self._known = alive
        self.pids = tuple(samples)
        return tuple(samples.values())

    def _add(
        self, stat: Stat, samples: dict[int, ProcessSample], alive: dict[int, _Known], now: float
    ) -> list[int]:
        """Take one process; gives its children."""
        known = self._known.get(stat.pid)
        if known is None or known.start_ticks != stat.start_ticks:  # new, or the pid was used again
            known = _Known(stat.start_ticks, read_identity(stat.pid, self._roots), {stat.pid})
        alive[stat.pid] = known
        samples[stat.pid] = self._sample(stat, known)
        return self._children(stat.pid, known, now)

    def _sample(self, stat: Stat, known: _Known) -> ProcessSample:
        identity = known.identity
        read_bytes_, write_bytes = self._io(stat.pid, known)
        return ProcessSample(
            pid=stat.pid,
            parent_pid=stat.parent_pid,
            name=_full_name(stat.name, identity.command),
            rss_bytes=stat.rss_pages * PAGE_BYTES,
            cpu_seconds=stat.cpu_ticks / TICKS_PER_SECOND,
            threads=stat.threads,
            status=_STATES.get(stat.state, stat.state),
            user=self._users.name(identity.user_id),
            command=identity.command,
            cwd=identity.cwd,
            started_ts=None if self._boot_ts is None else self._boot_ts + stat.start_ticks / TICKS_PER_SECOND,
            read_bytes=read_bytes_,
            write_bytes=write_bytes,
            affinity_cores=_affinity_cores(stat.pid),
            rank=identity.rank,
            local_rank=identity.local_rank,
            world_size=identity.world_size,
            master_port=identity.master_port,
            cuda_visible_devices=identity.cuda_visible_devices,
            cuda_device_order=identity.cuda_device_order,
        )

    def _io(self, pid: int, known: _Known) -> tuple[int | None, int | None]:
        """Bytes that went to and from storage, as counters (proc_pid_io(5))."""
        if not known.may_read_io:
            return None, None
        try:
            fields = read_bytes(f"{self._roots.proc}/{pid}/io", 4096).split()
            numbers = dict(zip(fields[::2], fields[1::2], strict=False))
            return int(numbers[b"read_bytes:"]), int(numbers[b"write_bytes:"])
        except PermissionError:
            known.may_read_io = False
            return None, None
        except (OSError, KeyError, ValueError):
            return None, None

    def _children(self, pid: int, known: _Known, now: float) -> list[int]:
        """Children by the kernel's own list; where it has none (CONFIG_PROC_CHILDREN), by a walk of /proc."""
        if self._has_children_files is None:
            own = f"{self._roots.proc}/{pid}/task/{pid}"
            self._has_children_files = os.path.exists(f"{own}/children") or not os.path.exists(own)  # noqa: PTH110
        if not self._has_children_files:
            return self._children_by_walk(pid, known, now)
        threads: Iterable[int] = known.parents
        if now - known.searched_at < SEARCH_SECONDS:
            if not known.is_root:
                return []  # those found before are remembered
        else:
            known.searched_at = now
            try:
                names = os.listdir(f"{self._roots.proc}/{pid}/task")  # noqa: PTH208
                threads = [int(name) for name in names if name.isdigit()]
            except OSError:
                return []
        found: list[int] = []
        for thread in tuple(threads):
            try:
                children = read_bytes(f"{self._roots.proc}/{pid}/task/{thread}/children").split()
            except OSError:
                continue
            if children:
                known.parents.add(thread)
                found += [int(child) for child in children]
        return found

    def _children_by_walk(self, pid: int, known: _Known, now: float) -> list[int]:
        if now - known.searched_at < SEARCH_SECONDS / 3:
            return []
        known.searched_at = now
        stats = (read_stat(other, self._roots) for other in list_pids(self._roots))
        return [stat.pid for stat in stats if stat is not None and stat.parent_pid == pid]


def proportional_set_bytes(pid: int, roots: Roots = REAL) -> int | None:
    """PSS: private pages and this process's share of the shared ones; None where we may not look.

    Summed over a tree it counts each shared page once. Takes the kernel milliseconds a gigabyte: not for
    the fast tier.
    """
    kilobytes = keyed_int(f"{roots.proc}/{pid}/smaps_rollup", "Pss")
    return None if kilobytes is None else kilobytes * 1024


def _affinity_cores(pid: int) -> int | None:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None


def _boot_ts(roots: Roots) -> float | None:
    boot = keyed_int(f"{roots.proc}/stat", "btime")
    return None if boot is None else float(boot)


def _full_name(name: str, command: str | None) -> str:
    """The kernel cuts names at 15 characters; the command line may hold the rest."""
    if len(name) < 15 or not command:
        return name
    program = command.split(" ", 1)[0].rsplit("/", 1)[-1]
    return program if program.startswith(name) else name
