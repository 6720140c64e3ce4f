"""A small stage for the rules: a training job, second by second, in the model's own items."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from yolomon.diagnosis.run_recording import diagnose, run_engine
from yolomon.model import (
    Finding,
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
    RecordKind,
    Roles,
    RunInfo,
    Telemetry,
    TrainRecord,
)

GIB = 2**30
START = 1_700_000_000.0


class Gpu:
    """What one GPU shows; change a field and the following seconds show it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.busy = 90.0
        self.sm = 75.0
        self.tensor = 18.0
        self.power = 550.0
        self.clock = 1960.0
        self.used = 30 * GIB
        self.unowned = 0  # bytes that no process holds
        self.others: list[GpuProcess] = []
        self.idle = False  # no process of the job

    def spin(self) -> None:
        """In a collective: 100 %, no work, hardly any power."""
        self.busy, self.sm, self.tensor, self.power = 100.0, 18.0, 0.0, 123.0

    def rest(self) -> None:
        """No kernel at all."""
        self.busy, self.sm, self.tensor, self.power = 0.0, 0.0, 0.0, 121.0

    def work(self) -> None:
        """As in healthy training."""
        self.busy, self.sm, self.tensor, self.power = 90.0, 75.0, 18.0, 550.0


class Scene:
    """Builds a run. Time goes on with each act."""

    def __init__(
        self,
        ranks: int = 1,
        gpus: int | None = None,
        *,
        step_seconds: float = 0.2,
        gpm: bool = True,
        processes: bool = True,
        logging_ranks: Iterable[int] | None = None,
        run: RunInfo | None = None,
        cores: int = 32,
    ) -> None:
        self.now = START
        self.ranks = ranks
        self.step_seconds = step_seconds
        self.gpm, self.processes = gpm, processes
        self.logging = list(range(ranks)) if logging_ranks is None else list(logging_ranks)
        self.gpus = [Gpu(i) for i in range(gpus if gpus is not None else ranks)]
        for gpu in self.gpus[ranks:]:
            gpu.idle, gpu.used = True, 4 * 2**20
            gpu.rest()
        self.data_share = [0.0] * ranks
        self.allocated = [2 * GIB] * ranks
        self.reserved = [28 * GIB] * ranks
        self.torch = True
        self.loss = 2.0
        self.epoch, self.step, self.batch = 0, 0, 0
        self.batches = 100
        self.run_info = run or RunInfo(epochs=100, batch_size=32 * ranks, workers=8, world_size=ranks)
        self.cpu: dict[int, float] = {self.pid(r): 1.0 for r in range(ranks)}  # cores used, by pid
        self._spent: dict[int, float] = {}
        self.more: list[ProcessSample] = []
        self.dead: set[int] = set()
        self.leak_per_step = [0.0] * ranks
        self.host_cpu = 30.0
        self.items: list[Item] = [
            Header(
                ts=self.now,
                host=HostInfo(cores=cores, memory_total_bytes=256 * GIB),
                gpus=tuple(
                    GpuInfo(
                        index=g.index,
                        uuid=f"GPU-{g.index}",
                        name="NVIDIA H200",
                        memory_total_bytes=140 * GIB,
                        power_limit_watts=700.0,
                        sm_clock_max_mhz=1980,
                    )
                    for g in self.gpus
                ),
            )
        ]

    @staticmethod
    def pid(rank: int) -> int:
        return 1000 + rank

    # ------------------------------------------------------------ acts

    def start(self, seconds: float = 5.0) -> Scene:
        """The run begins; kernels are chosen."""
        self._event("start", run=self.run_info)
        busy = [g.busy for g in self.gpus]
        for gpu in self.gpus:
            gpu.rest()
        self._event("epoch_start", epoch=1)
        self.epoch = 1
        self._tick(seconds)
        for gpu, value in zip(self.gpus, busy, strict=True):
            if not gpu.idle:
                gpu.work()
                gpu.busy = value
        return self

    def train(self, seconds: float, each_second: Callable[[Scene], None] | None = None) -> Scene:
        """Steps for so long; an epoch that is full turns over with a short save."""
        end = self.now + seconds
        while self.now < end - 1e-6:
            if each_second is not None:
                each_second(self)
            second_end = self.now + 1.0
            at = self.now
            while at + self.step_seconds <= second_end + 1e-4:
                at += self.step_seconds
                self._batch(at)
            self.now = second_end if self.step_seconds <= 1 else at
            self._telemetry()
            if self.batch >= self.batches:
                self.turn()
        return self

    def turn(self, validate: float = 0.0, save: float = 2.0) -> Scene:
        """An epoch ends: rank 0 validates and saves, the others spin."""
        self._event("epoch_end")
        states = [(g.busy, g.sm, g.tensor, g.power) for g in self.gpus]
        for gpu in self.gpus[1 : self.ranks]:
            gpu.spin()
        self.gpus[0].rest()
        if validate:
            self._event("val_start", ranks=[0])
            self._tick(validate)
            self._event("val_end", ranks=[0])
        self._tick(save)
        self._event("checkpoint", ranks=[0])
        self._event("epoch", roles=Roles(map50_95=0.1 + 0.001 * self.epoch))
        for gpu, state in zip(self.gpus, states, strict=True):
            gpu.busy, gpu.sm, gpu.tensor, gpu.power = state
        self.epoch += 1
        self.batch = 0
        self._event("epoch_start")
        return self

    def wait(self, seconds: float) -> Scene:
        """Time goes by without a step."""
        self._tick(seconds)
        return self

    def end(self) -> Scene:
        self._event("end")
        return self

    # ------------------------------------------------------------ what came of it

    def findings(self, **kwargs: object) -> list[Finding]:
        return diagnose(self.items, **kwargs)  # type: ignore[arg-type]

    def engine(self):  # type: ignore[no-untyped-def]  # noqa: ANN201
        return run_engine(self.items)

    def said(self, *codes: str) -> list[tuple[str, str, str]]:
        """(code, target, severity) of the findings with these codes; of all without."""
        return [(f.code, f.target, f.severity) for f in self.findings() if not codes or f.code in codes]

    # ------------------------------------------------------------ making items

    def _tick(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now += 1.0
            self._telemetry()

    def _event(
        self,
        kind: RecordKind,
        *,
        epoch: int | None = None,
        run: RunInfo | None = None,
        roles: Roles | None = None,
        ranks: list[int] | None = None,
        text: str = "",
    ) -> None:
        for rank in self.logging:
            if ranks is None or rank in ranks:
                self.items.append(
                    TrainRecord(
                        ts=self.now,
                        kind=kind,
                        rank=rank,
                        pid=self.pid(rank),
                        epoch=epoch or self.epoch or None,
                        epochs=self.run_info.epochs,
                        run=run,
                        roles=roles or Roles(),
                        text=text,
                    )
                )

    def message(self, text: str) -> Scene:
        self._event("message", text=text)
        return self

    def _batch(self, ts: float) -> None:
        self.step += 1
        self.batch += 1
        for rank in range(self.ranks):
            self.allocated[rank] += int(self.leak_per_step[rank])
            self.gpus[rank].used += int(self.leak_per_step[rank])
        for rank in self.logging:
            swing = 150 * 2**20 if self.step % 2 else 0
            self.items.append(
                TrainRecord(
                    ts=ts,
                    kind="batch",
                    rank=rank,
                    pid=self.pid(rank),
                    epoch=self.epoch,
                    epochs=self.run_info.epochs,
                    step=self.step,
                    batch=self.batch,
                    batches=self.batches,
                    roles=Roles(
                        loss=self.loss,
                        losses={"box_loss": self.loss},
                        data_seconds=self.data_share[rank] * self.step_seconds,
                        step_seconds=self.step_seconds,
                        memory_allocated_bytes=self.allocated[rank] + swing if self.torch else None,
                        memory_reserved_bytes=self.reserved[rank] if self.torch else None,
                        memory_peak_bytes=self.reserved[rank] if self.torch else None,
                    ),
                )
            )

    def _telemetry(self) -> None:
        rows = []
        for gpu in self.gpus:
            own = (
                ()
                if gpu.idle or self.pid(gpu.index) in self.dead
                else (GpuProcess(pid=self.pid(gpu.index), memory_used_bytes=gpu.used),)
            )
            used = sum(p.memory_used_bytes or 0 for p in (*own, *gpu.others)) + gpu.unowned
            if not own:
                used += 4 * 2**20
            listed = (*own, *gpu.others) if self.processes else ()
            rows.append(
                GpuSample(
                    index=gpu.index,
                    utilization_percent=gpu.busy,
                    memory_used_bytes=used,
                    power_watts=gpu.power,
                    sm_clock_mhz=gpu.clock,
                    temperature_celsius=60.0,
                    clock_event_reasons=4,
                    slow=GpuSlow(processes=listed),
                    gpm=GpmSample(
                        graphics_active_percent=gpu.busy,
                        sm_active_percent=gpu.sm,
                        tensor_active_percent=gpu.tensor,
                        nvlink_tx_mib_per_second=0.0,
                    )
                    if self.gpm
                    else None,
                )
            )
        table: tuple[ProcessSample, ...] | None = None
        if self.processes:
            for pid, cores in self.cpu.items():
                self._spent[pid] = self._spent.get(pid, 10.0) + cores
            launcher = ProcessSample(pid=900, parent_pid=800, name="torchrun", cpu_seconds=1.0)
            ranks = [
                ProcessSample(
                    pid=self.pid(r),
                    parent_pid=900,
                    name="python3",
                    cpu_seconds=self._spent[self.pid(r)],
                    rss_bytes=8 * GIB,
                )
                for r in range(self.ranks)
                if self.pid(r) not in self.dead
            ]
            more = [
                ProcessSample(
                    pid=p.pid,
                    parent_pid=p.parent_pid,
                    name=p.name,
                    user=p.user,
                    status=p.status,
                    cpu_seconds=self._spent.get(p.pid, 10.0),
                    rss_bytes=p.rss_bytes,
                )
                for p in self.more
            ]
            table = (launcher, *ranks, *more)
        self.items.append(
            Telemetry(
                ts=self.now - 0.05,
                gpus=tuple(rows),
                host=HostSample(
                    cpu_percent=(self.host_cpu,) * 32,
                    memory_available_bytes=200 * GIB,
                    memory_used_bytes=50 * GIB,
                    memory_total_bytes=256 * GIB,
                    iowait_percent=0.0,
                ),
                processes=table,
            )
        )
