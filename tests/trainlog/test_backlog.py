"""Columns give what reading a record at a time gives, whatever lies between the usual lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yolomon.model import TrainRecord
from yolomon.trainlog.backlog import BacklogReader, can_read_fast
from yolomon.trainlog.inspect import Inspection, inspect
from yolomon.trainlog.long_log import fill_curves, open_long


def batch(step: int, **more: object) -> str:
    body = {"ts": 1.7e9 + step, "rank": 0, "event": "batch", "epoch": 1 + step // 1000, "epochs": 9}
    body |= {"batch": step % 1000 + 1, "batches": 1000, "step": step, "loss": 1.0 + step % 7, "lr/pg0": 0.01}
    return json.dumps(body | more)


def reader_of(path: Path) -> BacklogReader:
    reader = can_read_fast(str(path), 0)
    assert reader is not None
    return reader


def slow_and_fast(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Inspection, Inspection]:
    monkeypatch.setattr("yolomon.trainlog.inspect.FAST_BYTES", 1 << 40)
    slow = inspect(path)
    monkeypatch.setattr("yolomon.trainlog.inspect.FAST_BYTES", 0)
    return slow, inspect(path)


def content(name: str) -> list[str]:
    lines = [json.dumps({"ts": 1.7e9, "rank": 0, "event": "train_start", "epochs": 9})]
    for step in range(6000):
        if step % 1000 == 0:
            lines.append(
                json.dumps({"ts": 1.7e9, "rank": 0, "event": "epoch_start", "epoch": 1 + step // 1000})
            )
        extra: dict[str, object] = {}
        if name == "nan" and step % 500 == 7:
            extra["loss"] = float("nan")
        if name == "words" and step % 300 == 7:
            extra["loss"] = "1.5"
        if name == "late key" and step % 300 == 7:
            extra["mAP50"] = 0.25
        if name == "missing" and step % 300 == 7:
            extra["lr/pg0"] = None
        lines.append(batch(step, **extra))
        if name == "broken" and step % 700 == 3:
            lines.append('{"step": 12, "los')
        if name == "same length" and step % 700 == 3:
            lines.append(batch(step).replace("batch", "other", 1))
        if name == "two runs" and step == 3500:
            lines += [batch(again) for again in range(3000)]
        if name == "resumed" and step == 3500:
            lines.append(json.dumps({"ts": 1.7e9, "rank": 0, "event": "train_start", "epochs": 9}))
    return lines


@pytest.mark.parametrize(
    "name", ["plain", "nan", "words", "late key", "missing", "broken", "same length", "two runs", "resumed"]
)
def test_columns_count_what_records_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(content(name)) + "\n")
    slow, fast = slow_and_fast(path, monkeypatch)
    assert fast.as_json() == slow.as_json()
    assert fast.records >= 6000


def test_most_lines_are_read_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(content("nan")) + "\n")
    blocks = list(reader_of(path).blocks(0.0))
    assert sum(column.count for block in blocks for column in block.columns) == 6000


def test_curves_keep_every_extreme_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = content("nan")
    lines[lines.index(batch(4312))] = batch(4312, loss=99.0)
    path.write_text("\n".join(lines) + "\n")
    blocks = list(fill_curves(reader_of(path), [], 0.0, lambda: False))
    assert blocks[-1].ends
    loss = [block for block in blocks if block.name == "loss"]
    assert max(block.maximum for block in loss if block.count) == 99.0
    assert sum(block.count for block in loss) == 6000 - 12
    assert sum(block.non_finite for block in loss) == 12
    xs = [block.x_last for block in loss]
    assert xs == sorted(xs)


def test_a_long_log_opens_at_its_newest_records_with_the_right_epoch(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([content("plain")[0], *(batch(step) for step in range(30_000))]) + "\n")
    opened = open_long(str(path), 2e9)
    assert opened is not None
    newest: list[TrainRecord] = opened.log.look(2e9)
    opened.log.close()
    assert (newest[-1].step, newest[-1].epoch) == (29_999, 30)
    assert len(newest) < 3000
    assert [record.kind for record in opened.starts] == ["start"]
    blocks = list(fill_curves(opened.reader, newest, 0.0, lambda: False))
    assert sum(block.count for block in blocks if block.name == "loss") == 30_000


def test_a_run_that_starts_over_where_a_chunk_begins_is_a_segment(tmp_path: Path) -> None:
    lines = [batch(1000 + step) for step in range(300)] + [batch(1000 + step) for step in range(600)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines) + "\n")
    at = len("\n".join(lines[:300])) + 1
    reader = reader_of(path)
    columns = [column for block in reader.blocks(0.0, at) for column in block.columns]
    assert [column.segment for column in columns] == [0] * (len(columns) - 2) + [1, 1]
    assert reader.records == 900


def test_chunks_that_go_on_tell_the_same_epochs_and_places(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(batch(step) for step in range(5000)) + "\n")
    columns = [column for block in reader_of(path).blocks(0.0, 1 << 15) for column in block.columns]
    done = 0
    for column in columns:
        assert column.first_epoch == 1 + done // 1000
        assert column.x_first == pytest.approx(done / 1000, abs=0.0011)
        done += column.count
    assert done == 5000 and columns[-1].x_last == 5.0
