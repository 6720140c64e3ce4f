"""The instances of a GPU that MIG divides: the whole has no utilization then, so each part is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yolomon.model import MigInstance
from yolomon.sources.nvml_calls import GpuCalls
from yolomon.sources.nvml_gpm import Gpm

INSTANCE_LIMIT = 16

Text = Callable[[str, Any], str | None]


class MigReader:
    """Reads the instances anew each time, since an administrator may divide the GPU otherwise at any time."""

    def __init__(self, calls: GpuCalls, text: Text, steady: Callable[[], float]) -> None:
        self._calls = calls
        self._text = text
        self._steady = steady
        self._gpm: dict[str, Gpm] = {}  # by the instance's UUID

    def read(self) -> tuple[MigInstance, ...]:
        """The instances in NVML's order.

        Raises:
            GpuLostError: the GPU is lost.
        """
        count = min(self._calls.ask("nvmlDeviceGetMaxMigDeviceCount") or 0, INSTANCE_LIMIT)
        found = []
        for position in range(count):
            handle = self._handle(position)
            if handle:
                instance = self._instance(handle)
                if instance is not None:
                    found.append(instance)
        for uuid in set(self._gpm) - {instance.uuid for instance in found}:
            self._gpm.pop(uuid).close()
        return tuple(found)

    def _handle(self, position: int) -> Any:  # noqa: ANN401 - pynvml has no types
        nvml = self._calls.nvml
        try:
            return nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._calls.handle, position)
        except nvml.NVMLError as error:  # NOT_FOUND: no instance at this place
            self._calls.note(("nvmlDeviceGetMigDeviceHandleByIndex",), error)
            return None

    def _instance(self, handle: Any) -> MigInstance | None:  # noqa: ANN401
        nvml = self._calls.nvml
        uuid = self._text("nvmlDeviceGetUUID", handle)
        try:
            number = int(nvml.nvmlDeviceGetGpuInstanceId(handle))
        except nvml.NVMLError as error:
            self._calls.note(("nvmlDeviceGetGpuInstanceId",), error)
            return None
        if uuid is None:
            return None
        gpm = self._gpm.get(uuid)
        if gpm is None:
            gpm = self._gpm[uuid] = Gpm(self._calls, self._steady, number)
        memory = None
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError as error:
            self._calls.note(("nvmlDeviceGetMemoryInfo", "MIG"), error)
        return MigInstance(
            uuid=uuid,
            name=self._text("nvmlDeviceGetName", handle) or "MIG",
            gpu_instance=number,
            memory_total_bytes=None if memory is None else int(memory.total),
            memory_used_bytes=None if memory is None else int(memory.used),
            gpm=gpm.read(),
        )

    def close(self) -> None:
        """Give back what NVML allocated."""
        for gpm in self._gpm.values():
            gpm.close()
        self._gpm.clear()
