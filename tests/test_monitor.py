"""What runs behind the screen: readers' threads on one side, one owner on the other."""

from __future__ import annotations

import threading
import time

import yolomon.monitor as monitor_module
from yolomon.diagnosis.engine import Engine
from yolomon.model import (
    Finding,
    GpuInfo,
    GpuProcess,
    GpuSample,
    GpuSlow,
    Header,
    Item,
    Roles,
    SourceStatus,
    Telemetry,
    TrainRecord,
)
from yolomon.monitor import QUEUE_LIMIT, Monitor


def reading(ts: float, *pids: int) -> Telemetry:
    slow = GpuSlow(processes=tuple(GpuProcess(pid=pid) for pid in pids))
    return Telemetry(ts=ts, gpus=(GpuSample(index=0, utilization_percent=50.0, slow=slow),))


def test_what_was_emitted_is_in_the_history_after_draining() -> None:
    monitor = Monitor([], Engine())
    assert not monitor.drain()
    monitor.emit(Header(ts=1.0, gpus=(GpuInfo(index=0, uuid="GPU-a", name="H200"),)))
    monitor.emit(reading(2.0))
    assert monitor.drain()
    assert monitor.history.now_ts == 2.0
    assert monitor.waiting == 0


def test_a_full_queue_drops_telemetry_and_counts_it_but_keeps_records() -> None:
    monitor = Monitor([], Engine())
    for second in range(QUEUE_LIMIT):
        monitor.emit(reading(float(second)))
    monitor.emit(reading(1e9))
    assert monitor.dropped == 1
    record = TrainRecord(ts=1.0, kind="batch", step=1)
    writer = threading.Thread(target=monitor.emit, args=(record,), daemon=True)
    writer.start()
    writer.join(0.1)
    assert writer.is_alive()  # the log's thread waits; its file keeps what comes
    while monitor.waiting:
        monitor.drain(1.0)
    writer.join(2.0)
    assert not writer.is_alive()
    monitor.drain()
    assert monitor.history.train.step == 1


def test_a_waiting_log_thread_ends_when_the_monitor_stops() -> None:
    monitor = Monitor([], Engine())
    for second in range(QUEUE_LIMIT):
        monitor.emit(reading(float(second)))
    writer = threading.Thread(target=monitor.emit, args=(TrainRecord(ts=1.0, kind="batch"),), daemon=True)
    writer.start()
    monitor.stop()
    writer.join(2.0)
    assert not writer.is_alive()


def test_draining_keeps_to_its_budget() -> None:
    monitor = Monitor([], Engine())
    for second in range(5000):
        monitor.emit(reading(float(second)))
    start = time.perf_counter()
    monitor.drain(0.005)
    assert time.perf_counter() - start < 0.5
    assert monitor.waiting > 0


def test_pids_on_a_gpu_are_told_once_each() -> None:
    told: list[set[int]] = []
    monitor = Monitor([], Engine(), on_pids=lambda pids: told.append(set(pids)))
    monitor.emit(reading(1.0, 7))
    monitor.emit(reading(2.0, 7))
    monitor.drain()
    monitor.emit(reading(3.0, 7, 8))
    monitor.drain()
    monitor.emit(reading(4.0, 8))
    monitor.drain()
    assert told == [{7}, {7, 8}]


class Taken:
    """A tap that keeps what it is given."""

    def __init__(self) -> None:
        self.items: list[Item | Finding] = []

    def add(self, item: Item | Finding) -> None:
        self.items.append(item)


def test_a_recorder_sees_items_and_each_change_of_a_finding_once() -> None:
    tap = Taken()
    monitor = Monitor([], Engine(), taps=[tap])
    status = SourceStatus(ts=1.0, source="nvml", ok=True)
    monitor.emit(status)
    for step in range(1, 30):
        loss = float("nan") if step > 20 else 1.0
        monitor.emit(TrainRecord(ts=100.0 + step, kind="batch", epoch=1, step=step, roles=Roles(loss=loss)))
    monitor.drain(1.0)
    monitor.drain(1.0)
    assert tap.items[0] == status
    findings = [item for item in tap.items if isinstance(item, Finding)]
    assert {finding.code for finding in findings} == {"nan-loss"}
    assert len(findings) == len(set(map(repr, findings)))


def test_its_own_cost_is_known_and_not_measured_at_each_frame() -> None:
    monitor = Monitor([], Engine())
    percent, resident = monitor.own_cost()
    assert percent == 0.0
    assert resident > 1_000_000
    assert monitor.own_cost() is monitor.own_cost()
    assert monitor_module.QUEUE_LIMIT == QUEUE_LIMIT
