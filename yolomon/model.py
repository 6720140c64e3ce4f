"""The data model: what flows from the sources and the trainer's log to the screen.

Times are UNIX seconds, sizes bytes, power watts, temperature degrees Celsius, shares percent (0-100),
clocks MHz; each name says its unit. Not available is None, never 0. All values are immutable.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yolomon.messages import Message

GpuState = Literal["ok", "no-answer", "lost"]
Severity = Literal["info", "warning", "critical"]
RecordKind = Literal[
    "start",  # training starts; carries RunInfo
    "epoch_start",
    "batch",  # one optimizer step or log interval
    "epoch_end",  # the training part of an epoch is over
    "val_start",
    "val_end",
    "validation",  # metrics without an epoch row of their own
    "epoch",  # an epoch is complete: metrics, mean losses
    "checkpoint",
    "features",  # statistics of feature maps
    "message",  # a line of words: warning, OOM retry, NaN recovery
    "stopping",
    "end",  # a proper end
]


class Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Shared settings of all model structs."""


# ---------------------------------------------------------------- machine, read once


class GpuInfo(Base, frozen=True, kw_only=True):
    """Static facts about a GPU. `index` is NVML's; `uuid` is the key."""

    index: int
    uuid: str
    name: str
    memory_total_bytes: int | None = None
    power_limit_watts: float | None = None  # enforced now
    power_limit_default_watts: float | None = None
    temperature_slowdown_celsius: float | None = None
    temperature_shutdown_celsius: float | None = None
    sm_clock_max_mhz: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    pci_bus_id: str | None = None
    compute_capability: str | None = None
    memory_api: Literal["v2", "v1"] | None = None  # v2 leaves out what the driver reserves
    memory_reserved_bytes: int | None = None
    mig_enabled: bool | None = None
    unified_memory: bool = False
    gpm_supported: bool | None = None


class HostInfo(Base, frozen=True, kw_only=True):
    """Static facts about the host. Limits are the container's where they are lower than the machine's."""

    cores: int | None = None
    memory_total_bytes: int | None = None
    memory_limit_bytes: int | None = None  # cgroup; None: no limit below the machine's
    cpu_limit_cores: float | None = None  # cgroup quota
    container: str | None = None  # "docker", "kubernetes", ...; None: not seen
    pid_namespace_shared: bool | None = None  # False: NVML's pids are not ours
    driver_version: str | None = None
    hostname: str | None = None
    wsl: bool = False


class Header(Base, frozen=True, kw_only=True):
    """The first item of a source: what the machine is. Comes again after a change."""

    ts: float
    host: HostInfo | None = None
    gpus: tuple[GpuInfo, ...] = ()


# ---------------------------------------------------------------- machine, sampled


class GpuProcess(Base, frozen=True, kw_only=True):
    """A process on a GPU, by NVML's pid (the host's, also inside a container)."""

    pid: int
    memory_used_bytes: int | None = None
    kind: Literal["compute", "graphics"] = "compute"


class GpmSample(Base, frozen=True, kw_only=True):
    """GPU performance monitoring (Hopper and later): means over the time since the last slow read."""

    graphics_active_percent: float | None = None
    sm_active_percent: float | None = None
    sm_occupancy_percent: float | None = None
    tensor_active_percent: float | None = None
    dram_active_percent: float | None = None
    fp64_active_percent: float | None = None
    fp32_active_percent: float | None = None
    fp16_active_percent: float | None = None
    pcie_tx_mib_per_second: float | None = None
    pcie_rx_mib_per_second: float | None = None
    nvlink_tx_mib_per_second: float | None = None
    nvlink_rx_mib_per_second: float | None = None


class MigInstance(Base, frozen=True, kw_only=True):
    """A MIG instance of a GPU. NVML tells no utilization of it; GPM does, on Hopper and later."""

    uuid: str
    name: str
    gpu_instance: int
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    gpm: GpmSample | None = None


class GpuSlow(Base, frozen=True, kw_only=True):
    """The slow tier of a GPU (about every 1 to 5 s). Counters count since the driver loaded."""

    processes: tuple[GpuProcess, ...] | None = None
    energy_joules: float | None = None
    pcie_tx_kib_per_second: float | None = None
    pcie_rx_kib_per_second: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_replays: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    nvlink_tx_kib_per_second: float | None = None
    nvlink_rx_kib_per_second: float | None = None
    power_limit_watts: float | None = None
    thermal_violation_ns: int | None = None
    power_violation_ns: int | None = None
    fan_percent: float | None = None
    memory_temperature_celsius: float | None = None
    mig_instances: tuple[MigInstance, ...] | None = None  # None: MIG is off


class GpuSample(Base, frozen=True, kw_only=True):
    """One reading of one GPU. With state "lost" or "no-answer" all values are None.

    `clock_event_reasons` is NVML's bit mask: 1 idle, 2 application clocks, 4 SW power cap, 8 HW slowdown,
    0x10 sync boost, 0x20 SW thermal, 0x40 HW thermal, 0x80 power brake, 0x100 display.
    `utilization_samples_percent` are the driver's own buffered samples since the last read.
    """

    index: int
    state: GpuState = "ok"
    state_since_ts: float | None = None
    error: str | None = None  # why a value or the GPU is missing, as NVML says it
    utilization_percent: float | None = None
    memory_utilization_percent: float | None = None  # share of time DRAM was busy, not fullness
    memory_used_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    clock_event_reasons: int | None = None
    performance_state: int | None = None
    utilization_samples_percent: tuple[float, ...] = ()
    slow: GpuSlow | None = None  # None: not read this time
    gpm: GpmSample | None = None  # None: not read this time or not supported


class HostSample(Base, frozen=True, kw_only=True):
    """One reading of the host. `*_bytes` of disk and network are counters since boot."""

    cpu_percent: tuple[float, ...] | None = None  # per core
    iowait_percent: float | None = None
    memory_available_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None  # or the container's limit, where lower
    swap_used_bytes: int | None = None
    swap_total_bytes: int | None = None
    load_average: tuple[float, float, float] | None = None
    shm_used_bytes: int | None = None
    shm_total_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    disk_free_bytes: int | None = None  # of the file system that holds the run
    disk_total_bytes: int | None = None
    net_received_bytes: int | None = None
    net_sent_bytes: int | None = None
    cpu_temperature_celsius: float | None = None
    oom_kills: int | None = None  # counter of the cgroup or the kernel
    memory_pressure_full_percent: float | None = None  # PSI avg10
    io_pressure_some_percent: float | None = None  # PSI avg10


class ProcessSample(Base, frozen=True, kw_only=True):
    """A process of the training job, or one that uses a GPU. `cpu_seconds` is a counter."""

    pid: int
    parent_pid: int | None = None
    name: str = ""
    rss_bytes: int | None = None
    pss_bytes: int | None = None  # shared pages counted by share
    cpu_seconds: float | None = None
    threads: int | None = None
    status: str | None = None  # psutil's: running, sleeping, disk-sleep, zombie, ...
    user: str | None = None
    command: str | None = None
    cwd: str | None = None
    started_ts: float | None = None
    read_bytes: int | None = None
    write_bytes: int | None = None
    affinity_cores: int | None = None
    rank: int | None = None  # RANK of its environment
    local_rank: int | None = None
    world_size: int | None = None
    master_port: str | None = None
    cuda_visible_devices: str | None = None
    cuda_device_order: str | None = None


class Telemetry(Base, frozen=True, kw_only=True):
    """What one read gave: any of GPUs, host and processes. Lists may hold one GPU only."""

    ts: float
    gpus: tuple[GpuSample, ...] = ()
    host: HostSample | None = None
    processes: tuple[ProcessSample, ...] | None = None


class GpuEvent(Base, frozen=True, kw_only=True):
    """An event the driver told: an Xid error."""

    ts: float
    index: int
    xid: int
    text: str = ""


class SourceStatus(Base, frozen=True, kw_only=True):
    """A source's own state, e.g. NVML that does not start: with cause and remedy for the user."""

    ts: float
    source: str  # "nvml", "host", "log:<path>"
    ok: bool
    reason: str = ""  # stable word: "no-driver", "version-mismatch", "container-lost", "gpu-missing", ...
    cause: Message | None = None
    remedy: Message | None = None
    errors: int = 0  # calls that failed so far


# ---------------------------------------------------------------- trainer


class RunInfo(Base, frozen=True, kw_only=True):
    """Settings of the run, as far as the log or the files beside it tell."""

    model: str | None = None
    task: str | None = None
    data: str | None = None
    trainer: str | None = None  # "Ultralytics 8.4.190", "MMEngine", ...
    epochs: int | None = None
    batch_size: float | None = None  # of the whole job; -1 or a share: AutoBatch
    image_size: int | None = None
    workers: int | None = None  # a rank
    world_size: int | None = None
    patience: int | None = None
    close_mosaic: int | None = None
    cache: str | None = None
    amp: bool | None = None
    device: str | None = None
    optimizer: str | None = None
    validates: bool | None = None
    multi_scale: float | None = None
    save_directory: str | None = None


class Roles(Base, frozen=True, kw_only=True):
    """What a record's numbers mean, in one unit for all trainers.

    `loss` is the total, or the sum of the parts where no total is written. mAP is 0 to 1.
    """

    loss: float | None = None
    losses: dict[str, float] = msgspec.field(default_factory=dict)  # training parts by the trainer's name
    validation_losses: dict[str, float] = msgspec.field(default_factory=dict)
    learning_rate: float | None = None
    map50: float | None = None
    map50_95: float | None = None
    precision: float | None = None
    recall: float | None = None
    fitness: float | None = None
    images_per_second: float | None = None
    data_seconds: float | None = None
    step_seconds: float | None = None
    epoch_seconds: float | None = None
    images: float | None = None  # in this batch, on this rank
    image_size: float | None = None
    gradient_norm: float | None = None
    memory_allocated_bytes: float | None = None
    memory_reserved_bytes: float | None = None
    memory_peak_bytes: float | None = None
    eta_seconds: float | None = None


class TrainRecord(Base, frozen=True, kw_only=True):
    """One record of a trainer's log. `epoch` counts from 1; `step` over the whole run, `batch` in the epoch.

    `ts` is the place on the common time axis: the record's own time where it has a trustworthy one, else
    the time it arrived. NaN and infinity are values; a missing number is absent.
    """

    ts: float
    kind: RecordKind
    source: str = ""  # the log it came from
    rank: int | None = None
    pid: int | None = None
    own_ts: float | None = None
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None
    batch: int | None = None
    batches: int | None = None
    segment: int = 0  # a resumed or restarted run begins a new one
    numbers: dict[str, float] = msgspec.field(default_factory=dict)
    roles: Roles = msgspec.field(default_factory=Roles)
    run: RunInfo | None = None
    features: dict[str, dict[str, float]] | None = None  # layer -> statistic -> value
    text: str = ""  # words, for kind "message"; control characters already removed
    backlog: bool = False  # was in the log before we attached; `ts` may then be no real time


class LogStatus(Base, frozen=True, kw_only=True):
    """How following one log stands."""

    ts: float
    source: str
    state: Literal["waiting", "reading", "following", "restarted", "gone", "unreadable", "ended"]
    format: str = ""
    records: int = 0
    broken_lines: int = 0
    lost_records: int = 0
    last_growth_ts: float | None = None
    progress_percent: float | None = None  # while a long log is read
    detail: Message | None = None


class CurveBlock(Base, frozen=True, kw_only=True):
    """What neighbouring points of one curve amount to, of records that were in a log before we attached.

    Blocks of one log come in order, oldest first; the newest records may have come before them as
    `TrainRecord`s with `backlog`, which are not drawn. `x_*`: the curves' axis (epochs done, else steps).
    With `count` 0 all points were NaN or infinite. `ends`: the backlog of this log is complete.
    """

    ts: float
    source: str
    name: str  # a role, or the trainer's own name of a loss part; "" with `ends`
    segment: int = 0
    x_first: float = 0.0
    x_last: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    last: float = 0.0
    count: int = 0  # finite points
    non_finite: int = 0
    ends: bool = False
    live: bool = False  # of a burst of records that came just now; goes where live points go


Item = Header | Telemetry | GpuEvent | SourceStatus | TrainRecord | LogStatus | CurveBlock


# ---------------------------------------------------------------- what is wrong


class Finding(Base, frozen=True, kw_only=True):
    """One thing that is wrong (or worth knowing), arguable from its evidence.

    `target` is "gpu0" (NVML index), "host", "run" or "log". `onset_ts` is when it began, `raised_ts` when it
    was said. `evidence` holds named numbers with units in their names. `related`: what it explains and hides.
    """

    code: str
    severity: Severity
    target: str
    onset_ts: float
    raised_ts: float
    cleared_ts: float | None = None
    summary: Message = msgspec.field(default_factory=lambda: Message(""))
    cause: Message = msgspec.field(default_factory=lambda: Message(""))
    remedy: Message = msgspec.field(default_factory=lambda: Message(""))
    evidence: dict[str, float | str | None] = msgspec.field(default_factory=dict)
    signals: tuple[str, ...] = ()  # series of the target to mark on the graphs: "memory_used_bytes", ...
    related: tuple[str, ...] = ()
    confidence: Literal["high", "medium", "low"] = "high"
    unseen: tuple[Message, ...] = ()  # what could not be seen, and so not be ruled out
    silenced: bool = False
