"""The thread of one GPU: it alone calls NVML for that GPU, so that a call that hangs holds up nobody else."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yolomon.model import GpuInfo, GpuSample
from yolomon.sources.base import Clock
from yolomon.sources.nvml_calls import GpuLostError
from yolomon.sources.nvml_gpu import GpuReader, has_reading
from yolomon.sources.nvml_library import GPU_IS_LOST, RESET_REQUIRED


@dataclass(frozen=True)
class Answer:
    """What one request to a worker gave."""

    worker: GpuWorker
    ts: float
    sample: GpuSample  # with NVML's index; the source gives it the index it is shown under
    lost: bool = False
    code: int | None = None  # NVML's return code where nothing at all could be read
    opened: GpuInfo | None = None  # told with the first answer
    handle: Any = None


class GpuWorker:
    """Reads GPU `index` on request. `ask` and the plain attributes belong to the source's thread."""

    def __init__(
        self,
        nvml: Any,  # noqa: ANN401 - pynvml has no types
        index: int,
        answer: Callable[[Answer], None],
        clock: Clock,
        root: Path,
    ) -> None:
        self.index = index
        self.shown_index = index
        self.uuid: str | None = None
        self.asked_ts: float | None = None  # when the request that is not answered yet was made
        self.asked_steady = 0.0
        self.lost_since_ts: float | None = None
        self.lost_error: str | None = None
        self.rest_until = 0.0
        self.errors = 0
        self._nvml = nvml
        self._answer = answer
        self._clock = clock
        self._root = root
        self._requests: queue.SimpleQueue[bool | None] = queue.SimpleQueue()
        self._reader: GpuReader | None = None
        self._thread = threading.Thread(target=self._run, name=f"yolomon-gpu{index}", daemon=True)
        self._thread.start()

    def ask(self, slow: bool) -> None:
        """Request one reading. Not while one is outstanding."""
        self.asked_ts, self.asked_steady = self._clock(), time.monotonic()
        self._requests.put(slow)

    def stop(self) -> None:
        """End the thread, after the call it is in."""
        self._requests.put(None)

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (slow := self._requests.get()) is not None:
            try:
                answer = self._read(slow)
            except Exception as error:  # noqa: BLE001 - the thread's edge: what pynvml may raise is not bounded, and the
                # GPU must not fall silent (nvitop#139); the reason goes to the screen
                sample = GpuSample(index=self.index, error=f"{type(error).__name__}: {error}")
                answer = Answer(self, self._clock(), sample)
            self._answer(answer)
        if self._reader is not None:
            self._reader.close()

    def _read(self, slow: bool) -> Answer:
        nvml = self._nvml
        opened = handle = None
        try:
            if self._reader is None:
                handle = nvml.nvmlDeviceGetHandleByIndex(self.index)
                self._reader = GpuReader(nvml, handle, self.index, self._root)
                opened = self._reader.info
            reader = self._reader
            sample = reader.read(slow)
        except GpuLostError as error:
            return Answer(self, self._clock(), self._nothing(str(error)), True, None, opened, handle)
        except nvml.NVMLError as error:
            lost = error.value in (GPU_IS_LOST, RESET_REQUIRED)
            return Answer(self, self._clock(), self._nothing(str(error)), lost, error.value)
        self.errors = reader.calls.errors
        code = None if has_reading(sample) else reader.calls.code
        return Answer(self, self._clock(), sample, False, code, opened, handle)

    def _nothing(self, error: str) -> GpuSample:
        return GpuSample(index=self.index, error=error)
