"""The driver's own buffer of utilization samples, so that a 1 s view does not miss a 200 ms stall."""

from __future__ import annotations

from yolomon.sources.nvml_calls import GpuCalls

GPU_UTILIZATION_SAMPLES = 1
FIRST_READ_SECONDS = 1.0
SAMPLE_LIMIT = 240


class UtilizationSamples:
    """Hands out the samples that came since the last read (nvmlDeviceGetSamples)."""

    def __init__(self, calls: GpuCalls) -> None:
        self._calls = calls
        self._last_us = 0

    def since_last(self) -> tuple[float, ...]:
        """Percent, oldest first; empty where there are none or the GPU keeps none.

        Raises:
            GpuLostError: the GPU is lost.
        """
        calls = self._calls
        if not calls.supported("nvmlDeviceGetSamples"):
            return ()
        try:
            _, samples = calls.nvml.nvmlDeviceGetSamples(calls.handle, GPU_UTILIZATION_SAMPLES, self._last_us)
        except calls.nvml.NVMLError as error:
            calls.note(("nvmlDeviceGetSamples",), error)
            return ()
        read = [(sample.timeStamp, sample.sampleValue.uiVal) for sample in samples]
        newest = max((time_us for time_us, _ in read), default=0)
        # The first read hands out the whole buffer: minutes, or what is left of another program's reads.
        after_us = self._last_us or newest - int(FIRST_READ_SECONDS * 1e6)
        self._last_us = max(newest, self._last_us)
        fresh = [float(percent) for time_us, percent in read if time_us > after_us and percent <= 100]
        return tuple(fresh[-SAMPLE_LIMIT:])
