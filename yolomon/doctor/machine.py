"""Container, pid namespace, limits and /dev/shm: what changes the meaning of the host's figures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from yolomon.doctor.check import Check
from yolomon.messages import msg
from yolomon.sources.cgroup import find_cgroup
from yolomon.sources.container import container_name, is_wsl, pid_namespace_shared
from yolomon.sources.procfs import Roots, read_bytes
from yolomon.sources.space import space_of
from yolomon.units import size

SHM_LEAST_BYTES = 1 << 30
"""Docker's default of 64 MB stops loader workers with bus errors (ultralytics/yolov3#1151, pytorch#5040)."""
MEMORY_FULL_SHARE = 0.9


def machine_checks(roots: Roots, environment: Mapping[str, str]) -> list[Check]:
    """Checks of the machine around the GPUs."""
    container = container_name(roots, environment)
    return [
        _proc(roots),
        _container(container, roots),
        _pids(roots),
        _limits(roots),
        _shm(Path(roots.top) / "dev/shm", container),
    ]


def _proc(roots: Roots) -> Check:
    try:
        read_bytes(f"{roots.proc}/stat")
        read_bytes(f"{roots.proc}/meminfo")
    except OSError as error:
        return Check(
            "proc",
            "FAIL",
            msg("/proc cannot be read: {why}", why=error.strerror or str(error)),
            msg("Without /proc there are no figures of the host and of processes"),
        )
    return Check("proc", "PASS", msg("/proc can be read"))


def _container(container: str | None, roots: Roots) -> Check:
    if is_wsl(roots):
        return Check(
            "container",
            "WARN",
            msg("This is WSL: some GPU figures and all GPU processes are missing there"),
        )
    if container is None:
        return Check("container", "PASS", msg("No container was seen"))
    return Check("container", "PASS", msg("Inside a container ({kind})", kind=container))


def _pids(roots: Roots) -> Check:
    shared = pid_namespace_shared(roots)
    if shared is False:
        return Check(
            "pid-namespace",
            "WARN",
            msg("The driver tells the host's pids, which mean nothing in this pid namespace"),
            msg("Trainers are found by their open GPU instead; for exact pids start with --pid=host"),
        )
    if shared is None:
        return Check("pid-namespace", "WARN", msg("Whether pids are the host's cannot be told"))
    return Check("pid-namespace", "PASS", msg("The pids here are the host's, as the driver tells them"))


def _limits(roots: Roots) -> Check:
    group = find_cgroup(roots)
    memory, cores = group.memory_limit(), group.cpu_limit_cores()
    if cores is not None and cores >= (os.cpu_count() or 1):
        cores = None
    if memory is None:
        return Check(
            "limits",
            "PASS",
            msg("No memory limit; {cores} cores may be used", cores=f"{cores:g}")
            if cores is not None
            else msg("No memory or CPU limit below the machine's"),
        )
    limit, folder = memory
    used = group.memory_used_bytes(folder)
    if used is not None and used > MEMORY_FULL_SHARE * limit:
        return Check(
            "limits",
            "WARN",
            msg(
                "Memory of this container: {used} of {limit} used",
                used=size(used),
                limit=size(limit),
            ),
            msg("The kernel ends the training at the limit: fewer workers, cache=disk, or a higher limit"),
        )
    return Check("limits", "PASS", msg("Memory is limited to {limit}", limit=size(limit)))


def _shm(folder: Path, container: str | None) -> Check:
    try:
        space = space_of(str(folder))
    except OSError as error:
        return Check("shm", "WARN", msg("/dev/shm cannot be used: {why}", why=error.strerror or str(error)))
    if space is None:
        return Check("shm", "WARN", msg("/dev/shm tells no size"))
    if space.total_bytes < SHM_LEAST_BYTES:
        return Check(
            "shm",
            "WARN",
            msg(
                "/dev/shm has only {size}: loader workers end with bus errors",
                size=size(space.total_bytes),
            ),
            msg("Start the container with --shm-size=8g or --ipc=host, or train with workers=0")
            if container
            else msg("Make it larger: sudo mount -o remount,size=8G /dev/shm"),
        )
    return Check(
        "shm",
        "PASS",
        msg(
            "/dev/shm: {used} of {size} used",
            used=size(space.used_bytes),
            size=size(space.total_bytes),
        ),
    )
