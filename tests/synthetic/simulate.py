"""A small physical model of a training run: steps and phases of each rank, then what a reader would see.

States of a GPU over time: "compute" (busy, at power), "spin" (waits in a collective: 100 % utilization at
little power and no tensor work, as on two H200), "idle". Waiting ranks spin while the slow one is idle or
computes.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from math import exp

import msgspec

from tests.synthetic.plan import Plan
from yolomon.model import Roles, RunInfo, TrainRecord

EPOCH_0 = 1_790_000_000.0
MIB = 2**20


class Timeline:
    """States of one GPU over time, each until the next one begins."""

    def __init__(self) -> None:
        self.starts = [0.0]
        self.states = ["idle"]

    def put(self, ts: float, state: str) -> None:
        if state != self.states[-1]:
            self.starts.append(ts)
            self.states.append(state)

    def shares(self, start: float, end: float) -> dict[str, float]:
        """The part of [start, end] in each state."""
        out: dict[str, float] = {}
        place = max(bisect_right(self.starts, start) - 1, 0)
        at = start
        while at < end:
            until = self.starts[place + 1] if place + 1 < len(self.starts) else end
            part = min(until, end) - at
            if part > 0:
                out[self.states[place]] = out.get(self.states[place], 0.0) + part / (end - start)
            at = max(at, min(until, end))
            place += 1
            if place >= len(self.starts):
                break
        return out


class Course(msgspec.Struct):
    """What happened: records of all ranks in order, and how the machine was meanwhile."""

    plan: Plan
    timelines: list[Timeline]
    records: list[TrainRecord]
    step_ends: list[float] = []  # of all steps, for what grows with them
    first_validation: float = float("inf")
    ended: float = float("inf")  # the processes are gone
    worker_restart: float = float("inf")


def pid_of(rank: int) -> int:
    return 4000 + rank


def run_course(plan: Plan) -> Course:
    """Steps, validations and faults from the first reading on."""
    return _Runner(plan).run()


class _Runner:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed)
        self.course = Course(plan, [Timeline() for _ in range(plan.ranks)], [])
        self.step = 0
        self.loss_factor = 1.0
        self.size_factor = 1.0

    def active(self, fault: str, now: float) -> bool:
        return self.plan.fault == fault and now >= self.plan.onset

    def emit(
        self, ts: float, kind: str, epoch: int | None = None, rank: int | None = None, **more: object
    ) -> None:
        plan = self.plan
        ranks = [rank] if rank is not None else range(plan.ranks if plan.rank_logs else 1)
        for number in ranks:
            if number > 0 and not plan.rank_logs:
                continue
            if self.active("silent-log", ts):
                continue
            self.course.records.append(
                TrainRecord(
                    ts=EPOCH_0 + ts + 0.0001 * number,
                    own_ts=EPOCH_0 + ts,
                    kind=kind,  # type: ignore[arg-type]
                    source=f"train.rank{number}.jsonl",
                    rank=number,
                    pid=pid_of(number) if plan.processes else None,
                    epoch=epoch,
                    epochs=plan.epochs,
                    **more,  # type: ignore[arg-type]
                )
            )

    def all_put(self, ts: float, state: str, but: int | None = None) -> None:
        for rank, line in enumerate(self.course.timelines):
            if rank != but:
                line.put(ts, state)

    def run(self) -> Course:
        plan = self.plan
        now = plan.start_seconds
        info = RunInfo(
            model="yolo11m.yaml", epochs=plan.epochs, batch_size=float(plan.batch_size * plan.ranks),
            image_size=640, workers=plan.workers, world_size=plan.ranks, patience=100,
            close_mosaic=plan.close_mosaic or None, trainer="Ultralytics",
        )  # fmt: skip
        self.emit(now, "start", run=info)
        for epoch in range(1, plan.epochs + 1):
            self.emit(now, "epoch_start", epoch)
            if plan.close_mosaic and epoch == plan.epochs - plan.close_mosaic + 1:
                now += 2.0
                self.course.worker_restart = now
                self.size_factor = 0.9
            ended = self.epoch(epoch, now)
            if ended is None:
                return self.course
            now = ended
            if now > plan.seconds:
                return self.course
        self.emit(now, "end", plan.epochs)
        self.all_put(now, "idle")
        self.course.ended = now + 2.0
        return self.course

    def epoch(self, epoch: int, now: float) -> float | None:
        """One epoch; None when the run stops in it."""
        plan = self.plan
        first = self.step == 0
        for batch in range(1, plan.batches + 1):
            if now > plan.seconds:
                return now
            if self.active("hang", now):
                self.all_put(now, "spin", but=plan.rank)
                self.course.timelines[plan.rank].put(now, "idle")
                return None
            if self.active("freeze", now):
                self.all_put(now, "idle")
                return None
            if self.active("oom", now):
                self.all_put(now, "idle")
                self.course.ended = now + 1.0
                return None
            now = self.one_step(epoch, batch, now, first=first and batch == 1)
        self.emit(now, "epoch_end", epoch)
        if plan.validation_seconds > 0:
            self.emit(now, "val_start", epoch, rank=0)
            self.all_put(now, "spin", but=0)
            line = self.course.timelines[0]
            count = max(int(plan.validation_seconds), 1)
            for part in range(count):  # batches of validation with work on the CPU between them
                line.put(now + part * plan.validation_seconds / count, "compute")
                line.put(now + (part + 0.6) * plan.validation_seconds / count, "idle")
            self.course.first_validation = min(self.course.first_validation, now + 0.5)
            now += plan.validation_seconds
            self.emit(now, "val_end", epoch, rank=0)
        map50 = 0.95 * (1 - exp(-epoch / 15))
        self.emit(
            now, "epoch", epoch,
            roles=Roles(
                map50=map50, map50_95=0.7 * map50, fitness=0.7 * map50, losses={"train/box_loss": 1.0}
            ),
        )  # fmt: skip
        line = self.course.timelines[0]
        line.put(now, "idle")
        now += plan.checkpoint_seconds
        self.emit(now, "checkpoint", epoch, rank=0)
        return now

    def one_step(self, epoch: int, batch: int, now: float, *, first: bool) -> float:
        plan, rng = self.plan, self.rng
        compute = plan.step_seconds * self.size_factor * max(rng.gauss(1, plan.step_noise), 0.3)
        if plan.multi_scale:
            compute *= rng.uniform(0.4, 1.6)
        if first:
            compute += 4.0
        elif rng.random() < 0.004:
            compute *= 3
        data = plan.data_seconds * rng.uniform(0.5, 1.5) + (1.0 if batch == 1 and plan.workers else 0.0)
        if self.active("starve", now):
            data = plan.amount * rng.uniform(0.8, 1.2)
        if self.active("heat", now) or self.active("slow", now) or self.active("contention", now):
            compute *= plan.amount
        delays = [0.0] * plan.ranks
        if self.active("straggler", now):
            delays[plan.rank] = plan.amount
        end = now + data + compute + max(delays)
        for rank, line in enumerate(self.course.timelines):
            begin = now + data + delays[rank]
            line.put(now, "idle")
            line.put(begin, "compute")
            if begin + compute < end:
                line.put(begin + compute, "spin")
        self.step += 1
        self.course.step_ends.append(end)
        self.log_step(epoch, batch, now, end, data)
        return end

    def log_step(self, epoch: int, batch: int, begin: float, end: float, data: float) -> None:
        plan, rng = self.plan, self.rng
        loss = (2.0 + 8.0 * exp(-self.step / 300)) * exp(rng.gauss(0, 0.06))
        if self.active("diverge", end):
            self.loss_factor *= 1.05
            loss *= self.loss_factor
        if self.active("nan", end):
            loss = float("nan")
        leaked = self.leaked_vram(self.step)
        held = plan.memory_share * plan.gpu.memory_bytes
        roles = Roles(
            loss=loss, losses={"train/box_loss": loss}, learning_rate=0.01, images=float(plan.batch_size),
            step_seconds=end - begin, data_seconds=data if plan.data_time else None,
            memory_allocated_bytes=2e9 + leaked, memory_reserved_bytes=0.9 * held + leaked,
            memory_peak_bytes=0.85 * held + leaked,
        )  # fmt: skip
        self.emit(end, "batch", epoch, step=self.step, batch=batch, batches=plan.batches, roles=roles)

    def leaked_vram(self, step: int) -> float:
        plan = self.plan
        if plan.fault != "vram-leak":
            return 0.0
        before = bisect_right(self.course.step_ends, plan.onset)
        return max(step - before, 0) * plan.amount


def records_in_order(course: Course) -> Iterator[TrainRecord]:
    """All ranks' records by time."""
    return iter(sorted(course.records, key=lambda record: record.ts))
