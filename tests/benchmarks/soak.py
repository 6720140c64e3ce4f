"""Ten simulated days through history, diagnosis and screen: memory must end flat.

A machine with 8 GPUs whose trainer's 8 ranks write records is read every 10 seconds of its own time, as fast
as this machine can; loader workers come and go, a GPU is lost now and then, the run is restarted each day,
and the screen is drawn, with another page and another window from time to time. Resident memory is printed
for each day; it may not grow by more than 3 MiB from the sixth day (all buffers are full then) to the last.

    python -m tests.benchmarks.soak [--days 10] [--gpus 8]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from yolomon.diagnosis.engine import Engine
from yolomon.messages import english
from yolomon.model import (
    GpmSample,
    GpuInfo,
    GpuProcess,
    GpuSample,
    GpuSlow,
    Header,
    HostInfo,
    HostSample,
    Item,
    ProcessSample,
    Roles,
    RunInfo,
    Telemetry,
    TrainRecord,
)
from yolomon.monitor import Monitor
from yolomon.settings import Settings
from yolomon.trainlog.discover import Candidate
from yolomon.tui.app import MonitorApp

START = 1_800_000_000.0
STEP_SECONDS = 10.0
DAY_SECONDS = 86_400.0
DRAW_SECONDS = 300.0
EPOCH_SECONDS = 1200.0
GROWTH_LIMIT_MIB = 3.0
GIB = 2**30
KEYS = ("2", "3", "4", "5", "6", "7", "1", "plus", "plus", "minus", "question_mark", "escape")


def items(days: float, gpus: int) -> Iterator[Item]:
    """All that is read, in time's order."""
    chance = random.Random(1)
    yield Header(
        ts=START,
        host=HostInfo(cores=64, memory_total_bytes=512 * GIB),
        gpus=tuple(
            GpuInfo(index=i, uuid=f"GPU-{i}", name="NVIDIA H200", memory_total_bytes=141 * GIB,
                    power_limit_watts=700.0, temperature_slowdown_celsius=90.0)
            for i in range(gpus)
        ),
    )  # fmt: skip
    step = 0
    for tick in range(int(days * DAY_SECONDS / STEP_SECONDS)):
        ts = START + tick * STEP_SECONDS
        of_day, of_epoch = (ts - START) % DAY_SECONDS, (ts - START) % EPOCH_SECONDS
        if of_day == 0:
            step = 0
            run = RunInfo(model="yolo11x.yaml", epochs=72, batch_size=256, world_size=gpus, workers=4)
            for rank in range(gpus):
                yield TrainRecord(
                    ts=ts, kind="start", source="log", rank=rank, pid=1000 + rank, epochs=72, run=run
                )
        yield machine(chance, ts, tick, gpus)
        epoch = 1 + int(of_day // EPOCH_SECONDS)
        step += 40
        for rank in range(gpus):
            loss = 1.0 + chance.random() / 10
            yield TrainRecord(
                ts=ts + 0.5, kind="batch", source="log", rank=rank, epoch=epoch, epochs=72, step=step,
                batch=int(of_epoch / STEP_SECONDS) * 40, batches=4800,
                numbers={"train/box_loss": loss, "train/cls_loss": loss / 2, "lr/pg0": 0.01},
                roles=Roles(loss=1.5 * loss, losses={"train/box_loss": loss, "train/cls_loss": loss / 2},
                            learning_rate=0.01, data_seconds=0.002, step_seconds=0.25, images=32.0,
                            memory_allocated_bytes=40.0 * GIB, memory_reserved_bytes=52.0 * GIB),
            )  # fmt: skip
        if of_epoch == EPOCH_SECONDS - STEP_SECONDS:
            yield TrainRecord(
                ts=ts + 1, kind="epoch", source="log", rank=0, epoch=epoch, epochs=72, step=step,
                roles=Roles(map50_95=0.5 + epoch / 300, map50=0.6, losses={"train/box_loss": 1.0},
                            epoch_seconds=EPOCH_SECONDS),
            )  # fmt: skip


def machine(chance: random.Random, ts: float, tick: int, gpus: int) -> Telemetry:
    """One reading of everything."""
    lost = tick // 4000 % gpus if tick % 4000 > 3970 else None
    first = 10_000 + tick // 120 * gpus  # new loader workers each epoch
    return Telemetry(
        ts=ts,
        gpus=tuple(
            GpuSample(index=i, state="lost", state_since_ts=ts) if i == lost else gpu(chance, i, tick)
            for i in range(gpus)
        ),
        host=HostSample(
            cpu_percent=tuple(chance.uniform(20, 60) for _ in range(64)), iowait_percent=1.0,
            memory_available_bytes=300 * GIB, memory_used_bytes=200 * GIB + tick % 1000 * 2**20,
            memory_total_bytes=512 * GIB, load_average=(20.0, 20.0, 20.0), shm_used_bytes=GIB,
            shm_total_bytes=256 * GIB, disk_read_bytes=tick * 10**9, disk_write_bytes=tick * 10**6,
            disk_free_bytes=900 * GIB, disk_total_bytes=1000 * GIB, net_received_bytes=tick * 10**6,
            net_sent_bytes=tick * 10**5, cpu_temperature_celsius=60.0,
        ),
        processes=tuple(
            [process(1000 + rank, 1, "python", tick) for rank in range(gpus)]
            + [process(first + n, 1000 + n % gpus, "pt_data_worker", tick) for n in range(4 * gpus)]
        ),
    )  # fmt: skip


def gpu(chance: random.Random, index: int, tick: int) -> GpuSample:
    """One GPU at work."""
    busy = min(100.0, chance.gauss(90, 6))
    return GpuSample(
        index=index, utilization_percent=busy, memory_utilization_percent=busy / 2,
        memory_used_bytes=60 * GIB + chance.randrange(2**28), temperature_celsius=60 + busy / 20,
        power_watts=500 + busy, sm_clock_mhz=1900, clock_event_reasons=0,
        utilization_samples_percent=tuple(min(100.0, chance.gauss(busy, 5)) for _ in range(6)),
        slow=GpuSlow(
            processes=(GpuProcess(pid=1000 + index, memory_used_bytes=58 * GIB),),
            energy_joules=tick * 6000.0,
            pcie_tx_kib_per_second=1e6, pcie_rx_kib_per_second=1e6, pcie_generation=5, pcie_width=16,
            pcie_replays=0, ecc_corrected=0, ecc_uncorrected=0, power_limit_watts=700.0, fan_percent=40.0,
        ),
        gpm=GpmSample(graphics_active_percent=busy, sm_active_percent=busy * 0.9, tensor_active_percent=30.0,
                      sm_occupancy_percent=40.0, dram_active_percent=45.0),
    )  # fmt: skip


def process(pid: int, parent: int, name: str, tick: int) -> ProcessSample:
    """A process that uses 2 % of a core."""
    return ProcessSample(
        pid=pid, parent_pid=parent, name=name, rss_bytes=4 * GIB, pss_bytes=3 * GIB, cpu_seconds=tick / 5,
        threads=20, status="running", command="python train.py", read_bytes=tick * 10**6, write_bytes=tick,
    )  # fmt: skip


def resident_mib() -> float:
    """Of this process."""
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 2**20


class WithoutSources(Monitor):
    """The monitor, fed by hand; there are no logs to pick from."""

    needs_choice = False

    def candidates(self) -> Sequence[Candidate]:
        """None."""
        return ()

    def attach(self, paths: Sequence[Path]) -> None:
        """Nothing is followed."""


async def soak(days: float, gpus: int) -> list[float]:
    """Play all days on the screen; resident MiB at the end of each."""
    now = [START]
    feed = WithoutSources([], Engine(), clock=lambda: now[0])
    app = MonitorApp(feed, Settings(), english, timed=False)
    weights: list[float] = []
    keys = 0
    began = time.monotonic()
    async with app.run_test(size=(140, 40)) as pilot:
        drawn, day = START, START
        for item in items(days, gpus):
            feed.emit(item)
            now[0] = max(now[0], item.ts)
            if feed.waiting >= 64:
                feed.drain(10.0)
            if now[0] - drawn >= DRAW_SECONDS:
                drawn = now[0]
                app.redraw()
                await pilot.pause()
                if int((now[0] - START) / DRAW_SECONDS) % 12 == 0:
                    await pilot.press(KEYS[keys % len(KEYS)])
                    keys += 1
            if now[0] - day >= DAY_SECONDS - STEP_SECONDS:
                day += DAY_SECONDS
                weights.append(resident_mib())
                print(
                    f"day {len(weights):3}  {weights[-1]:7.1f} MiB  findings so far "
                    f"{len(feed.all_findings()):4}  {time.monotonic() - began:6.0f} s",
                    flush=True,
                )
    return weights


def main() -> None:
    """Play and judge; exit status 1 where memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=10.0)
    parser.add_argument("--gpus", type=int, default=8)
    arguments = parser.parse_args()
    weights = asyncio.run(soak(arguments.days, arguments.gpus))
    if len(weights) < 7:
        sys.exit("too short to judge: at least 7 days")
    grown = weights[-1] - weights[5]
    met = grown <= GROWTH_LIMIT_MIB
    print(f"grown since day 6: {grown:+.1f} MiB (limit {GROWTH_LIMIT_MIB}): {'met' if met else 'NOT MET'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
