"""How fast logs are read: run it by hand, `python tests/benchmarks/log_speed.py [records]`.

Prints one JSON object: the reader's throughput against msgspec's own `decode_lines` on the same file, the
opening of a log of that many records (3 million: about 1 GB), the lag behind a writer of 20,000 lines/s, and
the CPU that a log of 1 line/s costs. `--stream LINES_PER_SECOND SECONDS` measures the lag alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec
import psutil

from yolomon.diagnosis.engine import Engine
from yolomon.history import History
from yolomon.model import CurveBlock, Item, TrainRecord
from yolomon.monitor import Monitor
from yolomon.trainlog.backlog import can_read_fast
from yolomon.trainlog.source import LogSource

BATCHES = 5000
START = 1.7e9


def line(step: int) -> str:
    wave = (step * 7919) % 1000 / 1000
    return (
        f'{{"ts": {START + step * 0.1:.4f}, "rank": 0, "pid": 1143, "event": "batch", '
        f'"epoch": {step // BATCHES + 1}, "epochs": 600, "batch": {step % BATCHES + 1}, '
        f'"batches": {BATCHES}, "step": {step}, "data_time": 0.0002, '
        f'"step_time": {0.1 + wave:.4f}, "images": 32, "train/box_loss": {wave * 3:.6f}, '
        f'"train/cls_loss": {wave * 4:.6f}, "train/dfl_loss": 4.432, "lr/pg0": 1.984722222e-05, '
        f'"mem_allocated": 1538858496, "mem_reserved": 30819745792}}\n'
    )


def write(path: Path, records: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        for step in range(records):
            if step % BATCHES == 0:
                file.write(
                    f'{{"ts": {START}, "rank": 0, "event": "epoch_start", "epoch": {step // BATCHES + 1}}}\n'
                )
            file.write(line(step))


def throughput(path: Path) -> dict[str, float]:
    """Records a second of CPU time of both, best of three, in turns."""
    data = path.read_bytes()
    ours, plain = 0.0, 0.0
    for _ in range(3):
        began = time.process_time()
        decoded = len(msgspec.json.Decoder().decode_lines(data))
        plain = max(plain, decoded / (time.process_time() - began))
        reader = can_read_fast(str(path), 0)
        assert reader is not None
        began = time.process_time()
        for _block in reader.blocks(0.0):
            pass
        ours = max(ours, reader.records / (time.process_time() - began))
    return {"records_per_s": round(ours), "decode_lines_per_s": round(plain), "ratio": round(ours / plain, 2)}


def opening(path: Path) -> dict[str, float]:
    """Run in a process of its own, so that its memory is its own."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.log_speed", "--open", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(run.stdout)
    return found


def open_here(path: str) -> None:
    queue: SimpleQueue[Item] = SimpleQueue()
    history = History()
    source = LogSource([path])
    began = time.perf_counter()
    source.start(queue.put)
    newest = complete = 0.0
    slowest = rss = 0.0
    while not complete:
        waited = time.perf_counter()
        time.sleep(0.02)  # the screen's loop
        rss = max(rss, psutil.Process().memory_info().rss / 2**20)  # ru_maxrss would be the parent's too
        slowest = max(slowest, time.perf_counter() - waited - 0.02)
        try:
            while True:
                item = queue.get_nowait()
                history.add(item)
                if isinstance(item, TrainRecord) and item.kind == "batch" and not newest:
                    newest = time.perf_counter() - began
                if isinstance(item, CurveBlock) and item.ends:
                    complete = time.perf_counter() - began
        except Empty:
            pass
    source.stop()
    print(
        json.dumps(
            {
                "newest_records_s": round(newest, 2),
                "curves_complete_s": round(complete, 2),
                "loop_delayed_at_most_s": round(slowest, 3),
                "epoch": history.train.epoch,
                "rss_mb": round(rss, 1),
                "cpu_s": round(time.process_time(), 2),
            }
        )
    )


def write_on(path: str, lines_per_second: int, seconds: float) -> None:
    """The writer, in a process of its own: says on standard output which step was written when."""
    step, began = 0, time.time()
    with open(path, "a", encoding="ascii", buffering=1 << 16) as file:
        while time.time() - began < seconds:
            due = int((time.time() - began) * lines_per_second)
            file.write("".join(line(number) for number in range(step, due)))
            file.flush()
            step = due
            print(step - 1, time.time(), flush=True)
            time.sleep(0.02)


def lag(folder: Path, lines_per_second: int, seconds: float, tick_seconds: float = 0.5) -> dict[str, float]:
    """How long after it was written a step is in the history, drained as the screen drains it."""
    path = folder / f"live-{lines_per_second}.jsonl"
    path.write_text("")
    source = LogSource([path])
    monitor = Monitor([source], Engine())
    monitor.start()
    time.sleep(0.6)
    process = psutil.Process()
    cpu, rss, most_waiting = time.process_time(), [process.memory_info().rss], 0
    arrived: list[tuple[int, float]] = []
    slowest = 0.0
    writer = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.benchmarks.log_speed",
            "--write",
            str(path),
            str(lines_per_second),
            str(seconds),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    end = time.time() + seconds + 1.5
    while time.time() < end:
        time.sleep(tick_seconds)
        most_waiting = max(most_waiting, monitor.waiting)
        began = time.perf_counter()
        monitor.drain(0.02)
        slowest = max(slowest, time.perf_counter() - began)
        rss.append(process.memory_info().rss)
        if monitor.history.train.step is not None:
            arrived.append((monitor.history.train.step, time.time()))
    cpu = time.process_time() - cpu
    told, _ = writer.communicate()
    written = [(int(step), float(at)) for step, at in (entry.split() for entry in told.splitlines())]
    lags, place = [], 0
    for step, at in written:
        while place < len(arrived) and arrived[place][0] < step:
            place += 1
        lags.append(arrived[place][1] - at if place < len(arrived) else float("inf"))
    loss = monitor.history.train.curves["loss"]
    status = monitor.history.train.logs[str(path)]
    monitor.stop()
    return {
        "lines_per_s": round((written[-1][0] + 1) / seconds),
        "worst_lag_s": round(max(lags), 2),
        "cpu_percent": round(100 * cpu / (seconds + 1.5), 1),
        "longest_drain_s": round(slowest, 3),
        "most_items_waiting": most_waiting,
        "rss_mb_at_start_and_end": [round(rss[0] / 2**20), round(rss[-1] / 2**20)],  # type: ignore[dict-item]
        "written": written[-1][0] + 1,
        "counted": status.records,
        "points_in_loss_curve": sum(loss._count),
    }


def idle(folder: Path, seconds: float = 5.0) -> dict[str, float]:
    path = folder / "slow.jsonl"
    path.write_text(line(0))
    source = LogSource([path])
    source.start(lambda item: None)
    time.sleep(1.0)
    cpu, began = time.process_time(), time.perf_counter()
    with open(path, "a", encoding="ascii") as file:
        for step in range(1, int(seconds) + 1):
            file.write(line(step))
            file.flush()
            time.sleep(1.0)
    spent = time.process_time() - cpu
    share = 100 * spent / (time.perf_counter() - began)
    source.stop()
    return {"cpu_percent": round(share, 2)}


def main() -> None:
    if sys.argv[1:2] == ["--open"]:
        open_here(sys.argv[2])
        return
    if sys.argv[1:2] == ["--write"]:
        write_on(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
        return
    if sys.argv[1:2] == ["--stream"]:
        with tempfile.TemporaryDirectory() as name:
            print(json.dumps(lag(Path(name), int(sys.argv[2]), float(sys.argv[3]))))
        return
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample, big = folder / "sample.jsonl", folder / "big.jsonl"
        write(sample, 200_000)
        write(big, records)
        result = {
            "throughput": throughput(sample),
            "opening": {"records": records, "bytes": big.stat().st_size, **opening(big)},
            "stream": lag(folder, 20_000, 12.0),
            "one_line_per_s": idle(folder),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
