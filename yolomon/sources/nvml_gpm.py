"""GPU performance monitoring (Hopper and later): how busy the SMs are, not only whether they are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from yolomon.model import GpmSample
from yolomon.sources.nvml_calls import GpuCalls

SPACING_SECONDS = 0.1
"""NVML asks for at least 100 ms between the two samples of a reading (nvmlGpmSampleGet)."""

# NVML_GPM_METRIC_* of nvml.h -> field of GpmSample
_METRICS = {
    1: "graphics_active_percent",
    2: "sm_active_percent",
    3: "sm_occupancy_percent",
    5: "tensor_active_percent",
    10: "dram_active_percent",
    11: "fp64_active_percent",
    12: "fp32_active_percent",
    13: "fp16_active_percent",
    20: "pcie_tx_mib_per_second",
    21: "pcie_rx_mib_per_second",
    60: "nvlink_rx_mib_per_second",
    61: "nvlink_tx_mib_per_second",
}


class Gpm:
    """Means between two reads. The sample of the last read is kept, so that no read has to wait.

    Each sample is allocated once and used in turn. Made and used on the GPU's own thread.
    """

    def __init__(
        self, calls: GpuCalls, steady: Callable[[], float] = time.monotonic, instance: int | None = None
    ) -> None:
        """`instance`: of a MIG instance of this GPU; None: of the whole."""
        nvml = calls.nvml
        self._calls = calls
        self._steady = steady
        self._instance = instance
        self._taken_at: float | None = None
        self._request: Any = None
        support = calls.ask("nvmlGpmQueryDeviceSupport")
        self.supported = bool(support is not None and support.isSupportedDevice)
        if not self.supported:
            return
        try:
            self._before, self._after = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        except nvml.NVMLError as error:
            calls.note(("nvmlGpmSampleAlloc",), error)
            self.supported = False
            return
        self._request = nvml.c_nvmlGpmMetricsGet_t()
        self._request.version = 1
        self._request.numMetrics = len(_METRICS)
        for position, metric in enumerate(_METRICS):
            self._request.metrics[position].metricId = metric

    def read(self) -> GpmSample | None:
        """Means since the last read; None for the first, and where GPM is not supported.

        Raises:
            GpuLostError: the GPU is lost.
        """
        if not self.supported:
            return None
        now = self._steady()
        if self._taken_at is not None and now - self._taken_at < SPACING_SECONDS:
            return None
        nvml = self._calls.nvml
        try:
            if self._instance is None:
                nvml.nvmlGpmSampleGet(self._calls.handle, self._after)
            else:
                nvml.nvmlGpmMigSampleGet(self._calls.handle, self._instance, self._after)
        except nvml.NVMLError as error:
            self._taken_at = None
            key = ("nvmlGpmSampleGet",) if self._instance is None else ("nvmlGpmMigSampleGet", self._instance)
            self._calls.note(key, error)
            # MIG on, for one: the device supports GPM, the parent gives no sample
            self.supported = self._calls.supported(*key)
            return None
        before, self._taken_at = self._taken_at, now
        self._before, self._after = self._after, self._before
        return None if before is None else self._metrics()

    def _metrics(self) -> GpmSample | None:
        nvml = self._calls.nvml
        self._request.sample1, self._request.sample2 = self._after, self._before  # older, newer
        try:
            nvml.nvmlGpmMetricsGet(self._request)
        except nvml.NVMLError as error:
            self._calls.note(("nvmlGpmMetricsGet",), error)
            return None
        values = {}
        for position, field in enumerate(_METRICS.values()):
            metric = self._request.metrics[position]
            if metric.nvmlReturn == 0 and math.isfinite(metric.value):
                values[field] = metric.value
        return GpmSample(**values) if values else None

    def close(self) -> None:
        """Give the samples back."""
        if self._request is None:
            return
        self._request = None
        self.supported = False
        for sample in (self._before, self._after):
            try:
                self._calls.nvml.nvmlGpmSampleFree(sample)
            except self._calls.nvml.NVMLError:
                return  # NVML is gone, and the samples with it
