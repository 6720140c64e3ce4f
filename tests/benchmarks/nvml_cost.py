"""What reading GPUs costs: `python -m tests.benchmarks.nvml_cost [--gpus 8] [--seconds 15] [--hang]`.

On the fake NVML, in one process: CPU as share of a core, memory, and how fresh each GPU's newest reading is.
With `--hang`, GPU 1 stops answering; the others must stay as fresh as before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.fake_nvml.build import build


def measure(seconds: float, hang: bool) -> None:
    from yolomon.model import Item, Telemetry
    from yolomon.sources.nvml import NvmlSource

    process = psutil.Process()
    rss_before = process.memory_info().rss
    newest: dict[int, float] = {}
    oldest_age = 0.0

    def take(item: Item) -> None:
        nonlocal oldest_age
        if isinstance(item, Telemetry):
            for sample in item.gpus:
                if sample.state == "ok":
                    if sample.index in newest:
                        oldest_age = max(oldest_age, item.ts - newest[sample.index])
                    newest[sample.index] = item.ts

    source = NvmlSource()
    source.start(take)
    time.sleep(3)
    oldest_age = 0.0
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, spent = process.cpu_times(), time.monotonic() - began
    share = 100 * (after.user + after.system - before.user - before.system) / spent
    print(f"CPU {share:.2f} % of a core; {process.num_threads()} threads")
    print(f"memory {rss_before / 1e6:.1f} -> {process.memory_info().rss / 1e6:.1f} MB")
    print(f"{len(newest)} GPUs answered; longest time between two readings of one: {oldest_age:.2f} s")
    source.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        measure(given.seconds, given.hang)
        return
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        scenario = Path(folder) / "scenario"
        lines = [f"system gpus {given.gpus}", "gpu * process 4242 20G"]
        lines += ["gpu 1 hang nvmlDeviceGetPowerUsage 3600"] if given.hang else []
        scenario.write_text("\n".join(lines) + "\n")
        environment = {**os.environ, "LD_LIBRARY_PATH": folder, "FAKE_NVML_SCENARIO": str(scenario)}
        command = [sys.executable, "-m", "tests.benchmarks.nvml_cost", *sys.argv[1:], "--inside"]
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
