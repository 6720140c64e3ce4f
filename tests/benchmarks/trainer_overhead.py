"""What attach and the feature statistics cost a training step: interleaved A/B inside real trainings.

    python -m tests.benchmarks.trainer_overhead [--device cpu|0] [--seconds 70] [--cases MODEL:BATCH:PIXELS]

Each case is one run of Ultralytics. In it blocks of steps without yolomon, with attach, and with attach and a
sample of feature statistics at each step take turns in random order, so that drift of the machine meets all
alike; a block lasts about a second, because attach reads and writes a few times a second and not at every
step. A step is timed from the moment its batch is there to the end of its callbacks, with the GPU waited for.

Printed are, for each kind of step, its mean time and, as a share of a step without, what it takes longer
(median over the rounds of three blocks) and what is spent in yolomon's callbacks (mean over the blocks, all
reading and writing in it), each with a 95 % interval by bootstrap over rounds. The second is the sharper
figure where steps vary more than yolomon costs; hooks and effects on other work are only in the first. The
cost of features is that of a sampled step, spread over the 100 steps between two samples.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

os.environ.update(YOLO_OFFLINE="1", YOLO_AUTOINSTALL="false", MPLBACKEND="agg")

from tests.trainer.drawn import draw_dataset
from yolomon.trainer.ultralytics import EVENTS, Attachment

KINDS = ("without", "attach", "features")
EVERY = 100
WARM_UP_SECONDS = 8.0
BLOCK_SECONDS = 1.0
BLOCK_STEPS = 5  # at least
GPU_CASES = ("yolo11n:8:640", "yolo11n:16:640", "yolo11n:64:640", "yolo11x:32:640")
CPU_CASES = ("yolo11n:2:32", "yolo11n:4:160")


class Probe:
    """Times steps and switches yolomon's callbacks on and off between blocks of them."""

    def __init__(self, seed: int) -> None:
        self.attachment = Attachment(features=True, every=1)
        self.rounds: list[dict[str, tuple[float, float, int]]] = []  # kind: step seconds, own, steps
        self._chance = random.Random(seed)
        self._deck: list[str] = []
        self._round: dict[str, tuple[float, float, int]] = {}
        self._kind = KINDS[0]
        self._block = [0.0, 0.0, 0]
        self._began = self._own = 0.0
        self._in_epoch = 0
        self._start: float | None = None
        self._monitor: Any = None

    def epoch_start(self, _trainer: Any) -> None:
        self._in_epoch = 0

    def batch_start(self, trainer: Any) -> None:
        first = self._start is None
        self._start = self._start or time.perf_counter()
        if first or (self._block[0] >= BLOCK_SECONDS and self._block[2] >= BLOCK_STEPS):
            self._next_block()
        self._own = 0.0
        monitor = self._switch_features(on=self._kind == "features")
        wait_for_gpu()
        self._began = time.perf_counter()
        if monitor is not None and monitor._sample is None:
            self._owned(monitor._arm)
        if self._kind != "without":
            self._owned(lambda: self.attachment.on_train_batch_start(trainer))

    def batch_end(self, trainer: Any) -> None:
        if self._kind != "without":
            self._owned(lambda: self.attachment.on_train_batch_end(trainer))
        wait_for_gpu()
        seconds = time.perf_counter() - self._began
        self._in_epoch += 1
        if self._in_epoch > 1:
            self._block[0] += seconds
            self._block[1] += self._own
            self._block[2] += 1

    def _next_block(self) -> None:
        if self._block[2]:
            self._round[self._kind] = (self._block[0], self._block[1], int(self._block[2]))
        if not self._deck:
            assert self._start is not None
            if len(self._round) == len(KINDS) and time.perf_counter() - self._start > WARM_UP_SECONDS:
                self.rounds.append(self._round)
            self._round, self._deck = {}, list(KINDS)
            self._chance.shuffle(self._deck)
        self._kind = self._deck.pop()
        self._block = [0.0, 0.0, 0]

    def _switch_features(self, *, on: bool) -> Any:
        stream = self.attachment._stream
        assert stream is not None
        self._monitor = stream._monitor or self._monitor
        if not on:
            self._monitor._release_trigger()
            self._monitor._disarm()
        stream._monitor = self._monitor if on else None
        return stream._monitor

    def _owned(self, call: Callable[[], object]) -> None:
        began = time.perf_counter()
        call()
        self._own += time.perf_counter() - began


def wait_for_gpu() -> None:
    torch = sys.modules["torch"]
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def interval(
    values: Sequence[float], of: Callable[[Sequence[float]], float], rounds: int = 2000
) -> tuple[float, float]:
    """95 % interval of `of(values)` by bootstrap."""
    chance = random.Random(1)
    found = sorted(of(chance.choices(values, k=len(values))) for _ in range(rounds))
    return found[int(0.025 * rounds)], found[int(0.975 * rounds)]


def train(model_name: str, batch: int, pixels: int, given: argparse.Namespace, data: Path) -> Probe:
    from ultralytics import YOLO

    on_gpu = given.device != "cpu"
    probe = Probe(seed=0)
    model = YOLO(f"{model_name}.yaml")
    model.add_callback("on_train_epoch_start", probe.epoch_start)
    for event in EVENTS:
        if event not in {"on_train_batch_start", "on_train_batch_end"}:
            model.add_callback(event, getattr(probe.attachment, event))
    model.add_callback("on_train_batch_start", probe.batch_start)
    model.add_callback("on_train_batch_end", probe.batch_end)
    # Without checkpoints, which take longer than an epoch here, newer versions end with this error.
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(FileNotFoundError):
        model.train(
            data=str(data), imgsz=pixels, batch=batch, nbs=batch, device=given.device, amp=on_gpu,
            epochs=100000, time=(given.seconds + WARM_UP_SECONDS) / 3600, workers=given.workers,
            plots=False, val=False, save=False, verbose=False, project=folder, name="run",
        )  # fmt: skip
    return probe


def report(case: str, device: str, rounds: list[dict[str, tuple[float, float, int]]]) -> dict[str, Any]:
    """Print a case's table and hand its figures back."""
    without = [one["without"][0] / one["without"][2] for one in rounds]
    base = fmean(without)
    print(f"\n{case} on {device}: {len(rounds)} rounds, a step without yolomon {base * 1000:.2f} ms")
    print(f"{'step':<9}{'n':>6}{'mean ms':>10}{'longer by %':>13}{'95 % interval':>21}"
          f"{'callbacks ms':>14}{'callbacks %':>13}{'95 % interval':>21}")  # fmt: skip
    found: dict[str, Any] = {"case": case, "device": device, "rounds": len(rounds), "step_ms": base * 1000}
    for kind in KINDS:
        spread = EVERY if kind == "features" else 1
        times = [one[kind][0] / one[kind][2] for one in rounds]
        own = [one[kind][1] / one[kind][2] for one in rounds]
        longer = [100 * (t - w) / w / spread for t, w in zip(times, without, strict=True)]
        share = [100 * o / base / spread for o in own]
        low, high = interval(longer, median)
        own_low, own_high = interval(share, fmean)
        count = sum(one[kind][2] for one in rounds)
        print(
            f"{kind:<9}{count:>6}{fmean(times) * 1000:>10.3f}{median(longer):>13.3f}"
            f"{f'{low:.3f} .. {high:.3f}':>21}{fmean(own) * 1000:>14.4f}{fmean(share):>13.4f}"
            f"{f'{own_low:.4f} .. {own_high:.4f}':>21}"
        )
        found[kind] = {
            "steps": count, "longer_percent": median(longer), "longer_interval": (low, high),
            "callbacks_ms": fmean(own) * 1000, "callbacks_percent": fmean(share),
            "callbacks_interval": (own_low, own_high),
        }  # fmt: skip
    return found


def main() -> None:
    import torch

    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="0" if on_gpu else "cpu")
    parser.add_argument("--cases", nargs="+", metavar="MODEL:BATCH:PIXELS")
    parser.add_argument("--seconds", type=float, default=70.0 if on_gpu else 30.0, help="a case")
    parser.add_argument("--workers", type=int, default=min(16, os.cpu_count() or 1) if on_gpu else 0)
    parser.add_argument("--images", type=int, default=1024 if on_gpu else 96)
    given = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        drawn: dict[int, Path] = {}
        for case in given.cases or (CPU_CASES if given.device == "cpu" else GPU_CASES):
            model, batch, pixels = case.split(":")
            size = int(pixels)
            if size not in drawn:
                drawn[size] = draw_dataset(
                    Path(folder) / f"drawn{size}", train=given.images, val=4, size=size
                )
            probe = train(model, int(batch), size, given, drawn[size])
            if len(probe.rounds) < 3:
                print(f"\n{case}: only {len(probe.rounds)} rounds in {given.seconds:.0f} s")
                continue
            results.append(report(case, given.device, probe.rounds))
            del probe
            gc.collect()
            if on_gpu:
                torch.cuda.empty_cache()
    print(f"\ntorch {torch.__version__}")
    for found in results:
        attach = found["attach"]
        low, high = attach["callbacks_interval"]
        print(
            f"{found['case']}: attach {attach['callbacks_ms']:.3f} ms of {found['step_ms']:.1f} ms a step, "
            f"{attach['callbacks_percent']:.3f} % (95 % interval {low:.3f} to {high:.3f})"
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
