"""What attach and the feature statistics cost a training step: interleaved A/B inside one real training.

    python -m tests.benchmarks.trainer_overhead [--device cpu|0] [--model yolo11n.yaml] [--steps 120]

Steps without yolomon, with attach, and with attach and a sample of feature statistics are mixed at random in
one run of Ultralytics, so that drift of the machine meets all alike. A step is timed from the moment its
batch is there to the end of its callbacks, with the GPU waited for. Printed are, for each kind of step,
the median, its difference to the steps without, as a share of the step, and a 95 % interval of that by
bootstrap; beside it the time spent in yolomon's callbacks, the sharper figure where steps vary more than
yolomon costs (hooks are only in the difference). The cost of features is that of a sampled step, spread
over the 100 steps between two samples.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.update(YOLO_OFFLINE="1", YOLO_AUTOINSTALL="false", MPLBACKEND="agg")

from tests.trainer.drawn import draw_dataset
from yolomon.trainer.ultralytics import EVENTS, Attachment

KINDS = ("without", "attach", "features")
EVERY = 100
WARM_UP_STEPS = 6


class Probe:
    """Times steps and switches yolomon's callbacks on and off between them."""

    def __init__(self, seed: int) -> None:
        self.attachment = Attachment(features=True, every=1)
        self.times: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.own: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self._chance = random.Random(seed)
        self._deck: list[str] = []
        self._kind = KINDS[0]
        self._began = self._own = 0.0
        self._steps = self._in_epoch = 0

    def epoch_start(self, _trainer: Any) -> None:
        self._in_epoch = 0

    def batch_start(self, trainer: Any) -> None:
        if not self._deck:
            self._deck = list(KINDS)
            self._chance.shuffle(self._deck)
        self._kind = self._deck.pop()
        self._own = 0.0
        stream = self.attachment._stream
        assert stream is not None
        monitor = stream._monitor
        if monitor is not None:
            stream._benchmark_monitor = monitor  # type: ignore[attr-defined]
        monitor = stream._benchmark_monitor  # type: ignore[attr-defined]
        if self._kind == "features":
            stream._monitor = monitor
        else:
            monitor._release_trigger()
            monitor._disarm()
            stream._monitor = None
        wait_for_gpu()
        self._began = time.perf_counter()
        if self._kind == "features" and monitor._sample is None:
            self._owned(monitor._arm)
        if self._kind != "without":
            self._owned(lambda: self.attachment.on_train_batch_start(trainer))

    def batch_end(self, trainer: Any) -> None:
        if self._kind != "without":
            self._owned(lambda: self.attachment.on_train_batch_end(trainer))
        wait_for_gpu()
        seconds = time.perf_counter() - self._began
        self._steps += 1
        self._in_epoch += 1
        if self._steps > WARM_UP_STEPS and self._in_epoch > 1:
            self.times[self._kind].append(seconds)
            self.own[self._kind].append(self._own)

    def _owned(self, call: Any) -> None:
        began = time.perf_counter()
        call()
        self._own += time.perf_counter() - began


def wait_for_gpu() -> None:
    torch = sys.modules["torch"]
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def interval(kind: list[float], without: list[float], spread: int, rounds: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the overhead in percent of a step."""
    chance = random.Random(1)
    shares = []
    for _ in range(rounds):
        a = statistics.median(chance.choices(without, k=len(without)))
        b = statistics.median(chance.choices(kind, k=len(kind)))
        shares.append((b - a) / a / spread * 100)
    shares.sort()
    return shares[int(0.025 * rounds)], shares[int(0.975 * rounds)]


def main() -> None:
    import torch
    from ultralytics import YOLO

    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="0" if on_gpu else "cpu")
    parser.add_argument("--model", default="yolo11x.yaml" if on_gpu else "yolo11n.yaml")
    parser.add_argument("--imgsz", type=int, default=640 if on_gpu else 160)
    parser.add_argument("--batch", type=int, default=32 if on_gpu else 4)
    parser.add_argument("--steps", type=int, default=600 if on_gpu else 120)
    given = parser.parse_args()
    per_epoch = min(60, given.steps)
    with tempfile.TemporaryDirectory() as folder:
        data = draw_dataset(Path(folder) / "data", train=given.batch * per_epoch, val=4, size=given.imgsz)
        probe = Probe(seed=0)
        model = YOLO(given.model)
        model.add_callback("on_train_epoch_start", probe.epoch_start)
        for event in EVENTS:
            if event not in {"on_train_batch_start", "on_train_batch_end"}:
                model.add_callback(event, getattr(probe.attachment, event))
        model.add_callback("on_train_batch_start", probe.batch_start)
        model.add_callback("on_train_batch_end", probe.batch_end)
        arguments = {"imgsz": given.imgsz, "batch": given.batch, "nbs": given.batch, "device": given.device}
        model.train(
            **arguments,
            data=str(data),
            epochs=max(1, given.steps // per_epoch),
            amp=given.device != "cpu",
            plots=False,
            val=False,
            workers=8 if on_gpu else 0,
            project=folder,
            name="run",
            verbose=False,
        )
    without = statistics.median(probe.times["without"])
    print(f"\n{given.model} {given.imgsz} px, batch {given.batch}, {given.device}, torch {torch.__version__}")
    print(f"{'step':<10}{'n':>5}{'median ms':>12}{'overhead %':>12}{'95 % interval':>20}{'callbacks %':>13}")
    report: dict[str, Any] = {"model": given.model, "device": given.device, "step_ms": without * 1000}
    for kind in KINDS:
        times, own = probe.times[kind], probe.own[kind]
        spread = EVERY if kind == "features" else 1
        median = statistics.median(times)
        share = (median - without) / without / spread * 100
        low, high = interval(times, probe.times["without"], spread) if kind != "without" else (0.0, 0.0)
        own_share = statistics.median(own) / without / spread * 100
        bounds = f"{low:.4f} .. {high:.4f}"
        print(f"{kind:<10}{len(times):>5}{median * 1000:>12.3f}{share:>12.4f}{bounds:>20}{own_share:>13.4f}")
        report[kind] = {"percent": share, "low": low, "high": high, "own_percent": own_share}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
