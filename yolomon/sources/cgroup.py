"""The limits of a container: cgroup v1 and v2, at the process's own group and all groups above it.

Files as in the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. A job is killed
at its group's limit although the host has memory left (pytorch/pytorch#8976).
"""

from __future__ import annotations

import os
import posixpath

import msgspec

from yolomon.sources.procfs import REAL, Roots, int_or_none, keyed_int, text_or_none

NO_LIMIT_BYTES = 1 << 60
"""v1 says "none" as LONG_MAX rounded down to pages (9223372036854771712): above 1 EiB is no limit."""


class Cgroup(msgspec.Struct, frozen=True):
    """Where a process's groups lie. Folders go from the process's own group up to the mount point."""

    memory_version: int = 0  # 1, 2, or 0: no memory controller seen
    memory_folders: tuple[str, ...] = ()
    cpu_version: int = 0
    cpu_folders: tuple[str, ...] = ()
    cpuset_folders: tuple[str, ...] = ()

    def memory_limit(self) -> tuple[int, str] | None:
        """The lowest limit in bytes, and the folder that sets it; None where nothing limits."""
        name = "memory.max" if self.memory_version == 2 else "memory.limit_in_bytes"
        best: tuple[int, str] | None = None
        for folder in self.memory_folders:
            limit = int_or_none(f"{folder}/{name}")  # "max" is no number: no limit
            if limit is not None and 0 < limit < NO_LIMIT_BYTES and (best is None or limit < best[0]):
                best = (limit, folder)
        if self.memory_version == 1 and self.memory_folders:
            own = self.memory_folders[0]  # knows also the limits above what is mounted in a container
            limit = keyed_int(f"{own}/memory.stat", "hierarchical_memory_limit")
            if limit is not None and 0 < limit < NO_LIMIT_BYTES and (best is None or limit < best[0]):
                best = (limit, self.memory_folders[-1])
        return best

    def memory_used_bytes(self, folder: str) -> int | None:
        """What a group uses without the page cache that the kernel can drop at once (inactive_file)."""
        if self.memory_version == 2:
            used, cache_key = int_or_none(f"{folder}/memory.current"), "inactive_file"
        else:
            used, cache_key = int_or_none(f"{folder}/memory.usage_in_bytes"), "total_inactive_file"
        if used is None:
            return None
        return max(0, used - (keyed_int(f"{folder}/memory.stat", cache_key) or 0))

    def cpu_limit_cores(self) -> float | None:
        """The lowest of the CPU quotas (cores' worth of time) and the size of the group's cpuset."""
        limits = [quota for folder in self.cpu_folders if (quota := self._quota(folder)) is not None]
        if self.cpuset_folders:
            own = self.cpuset_folders[0]
            text = text_or_none(f"{own}/cpuset.cpus.effective") or text_or_none(f"{own}/cpuset.cpus")
            cores = count_cores(text or "")
            if cores:
                limits.append(float(cores))
        return min(limits, default=None)

    def _quota(self, folder: str) -> float | None:
        if self.cpu_version == 2:
            fields = (text_or_none(f"{folder}/cpu.max") or "").split()
            if len(fields) != 2 or not (fields[0].isdigit() and fields[1].isdigit()):
                return None
            quota, period = int(fields[0]), int(fields[1])
        else:
            quota = int_or_none(f"{folder}/cpu.cfs_quota_us") or 0
            period = int_or_none(f"{folder}/cpu.cfs_period_us") or 0
        return quota / period if quota > 0 and period > 0 else None

    def oom_kills(self) -> int | None:
        """How many processes of the own group the kernel killed for memory."""
        if not self.memory_folders:
            return None
        name = "memory.events" if self.memory_version == 2 else "memory.oom_control"
        return keyed_int(f"{self.memory_folders[0]}/{name}", "oom_kill")

    def pressure_file(self, what: str) -> str | None:
        """The group's own pressure file ("memory", "io", "cpu"); cgroup v2 alone has one."""
        if self.memory_version != 2 or not self.memory_folders:
            return None
        path = f"{self.memory_folders[0]}/{what}.pressure"
        return path if os.path.exists(path) else None  # noqa: PTH110 - plain strings all through


def find_cgroup(roots: Roots = REAL, pid: int | str = "self") -> Cgroup:
    """The groups of a process, as seen from here. Nothing found gives an empty `Cgroup`."""
    v1: dict[str, str] = {}
    v2: str | None = None
    for line in (text_or_none(f"{roots.proc}/{pid}/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            v2 = path
        else:
            v1.update(dict.fromkeys(controllers.split(","), path))
    mounts = _mounts(roots)

    def folders(controller: str) -> tuple[int, tuple[str, ...]]:
        if controller in v1 and controller in mounts:
            return 1, _chain(*mounts[controller], v1[controller])
        if v2 is not None and "" in mounts:
            return 2, _chain(*mounts[""], v2)
        return 0, ()

    memory_version, memory = folders("memory")
    cpu_version, cpu = folders("cpu")
    _, cpuset = folders("cpuset")
    return Cgroup(memory_version, memory, cpu_version, cpu, cpuset)


def _mounts(roots: Roots) -> dict[str, tuple[str, str]]:
    """Controller -> (root inside the hierarchy, mount point); "" stands for the v2 hierarchy."""
    found: dict[str, tuple[str, str]] = {}
    for line in (text_or_none(f"{roots.proc}/self/mountinfo") or "").splitlines():
        left, separator, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if not separator or len(fields) < 5 or len(kind) < 3:
            continue
        root, point = fields[3], fields[4]
        if point.startswith("/sys/"):
            point = roots.sys + point[len("/sys") :]
        if kind[0] == "cgroup2":
            found.setdefault("", (root, point))
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                found.setdefault(option, (root, point))
    return found


def _chain(root: str, point: str, path: str) -> tuple[str, ...]:
    """Folders from the group at `path` up to the mount point.

    In a container the path may be the host's while only the own group is mounted, or begin with "/..":
    then the mount point is the group itself.
    """
    path = posixpath.normpath(path)
    if root != "/":
        below = path[len(root) :] if path == root or path.startswith(root + "/") else ""
    else:
        below = "" if path == "/" or path.startswith("/..") else path
    if below and not os.path.isdir(point + below):  # noqa: PTH112
        below = ""
    chain = []
    while below and below != "/":
        chain.append(point + below)
        below = posixpath.dirname(below)
    return (*chain, point)


def count_cores(text: str) -> int:
    """How many cores a list such as "0-3,8" names; 0 for an empty or odd one."""
    cores = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or "0").isdigit():
            return 0
        cores += int(last or first) - int(first) + 1
    return cores
