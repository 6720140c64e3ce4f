"""Finds training processes without NVML's help: in a container its pids are the machine's, not ours."""

from __future__ import annotations

import os
import re

from yolomon.sources.identity import command_of, environment_of
from yolomon.sources.processes import list_pids, read_stat
from yolomon.sources.procfs import REAL, Roots

CUDA_DEVICES = ("/dev/nvidia-uvm", "/dev/dxg")
"""Held open by each process with a CUDA context (on WSL: dxg). NVML alone does not open nvidia-uvm."""

_PYTHON = re.compile(r"(^|/)(python[\d.]*|pt_main_thread|torchrun|yolo)\b")
_TRAINS = re.compile(r"\btrain|\bfit\b|torch\.distributed|\btools/|mode=train", re.IGNORECASE)


class TrainerSearch:
    """Looks through all processes that can be seen; each is looked at closely once."""

    def __init__(self, roots: Roots = REAL) -> None:
        self._roots = roots
        self._verdicts: dict[int, tuple[int, bool]] = {}  # pid -> start, whether it trains
        self._own_pid = os.getpid()

    def find(self) -> tuple[int, ...]:
        """The processes that train and have no parent that does, in order of their pids."""
        found: dict[int, int] = {}
        verdicts: dict[int, tuple[int, bool]] = {}
        for pid in list_pids(self._roots):
            if pid == self._own_pid:
                continue
            stat = read_stat(pid, self._roots)
            if stat is None or stat.state == "Z":
                continue
            known = self._verdicts.get(pid)
            # a process opens the GPU some seconds after it started: one that does not is asked again
            trains = known[1] if known is not None and known[0] == stat.start_ticks else False
            trains = trains or self._trains(pid)
            verdicts[pid] = (stat.start_ticks, trains)
            if trains:
                found[pid] = stat.parent_pid
        self._verdicts = verdicts
        return tuple(sorted(pid for pid, parent in found.items() if parent not in found))

    def _trains(self, pid: int) -> bool:
        if holds_cuda(pid, self._roots):
            return True
        command = command_of(pid, self._roots)
        if command is None or not _PYTHON.search(command.split(" ", 1)[0]):
            return False
        return bool(_TRAINS.search(command)) and "RANK" in environment_of(pid, self._roots)


def may_train(pid: int, roots: Roots = REAL) -> bool:
    """False for a process that surely does not train: a log may name pids of a container's own namespace.

    One whose open files we may not see (another user's) is believed.
    """
    command = command_of(pid, roots)
    if command is None or _PYTHON.search(command.split(" ", 1)[0]):
        return True
    return not os.access(f"{roots.proc}/{pid}/fd", os.R_OK) or holds_cuda(pid, roots)


def trains_here(pid: int, roots: Roots = REAL) -> bool:
    """Whether a process trains, by what can be seen: an open CUDA device, or Python with a training script.

    Asked where NVML's pids are another namespace's, and a process of ours may by chance have one of them.
    """
    if holds_cuda(pid, roots):
        return True
    command = command_of(pid, roots) or ""
    return bool(_PYTHON.search(command.split(" ", 1)[0]) and _TRAINS.search(command))


def holds_cuda(pid: int, roots: Roots = REAL, limit: int = 512) -> bool:
    """Whether a process has a CUDA device open; False also where we may not look."""
    folder = f"{roots.proc}/{pid}/fd"
    try:
        names = os.listdir(folder)[:limit]  # noqa: PTH208
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}").startswith(CUDA_DEVICES):  # noqa: PTH115
                return True
        except OSError:
            continue
    return False
