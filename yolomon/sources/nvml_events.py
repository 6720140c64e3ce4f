"""Xid errors as the driver tells them, in a thread of its own with bounded waits."""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any

from yolomon.model import GpuEvent
from yolomon.sources.base import Clock, Emit

XID_CRITICAL_ERROR = 0x8
TIMEOUT = 10
WAIT_MS = 1000
PAUSE_SECONDS = 5.0
FAILURE_LIMIT = 5
"""So many failures on end mean that this driver tells no events (WSL, some containers): the thread ends."""


class XidWatch:
    """Waits for Xid errors of the GPUs that were added."""

    def __init__(self, nvml: Any, emit: Emit, clock: Clock) -> None:  # noqa: ANN401 - pynvml has no types
        self._nvml = nvml
        self._emit = emit
        self._clock = clock
        self._new: queue.SimpleQueue[tuple[Any, Callable[[], int]]] = queue.SimpleQueue()
        self._index_of: dict[int, Callable[[], int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yolomon-xid", daemon=True)

    def start(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def add(self, handle: Any, index: Callable[[], int]) -> None:  # noqa: ANN401
        """Watch this GPU too. `index` tells the number it is shown under."""
        self._new.put((handle, index))

    def stop(self) -> None:
        """Ask the thread to end; it does within `WAIT_MS`, if the driver keeps its word."""
        self._stop.set()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
        except nvml.NVMLError:
            return
        failures = 0
        while not self._stop.is_set() and failures < FAILURE_LIMIT:
            self._register(events)
            if not self._index_of:
                self._stop.wait(WAIT_MS / 1000)
                continue
            try:
                event = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
            except nvml.NVMLError as error:
                if error.value != TIMEOUT:
                    failures += 1
                    self._stop.wait(PAUSE_SECONDS)
                continue
            failures = 0
            index = self._index_of.get(_address(event.device))
            if event.eventType == XID_CRITICAL_ERROR and index is not None:
                self._emit(GpuEvent(ts=self._clock(), index=index(), xid=int(event.eventData)))
        try:
            nvml.nvmlEventSetFree(events)
        except nvml.NVMLError:
            return  # NVML is gone, and the set with it

    def _register(self, events: Any) -> None:  # noqa: ANN401
        while True:
            try:
                handle, index = self._new.get_nowait()
            except queue.Empty:
                return
            try:
                self._nvml.nvmlDeviceRegisterEvents(handle, XID_CRITICAL_ERROR, events)
            except self._nvml.NVMLError:
                continue  # this GPU tells no events
            self._index_of[_address(handle)] = index


def _address(handle: Any) -> int:  # noqa: ANN401 - a ctypes pointer
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
