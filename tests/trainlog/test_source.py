"""The logs of a run as a source: threads, real files, what is emitted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from yolomon.history import History
from yolomon.model import CurveBlock, Item, LogStatus, TrainRecord
from yolomon.trainlog.source import LogSource
from yolomon.trainlog.stream import StreamSource

DEADLINE_SECONDS = 10.0


def event(step: int, rank: int = 0, **more: object) -> bytes:
    body = {
        "ts": 1.7e9 + step,
        "rank": rank,
        "event": "batch",
        "epoch": 1 + step // 10,
        "batch": step % 10 + 1,
    }
    return json.dumps(body | {"batches": 10, "step": step, "loss": float(step), **more}).encode() + b"\n"


class Collected:
    """What a source emitted, taken from its threads."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Item] = SimpleQueue()
        self.items: list[Item] = []
        self.put = self._queue.put

    def wait_for(self, done: Callable[[list[Item]], bool]) -> None:
        end = time.monotonic() + DEADLINE_SECONDS
        while not done(self.items):
            assert time.monotonic() < end, self.items[-3:]
            if self._queue.empty():
                time.sleep(0.01)
            else:
                self.items.append(self._queue.get())

    def records(self) -> list[TrainRecord]:
        return [item for item in self.items if isinstance(item, TrainRecord)]


def ends(items: list[Item]) -> int:
    return sum(isinstance(item, CurveBlock) and item.ends for item in items)


def test_what_was_there_is_backlog_and_what_comes_is_live(tmp_path: Path) -> None:
    path = tmp_path / "yolomon.jsonl"
    path.write_bytes(event(0) + event(1))
    (tmp_path / "args.yaml").write_text("epochs: 7\nimgsz: 640\n")
    got = Collected()
    source = LogSource([path])
    source.start(got.put)
    got.wait_for(lambda items: ends(items) == 1)
    with open(path, "ab") as file:
        file.write(event(2))
    got.wait_for(lambda items: len([i for i in items if isinstance(i, TrainRecord)]) == 3)
    source.stop()
    assert [(record.step, record.backlog) for record in got.records()] == [(0, True), (1, True), (2, False)]
    run = got.records()[0].run
    assert run is not None
    assert (run.epochs, run.image_size) == (7, 640)
    history = History()
    for item in got.items:
        history.add(item)
    assert list(history.train.curves["loss"].last) == [0.0, 1.0, 2.0]


def test_the_files_of_all_ranks_are_one_run(tmp_path: Path) -> None:
    paths = [tmp_path / "yolomon.jsonl", tmp_path / "yolomon.rank1.jsonl"]
    for rank, path in enumerate(paths):
        path.write_bytes(b"".join(event(step, rank) for step in range(5)))
    got = Collected()
    source = LogSource(paths)
    source.start(got.put)
    got.wait_for(lambda items: ends(items) == 2)
    source.stop()
    assert sorted((record.rank, record.step) for record in got.records()) == [
        (r, s) for r in (0, 1) for s in range(5)
    ]


def test_a_long_log_shows_its_end_first_and_all_its_curves_later(tmp_path: Path) -> None:
    path = tmp_path / "yolomon.jsonl"
    path.write_bytes(b"".join(event(step) for step in range(40_000)))
    got = Collected()
    source = LogSource([path], fill_delay_seconds=0.0)
    source.start(got.put)
    got.wait_for(lambda items: ends(items) == 1)
    source.stop()
    history = History()
    for item in got.items:
        history.add(item)
    assert history.train.epoch == 4000
    assert len(got.records()) < 4000
    curve = history.train.curves["loss"]
    assert curve.bounds == (0.0, 39_999.0)
    assert curve.breaks == []


def test_a_missing_log_is_told_and_read_when_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    got = Collected()
    source = LogSource([path])
    source.start(got.put)
    got.wait_for(lambda items: any(isinstance(i, LogStatus) and i.state == "waiting" for i in items))
    path.write_bytes(event(0))
    got.wait_for(lambda items: any(isinstance(i, TrainRecord) for i in items))
    source.stop()


def test_a_pipe_is_read_passed_through_and_told_as_ended(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    got = Collected()
    source = StreamSource(reader, str(tmp_path / "tee.log"))
    source.start(got.put)
    os.write(writer, event(0) + event(1)[:10])
    os.write(writer, event(1)[10:] + event(2).strip())
    os.close(writer)
    got.wait_for(lambda items: any(isinstance(i, LogStatus) and i.state == "ended" for i in items))
    source.stop()
    os.close(reader)
    assert [record.step for record in got.records()] == [0, 1, 2]
    assert (tmp_path / "tee.log").read_bytes() == event(0) + event(1) + event(2).strip()
