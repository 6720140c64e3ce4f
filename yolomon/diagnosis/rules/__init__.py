"""The rules: one file a family of causes. A new rule is a class in a file here, listed in `ALL_RULES`."""

from __future__ import annotations

from collections.abc import Callable

from yolomon.diagnosis.rules.amp_underflow import AmpUnderflow
from yolomon.diagnosis.rules.base import Claim, Rule, View
from yolomon.diagnosis.rules.collective_hang import CollectiveHang
from yolomon.diagnosis.rules.data_starvation import DataStarvation
from yolomon.diagnosis.rules.features import Features
from yolomon.diagnosis.rules.gpu_contention import GpuContention
from yolomon.diagnosis.rules.gpu_idle import GpuIdle
from yolomon.diagnosis.rules.hardware import Hardware
from yolomon.diagnosis.rules.host_limits import HostLimits
from yolomon.diagnosis.rules.host_memory import HostMemoryGrowth
from yolomon.diagnosis.rules.load_imbalance import LoadImbalance
from yolomon.diagnosis.rules.log_silent import LogSilent
from yolomon.diagnosis.rules.loss import Loss
from yolomon.diagnosis.rules.nan_loss import NanLoss
from yolomon.diagnosis.rules.nvml_status import NvmlStatus
from yolomon.diagnosis.rules.orphan_memory import OrphanMemory
from yolomon.diagnosis.rules.pcie import Pcie
from yolomon.diagnosis.rules.plateau import Plateau
from yolomon.diagnosis.rules.slowdown import Slowdown
from yolomon.diagnosis.rules.stall import Stall
from yolomon.diagnosis.rules.sync_wait import SyncWait
from yolomon.diagnosis.rules.throttle import Throttle
from yolomon.diagnosis.rules.trainer_gone import TrainerGone
from yolomon.diagnosis.rules.vram_fragmentation import VramFragmentation
from yolomon.diagnosis.rules.vram_growth import VramGrowth

__all__ = ["ALL_RULES", "Claim", "Rule", "View", "all_rules"]

# The order is the order of checking; it changes nothing in what is found.
ALL_RULES: tuple[Callable[[], Rule], ...] = (
    TrainerGone,
    CollectiveHang,
    Stall,
    NanLoss,
    AmpUnderflow,
    LoadImbalance,
    SyncWait,
    DataStarvation,
    VramGrowth,
    VramFragmentation,
    GpuIdle,
    GpuContention,
    OrphanMemory,
    Hardware,
    NvmlStatus,
    Throttle,
    Pcie,
    HostMemoryGrowth,
    HostLimits,
    Loss,
    Plateau,
    Slowdown,
    Features,
    LogSilent,
)


def all_rules() -> list[Rule]:
    """A new instance of every rule."""
    return [make() for make in ALL_RULES]
