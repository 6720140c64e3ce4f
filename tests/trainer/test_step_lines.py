"""Steps held and written together: nothing is lost, nothing is late, a GPU is never waited for."""

from __future__ import annotations

import gc
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from yolomon.trainer.readings import Held
from yolomon.trainer.step_lines import LINES_LIMIT, StepLines


class Disk:
    """What was written, a list of records a write."""

    def __init__(self) -> None:
        self.writes: list[list[dict[str, Any]]] = []

    def __call__(self, lines: Sequence[bytes]) -> None:
        self.writes.append([json.loads(line) for line in lines])

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for write in self.writes for record in write]

    @property
    def steps(self) -> list[int]:
        return [record["step"] for record in self.records]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def steps(lines: StepLines, clock: Clock, count: int, seconds: float, first: int = 1) -> list[int]:
    """Steps that last `seconds`; which of them were due."""
    due_at = []
    for step in range(first, first + count):
        clock.now += seconds
        due = lines.due()
        if due:
            due_at.append(step)
        lines.add({"step": step}, due=due)
    return due_at


def test_short_steps_are_written_five_times_a_second_with_none_missing(disk: Disk, clock: Clock) -> None:
    lines = StepLines(disk, gather=True, clock=clock)
    due = steps(lines, clock, 100, 1 / 32)
    assert due == list(range(1, 101, 7))
    assert [write[-1]["step"] for write in disk.writes] == due
    assert disk.steps == list(range(1, 100))
    lines.settle()
    assert disk.steps == list(range(1, 101))


def test_steps_of_a_fifth_of_a_second_and_longer_are_written_at_once(disk: Disk, clock: Clock) -> None:
    lines = StepLines(disk, gather=True, clock=clock)
    assert steps(lines, clock, 5, 0.21) == [1, 2, 3, 4, 5]
    assert [len(write) for write in disk.writes] == [1] * 5


def test_steps_of_microseconds_are_held_up_to_a_bound(disk: Disk, clock: Clock) -> None:
    lines = StepLines(disk, gather=True, clock=clock)
    steps(lines, clock, 1000, 1e-6)
    assert max(len(write) for write in disk.writes) == LINES_LIMIT
    assert 1000 - len(disk.steps) < LINES_LIMIT


def test_without_gathering_a_line_is_written_at_once_but_never_before_one_that_is_held(
    disk: Disk, clock: Clock
) -> None:
    lines = StepLines(disk, clock=clock)
    steps(lines, clock, 3, 0.001)
    assert disk.steps == [1, 2, 3]
    lines = StepLines(disk, gather=True, clock=clock)
    steps(lines, clock, 3, 0.001, first=4)
    lines.follow({"step": 7})
    assert disk.steps == [1, 2, 3, 4]
    lines.settle()
    assert disk.steps == [1, 2, 3, 4, 5, 6, 7]


def test_a_trainer_that_hangs_has_told_its_last_step(disk: Disk) -> None:
    lines = StepLines(disk, gather=True)
    for step in (1, 2, 3):
        lines.add({"step": step}, due=step == 1)
    assert disk.steps == [1]
    until = time.monotonic() + 6
    while disk.steps != [1, 2, 3] and time.monotonic() < until:
        time.sleep(0.05)
    assert disk.steps == [1, 2, 3]


def test_the_thread_ends_with_its_lines(disk: Disk) -> None:
    lines = StepLines(disk, gather=True)
    lines.add({"step": 1}, due=True)
    thread = lines._thread
    assert thread is not None
    assert thread.daemon
    lines.close()
    thread.join(5)
    assert not thread.is_alive()
    lines = StepLines(disk, gather=True)
    lines.add({"step": 1}, due=True)
    thread = lines._thread
    del lines
    gc.collect()
    assert thread is not None
    thread.join(5)
    assert not thread.is_alive(), "of a logger that nobody has any more"


def test_a_forked_process_does_not_repeat_what_its_parent_holds(disk: Disk, clock: Clock) -> None:
    lines = StepLines(disk, gather=True, clock=clock)
    steps(lines, clock, 3, 0.001)
    child = os.fork()
    if child == 0:
        lines.settle()
        steps(lines, clock, 1, 0.001, first=9)
        os._exit(0 if disk.steps == [1, 9] else 1)
    assert os.waitpid(child, 0)[1] == 0
    lines.settle()
    assert disk.steps == [1, 2, 3]


def test_a_process_that_ends_without_closing_loses_nothing(tmp_path: Any) -> None:
    script = (
        "import sys; from yolomon.trainer.writer import JsonlLogger\n"
        "log = JsonlLogger(sys.argv[1], rank=0, gather=True)\n"
        "for step in range(50): log(step=step, loss=1.0)\n"
        "raise SystemExit('broken')\n"
    )
    path = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-c", script, str(path)], timeout=30, stderr=subprocess.DEVNULL)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == list(range(50))


# ------------------------------------------------------------ values on a device


class Gpu:
    """A stand-in for torch with one GPU: what is queued is done when the test says so."""

    def __init__(self) -> None:
        self.queued = self.done = 0
        self.copies = 0
        self.broken = False
        self.cuda = SimpleNamespace(current_stream=lambda _device: self, Event=lambda: Event(self))

    def query(self) -> bool:
        """Of the stream: idle."""
        return self.done >= self.queued

    def cat(self, tensors: Sequence[Scalar]) -> Scalar:
        if self.broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        self.copies += 1
        return Scalar([value for tensor in tensors for value in tensor.values])

    def empty(self, _shape: object, dtype: object, pin_memory: bool) -> Scalar:
        assert pin_memory
        return Scalar([])


class Event:
    def __init__(self, gpu: Gpu) -> None:
        self._gpu, self._at = gpu, 0

    def record(self, gpu: Gpu) -> None:
        self._at = gpu.queued

    def query(self) -> bool:
        return self._gpu.done >= self._at


class Scalar:
    device = SimpleNamespace(type="cuda")
    shape = dtype = None
    requires_grad = False

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def detach(self) -> Scalar:
        return self

    def reshape(self, _shape: int) -> Scalar:
        return self

    def to(self, _device: object) -> Scalar:
        return self

    def copy_(self, other: Scalar, non_blocking: bool) -> None:
        assert non_blocking
        self.values = other.values

    def tolist(self) -> list[float]:
        return self.values


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu()
    monkeypatch.setitem(sys.modules, "torch", gpu)
    return gpu


def train(lines: StepLines, clock: Clock, gpu: Gpu, losses: Sequence[float], seconds: float = 1 / 32) -> None:
    """Steps whose losses are on the device; the work of each is queued behind that of the one before."""
    for step, loss in enumerate(losses, 1):
        clock.now += seconds
        gpu.queued += 1
        lines.add({"step": step}, Held(("loss",), (Scalar([loss]),)), due=lines.due())


def test_losses_of_all_steps_come_in_one_copy_a_write(disk: Disk, clock: Clock, gpu: Gpu) -> None:
    lines = StepLines(disk, clock=clock)
    gpu.done = 10**6
    train(lines, clock, gpu, [float(step) for step in range(1, 32)])
    assert [(r["step"], r["loss"]) for r in disk.records] == [(n, float(n)) for n in range(1, 30)]
    assert gpu.copies == len(disk.writes) == 5


def test_the_first_nan_is_told_with_its_step(disk: Disk, clock: Clock, gpu: Gpu) -> None:
    lines = StepLines(disk, clock=clock)
    gpu.done = 10**6
    train(lines, clock, gpu, [1.0] * 15 + [math.nan] + [1.0] * 15)
    assert [r["step"] for r in disk.records if math.isnan(r["loss"])] == [16]


def test_a_busy_gpu_is_not_waited_for_and_short_steps_keep_their_own_losses(
    disk: Disk, clock: Clock, gpu: Gpu
) -> None:
    lines = StepLines(disk, clock=clock)
    train(lines, clock, gpu, [1.0])  # the only line so far: told at once, its loss follows
    assert disk.records == [{"step": 1}]
    for step in range(2, 30):
        gpu.done = gpu.queued - 1  # the GPU is one step behind
        clock.now += 0.02
        gpu.queued += 1
        lines.add({"step": step}, Held(("loss",), (Scalar([float(step)]),)), due=lines.due())
    later = disk.records[1:]
    assert len(later) >= 20
    assert [r["loss"] for r in later] == [float(r["step"]) for r in later]
    assert not any("loss_step" in r for r in later)


def test_a_long_step_is_told_at_once_with_the_losses_of_the_one_before(
    disk: Disk, clock: Clock, gpu: Gpu
) -> None:
    lines = StepLines(disk, clock=clock)
    for step in (1, 2, 3):
        clock.now += 3.0
        gpu.done = gpu.queued  # the step before is done, this one is not
        gpu.queued += 1
        lines.add({"step": step}, Held(("loss",), (Scalar([float(step)]),)), due=lines.due())
        assert disk.steps[-1] == step
    assert disk.records == [
        {"step": 1},
        {"step": 2, "loss": 1.0, "loss_step": 1},
        {"step": 3, "loss": 2.0, "loss_step": 2},
    ]


def test_a_gpu_that_never_answers_costs_the_losses_but_no_step(disk: Disk, clock: Clock, gpu: Gpu) -> None:
    lines = StepLines(disk, clock=clock)
    train(lines, clock, gpu, [1.0] * 200)
    assert len(disk.steps) >= 200 - 2 * LINES_LIMIT
    began = time.monotonic()
    lines.settle()
    assert time.monotonic() - began < 5
    assert disk.steps == list(range(1, 201))


def test_a_device_that_failed_costs_the_losses_but_no_step(disk: Disk, clock: Clock, gpu: Gpu) -> None:
    lines = StepLines(disk, clock=clock)
    gpu.broken = True
    train(lines, clock, gpu, [1.0] * 30)
    lines.settle()
    assert disk.steps == list(range(1, 31))


def test_losses_whose_memory_is_used_again_are_copied_from_then_on(
    disk: Disk, clock: Clock, gpu: Gpu
) -> None:
    lines = StepLines(disk, clock=clock)
    gpu.done = 10**6
    gpu.broken = True
    train(lines, clock, gpu, [1.0])
    gpu.broken = False
    shared = Scalar([0.0])
    for step in range(2, 25):
        shared.values = [float(step)]
        clock.now += 0.02
        lines.add({"step": step}, Held(("loss",), (shared,)), due=lines.due())
    assert [r["loss"] for r in disk.records[1:]] == [float(r["step"]) for r in disk.records[1:]]
    assert len(disk.records) > 20
