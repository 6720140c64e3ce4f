"""What a simulated run is like, and what goes wrong in it."""

from __future__ import annotations

from typing import Literal

import msgspec

GIB = 2**30
Fault = Literal[
    "",
    "straggler", "hang", "freeze", "vram-leak", "worker-leak", "starve", "nan", "heat", "oom",
    "contention", "zombie", "narrow-link", "xid", "gpu-lost", "ecc", "slow", "diverge", "brake",
    "low-host-memory", "small-shm", "silent-log",
]  # fmt: skip


class Gpu(msgspec.Struct, frozen=True):
    """A GPU model, by its public figures."""

    name: str
    memory_bytes: int
    power_limit_watts: float
    idle_watts: float
    clock_mhz: int
    gpm: bool
    pcie_generation: int = 4


H200 = Gpu("NVIDIA H200", 141 * GIB, 700.0, 120.0, 1980, True, 5)
A100 = Gpu("NVIDIA A100-SXM4-80GB", 80 * GIB, 400.0, 62.0, 1410, False)
RTX3090 = Gpu("NVIDIA GeForce RTX 3090", 24 * GIB, 350.0, 30.0, 2100, False)
RTX4090 = Gpu("NVIDIA GeForce RTX 4090", 24 * GIB, 450.0, 25.0, 3105, False)
T4 = Gpu("Tesla T4", 15 * GIB, 70.0, 27.0, 1590, False, 3)
V100 = Gpu("Tesla V100-SXM2-32GB", 32 * GIB, 300.0, 44.0, 1530, False, 3)
GPUS = (H200, A100, RTX3090, RTX4090, T4, V100)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run. Times in seconds from its first reading; `onset` of the fault likewise."""

    name: str
    seed: int
    seconds: float = 240.0
    gpu: Gpu = H200
    ranks: int = 1
    spare_gpus: int = 0  # on the machine, not of this job
    busy_spare: bool = False  # another user trains there
    start_seconds: float = 15.0
    step_seconds: float = 0.25
    step_noise: float = 0.02
    data_seconds: float = 0.004
    batches: int = 150
    epochs: int = 100
    validation_seconds: float = 4.0
    checkpoint_seconds: float = 1.0
    close_mosaic: int = 0
    multi_scale: bool = False
    workers: int = 8
    batch_size: int = 32
    power_share: float = 0.8  # of the limit at full work
    memory_share: float = 0.3
    host_memory_bytes: int = 128 * GIB
    sample_seconds: float = 1.0
    slow_seconds: float = 2.0
    gap: tuple[float, float] | None = None  # nothing is read in between
    buffered: bool = True
    data_time: bool = True
    rank_logs: bool = True
    processes: bool = True
    pss: bool = True
    fault: Fault = ""
    onset: float = 80.0
    rank: int = 0  # the one the fault is on
    amount: float = 0.0  # seconds of delay, bytes a step or a second, a factor
