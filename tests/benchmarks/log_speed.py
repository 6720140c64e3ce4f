"""How fast logs are read: run it by hand, `python tests/benchmarks/log_speed.py [records]`.

Prints one JSON object: the reader's throughput against msgspec's own `decode_lines` on the same file, the opening of
a log of that many records (3 million: about 1 GB), the lag behind a writer of 20,000 lines/s, and the CPU that a log
of 1 line/s costs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec
import psutil

from yolomon.history import History
from yolomon.model import CurveBlock, Item, TrainRecord
from yolomon.trainlog.backlog import can_read_fast
from yolomon.trainlog.source import LogSource

BATCHES = 5000
START = 1.7e9


def line(step: int) -> str:
    wave = (step * 7919) % 1000 / 1000
    return (
        f'{{"ts": {START + step * 0.1:.4f}, "rank": 0, "pid": 1143, "event": "batch", "epoch": {step // BATCHES + 1}, '
        f'"epochs": 600, "batch": {step % BATCHES + 1}, "batches": {BATCHES}, "step": {step}, "data_time": 0.0002, '
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
        [sys.executable, __file__, "--open", str(path)], capture_output=True, text=True, check=True
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


def lag(folder: Path, lines_per_second: int, seconds: float) -> dict[str, float]:
    """How long after it was written a record arrives in the history."""
    path = folder / "live.jsonl"
    path.write_text("")
    queue: SimpleQueue[Item] = SimpleQueue()
    source = LogSource([path])
    source.start(queue.put)
    history = History()
    written: list[tuple[int, float]] = []
    stop = threading.Event()

    def write_on() -> None:
        step, began = 0, time.perf_counter()
        with open(path, "a", encoding="ascii", buffering=1 << 16) as file:
            while not stop.is_set():
                due = int((time.perf_counter() - began) * lines_per_second)
                file.write("".join(line(number) for number in range(step, due)))
                file.flush()
                step = due
                written.append((step - 1, time.perf_counter()))
                stop.wait(0.02)

    writer = threading.Thread(target=write_on)
    time.sleep(0.6)
    began, cpu = time.perf_counter(), time.process_time()
    writer.start()
    worst, at, seen = 0.0, 0, 0
    while time.perf_counter() - began < seconds:
        try:
            item = queue.get(timeout=0.05)
        except Empty:
            continue
        history.add(item)
        if isinstance(item, TrainRecord) and item.step is not None:
            seen += 1
            while at < len(written) and written[at][0] <= item.step:
                worst = max(worst, time.perf_counter() - written[at][1])
                at += 1
    cpu = time.process_time() - cpu
    stop.set()
    writer.join()
    source.stop()
    return {
        "lines_per_s": round(seen / seconds),
        "worst_lag_s": round(worst, 2),
        "cpu_percent": round(100 * cpu / seconds, 1),
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
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample, big = folder / "sample.jsonl", folder / "big.jsonl"
        write(sample, 200_000)
        write(big, records)
        result = {
            "throughput": throughput(sample),
            "opening": {"records": records, "bytes": big.stat().st_size, **opening(big)},
            "stream": lag(folder, 20_000, 6.0),
            "one_line_per_s": idle(folder),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
