"""One GPU: what it is (once), the fast tier and the slow tier."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from yolomon.model import GpmSample, GpuInfo, GpuSample, GpuSlow
from yolomon.sources.nvml_calls import GpuCalls, Rate
from yolomon.sources.nvml_fields import (
    ECC_CORRECTED,
    ECC_UNCORRECTED,
    MEMORY_TEMPERATURE,
    NVLINK_RX_KIB,
    NVLINK_TX_KIB,
    PCIE_RX_BYTES,
    PCIE_TX_BYTES,
    REMAPPED_FAILED,
    REMAPPED_PENDING,
    Fields,
)
from yolomon.sources.nvml_gpm import Gpm
from yolomon.sources.nvml_library import plain
from yolomon.sources.nvml_mig import MigReader
from yolomon.sources.nvml_processes import read_processes
from yolomon.sources.nvml_samples import UtilizationSamples

MEMORY_V2 = (
    0x02000028  # nvmlMemory_v2: used without what the driver reserves, as nvidia-smi shows (nvitop#13)
)
CLOCK_SM, CLOCK_MEMORY = 1, 2
SHUTDOWN, SLOWDOWN = 0, 1
POLICY_POWER, POLICY_THERMAL = 0, 1
CORRECTED, UNCORRECTED, VOLATILE = 0, 1, 0
PCIE_TX, PCIE_RX = 0, 1


class GpuReader:
    """Reads one GPU by its handle. Made and used on one thread; blocks as long as the driver does."""

    def __init__(
        self,
        nvml: Any,  # noqa: ANN401 - pynvml has no types
        handle: Any,  # noqa: ANN401
        index: int,
        root: Path = Path("/"),
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.calls = GpuCalls(nvml, handle)
        self._steady = steady
        self._root = root
        self._memory_api: Literal["v2", "v1"] | None = None
        self._memory_of_processes: int | None = None
        self._memory_total: int | None = None
        self._memory_reserved: int | None = None
        self._unified = False
        self._memory_used()
        self._gpm = Gpm(self.calls, steady)
        self._fields = Fields(self.calls)
        self._samples = UtilizationSamples(self.calls)
        self._mig = MigReader(self.calls, self.text, steady)
        self._rates = {
            field: Rate() for field in (NVLINK_TX_KIB, NVLINK_RX_KIB, PCIE_TX_BYTES, PCIE_RX_BYTES)
        }
        self.info = self._read_info(index)

    # ------------------------------------------------------------ once

    def _read_info(self, index: int) -> GpuInfo:
        ask = self.calls.ask
        capability = ask("nvmlDeviceGetCudaComputeCapability")
        mig = ask("nvmlDeviceGetMigMode")
        pci = ask("nvmlDeviceGetPciInfo")
        return GpuInfo(
            index=index,
            uuid=self.text("nvmlDeviceGetUUID") or f"index-{index}",
            name=self.text("nvmlDeviceGetName") or "GPU",
            memory_total_bytes=self._memory_total,
            power_limit_watts=_thousandth(ask("nvmlDeviceGetEnforcedPowerLimit")),
            power_limit_default_watts=_thousandth(ask("nvmlDeviceGetPowerManagementDefaultLimit")),
            temperature_slowdown_celsius=ask("nvmlDeviceGetTemperatureThreshold", SLOWDOWN),
            temperature_shutdown_celsius=ask("nvmlDeviceGetTemperatureThreshold", SHUTDOWN),
            sm_clock_max_mhz=ask("nvmlDeviceGetMaxClockInfo", CLOCK_SM),
            pcie_generation_max=None if self._unified else ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            pcie_width_max=None if self._unified else ask("nvmlDeviceGetMaxPcieLinkWidth"),
            pci_bus_id=None if pci is None else plain(pci.busId),
            compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
            memory_api=self._memory_api,
            memory_reserved_bytes=self._memory_reserved,
            mig_enabled=None if mig is None else bool(mig[0]),
            unified_memory=self._unified,
            gpm_supported=self._gpm.supported,
        )

    def text(self, function: str, handle: Any = None) -> str | None:  # noqa: ANN401 - a MIG instance's handle
        """A name that NVML tells, as printable text. Of this GPU, or of the instance with that handle."""
        # pynvml decodes strictly and fails on a name that is no UTF-8; beneath its wrapper are the bytes.
        nvml = self.calls.nvml
        wrapped = getattr(nvml, function)
        try:
            return plain(getattr(wrapped, "__wrapped__", wrapped)(handle or self.calls.handle))
        except nvml.NVMLError as error:
            self.calls.note((function,), error)
        except UnicodeDecodeError:
            self.calls.errors += 1
        return None

    # ------------------------------------------------------------ fast

    def read(self, slow: bool) -> GpuSample:
        """One reading; with `slow`, the slow tier and GPM too.

        Raises:
            GpuLostError: the GPU is lost.
        """
        self.calls.begin()
        ask = self.calls.ask
        utilization = ask("nvmlDeviceGetUtilizationRates")
        gpm = self._gpm.read() if slow else None
        tier = self._read_slow(self._lacks_pcie(gpm)) if slow else None
        return GpuSample(
            index=self.info.index,
            utilization_percent=None if utilization is None else utilization.gpu,
            memory_utilization_percent=None if utilization is None else utilization.memory,
            memory_used_bytes=self._memory_used(),
            temperature_celsius=self._temperature(),
            power_watts=_thousandth(ask("nvmlDeviceGetPowerUsage")),
            sm_clock_mhz=ask("nvmlDeviceGetClockInfo", CLOCK_SM),
            memory_clock_mhz=ask("nvmlDeviceGetClockInfo", CLOCK_MEMORY),
            clock_event_reasons=self._clock_event_reasons(),
            performance_state=ask("nvmlDeviceGetPerformanceState"),
            utilization_samples_percent=self._samples.since_last(),
            slow=tier,
            gpm=gpm,
            error=self.calls.trouble,
        )

    def _lacks_pcie(self, gpm: GpmSample | None) -> bool:
        return not self._gpm.supported if gpm is None else gpm.pcie_tx_mib_per_second is None

    def _memory_used(self) -> int | None:
        calls = self.calls
        memory = None
        if self._memory_api != "v1":
            memory = calls.ask("nvmlDeviceGetMemoryInfo", MEMORY_V2)
            if memory is not None:
                self._memory_api, self._memory_reserved = "v2", int(memory.reserved)
        if memory is None and not calls.supported("nvmlDeviceGetMemoryInfo", MEMORY_V2):
            memory = calls.ask("nvmlDeviceGetMemoryInfo")
            if memory is not None:
                self._memory_api = "v1"
        if memory is not None and memory.total > 0:
            self._memory_total = int(memory.total)
            return int(memory.used)
        if memory is not None or not calls.supported("nvmlDeviceGetMemoryInfo"):
            # A GPU without memory of its own (GB10, Jetson: nvtop#426): the host's, shared with it.
            self._unified, self._memory_api = True, None
            self._memory_total = self._memory_total or _host_memory(self._root)
            return self._memory_of_processes
        return None

    def _temperature(self) -> float | None:
        value: float | None = self.calls.ask("nvmlDeviceGetTemperatureV", 0)
        if value is None and not self.calls.supported("nvmlDeviceGetTemperatureV", 0):
            value = self.calls.ask("nvmlDeviceGetTemperature", 0)
        return value

    def _clock_event_reasons(self) -> int | None:
        value: int | None = self.calls.ask("nvmlDeviceGetCurrentClocksEventReasons")
        if value is None and not self.calls.supported("nvmlDeviceGetCurrentClocksEventReasons"):
            value = self.calls.ask("nvmlDeviceGetCurrentClocksThrottleReasons")  # its name before R535
        return value

    # ------------------------------------------------------------ slow

    def _read_slow(self, pcie_by_counter: bool) -> GpuSlow:
        ask = self.calls.ask
        processes = read_processes(self.calls)
        if self._unified and processes is not None:
            self._memory_of_processes = sum(process.memory_used_bytes or 0 for process in processes)
        energy = ask("nvmlDeviceGetTotalEnergyConsumption")
        fields = self._fields.read()
        now = self._steady()
        nvlink = [
            self._rates[field].per_second(fields.get(field), now) for field in (NVLINK_TX_KIB, NVLINK_RX_KIB)
        ]
        pcie = self._pcie(fields, now) if pcie_by_counter and not self._unified else (None, None)
        pending, failed = fields.get(REMAPPED_PENDING), fields.get(REMAPPED_FAILED)
        if pending is None and failed is None:
            rows = ask("nvmlDeviceGetRemappedRows")
            pending, failed = (None, None) if rows is None else (rows[2], rows[3])
        thermal = ask("nvmlDeviceGetViolationStatus", POLICY_THERMAL)
        power = ask("nvmlDeviceGetViolationStatus", POLICY_POWER)
        return GpuSlow(
            processes=processes,
            energy_joules=_thousandth(energy),
            pcie_tx_kib_per_second=pcie[0],
            pcie_rx_kib_per_second=pcie[1],
            pcie_generation=None if self._unified else ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_width=None if self._unified else ask("nvmlDeviceGetCurrPcieLinkWidth"),
            pcie_replays=None if self._unified else ask("nvmlDeviceGetPcieReplayCounter"),
            ecc_corrected=self._ecc(fields.get(ECC_CORRECTED), CORRECTED),
            ecc_uncorrected=self._ecc(fields.get(ECC_UNCORRECTED), UNCORRECTED),
            remapped_rows_pending=None if pending is None else pending > 0,
            remapped_rows_failed=None if failed is None else failed > 0,
            nvlink_tx_kib_per_second=nvlink[0],
            nvlink_rx_kib_per_second=nvlink[1],
            power_limit_watts=_thousandth(ask("nvmlDeviceGetEnforcedPowerLimit")),
            thermal_violation_ns=None if thermal is None else int(thermal.violationTime),
            power_violation_ns=None if power is None else int(power.violationTime),
            fan_percent=None if self._unified else ask("nvmlDeviceGetFanSpeed"),
            memory_temperature_celsius=fields.get(MEMORY_TEMPERATURE),
            mig_instances=self._mig.read() if self.info.mig_enabled else None,
        )

    def _ecc(self, field: float | None, kind: int) -> int | None:
        if field is not None:
            return int(field)
        count: int | None = self.calls.ask("nvmlDeviceGetTotalEccErrors", kind, VOLATILE)
        return count

    def _pcie(self, fields: dict[tuple[int, int], float], now: float) -> tuple[float | None, float | None]:
        """KiB/s sent and received: by the byte counters, else by the call that takes 20 ms a direction."""
        found: list[float | None] = []
        for field, direction in ((PCIE_TX_BYTES, PCIE_TX), (PCIE_RX_BYTES, PCIE_RX)):
            counter = self._fields.wide_counter(field, fields)
            rate = self._rates[field].per_second(counter, now)
            if counter is not None:
                found.append(None if rate is None else rate / 1024)
            else:
                found.append(self.calls.ask("nvmlDeviceGetPcieThroughput", direction))
        return found[0], found[1]

    def close(self) -> None:
        """Give back what NVML allocated."""
        self._gpm.close()
        self._mig.close()


def has_reading(sample: GpuSample) -> bool:
    """Whether the fast tier gave anything at all."""
    return any(
        value is not None
        for value in (
            sample.utilization_percent,
            sample.memory_used_bytes,
            sample.temperature_celsius,
            sample.power_watts,
            sample.sm_clock_mhz,
        )
    )


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _host_memory(root: Path) -> int | None:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None
