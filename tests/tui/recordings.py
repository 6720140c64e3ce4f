"""Small recordings for the screen's tests, and a feed that holds one. Times are fixed, pictures are too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sin
from pathlib import Path

from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.rules.base import Claim, Rule, View
from yolomon.messages import msg
from yolomon.model import (
    Finding,
    GpuInfo,
    GpuSample,
    Header,
    HostInfo,
    HostSample,
    Item,
    Roles,
    RunInfo,
    Telemetry,
    TrainRecord,
)
from yolomon.trainlog.discover import Candidate
from yolomon.tui.feed import Playback

START = 1_800_000_000.0
GIB = 2**30
SLOW_RANK = Claim(
    code="load-imbalance",
    target="gpu1",
    severity="warning",
    onset_ts=START + 60,
    summary=msg("GPU {gpu} holds the others back: it works {busy} % of the time", gpu=1, busy=24),
    cause=msg("rank {rank} does something outside the GPU in every step", rank=1),
    remedy=msg("see what it does: py-spy dump --pid {pid}", pid=1144),
    signals=("utilization_percent",),
)


class Always:
    """A rule that claims the same from a moment on: the screen is drawn from real findings of the engine."""

    codes = ("load-imbalance",)

    def __init__(self, claim: Claim, from_ts: float) -> None:
        self._claim, self._from_ts = claim, from_ts

    def observe(self, item: Item, view: View) -> None:
        """Nothing to remember."""

    def check(self, view: View) -> Iterable[Claim]:
        """The claim, once its time has come."""
        return [self._claim] if view.now_ts >= self._from_ts else []


class StoredFeed:
    """A feed of items that were read before; nothing comes any more."""

    def __init__(self, items: Iterable[Item], rules: Iterable[Rule] = (), *, demo: bool = False) -> None:
        self.engine = Engine(rules=list(rules))
        self.demo = demo
        self.replay: Playback | None = None
        self.later: list[Item] = []
        self.found: list[Candidate] = []
        self.attached: tuple[Path, ...] = ()
        for item in items:
            self.engine.observe(item)

    def drain(self, budget_seconds: float = 0.02) -> bool:
        """What a test has put aside for later comes all at once."""
        items, self.later = self.later, []
        for item in items:
            self.engine.observe(item)
        return bool(items)

    def clock(self) -> float:
        """The newest item's time."""
        return self.engine.history.now_ts

    def findings(self) -> list[Finding]:
        """What stands."""
        return self.engine.findings()

    def all_findings(self) -> list[Finding]:
        """All that was said."""
        return self.engine.all_findings()

    @property
    def needs_choice(self) -> bool:
        """No log is missing."""
        return False

    def candidates(self) -> list[Candidate]:
        """What a test put there."""
        return self.found

    def attach(self, paths: Sequence[Path]) -> None:
        """Remember what was chosen."""
        self.attached = tuple(paths)

    def silence(self, code: str, target: str) -> None:
        """Say it no more."""
        self.engine.silence(code, target)

    def own_cost(self) -> tuple[float, int]:
        """A fixed cost."""
        return 1.1, 47 * 2**20


def header(gpus: int) -> Header:
    """GPUs of one kind on a host."""
    infos = tuple(
        GpuInfo(
            index=i,
            uuid=f"GPU-{i:04}",
            name="NVIDIA H200",
            memory_total_bytes=140 * GIB,
            power_limit_watts=700.0,
            temperature_slowdown_celsius=89.0,
        )
        for i in range(gpus)
    )
    return Header(ts=START, host=HostInfo(cores=32, memory_total_bytes=251 * GIB), gpus=infos)


def gpu_sample(index: int, second: float, **changes: object) -> GpuSample:
    """A GPU at work; a slow wave keeps the graphs from being flat."""
    wave = sin(second / 7 + index)
    values: dict[str, object] = {
        "index": index,
        "utilization_percent": round(88 + 10 * wave),
        "memory_utilization_percent": round(40 + 5 * wave),
        "memory_used_bytes": int((39 + index % 5) * GIB),
        "temperature_celsius": round(52 + 3 * wave),
        "power_watts": round(540 + 40 * wave),
    }
    return GpuSample(**(values | changes))  # type: ignore[arg-type]


def sample(gpus: int, second: float, samples: tuple[GpuSample, ...] | None = None) -> Telemetry:
    """One reading of everything."""
    return Telemetry(
        ts=START + second,
        gpus=tuple(gpu_sample(i, second) for i in range(gpus)) if samples is None else samples,
        host=HostSample(
            cpu_percent=tuple(20 + 10 * sin(second / 9 + core) for core in range(32)),
            memory_used_bytes=38 * GIB,
            memory_total_bytes=251 * GIB,
            shm_used_bytes=1 * GIB,
            shm_total_bytes=125 * GIB,
            disk_read_bytes=int(second * 120e6),
            disk_write_bytes=0,
            net_received_bytes=int(second * 2e6),
            net_sent_bytes=0,
            disk_free_bytes=900 * GIB,
            disk_total_bytes=2000 * GIB,
            load_average=(14.2, 13.0, 12.0),
        ),
    )


def batch(second: float, epoch: int, number: int, **roles: object) -> TrainRecord:
    """A batch of rank 0."""
    fall = 1 / (1 + epoch + number / 24)
    losses = {"train/box_loss": 0.6 + fall, "train/cls_loss": 0.5 + 2 * fall, "train/dfl_loss": 1.2 + fall}
    values: dict[str, object] = {
        "loss": sum(losses.values()),
        "losses": losses,
        "learning_rate": 0.0014,
        "step_seconds": 0.155,
        "data_seconds": 0.001,
        "images": 64.0,
    }
    return TrainRecord(
        ts=START + second, kind="batch", rank=0, pid=1143, epoch=epoch, epochs=100, batch=number, batches=24,
        step=(epoch - 1) * 24 + number,
        roles=Roles(**(values | roles)),  # type: ignore[arg-type]
    )  # fmt: skip


def run(gpus: int, seconds: int = 120) -> list[Item]:
    """A healthy run: a batch a second, 24 an epoch, mAP that rises."""
    items: list[Item] = [
        header(gpus),
        TrainRecord(
            ts=START,
            kind="start",
            rank=0,
            pid=1143,
            epochs=100,
            run=RunInfo(
                model="yolo11x.pt",
                epochs=100, batch_size=64, image_size=640, workers=12, world_size=max(1, gpus),
                save_directory="runs/detect/train-3",
            ),
        ),
    ]  # fmt: skip
    for second in range(1, seconds + 1):
        items.append(sample(gpus, second))
        epoch, number = 1 + second // 24, second % 24 + 1
        items.append(batch(second + 0.1, epoch, number))
        if number == 24:
            metrics = Roles(map50=1 - 0.5 / epoch, map50_95=0.9 - 0.5 / epoch)
            items.append(
                TrainRecord(
                    ts=START + second + 0.2, kind="epoch", rank=0, epoch=epoch, epochs=100, roles=metrics
                )
            )
    return items


def slow_rank(gpus: int = 2, seconds: int = 120) -> StoredFeed:
    """A run in which GPU 1 is the slow one from second 60 on, and GPU 0 waits for it."""
    items = run(gpus, 60)
    for second in range(61, seconds + 1):
        samples = tuple(
            gpu_sample(
                i,
                second,
                utilization_percent=24 if i == 1 else 100,
                memory_utilization_percent=9 if i == 1 else 0,
                power_watts=230,
            )
            for i in range(gpus)
        )
        items.append(sample(gpus, second, samples))
        items.append(batch(second + 0.1, 1 + second // 24, second % 24 + 1, step_seconds=0.49))
    return StoredFeed(items, [Always(SLOW_RANK, START + 70)])
