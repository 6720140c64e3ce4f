"""What the screen costs: CPU, memory, bytes to the terminal, first paint and key latency, beside nvitop.

Both run on the fake NVML in a terminal of 40 x 140, one after the other in the same run, yolomon with a JSONL
log that grows by 10 lines a second. Targets: CPU at or below nvitop's, at most 3 kB/s, 55 MB, first paint in
0.5 s (the median of `--starts`), also with a log of 1 GB, 64 GPUs at most four times that; a key answers
within 50 ms, also while one GPU's calls hang. The modules are compiled beforehand, as installers do.

    python -m tests.benchmarks.screen_cost [--seconds 20] [--gpus 8 64] [--only yolomon] [--gigabytes 1]
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import random
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from tests.fake_nvml.build import build

ROOT = Path(__file__).resolve().parents[2]
ROWS, COLUMNS = 40, 140
BUSY = """\
system gpus {gpus}
gpu * util sine 85 12 23 + noise 0 4
gpu * memory-util sine 40 8 23 + noise 0 3
gpu * memory-used 39G
gpu * temperature sine 52 3 60
gpu * power sine 540 60 23 + noise 0 20
"""


class Cost(msgspec.Struct, frozen=True):
    """What one program cost."""

    program: str
    gpus: int
    first_paint_seconds: float | None
    cpu_percent: float
    bytes_per_second: float
    rss_mib: float
    key_milliseconds: float | None


@contextmanager
def growing_log(path: Path, lines_per_second: float = 10.0) -> Iterator[None]:
    """A trainer's stream that grows while the block runs."""
    stop = threading.Event()

    def write() -> None:
        step = 0
        with path.open("a", buffering=1) as file:
            start = {"ts": time.time(), "rank": 0, "event": "train_start", "epochs": 100, "batch_size": 64,
                     "model": "yolo11x.yaml", "workers": 12, "imgsz": 640, "world_size": 1}  # fmt: skip
            file.write(json.dumps(start) + "\n")
            while not stop.wait(1 / lines_per_second):
                step += 1
                fall = 3 / (1 + step / 300)
                file.write(json.dumps({
                    "ts": time.time(), "rank": 0, "event": "batch", "epoch": 1 + step // 200, "epochs": 100,
                    "batch": step % 200 + 1, "batches": 200, "step": step, "data_time": 0.001,
                    "step_time": 1 / lines_per_second, "images": 64, "lr/pg0": 0.001,
                    "train/box_loss": fall + random.random() / 10,
                    "train/cls_loss": fall + random.random() / 5,
                    "train/dfl_loss": 1 + fall / 3,
                }) + "\n")  # fmt: skip

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Terminal:
    """A program on a terminal; its output is counted."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            os.environ.update(environment, TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
            os.chdir(ROOT)
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.began = time.monotonic()
        self.process = psutil.Process(self.pid)
        self.bytes = 0
        self.first: float | None = None
        self.rss = 0

    def read(self, seconds: float, *, until_output: bool = False) -> float | None:
        """Take what is written for that long, or up to the first output; when that came."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], min(left, 0.25))[0]:
                self._weigh()
                continue
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError:
                raise SystemExit("the program ended early") from None
            self.bytes += len(data)
            if self.first is None and len(data) > 200:
                self.first = time.monotonic() - self.began
            if b"\x1b[6n" in data:
                os.write(self.fd, b"\x1b[1;1R")
            if until_output:
                return time.monotonic()
        return None

    def _weigh(self) -> None:
        family = [self.process, *self.process.children(recursive=True)]
        self.rss = max(self.rss, sum(member.memory_info().rss for member in family))

    def cpu_seconds(self) -> float:
        """Of the whole family."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(sum(member.cpu_times()[:2]) for member in family)

    def key_seconds(self, key: bytes) -> float | None:
        """From a key to the first output after it."""
        self.read(0.05)
        pressed = time.monotonic()
        os.write(self.fd, key)
        answered = self.read(1.0, until_output=True)
        return None if answered is None else answered - pressed

    def close(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def measure(
    program: str, command: list[str], environment: dict[str, str], gpus: int, seconds: float, keys: bool
) -> Cost:
    """Run for that long; the second half counts, the start-up does not."""
    shown = Terminal(command, environment)
    try:
        shown.read(seconds / 2)
        cpu, written, began = shown.cpu_seconds(), shown.bytes, time.monotonic()
        shown.read(seconds / 2)
        took = time.monotonic() - began
        cpu, written = shown.cpu_seconds() - cpu, shown.bytes - written
        latencies = [shown.key_seconds(key) for key in (b"+", b"-") * 5] if keys else []
        known = [latency for latency in latencies if latency is not None]
        return Cost(
            program, gpus, shown.first, 100 * cpu / took, written / took, shown.rss / 2**20,
            1000 * statistics.median(known) if known else None,
        )  # fmt: skip
    finally:
        shown.close()


def first_paint(
    command: list[str], environment: dict[str, str], starts: int, watch_seconds: float = 2.0
) -> float | None:
    """The median over that many starts, seconds."""
    found = []
    for _ in range(starts):
        shown = Terminal(command, environment)
        try:
            shown.read(watch_seconds)
            found.append(shown.first if shown.first is not None else watch_seconds)
        finally:
            shown.close()
    return statistics.median(found) if found else None


def write_large_log(path: Path, gigabytes: float) -> None:
    """A stream of that length, written in blocks."""
    wanted, written, step = gigabytes * 2**30, 0, 0
    with path.open("wb") as file:
        while written < wanted:
            lines = []
            for _ in range(20_000):
                step += 1
                lines.append(
                    b'{"ts":%.1f,"rank":0,"event":"batch","epoch":%d,"epochs":100,"batch":%d,"batches":200,'
                    b'"step":%d,"step_time":0.1,"train/box_loss":%.4f,"train/cls_loss":%.4f}\n'
                    % (1.79e9 + step / 10, 1 + step // 200, step % 200 + 1, step, 1 + 9 / (step + 9), 0.5)
                )
            written += file.write(b"".join(lines))


def judged(costs: list[Cost], paints: dict[str, float | None]) -> Iterator[tuple[str, str, str, bool]]:
    """What was wanted of yolomon: words, value, limit, whether it is met."""
    by = {(cost.program, cost.gpus): cost for cost in costs}
    small, large = by.get(("yolomon", 8)), by.get(("yolomon", 64))
    other = by.get(("nvitop", 8))
    if small is not None:
        if other is not None:
            limit = f"{other.cpu_percent:.2f} % (nvitop's)"
            yield "CPU, 8 GPUs", f"{small.cpu_percent:.2f} %", limit, small.cpu_percent <= other.cpu_percent
            most = 1.5 * other.cpu_percent
            yield (
                "CPU, 8 GPUs",
                f"{small.cpu_percent:.2f} %",
                f"{most:.2f} % (1.5 x)",
                small.cpu_percent <= most,
            )
        sent = small.bytes_per_second
        yield "to the terminal", f"{sent:.0f} B/s", "3000 B/s", sent <= 3000
        yield "resident", f"{small.rss_mib:.1f} MiB", "55 MiB", small.rss_mib <= 55
    if small is not None and large is not None:
        ratio = large.cpu_percent / small.cpu_percent
        yield "CPU, 64 GPUs by 8", f"{ratio:.1f}", "4", ratio <= 4
    for name, seconds in paints.items():
        if seconds is not None:
            yield f"first paint, {name}", f"{seconds:.2f} s", "0.5 s", seconds <= 0.5
    for cost in costs:
        if cost.key_milliseconds is not None:
            told = f"a key, {cost.gpus} GPUs, one hangs"
            yield told, f"{cost.key_milliseconds:.0f} ms", "50 ms", cost.key_milliseconds <= 50


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--gpus", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--only", choices=["yolomon", "nvitop"])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="length of the long log; 0: none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder) / "lib")
        costs: list[Cost] = []
        paints: dict[str, float | None] = {}
        print(f"{'program':22} {'GPUs':>4} {'first s':>8} {'CPU %':>6} {'B/s':>6} {'MiB':>6} {'key ms':>7}")
        for gpus in arguments.gpus:
            scenario = Path(folder) / f"{gpus}.scenario"
            scenario.write_text(BUSY.format(gpus=gpus))
            hanging = Path(folder) / f"{gpus}-hanging.scenario"
            hanging.write_text(
                scenario.read_text() + "gpu 1 hang nvmlDeviceGetUtilizationRates 600 after 5\n"
            )
            log = Path(folder) / f"train-{gpus}.jsonl"
            base = {
                "LD_LIBRARY_PATH": str(library.parent),
                "YOLOMON_CONFIG": str(Path(folder) / "none.toml"),
                "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"),
                "XDG_STATE_HOME": folder,
            }
            first_paint([sys.executable, "-m", "yolomon", str(log)], base, 1, 8.0)  # compiles
            yolomon = [sys.executable, "-m", "yolomon", str(log)]
            runs = [
                ("yolomon", yolomon, scenario, False),
                (
                    "nvitop",
                    [sys.executable, "-m", "nvitop", "-m", "full", "--interval", "1"],
                    scenario,
                    False,
                ),
                ("yolomon, GPU 1 hangs", yolomon, hanging, True),
            ]
            for program, command, played, keys in runs:
                if arguments.only and not program.startswith(arguments.only):
                    continue
                with growing_log(log):
                    environment = base | {"FAKE_NVML_SCENARIO": str(played)}
                    cost = measure(program, command, environment, gpus, arguments.seconds, keys)
                    costs.append(cost)
                    if program in ("yolomon", "nvitop") and gpus == 8:
                        paints[program] = first_paint(command, environment, arguments.starts)
                first = "-" if cost.first_paint_seconds is None else f"{cost.first_paint_seconds:.2f}"
                key = "" if cost.key_milliseconds is None else f"{cost.key_milliseconds:.0f}"
                print(
                    f"{cost.program:22} {gpus:4} {first:>8} {cost.cpu_percent:6.2f}"
                    f" {cost.bytes_per_second:6.0f} {cost.rss_mib:6.1f} {key:>7}",
                    flush=True,
                )
        if arguments.gigabytes > 0 and arguments.only != "nvitop":
            log = Path(folder) / "long.jsonl"
            write_large_log(log, arguments.gigabytes)
            name = f"yolomon with a log of {arguments.gigabytes:g} GB"
            paints[name] = first_paint([*yolomon[:-1], str(log)], environment, arguments.starts)
    print()
    for words, value, limit, met in judged(costs, paints):
        print(f"{words:40} {value:>12}  limit {limit:22} {'met' if met else 'NOT MET'}")


if __name__ == "__main__":
    main()
