"""What kind of machine this is: container, pid namespace, WSL, driver."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from yolomon.sources.procfs import REAL, Roots, text_or_none

FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The inode number of the machine's own pid namespace: PROC_PID_INIT_INO of the kernel's proc_ns.h."""

_CGROUP_WORDS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
)


def container_name(roots: Roots = REAL, environment: Mapping[str, str] | None = None) -> str | None:
    """The kind: "kubernetes", "docker", "podman", "apptainer", ...; None where no container was seen."""
    environment = os.environ if environment is None else environment
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if "APPTAINER_CONTAINER" in environment or "SINGULARITY_CONTAINER" in environment:
        return "apptainer"
    if _exists(f"{roots.run}/.containerenv"):
        return "podman"
    if _exists(f"{roots.top}/.dockerenv".replace("//", "/")):
        return "docker"
    told = (text_or_none(f"{roots.run}/systemd/container") or environment.get("container", "")).strip()
    if told:
        return told.split()[0][:32]
    groups = text_or_none(f"{roots.proc}/1/cgroup") or ""
    return next((name for word, name in _CGROUP_WORDS if f"/{word}" in groups), None)


def pid_namespace_shared(roots: Roots = REAL) -> bool | None:
    """Whether our pids are the machine's, and so NVML's; None where that cannot be told.

    The driver hands out the machine's pids also inside a container (NVIDIA/nvidia-docker#1483).
    """
    try:
        return os.readlink(f"{roots.proc}/self/ns/pid") == FIRST_PID_NAMESPACE  # noqa: PTH115
    except OSError:
        return None


def is_wsl(roots: Roots = REAL) -> bool:
    """Whether this is the Windows Subsystem for Linux, where NVML tells less (microsoft/WSL#7162)."""
    return "microsoft" in (text_or_none(f"{roots.proc}/sys/kernel/osrelease") or "").lower()


def loaded_driver_version(roots: Roots = REAL) -> str | None:
    """The version of the kernel's NVIDIA module, e.g. "580.159.04"; None where none is loaded."""
    first = (text_or_none(f"{roots.proc}/driver/nvidia/version") or "").partition("\n")[0]
    found = re.search(r"\b(\d{3,4}\.\d+(?:\.\d+)?)\b", first)
    return found[1] if found else None


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - plain strings all through
