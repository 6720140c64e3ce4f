"""A small recording with all that the pages show: processes, slow readings, feature maps."""

from __future__ import annotations

from math import nan

import msgspec

from tests.tui.recordings import GIB, SLOW_RANK, START, Always, StoredFeed, gpu_sample, run
from yolomon.messages import msg
from yolomon.model import (
    GpmSample,
    GpuProcess,
    GpuSample,
    GpuSlow,
    Item,
    ProcessSample,
    Telemetry,
    TrainRecord,
)

LAYERS = ("backbone.2", "backbone.4", "neck.13", "head.cv2.0", "头部.cv3")
EVIL = "python \x1b]0;owned\x07 [red]train.py[/red] --名字 数据"
FINDING = msgspec.structs.replace(
    SLOW_RANK,
    evidence={"busy_percent": 24.0, "step_seconds": 0.49, "step_seconds_before": 0.155, "rank": 1.0},
    unseen=(msg("the process of rank {rank} is not visible", rank=1),),
    explains=("sync-wait",),
)


def slow_sample(index: int, second: float) -> GpuSample:
    """A reading of the slow tier too, with the processes on the GPU."""
    processes = [GpuProcess(pid=1143 + index, memory_used_bytes=38 * GIB)]
    if index == 0:
        processes.append(GpuProcess(pid=777, memory_used_bytes=2 * GIB))
    return gpu_sample(
        index,
        second,
        sm_clock_mhz=1980.0,
        clock_event_reasons=0x4,
        performance_state=0,
        utilization_samples_percent=(31.0, 97.0),
        slow=GpuSlow(
            processes=tuple(processes),
            pcie_tx_kib_per_second=600_000.0,
            pcie_rx_kib_per_second=400_000.0,
            pcie_generation=5,
            pcie_width=16,
            pcie_replays=0,
            ecc_corrected=3,
            ecc_uncorrected=0,
            power_limit_watts=700.0,
        ),
        gpm=GpmSample(sm_active_percent=62.0, tensor_active_percent=21.0, dram_active_percent=33.0),
    )


def processes(second: float) -> tuple[ProcessSample, ...]:
    """A launcher, two ranks, three workers below each, a stranger."""
    found = [
        ProcessSample(pid=1100, parent_pid=1, name="torchrun", rss_bytes=GIB, cpu_seconds=second * 0.01),
        ProcessSample(pid=777, parent_pid=1, name="jupyter", rss_bytes=3 * GIB, cpu_seconds=1.0),
    ]
    for rank in range(2):
        found.append(
            ProcessSample(
                pid=1143 + rank, parent_pid=1100, name="python", command=EVIL, pss_bytes=7 * GIB,
                rss_bytes=9 * GIB, cpu_seconds=second, status="running", rank=rank,
            )
        )  # fmt: skip
        found += [
            ProcessSample(
                pid=1200 + 10 * rank + worker, parent_pid=1143 + rank, name="pt_data_worker",
                rss_bytes=3 * GIB, cpu_seconds=second * (0.2 + 0.1 * worker), status="disk-sleep",
                read_bytes=int(second * 50e6), write_bytes=0,
            )
            for worker in range(3)
        ]  # fmt: skip
    return tuple(found)


def features(second: float, step: int, epoch: int) -> TrainRecord:
    """A sample of every layer; one dies, one explodes, one has NaN."""
    calm = {"mean": 0.1, "std": 1.0, "sparsity": 0.3, "absmax": 8.0, "nonfinite": 0.0}
    layers = {layer: {**calm, "dead_channels": 0.01} for layer in LAYERS}
    layers["backbone.4"]["dead_channels"] = min(0.95, step / 1000)
    layers["neck.13"]["std"] = 1.0 + (step / 100) ** 2
    layers["head.cv2.0"] |= {"nonfinite": 0.001, "absmax": nan}
    return TrainRecord(ts=START + second, kind="features", rank=0, epoch=epoch, step=step, features=layers)


def rich_feed(seconds: int = 120) -> StoredFeed:
    """Two GPUs, one slow; processes and slow readings every 5 s; features every 10."""
    items: list[Item] = []
    for item in run(2, seconds):
        items.append(item)
        if isinstance(item, Telemetry):
            second = item.ts - START
            if second % 5 == 0:
                items[-1] = msgspec.structs.replace(
                    item, gpus=tuple(slow_sample(i, second) for i in range(2)), processes=processes(second)
                )
            if second % 10 == 0:
                items.append(features(second + 0.3, int(second) * 10, 1 + int(second) // 24))
    return StoredFeed(items, [Always(FINDING, START + 70)])
