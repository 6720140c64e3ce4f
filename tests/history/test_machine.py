"""GPUs, host and processes over time."""

from __future__ import annotations

from yolomon.history import History
from yolomon.model import (
    GpmSample,
    GpuInfo,
    GpuSample,
    GpuSlow,
    Header,
    HostSample,
    ProcessSample,
    Telemetry,
)


def with_gpus(count: int) -> History:
    history = History()
    infos = tuple(GpuInfo(index=i, uuid=f"GPU-{i}", name="H200") for i in range(count))
    history.add(Header(ts=100.0, gpus=infos))
    return history


def gpu_at(history: History, ts: float, sample: GpuSample) -> None:
    history.add(Telemetry(ts=ts, gpus=(sample,)))


def test_a_stall_between_two_reads_is_in_the_minimum() -> None:
    history = with_gpus(1)
    gpu_at(
        history,
        101,
        GpuSample(index=0, utilization_percent=95.0, utilization_samples_percent=(96.0, 3.0, 94.0)),
    )
    gpu = history.gpu(0)
    assert gpu is not None
    assert gpu.fast.latest("utilization_min_percent") == (101, 3.0)
    assert gpu.fast.latest("utilization_max_percent") == (101, 96.0)


def test_slow_values_keep_their_own_age() -> None:
    history = with_gpus(1)
    gpu_at(
        history, 101, GpuSample(index=0, slow=GpuSlow(pcie_width=16), gpm=GpmSample(sm_active_percent=40.0))
    )
    gpu_at(history, 102, GpuSample(index=0, power_watts=100.0))
    gpu = history.gpu(0)
    assert gpu is not None
    assert (gpu.slow_ts, gpu.sample_ts) == (101, 102)
    assert gpu.slow_table.latest("sm_active_percent") == (101, 40.0)


def test_a_lost_gpu_leaves_a_hole_and_the_time_of_its_last_answer() -> None:
    history = with_gpus(2)
    for ts in (101, 102):
        gpu_at(history, ts, GpuSample(index=1, power_watts=300.0))
    gpu_at(history, 103, GpuSample(index=1, state="lost", state_since_ts=102.5))
    gpu = history.gpu(1)
    assert gpu is not None
    assert gpu.answer_ts == 102
    assert gpu.fast.rows(102, 103, "power_watts") == [(102, 300.0), (103, None)]


def test_a_gpu_is_its_uuid_also_when_the_index_moves() -> None:
    history = with_gpus(2)
    gpu_at(history, 101, GpuSample(index=1, power_watts=300.0))
    swapped = (GpuInfo(index=0, uuid="GPU-1", name="H200"), GpuInfo(index=1, uuid="GPU-0", name="H200"))
    history.add(Header(ts=102, gpus=swapped))
    gpu = history.gpu(0)
    assert gpu is not None
    assert gpu.fast.latest("power_watts") == (101, 300.0)


def test_a_recording_without_a_header_is_still_drawn() -> None:
    history = History()
    gpu_at(history, 1, GpuSample(index=3, power_watts=50.0))
    assert [gpu.info.index for gpu in history.by_index()] == [3]


def test_counters_become_rates_and_one_that_went_back_becomes_a_hole() -> None:
    history = History()
    for ts, read in ((1.0, 1000), (2.0, 3000), (3.0, 500)):
        history.add(Telemetry(ts=ts, host=HostSample(disk_read_bytes=read)))
    rates = history.host.table.rows(1, 3, "disk_read_bytes_per_second")
    assert [rate for _, rate in rates] == [None, 2000.0, None]


def test_a_process_has_its_share_of_a_core_and_a_reused_pid_starts_anew() -> None:
    history = History()
    for ts, cpu, started in ((10.0, 5.0, 1.0), (12.0, 7.0, 1.0), (14.0, 0.1, 13.0)):
        worker = ProcessSample(pid=7, cpu_seconds=cpu, rss_bytes=10, started_ts=started)
        history.add(Telemetry(ts=ts, processes=(worker,)))
        if ts == 12.0:
            assert history.processes.by_pid[7].points[-1].cpu_percent == 100.0
    assert len(history.processes.by_pid[7].points) == 1


def test_processes_that_are_gone_are_kept_for_a_while_and_then_dropped() -> None:
    history = History()
    history.add(Telemetry(ts=10.0, processes=(ProcessSample(pid=7), ProcessSample(pid=8))))
    history.add(Telemetry(ts=20.0, processes=(ProcessSample(pid=8),)))
    assert [p.sample.pid for p in history.processes.alive()] == [8]
    assert 7 in history.processes.by_pid
    history.add(Telemetry(ts=200.0, processes=(ProcessSample(pid=8),)))
    assert 7 not in history.processes.by_pid
