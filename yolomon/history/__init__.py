"""The history: telemetry and records on ONE time axis, bounded, with holes where nothing was read."""

from __future__ import annotations

from collections import deque

from yolomon.history.curve import Curve
from yolomon.history.machine import GpuHistory, HostHistory, Processes, ProcessHistory
from yolomon.history.table import Bucket, Table
from yolomon.history.training import RankHistory, TrainHistory
from yolomon.model import (
    CurveBlock,
    GpuEvent,
    GpuInfo,
    Header,
    HostInfo,
    Item,
    LogStatus,
    SourceStatus,
    Telemetry,
    TrainRecord,
)

__all__ = [
    "Bucket", "Curve", "GpuHistory", "History", "HostHistory", "ProcessHistory", "Processes", "RankHistory",
    "Table", "TrainHistory",
]  # fmt: skip


class History:
    """All that was read so far. One owner adds; readers on the same thread look."""

    def __init__(self) -> None:
        self.host_info = HostInfo()
        self.gpus: dict[str, GpuHistory] = {}  # by UUID
        self.uuid_of: dict[int, str] = {}  # NVML index -> UUID
        self.host = HostHistory()
        self.processes = Processes()
        self.train = TrainHistory()
        self.events: deque[GpuEvent] = deque(maxlen=256)
        self.statuses: dict[str, SourceStatus] = {}
        self.first_ts: float | None = None
        self.now_ts: float = 0.0  # the newest time of any item

    def add(self, item: Item) -> None:
        """Take one item."""
        ts = item.ts
        if ts > self.now_ts and not (isinstance(item, TrainRecord) and item.backlog):
            self.now_ts = ts
            if self.first_ts is None:
                self.first_ts = ts
        if isinstance(item, Telemetry):
            for sample in item.gpus:
                self._gpu(sample.index).add(ts, sample)
            if item.host is not None:
                self.host.add(ts, item.host)
            if item.processes is not None:
                self.processes.add(ts, item.processes)
        elif isinstance(item, TrainRecord):
            self.train.add(item)
        elif isinstance(item, CurveBlock):
            self.train.add_block(item)
        elif isinstance(item, LogStatus):
            self.train.logs[item.source] = item
        elif isinstance(item, SourceStatus):
            self.statuses[item.source] = item
        elif isinstance(item, GpuEvent):
            self.events.append(item)
        elif isinstance(item, Header):
            self._add_header(item)

    def gpu(self, index: int) -> GpuHistory | None:
        """The GPU with that NVML index, if it was seen."""
        uuid = self.uuid_of.get(index)
        return None if uuid is None else self.gpus.get(uuid)

    def by_index(self) -> list[GpuHistory]:
        """All GPUs in NVML's order."""
        return sorted(self.gpus.values(), key=lambda gpu: gpu.info.index)

    def _add_header(self, header: Header) -> None:
        if header.host is not None:
            self.host_info = header.host
        for info in header.gpus:
            known = self.gpus.get(info.uuid)
            placeholder = f"index-{info.index}"  # of a GPU that could not tell its UUID until now
            if info.uuid != placeholder:
                unnamed = self.gpus.pop(placeholder, None)
                known = known or unnamed
            if known is None:
                known = GpuHistory(info)
            known.info = info
            self.gpus[info.uuid] = known
            self.uuid_of[info.index] = info.uuid

    def _gpu(self, index: int) -> GpuHistory:
        found = self.gpu(index)
        if found is None:  # a recording without a header
            info = GpuInfo(index=index, uuid=f"index-{index}", name="GPU")
            self._add_header(Header(ts=0.0, gpus=(info,)))
            found = self.gpus[info.uuid]
        return found
