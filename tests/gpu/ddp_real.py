"""A real training on all GPUs of this machine for about a minute, with attach: something for the dashboard
to watch.

    python -m tests.gpu.ddp_real [--gpus N] [--seconds 60] [--model yolo11x.yaml] [--batch 32] [--folder
    runs/gpu]

Draws its own data, trains under DDP when more than one GPU is used, then prints what each rank's stream
says, next to what nvidia-smi says of each GPU during the run. Leaves the streams in `<folder>/train`.
Exit status 0: every rank wrote a stream whose steps, losses, memory and features are there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

os.environ.update(YOLO_OFFLINE="1", YOLO_AUTOINSTALL="false", MPLBACKEND="agg")

from tests.trainer.drawn import draw_dataset

REPOSITORY = Path(__file__).resolve().parents[2]


class SmiWatch:
    """nvidia-smi's memory and utilization of each GPU, read every 2 s in a thread that ends with the run."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[float, float]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nvidia-smi")

    def __enter__(self) -> SmiWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _watch(self) -> None:
        query = [
            "nvidia-smi",
            "--query-gpu=index,memory.used,utilization.gpu",
            "--format=csv,noheader,nounits",
        ]
        while not self._stop.wait(2):
            try:
                done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
            except (OSError, subprocess.SubprocessError) as error:
                print(f"nvidia-smi: {error}", file=sys.stderr)
                return
            for line in done.stdout.splitlines():
                index, memory, utilization = (part.strip() for part in line.split(","))
                self.rows.setdefault(index, []).append((float(memory), float(utilization)))


def train(given: argparse.Namespace, data: Path, gpus: int) -> None:
    """Train; a time limit ends the run as Ultralytics' own `time=` does."""
    from ultralytics import YOLO

    import yolomon

    model = YOLO(given.model)
    yolomon.attach(model, features=True, every=given.every)
    path = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)  # ranks of a DDP run import yolomon by themselves
    model.train(
        data=str(data), epochs=1000, time=given.seconds / 3600, imgsz=given.imgsz, batch=given.batch * gpus,
        device=list(range(gpus)) if gpus > 1 else 0, workers=given.workers, amp=True, plots=False, val=True,
        project=str(Path(given.folder).resolve()), name="train", exist_ok=True, verbose=False,
    )  # fmt: skip


def report(folder: Path, gpus: int, smi: SmiWatch) -> bool:
    """Print a table of the ranks and GPUs. False: something is missing."""
    good = True
    for rank in range(gpus):
        path = folder / ("yolomon.jsonl" if rank == 0 else f"yolomon.rank{rank}.jsonl")
        if not path.exists():
            print(f"rank {rank}: no {path.name}")
            good = False
            continue
        records = [json.loads(line) for line in path.read_text().splitlines()]
        batches = [record for record in records if record["event"] == "batch"]
        looks = [record for record in records if record["event"] == "features"]
        problems = [
            record.get("text") for record in records if record["event"] in {"warning", "aborted", "dropped"}
        ]
        good &= bool(batches and looks) and not problems
        if batches:
            print(f"rank {rank}: {summary(batches)}, {len(looks)} looks, last {records[-1]['event']}")
        late = sum("loss_step" in record for record in batches)
        print(f"        an earlier step's losses in {late} of {len(batches)} lines; problems: {problems}")
        if looks:
            last = looks[-1]
            print(
                f"        at {last['step']}: grad_norm {last.get('grad_norm')}, {len(last['layers'])} layers"
            )
    for index, rows in sorted(smi.rows.items()):
        memory, utilization = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"nvidia-smi GPU {index}: {memory:.0f} MiB used, {utilization:.0f} % busy, medians")
    return good


def summary(batches: list[dict[str, Any]]) -> str:
    step = statistics.median(record["step_time"] for record in batches)
    data = statistics.median(record["data_time"] for record in batches)
    last = batches[-1]
    mib = {name: last.get(f"mem_{name}", 0) / 2**20 for name in ("allocated", "reserved", "peak")}
    memory = ", ".join(f"{name} {value:.0f}" for name, value in mib.items())
    return f"{len(batches)} steps of {step * 1000:.1f} ms ({data * 1000:.1f} ms waiting), MiB {memory}"


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count())
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model", default="yolo11x.yaml")
    parser.add_argument("--imgsz", type=int, default=640)
    parser.add_argument("--batch", type=int, default=32, help="images a GPU")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--every", type=int, default=20, help="steps between two looks at features")
    parser.add_argument("--folder", default="runs/gpu")
    given = parser.parse_args()
    if not given.gpus:
        print("no GPU that torch can use")
        return 2
    began = time.monotonic()
    data = draw_dataset(Path(given.folder) / "data", train=given.images, val=128, size=given.imgsz)
    print(f"drew {given.images} images in {time.monotonic() - began:.0f} s")
    with SmiWatch() as smi:
        train(given, data, given.gpus)
    return 0 if report(Path(given.folder).resolve() / "train", given.gpus, smi) else 1


if __name__ == "__main__":
    sys.exit(main())
