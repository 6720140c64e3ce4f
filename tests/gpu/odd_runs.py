"""Odd but real trainings on one GPU, each recorded and judged: what does yolomon say of them?

    python -m tests.gpu.odd_runs FOLDER [--seconds 40] [--images 768] CASE ...

Each case trains for about that long in a process of its own, beside `yolomon record`, which starts a few
seconds earlier and stops a few seconds later; then `yolomon diagnose` reads the recording. Printed is a line
for each finding. Healthy cases must have none; the others name what was put in. Recordings stay as
`FOLDER/CASE.jsonl.gz`. Exit status 0: every case was told as `CASES` has it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.update(YOLO_OFFLINE="1", YOLO_AUTOINSTALL="false", MPLBACKEND="agg")

from tests.trainer.drawn import draw_classes, draw_dataset

ONSET_SECONDS = 15.0
"""From the first step to the fault that is put in."""


@dataclass(frozen=True)
class Case:
    """A training: what Ultralytics is told, what is done to it, which findings are then right.

    `expected`: one of these must be told; empty: nothing may be. `may`: told or not, both are right.
    What is told as mere information is never a false alarm.
    """

    model: str = "yolo11s.yaml"
    settings: dict[str, Any] = field(default_factory=dict)
    fault: str = ""
    expected: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()


def _case(
    model: str = "yolo11s.yaml", *, fault: str = "", expected: str = "", may: str = "", **settings: Any
) -> Case:
    return Case(model, settings, fault, frozenset(expected.split()), frozenset(may.split()))


CASES = {
    "multiscale": _case(multi_scale=0.5, batch=16),
    "autobatch": _case(batch=-1),
    "compile": _case(compile=True, batch=16),
    "cacheram": _case("yolo11m.yaml", cache="ram", batch=32),
    "rtdetr": _case("rtdetr-l.yaml", batch=8),
    "accumulate": _case("yolo11m.yaml", batch=16, nbs=128),
    "fullprecision": _case("yolo11m.yaml", batch=32, amp=False),
    "segment": _case("yolo11s-seg.yaml", batch=16),
    "plots": _case("yolo11m.yaml", batch=32, plots=True),
    "tiny": _case("yolo11n.yaml", batch=2, imgsz=64, may="gpu-idle gpu-underused data-starvation"),
    "workers0": _case(
        "yolo11n.yaml", batch=64, workers=0, expected="data-starvation", may="gpu-idle bursty-load"
    ),
    "classify": _case("yolo11n-cls.yaml", batch=64, imgsz=224, may="gpu-idle gpu-underused data-starvation"),
    "nan": _case(
        "yolo11m.yaml", batch=32, fault="nan", expected="nan-loss", may="dead-features exploding-features"
    ),
    "kill": _case("yolo11m.yaml", batch=32, fault="kill", expected="trainer-died"),
    "term": _case("yolo11m.yaml", batch=32, fault="term", expected="trainer-died trainer-ended"),
    "stopped": _case("yolo11m.yaml", batch=32, fault="stopped", expected="stall", may="gpu-idle"),
    "contention": _case(
        "yolo11m.yaml", batch=32, fault="contention", expected="gpu-contention", may="slowdown"
    ),
}


def train(name: str, folder: Path, seconds: float, device: str) -> None:
    """The training of one case, in this process."""
    from ultralytics import RTDETR, YOLO

    import yolomon

    case = CASES[name]
    model = (RTDETR if case.model.startswith("rtdetr") else YOLO)(case.model)
    yolomon.attach(model)
    if case.fault == "nan":
        model.add_callback("on_train_batch_end", _poison_after(ONSET_SECONDS))
    data = folder.parent / ("classes" if "-cls" in case.model else "drawn/data.yaml")
    settings = {"imgsz": 640, "workers": 8, "amp": True, "plots": False} | case.settings
    model.train(
        data=str(data), epochs=100000, time=seconds / 3600, device=device, verbose=False,
        project=str(folder), name="train", exist_ok=True, **settings,
    )  # fmt: skip


def _poison_after(seconds: float) -> Callable[[Any], None]:
    """A callback that overwrites a weight with NaN that long after the first step."""
    began: list[float] = []

    def poison(trainer: Any) -> None:
        now = time.monotonic()
        if not began:
            began.append(now)
        elif now - began[0] > seconds:
            next(trainer.model.parameters()).data.fill_(float("nan"))

    return poison


def contend(seconds: float) -> None:
    """Another process's work on the same GPU."""
    import torch

    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            matrix @ matrix
        torch.cuda.synchronize()


def run_case(name: str, folder: Path, seconds: float, device: str) -> list[dict[str, Any]]:
    """Train one case beside the recorder; the findings that `diagnose` prints."""
    case = CASES[name]
    work = folder / name
    work.mkdir(parents=True, exist_ok=True)
    recording = folder / f"{name}.jsonl"
    own = [sys.executable, "-m", "tests.gpu.odd_runs", str(work)]
    log = work / "train" / "yolomon.jsonl"
    yolomon = [sys.executable, "-m", "yolomon"]
    recorder = subprocess.Popen(
        [*yolomon, "record", str(log), "-o", str(recording)], stdin=subprocess.DEVNULL
    )
    processes = [recorder]
    try:
        time.sleep(3)
        with (work / "console.txt").open("w") as console:
            trainer = subprocess.Popen(
                [*own, "--train", name, "--seconds", str(seconds), "--device", device],
                stdout=console,
                stderr=console,
            )
        processes.append(trainer)
        first_step = _first_step(log, trainer)
        if case.fault in {"kill", "term", "stopped"} and first_step:
            time.sleep(ONSET_SECONDS)
            signals = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stopped": signal.SIGSTOP}
            trainer.send_signal(signals[case.fault])
        if case.fault == "contention" and first_step:
            time.sleep(ONSET_SECONDS)
            processes.append(subprocess.Popen([*own, "--contend", "--seconds", str(seconds)]))
        try:
            trainer.wait(30 if case.fault == "stopped" else 4 * seconds + 60)
        except subprocess.TimeoutExpired:
            print(f"{name}: the training was ended from outside")
        time.sleep(6)
    finally:
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(20)
        for process in processes[1:]:
            process.kill()
            process.wait(20)
    tail = (work / "console.txt").read_text(errors="replace").splitlines()[-3:]
    print(f"{name}: trainer ended with {trainer.returncode}; {' | '.join(line[-150:] for line in tail)}")
    done = subprocess.run(
        [*yolomon, "diagnose", str(recording), "--json"], capture_output=True, text=True, timeout=300
    )
    with recording.open("rb") as plain, gzip.open(f"{recording}.gz", "wb") as packed:
        packed.write(plain.read())
    recording.unlink()
    if done.returncode == 2:
        print(done.stderr[-400:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def _first_step(log: Path, trainer: subprocess.Popen[bytes]) -> bool:
    """Wait for the first batch in the stream. False: the trainer ended before."""
    while trainer.poll() is None:
        if log.exists() and '"batch"' in log.read_text(errors="replace"):
            return True
        time.sleep(0.2)
    return False


def judge(case: Case, findings: list[dict[str, Any]]) -> str:
    """`right`, or what is wrong with what was told."""
    told = {found["code"] for found in findings}
    if case.expected and not case.expected & told:
        return f"MISSED {' or '.join(sorted(case.expected))}"
    alarms = {found["code"] for found in findings if found["severity"] != "info"}
    false = alarms - case.expected - case.may
    return f"FALSE {' '.join(sorted(false))}" if false else "right"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--images", type=int, default=768)
    parser.add_argument("--device", default="0", help="cpu only tries this script")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--contend", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args()
    if unknown := set(given.cases) - set(CASES):
        parser.error(f"no such case: {' '.join(sorted(unknown))}")
    if given.train:
        train(given.train, given.folder, given.seconds, given.device)
        return 0
    if given.contend:
        contend(given.seconds)
        return 0
    given.folder.mkdir(parents=True, exist_ok=True)
    verdicts = []
    with tempfile.TemporaryDirectory() as scratch:
        draw_dataset(Path(scratch) / "drawn", train=given.images, val=64, size=640)
        draw_classes(Path(scratch) / "classes", images=256)
        for name in given.cases or CASES:
            findings = run_case(name, Path(scratch), given.seconds, given.device)
            for found in findings:
                print(f"  {json.dumps(found)[:1500]}")
            verdicts.append(judge(CASES[name], findings))
            print(f"{name}: {verdicts[-1]}", flush=True)
            (Path(scratch) / f"{name}.jsonl.gz").replace(given.folder / f"{name}.jsonl.gz")
    return 0 if all(verdict == "right" for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
