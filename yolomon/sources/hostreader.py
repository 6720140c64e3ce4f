"""One reading of the host, each part on its own: what cannot be read is None, and the others go on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil

from yolomon.model import HostInfo, HostSample
from yolomon.sources.cgroup import Cgroup, find_cgroup
from yolomon.sources.container import container_name, is_wsl, loaded_driver_version, pid_namespace_shared
from yolomon.sources.pressure import pressure_percent
from yolomon.sources.procfs import REAL, Roots, keyed_int
from yolomon.sources.space import Space, space_of

T = TypeVar("T")
SELDOM = 5
"""Swap and the count of OOM kills cost as much as all else and change slowly: read each fifth time."""


class HostReader:
    """Reads the host's quick figures. Nothing here can block: no network mount, no other process's memory."""

    def __init__(self, roots: Roots = REAL) -> None:
        self.errors = 0
        self.failing: dict[str, str] = {}  # part -> why it could not be read last time
        self._roots = roots
        self._shares = pid_namespace_shared(roots)
        self._cgroup = find_cgroup(roots)
        self._limit: tuple[int, str] | None = None
        self._cpu_before: list[tuple[float, float, float]] | None = None
        self._disks = _whole_disks(roots)
        self._cards = _real_network_cards(roots)
        self._samples = 0
        self._swap: tuple[int, int] | None = None
        self._kills: int | None = None

    def follow_trainer(self, pid: int | None) -> None:
        """Use the limits of this process's group from now on; None, or a group not to be seen: our own.

        So the trainer's container limits what is shown also when we look from outside of it.
        """
        found = find_cgroup(self._roots, pid) if pid is not None else find_cgroup(self._roots)
        self._cgroup = found if found != Cgroup() else find_cgroup(self._roots)

    def info(self) -> HostInfo:
        """The static facts, with the limits that hold now."""
        cores = os.cpu_count()
        memory = self._part("memory", psutil.virtual_memory)
        total = None if memory is None else int(memory.total)
        self._limit = self._lower_limit(total)
        cpu_limit = self._cgroup.cpu_limit_cores()
        return HostInfo(
            cores=cores,
            memory_total_bytes=total,
            memory_limit_bytes=None if self._limit is None else self._limit[0],
            cpu_limit_cores=cpu_limit if cpu_limit is not None and cpu_limit < (cores or 1e9) else None,
            container=container_name(self._roots),
            pid_namespace_shared=self._shares,
            driver_version=loaded_driver_version(self._roots),
            hostname=os.uname().nodename,
            wsl=is_wsl(self._roots),
        )

    def sample(
        self, *, disk: Space | None = None, cpu_temperature_celsius: float | None = None
    ) -> HostSample:
        """Read everything quick; what is slow comes from the caller's probes."""
        cpu_percent, iowait_percent = self._part("cpu", self._cpu) or (None, None)
        memory = self._part("memory", self._memory) or (None, None, None)
        if self._samples % SELDOM == 0:
            self._swap = self._part("swap", _swap)
            self._kills = self._oom_kills()
        self._samples += 1
        swap_used, swap_total = self._swap or (None, None)
        shm = self._part("shm", lambda: space_of("/dev/shm"))
        read, written = self._part("disk", self._disk_counters) or (None, None)
        received, sent = self._part("network", self._network_counters) or (None, None)
        limited = self._limit is not None
        proc = self._roots.proc
        return HostSample(
            cpu_percent=cpu_percent,
            iowait_percent=iowait_percent,
            memory_total_bytes=memory[0],
            memory_used_bytes=memory[1],
            memory_available_bytes=memory[2],
            swap_used_bytes=swap_used,
            swap_total_bytes=swap_total,
            load_average=self._part("load", os.getloadavg),
            shm_used_bytes=None if shm is None else shm.used_bytes,
            shm_total_bytes=None if shm is None else shm.total_bytes,
            disk_read_bytes=read,
            disk_write_bytes=written,
            disk_free_bytes=None if disk is None else disk.free_bytes,
            disk_total_bytes=None if disk is None else disk.total_bytes,
            net_received_bytes=received,
            net_sent_bytes=sent,
            cpu_temperature_celsius=cpu_temperature_celsius,
            oom_kills=self._kills,
            memory_pressure_full_percent=pressure_percent(
                (self._cgroup.pressure_file("memory") if limited else None) or f"{proc}/pressure/memory",
                "full",
            ),
            io_pressure_some_percent=pressure_percent(
                (self._cgroup.pressure_file("io") if limited else None) or f"{proc}/pressure/io", "some"
            ),
        )

    def _part(self, name: str, read: Callable[[], T]) -> T | None:
        try:
            value = read()
        except (OSError, ValueError, KeyError, RuntimeError, NotImplementedError, psutil.Error) as error:
            self.errors += 1
            self.failing[name] = f"{type(error).__name__}: {error}"
            return None
        self.failing.pop(name, None)
        return value

    def _cpu(self) -> tuple[tuple[float, ...] | None, float | None]:
        """Busy share of each core and the mean iowait since the last reading; None the first time."""
        now = [_core_times(times) for times in psutil.cpu_times(percpu=True)]
        before, self._cpu_before = self._cpu_before, now
        if before is None or len(before) != len(now):
            return None, None
        busy: list[float] = []
        waited = spent = 0.0
        for (total0, idle0, wait0), (total1, idle1, wait1) in zip(before, now, strict=True):
            total = total1 - total0
            wait = max(0.0, wait1 - wait0)
            if total <= 0:
                busy.append(0.0)
                continue
            idle = max(0.0, idle1 - idle0)
            busy.append(round(min(100.0, max(0.0, 100 * (total - idle - wait) / total)), 1))
            waited += wait
            spent += total
        return tuple(busy), round(min(100.0, 100 * waited / spent), 1) if spent > 0 else None

    def _memory(self) -> tuple[int, int, int]:
        """Total, used and available: the container's where its limit is the lower one."""
        machine = psutil.virtual_memory()
        total, available = int(machine.total), int(machine.available)
        used = total - available  # psutil's `used` leaves out shared memory, which a job does fill
        if self._limit is not None:
            limit, folder = self._limit
            group_used = self._cgroup.memory_used_bytes(folder)
            if group_used is not None:
                return limit, group_used, max(0, min(available, limit - group_used))
        return total, used, available

    def _lower_limit(self, machine_bytes: int | None) -> tuple[int, str] | None:
        limit = self._cgroup.memory_limit()
        if limit is None or (machine_bytes is not None and limit[0] >= machine_bytes):
            return None
        return limit

    def _disk_counters(self) -> tuple[int, int] | None:
        disks = psutil.disk_io_counters(perdisk=True, nowrap=False)
        mine = [disks[name] for name in self._disks if name in disks]
        if not mine:
            return None
        return sum(disk.read_bytes for disk in mine), sum(disk.write_bytes for disk in mine)

    def _network_counters(self) -> tuple[int, int] | None:
        cards = psutil.net_io_counters(pernic=True, nowrap=False)
        names = [name for name in cards if name in self._cards] or [name for name in cards if name != "lo"]
        if not names:
            return None
        return sum(cards[n].bytes_recv for n in names), sum(cards[n].bytes_sent for n in names)

    def _oom_kills(self) -> int | None:
        """The kernel's counter (it counts kills in groups too); in a container the own group's.

        The choice is made by the namespace, not by the limit, so that the counter never changes its meaning.
        """
        if self._shares is False:
            kills = find_cgroup(self._roots).oom_kills()
            if kills is not None:
                return kills
        return keyed_int(f"{self._roots.proc}/vmstat", "oom_kill")


def _swap() -> tuple[int, int]:
    swap = psutil.swap_memory()
    return int(swap.used), int(swap.total)


def _core_times(times: Any) -> tuple[float, float, float]:  # noqa: ANN401 - psutil's named tuple
    """Total, idle and iowait seconds of a core; guest time is part of user time already (proc_stat(5))."""
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - guests), float(times.idle), float(getattr(times, "iowait", 0.0))


def _whole_disks(roots: Roots) -> tuple[str, ...]:
    """Real disks: no partitions, loops, RAM disks or mappings, whose bytes would count twice."""
    folder = Path(roots.sys, "block")
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return ()
    return tuple(name for name in names if (folder / name / "device").exists())


def _real_network_cards(roots: Roots) -> frozenset[str]:
    """Cards with a device behind them: no bridges or container links, whose bytes would count twice."""
    folder = Path(roots.sys, "class/net")
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return frozenset()
    return frozenset(name for name in names if (folder / name / "device").exists())
