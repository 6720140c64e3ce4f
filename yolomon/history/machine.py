"""The machine's part of the history: GPUs, host and processes over time."""

from __future__ import annotations

from collections import deque

import msgspec

from yolomon.history.table import COARSE_ROWS, Table
from yolomon.model import GpmSample, GpuInfo, GpuSample, GpuSlow, HostSample, ProcessSample

FAST_COLUMNS = (
    "utilization_percent",
    "utilization_min_percent",  # of the driver's own samples since the last read
    "utilization_max_percent",
    "memory_utilization_percent",
    "memory_used_bytes",
    "temperature_celsius",
    "power_watts",
    "sm_clock_mhz",
    "clock_event_reasons",
)
SLOW_COLUMNS = (
    "sm_active_percent",
    "sm_occupancy_percent",
    "tensor_active_percent",
    "dram_active_percent",
    "graphics_active_percent",
    "pcie_tx_kib_per_second",
    "pcie_rx_kib_per_second",
    "nvlink_tx_kib_per_second",
    "nvlink_rx_kib_per_second",
    "pcie_generation",
    "pcie_width",
    "power_limit_watts",
    "memory_temperature_celsius",
    "fan_percent",
    "energy_joules",
    "ecc_corrected",
    "ecc_uncorrected",
    "pcie_replays",
    "thermal_violation_ns",
)
HOST_COLUMNS = (
    "cpu_percent",  # mean of the cores
    "cpu_busiest_core_percent",
    "iowait_percent",
    "memory_used_bytes",
    "memory_available_bytes",
    "swap_used_bytes",
    "shm_used_bytes",
    "disk_free_bytes",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "net_received_bytes_per_second",
    "net_sent_bytes_per_second",
    "cpu_temperature_celsius",
    "load_average_1_min",
    "memory_pressure_full_percent",
    "io_pressure_some_percent",
)
_HOST_COUNTERS = ("disk_read_bytes", "disk_write_bytes", "net_received_bytes", "net_sent_bytes")
PROCESS_KEPT_SECONDS = 120.0
PROCESS_LIMIT = 1024


class GpuHistory:
    """One GPU over time. `sample`, `slow` and `gpm` are the newest readings, each with its time."""

    def __init__(self, info: GpuInfo) -> None:
        self.info = info
        coarse_rows = COARSE_ROWS - 2 * (info.index % 64)  # no two GPUs join their buckets at once
        self.fast = Table(FAST_COLUMNS, coarse_rows=coarse_rows)
        self.slow_table = Table(SLOW_COLUMNS, raw_rows=900, coarse_rows=coarse_rows)
        self.sample: GpuSample | None = None
        self.sample_ts: float | None = None
        self.answer_ts: float | None = None  # the newest reading with state "ok"
        self.slow: GpuSlow | None = None
        self.slow_ts: float | None = None
        self.gpm: GpmSample | None = None
        self.gpm_ts: float | None = None

    def add(self, ts: float, sample: GpuSample) -> None:
        """Take one reading."""
        self.sample, self.sample_ts = sample, ts
        if sample.state != "ok":
            self.fast.append(ts, (None,) * len(FAST_COLUMNS))
            return
        self.answer_ts = ts
        buffered = sample.utilization_samples_percent
        now = sample.utilization_percent
        self.fast.append(
            ts,
            (
                now,
                min(buffered, default=now) if now is None else min(now, *buffered) if buffered else now,
                max(buffered, default=now) if now is None else max(now, *buffered) if buffered else now,
                sample.memory_utilization_percent,
                sample.memory_used_bytes,
                sample.temperature_celsius,
                sample.power_watts,
                sample.sm_clock_mhz,
                sample.clock_event_reasons,
            ),
        )
        if sample.slow is not None or sample.gpm is not None:
            self._add_slow(ts, sample.slow, sample.gpm)

    def _add_slow(self, ts: float, slow: GpuSlow | None, gpm: GpmSample | None) -> None:
        if slow is not None:
            self.slow, self.slow_ts = slow, ts
        if gpm is not None:
            self.gpm, self.gpm_ts = gpm, ts
        slow = slow or GpuSlow()
        gpm = gpm or GpmSample()
        self.slow_table.append(
            ts,
            (
                gpm.sm_active_percent,
                gpm.sm_occupancy_percent,
                gpm.tensor_active_percent,
                gpm.dram_active_percent,
                gpm.graphics_active_percent,
                _first(slow.pcie_tx_kib_per_second, _kib(gpm.pcie_tx_mib_per_second)),
                _first(slow.pcie_rx_kib_per_second, _kib(gpm.pcie_rx_mib_per_second)),
                _first(slow.nvlink_tx_kib_per_second, _kib(gpm.nvlink_tx_mib_per_second)),
                _first(slow.nvlink_rx_kib_per_second, _kib(gpm.nvlink_rx_mib_per_second)),
                slow.pcie_generation,
                slow.pcie_width,
                slow.power_limit_watts,
                slow.memory_temperature_celsius,
                slow.fan_percent,
                slow.energy_joules,
                slow.ecc_corrected,
                slow.ecc_uncorrected,
                slow.pcie_replays,
                slow.thermal_violation_ns,
            ),
        )


def _first(a: float | None, b: float | None) -> float | None:
    return b if a is None else a


def _kib(mib: float | None) -> float | None:
    return None if mib is None else mib * 1024


class HostHistory:
    """The host over time; counters become rates, and one that went backwards becomes a hole."""

    def __init__(self) -> None:
        self.table = Table(HOST_COLUMNS)
        self.sample: HostSample | None = None
        self.sample_ts: float | None = None

    def add(self, ts: float, sample: HostSample) -> None:
        """Take one reading."""
        rates = [self._rate(ts, sample, name) for name in _HOST_COUNTERS]
        cores = sample.cpu_percent
        self.table.append(
            ts,
            (
                sum(cores) / len(cores) if cores else None,
                max(cores) if cores else None,
                sample.iowait_percent,
                sample.memory_used_bytes,
                sample.memory_available_bytes,
                sample.swap_used_bytes,
                sample.shm_used_bytes,
                sample.disk_free_bytes,
                *rates,
                sample.cpu_temperature_celsius,
                sample.load_average[0] if sample.load_average else None,
                sample.memory_pressure_full_percent,
                sample.io_pressure_some_percent,
            ),
        )
        self.sample, self.sample_ts = sample, ts

    def _rate(self, ts: float, sample: HostSample, name: str) -> float | None:
        if self.sample is None or self.sample_ts is None or ts <= self.sample_ts:
            return None
        before, now = getattr(self.sample, name), getattr(sample, name)
        if before is None or now is None or now < before:
            return None
        return float((now - before) / (ts - self.sample_ts))


class ProcessPoint(msgspec.Struct, frozen=True, gc=False):
    """One reading of a process: CPU share of one core, and memory (PSS where known, else RSS)."""

    ts: float
    cpu_percent: float | None
    memory_bytes: float | None


class ProcessHistory:
    """One process over time."""

    def __init__(self) -> None:
        self.sample = ProcessSample(pid=0)
        self.sample_ts = 0.0
        self.first_ts = 0.0
        self.points: deque[ProcessPoint] = deque(maxlen=240)
        self.read_bytes_per_second: float | None = None
        self.write_bytes_per_second: float | None = None

    def add(self, ts: float, sample: ProcessSample) -> None:
        """Take one reading."""
        cpu_percent = None
        before = self.sample.cpu_seconds
        if not self.points:
            self.first_ts = ts
        elif before is not None and sample.cpu_seconds is not None and ts > self.sample_ts:
            spent = sample.cpu_seconds - before
            cpu_percent = 100 * spent / (ts - self.sample_ts) if spent >= 0 else None
        self.read_bytes_per_second = self._rate(ts, self.sample.read_bytes, sample.read_bytes)
        self.write_bytes_per_second = self._rate(ts, self.sample.write_bytes, sample.write_bytes)
        memory = sample.rss_bytes if sample.pss_bytes is None else sample.pss_bytes
        self.points.append(ProcessPoint(ts, cpu_percent, memory))
        self.sample, self.sample_ts = sample, ts

    def _rate(self, ts: float, before: int | None, now: int | None) -> float | None:
        """Bytes a second since the last reading; None for the first and for a counter that went back."""
        if not self.points or before is None or now is None or now < before or ts <= self.sample_ts:
            return None
        return (now - before) / (ts - self.sample_ts)


class Processes:
    """All processes that were told, bounded; those that are gone are kept for a while."""

    def __init__(self) -> None:
        self.by_pid: dict[int, ProcessHistory] = {}
        self.ts: float | None = None  # the newest list's time

    def add(self, ts: float, samples: tuple[ProcessSample, ...]) -> None:
        """Take one list of processes."""
        self.ts = ts
        for sample in samples[:PROCESS_LIMIT]:
            known = self.by_pid.get(sample.pid)
            if known is None or (
                known.sample.started_ts is not None
                and sample.started_ts is not None
                and abs(known.sample.started_ts - sample.started_ts) > 1.0
            ):  # new, or the pid was used again
                known = self.by_pid[sample.pid] = ProcessHistory()
            known.add(ts, sample)
        if len(self.by_pid) > len(samples):
            for pid in [p for p, h in self.by_pid.items() if ts - h.sample_ts > PROCESS_KEPT_SECONDS]:
                del self.by_pid[pid]

    def alive(self) -> list[ProcessHistory]:
        """Those in the newest list."""
        return [process for process in self.by_pid.values() if process.sample_ts == self.ts]
