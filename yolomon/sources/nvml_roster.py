"""Who is who among the GPUs: one index each for as long as we run, and which of them are missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from yolomon.model import GpuInfo
from yolomon.sources.nvml_library import gpus_of_kernel
from yolomon.sources.nvml_worker import GpuWorker


class Roster:
    """All GPUs ever seen, by UUID. A driver reload may change NVML's index; the one told here stays."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._infos: dict[str, GpuInfo] = {}
        self._answered: dict[str, float] = {}  # time of the newest reading
        self._missing_since: dict[str, float] = {}
        self._changed = False

    def book(self, worker: GpuWorker, info: GpuInfo) -> None:
        """Give an opened GPU the index it is known under."""
        placeholder = _placeholder(worker)
        if info.uuid != placeholder:
            self._infos.pop(placeholder, None)  # it had no name until now
            self._missing_since.pop(placeholder, None)
        taken = {known.index for uuid, known in self._infos.items() if uuid != info.uuid}
        known = self._infos.get(info.uuid)
        index = known.index if known else info.index
        if index in taken:
            index = max(taken) + 1
        worker.uuid, worker.shown_index = info.uuid, index
        info = msgspec.structs.replace(info, index=index)
        if known != info:
            self._infos[info.uuid] = info
            self._changed = True
        self._missing_since.pop(info.uuid, None)

    def book_unopened(self, worker: GpuWorker, count: int) -> None:
        """Give a GPU that could not be opened its UUID and name from /proc, where the kernel tells them.

        `count`: how many GPUs NVML lists; with another number in /proc nobody knows which is which.
        """
        if worker.uuid is not None:
            return
        told = gpus_of_kernel(self._root)
        if len(told) == count:
            bus_id, uuid, model = told[worker.index]
            info = GpuInfo(index=worker.index, uuid=uuid, name=model or "GPU", pci_bus_id=bus_id)
        else:
            info = GpuInfo(index=worker.index, uuid=_placeholder(worker), name="GPU")
        self.book(worker, self._infos.get(info.uuid, info))

    def answered(self, worker: GpuWorker, ts: float) -> None:
        """Remember the time of a reading."""
        if worker.uuid is not None:
            self._answered[worker.uuid] = ts

    def missing(self, workers: Sequence[GpuWorker], ts: float) -> dict[int, float]:
        """GPUs seen before that the driver no longer lists: index, and time of the last reading."""
        here = {worker.uuid for worker in workers}
        if None not in here:  # else not all have told yet who they are
            for uuid in self._infos:
                if uuid not in here:
                    self._missing_since.setdefault(uuid, self._answered.get(uuid, ts))
        return {self._infos[uuid].index: since_ts for uuid, since_ts in self._missing_since.items()}

    def news(self) -> tuple[GpuInfo, ...]:
        """All GPUs in the order of their index if anything changed since the last call; else nothing."""
        if not self._changed:
            return ()
        self._changed = False
        return tuple(sorted(self._infos.values(), key=lambda info: info.index))


def _placeholder(worker: GpuWorker) -> str:
    return f"index-{worker.index}"
