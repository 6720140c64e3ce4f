"""A run told act by act: steps, validations, pauses, what memory and processes do, what the log says.

The states of GPUs over time are the simulator's (`simulate.Timeline`), and so is what a reader sees of them.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from tests.synthetic.labelled import Labelled, Truth
from tests.synthetic.plan import GIB, Plan
from tests.synthetic.readings import _Reader, header
from tests.synthetic.simulate import EPOCH_0, Course, Timeline, pid_of
from yolomon.model import GpuSample, Item, ProcessSample, RecordKind, Roles, RunInfo, TrainRecord
from yolomon.sources.recording import merge_by_time

Tells = Literal["events", "steps", "epochs"]
EVENTS = ("epoch_start", "epoch_end", "val_start", "val_end", "checkpoint")


class Script:
    """Acts of a run, one after the other; `now` is seconds since its first reading.

    Args:
        plan: machine and run; its `fault`, epochs and validations are not used.
        tells: "events" of the own stream, "steps" and epoch rows alone, or "epochs" alone.
    """

    def __init__(self, plan: Plan, tells: Tells = "events") -> None:
        self.plan, self.tells = plan, tells
        self.now = 0.0
        self.course = Course(plan, [Timeline() for _ in range(plan.ranks)], [])
        self.epoch = self.step = self.batch = 0
        self.torch = True  # whether the log tells torch's numbers
        self.gone_ts: dict[int, float] = {}  # rank -> when its process was gone
        self._memory: list[tuple[float, int, float]] = [(0.0, rank, 0.0) for rank in range(plan.ranks)]
        self._cpu: list[tuple[float, float, float]] = [(0.0, 0.7, 0.3)]
        self.changes: list[Callable[[GpuSample, float], GpuSample]] = []
        self.more: list[Callable[[float], ProcessSample | None]] = []
        self.host_used: Callable[[float], float] | None = None
        self.data_seconds = plan.data_seconds
        self.loss = 2.0

    # ------------------------------------------------------------ acts

    def start(self, seconds: float = 10.0, **run: object) -> Script:
        """The processes come up, the log's first words are said, the first batch is loaded."""
        self.held(0.02)
        info = RunInfo(
            model="yolo11m.yaml", epochs=self.plan.epochs, workers=self.plan.workers,
            world_size=self.plan.ranks,
            batch_size=float(self.plan.batch_size * self.plan.ranks), image_size=640,
        )  # fmt: skip
        self.say("start", run=msgspec.structs.replace(info, **run))  # type: ignore[arg-type]
        self.rest(seconds)
        self.held(self.plan.memory_share)
        return self

    def held(self, share: float, rank: int | None = None) -> Script:
        """From now on a rank (or all) holds so much of its GPU's memory."""
        for number in range(self.plan.ranks) if rank is None else [rank]:
            self._memory.append((self.now, number, share))
        return self

    def cpu(self, trainer: float, workers: float = 0.0) -> Script:
        """From now on the trainers' and each worker's load, in cores."""
        self._cpu.append((self.now, trainer, workers))
        return self

    def steps(
        self,
        count: int,
        seconds: float | None = None,
        *,
        delays: Mapping[int, float] | None = None,
        every: int = 1,
        busy: float = 1.0,
        noise: float | None = None,
        size: float | None = None,
    ) -> Script:
        """Steps of an epoch: `delays` is what a rank does outside its GPU in them, `every` what is logged."""

        plan = self.plan
        rng = random.Random(plan.seed * 7919 + self.step)
        late = dict(delays or {})
        for _ in range(count):
            begin = self.now
            spread = plan.step_noise if noise is None else noise
            compute = (seconds or plan.step_seconds) * max(rng.gauss(1, spread), 0.2)
            data = self.data_seconds * rng.uniform(0.5, 1.5)
            end = begin + data + compute + max(late.values(), default=0.0)
            for rank, line in enumerate(self.course.timelines):
                line.put(begin, "idle")
                from_ts = begin + data + late.get(rank, 0.0)
                if busy < 1:
                    parts = max(int(compute / 0.2), 1)
                    for part in range(parts):
                        line.put(from_ts + part * compute / parts, "compute")
                        line.put(from_ts + (part + busy) * compute / parts, "idle")
                else:
                    line.put(from_ts, "compute")
                if from_ts + compute < end - 1e-6:
                    line.put(from_ts + compute, "spin")
            self.now = end
            self.step += 1
            self.batch += 1
            self.course.step_ends.append(end)
            if self.batch % every == 0 and self.tells != "epochs":
                held = self._share(0, end) * plan.gpu.memory_bytes
                self.say(
                    "batch",
                    step=self.step,
                    batch=self.batch,
                    batches=plan.batches,
                    roles=Roles(
                        loss=self.loss * rng.gauss(1, 0.03), losses={"train/box_loss": self.loss},
                        learning_rate=0.01, images=float(plan.batch_size), image_size=size,
                        step_seconds=(end - begin) if plan.data_time else None,
                        data_seconds=data if plan.data_time else None,
                        memory_allocated_bytes=0.3 * held if self.torch else None,
                        memory_reserved_bytes=0.95 * held if self.torch else None,
                        memory_peak_bytes=0.9 * held if self.torch else None,
                    ),
                )  # fmt: skip
        return self

    def begin_epoch(self) -> Script:
        self.epoch += 1
        self.batch = 0
        return self.say("epoch_start")

    def end_epoch(
        self,
        validation: float = 4.0,
        save: float = 1.0,
        *,
        state: str = "mixed",
        peers: str = "spin",
        told: bool = True,
        map50: float | None = None,
        memory: float | None = None,
    ) -> Script:
        """Validation of rank 0 (told or not), its row, a checkpoint."""
        self.say("epoch_end")
        if validation:
            if told:
                self.say("val_start", ranks=[0])
            before = self._share(0, self.now)
            if memory is not None:
                self.held(memory, 0)
            self.rest(validation, {0: state, **dict.fromkeys(range(1, self.plan.ranks), peers)})
            if memory is not None:
                self.held(before, 0)
            if told:
                self.say("val_end", ranks=[0])
        if save:
            self.rest(save, dict.fromkeys(range(1, self.plan.ranks), peers))
        value = 0.9 * (1 - 0.95 ** (self.epoch + 1)) if map50 is None else map50
        self.say("epoch", ranks=[0], roles=Roles(map50=value, map50_95=0.7 * value, fitness=0.7 * value))
        return self.say("checkpoint", ranks=[0])

    def epochs(self, count: int, batches: int | None = None, **end: object) -> Script:
        """Whole healthy epochs."""
        for _ in range(count):
            self.begin_epoch().steps(batches or self.plan.batches).end_epoch(**end)  # type: ignore[arg-type]
        return self

    def rest(self, seconds: float, states: Mapping[int, str] | None = None) -> Script:
        """Time goes by: each GPU in a state, "mixed" is work with gaps, idle unless told."""
        for rank, line in enumerate(self.course.timelines):
            state = (states or {}).get(rank, "idle")
            if state == "mixed":
                count = max(int(seconds), 1)
                for part in range(count):
                    line.put(self.now + part * seconds / count, "compute")
                    line.put(self.now + (part + 0.6) * seconds / count, "idle")
            else:
                line.put(self.now, state)
        self.now += seconds
        return self

    def all_in(self, seconds: float, state: str) -> Script:
        return self.rest(seconds, dict.fromkeys(range(self.plan.ranks), state))

    def gone(self, rank: int | None = None) -> Script:
        """The processes (or one) are gone from here on, their memory with them."""
        for number in range(self.plan.ranks) if rank is None else [rank]:
            self.course.timelines[number].put(self.now, "idle")
            self.gone_ts[number] = self.now
            self.held(0.0, number)
        return self

    def say(self, kind: RecordKind, *, ranks: list[int] | None = None, **more: object) -> Script:
        """One record of each rank that logs."""
        plan = self.plan
        if (self.tells != "events" and kind in EVENTS) or (self.tells == "epochs" and kind == "batch"):
            return self
        for rank in range(plan.ranks if plan.rank_logs else 1):
            if ranks is not None and rank not in ranks:
                continue
            ts = EPOCH_0 + self.now + 0.0001 * rank
            self.course.records.append(
                TrainRecord(
                    ts=ts, own_ts=ts, kind=kind, source=f"train.rank{rank}.jsonl", rank=rank,
                    pid=pid_of(rank) if plan.processes else None, epoch=self.epoch or None,
                    epochs=plan.epochs, **more,
                )
            )  # type: ignore[arg-type]  # fmt: skip
        return self

    def message(self, text: str) -> Script:
        return self.say("message", ranks=[0], text=text)

    # ------------------------------------------------------------ what came of it

    def label(self, name: str, *truths: Truth, allowed: tuple[str, ...] = ()) -> Labelled:
        """All of it in time's order, with what is wrong in it (nothing unless told)."""
        reader = _ScriptReader(self)
        records = sorted(self.course.records, key=lambda record: record.ts)
        items: list[Item] = [header(self.plan), *merge_by_time(reader.readings(), records)]
        return Labelled(name, items, list(truths), frozenset(allowed))

    def truth(self, code: str, target: str, at: float, deadline: float) -> Truth:
        return Truth(code, target, EPOCH_0 + at, deadline)

    def _share(self, rank: int, now: float) -> float:
        return next((s for ts, r, s in reversed(self._memory) if r == rank and ts <= now + 1e-9), 0.0)

    def _loads(self, now: float) -> tuple[float, float]:
        place = bisect_right(self._cpu, now, key=lambda row: row[0]) - 1
        return self._cpu[place][1], self._cpu[place][2]


class _ScriptReader(_Reader):
    """The simulator's reader with memory, processes and changes of the script."""

    def __init__(self, script: Script) -> None:
        plan = msgspec.structs.replace(script.plan, seconds=script.now, fault="", start_seconds=0.0)
        course = script.course
        course.plan = plan
        super().__init__(course)
        self.script = script
        self.by_rank = {
            rank: [(ts, s) for ts, r, s in script._memory if r == rank] for rank in range(plan.ranks)
        }

    def readings(self) -> list[Item]:
        return list(self.all())

    def memory(self, index: int, now: float) -> float:
        if index >= self.plan.ranks:
            return 0.4 * self.plan.gpu.memory_bytes if self.plan.busy_spare else 1e6
        rows = self.by_rank[index]
        place = bisect_right(rows, now, key=lambda row: row[0]) - 1
        return rows[place][1] * self.plan.gpu.memory_bytes + 1e6

    def gpu(self, index: int, now: float, slow: bool) -> GpuSample:
        sample = super().gpu(index, now, slow)
        gone = self.script.gone_ts.get(index)
        if gone is not None and now >= gone and sample.slow is not None and self.plan.processes:
            sample = msgspec.structs.replace(sample, slow=msgspec.structs.replace(sample.slow, processes=()))
        for change in self.script.changes:
            sample = change(sample, now)
        return sample

    def processes(self, now: float) -> tuple[ProcessSample, ...]:
        plan, out = self.plan, []
        trainer, worker = self.script._loads(now)
        for rank in range(plan.ranks):
            if now >= self.script.gone_ts.get(rank, float("inf")):
                continue
            out.append(self.process(pid_of(rank), 3000, "python3", 3e9, trainer, now, rank))
            for number in range(plan.workers):
                pid = 5000 + 100 * rank + number
                out.append(self.process(pid, pid_of(rank), "pt_data_worker", 0.3e9, worker, now, None))
        out += [process for make in self.script.more if (process := make(now)) is not None]
        return tuple(out)

    def workers_bytes(self, now: float) -> float:
        used = super().workers_bytes(now)
        return used + (self.script.host_used(now) if self.script.host_used is not None else 0.0)


__all__ = ["GIB", "Script"]
