"""The processes on a GPU."""

from __future__ import annotations

from typing import Any, Literal

from yolomon.model import GpuProcess
from yolomon.sources.nvml_calls import GpuCalls

PID_LIMIT = 1 << 22
"""Linux's largest pid_max. A greater pid is a misread structure (nvitop#181), not a process."""
PROCESS_LIMIT = 256
_MEMORY_LIMIT = 1 << 46  # 64 TiB: no board has it

_KINDS: tuple[tuple[str, Literal["compute", "graphics"]], ...] = (
    ("nvmlDeviceGetComputeRunningProcesses", "compute"),
    ("nvmlDeviceGetMPSComputeRunningProcesses", "compute"),
    ("nvmlDeviceGetGraphicsRunningProcesses", "graphics"),
)


def read_processes(calls: GpuCalls) -> tuple[GpuProcess, ...] | None:
    """All processes by NVML's pid, each once; None where the GPU or the platform (WSL) tells none.

    Raises:
        GpuLostError: the GPU is lost.
    """
    found: dict[int, GpuProcess] = {}
    told = False
    for function, kind in _KINDS:
        listed = calls.ask(f"{function}_v3")
        if listed is None and not calls.supported(f"{function}_v3"):
            listed = calls.ask(f"{function}_v2")
        if listed is None:
            continue
        told = True
        for raw in listed:
            if not 0 < raw.pid <= PID_LIMIT:
                calls.errors += 1
                calls.trouble = calls.trouble or f"{function}: a pid out of range"
            elif len(found) < PROCESS_LIMIT:
                found.setdefault(raw.pid, GpuProcess(pid=raw.pid, memory_used_bytes=_memory(raw), kind=kind))
    return tuple(found.values()) if told else None


def _memory(raw: Any) -> int | None:  # noqa: ANN401 - pynvml's record
    used = raw.usedGpuMemory
    return None if used is None or not 0 <= used < _MEMORY_LIMIT else int(used)
