"""A log that grows faster than the screen can take records: nothing is lost to the curves or the counts."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path

import pytest

from yolomon.history import History
from yolomon.model import CurveBlock, TrainRecord
from yolomon.trainlog.burst import Allowance, Condenser
from yolomon.trainlog.log import Log

LINES = 5000


def batch(step: int, loss: float) -> str:
    return json.dumps(
        {"ts": 1.7e9, "rank": 0, "event": "batch", "epoch": 1, "batches": 10_000, "batch": step + 1,
         "step": step, "step_time": 0.1, "images": 16, "train/box_loss": loss}
    )  # fmt: skip


def csv_row(step: int, loss: float) -> str:
    return f"{step},{loss}"


def read_burst(path: Path, lines: list[str], *, head: list[str]) -> tuple[Log, History, int]:
    """Follow a log that gets all these lines between two looks."""
    path.write_text("\n".join(head) + "\n")
    log, history = Log(str(path)), History()
    condenser = Condenser(str(path), Allowance(per_second=100.0, saved_up=50.0))
    found = log.look_live(2e9, 1.0, condenser)
    with path.open("a") as file:
        file.write("\n".join(lines) + "\n")
    while (more := log.look_live(2e9, 2.0, condenser)) or log.follower.state == "reading":
        found += more
    for item in found:
        history.add(item)
    return log, history, len(found)


def test_few_items_come_of_many_lines_and_every_point_is_in_the_curve(tmp_path: Path) -> None:
    lines = [batch(step, 1.0 + step % 7) for step in range(1, LINES)]
    lines[LINES // 2] = batch(LINES // 2 + 1, 99.0)  # a spike
    log, history, items = read_burst(tmp_path / "run.jsonl", lines, head=[batch(0, 1.0)])
    assert log.counts.records == LINES
    assert items < 500
    curve = history.train.curves["train/box_loss"]
    assert max(curve.high) == 99.0
    assert not curve.breaks
    assert history.train.step == LINES - 1
    assert history.train.curves["images_per_second"].bounds == (160.0, 160.0)


@pytest.mark.parametrize("place", [1, 1000, LINES - 2])
def test_the_first_nan_is_told_with_its_step(tmp_path: Path, place: int) -> None:
    lines = [batch(step, nan if step >= place else 1.0) for step in range(1, LINES)]
    log, history, _ = read_burst(tmp_path / "run.jsonl", lines, head=[batch(0, 1.0)])
    broken = [
        r.step for r in history.train.records if r.roles.loss is not None and r.roles.loss != r.roles.loss
    ]
    assert broken[0] == place
    assert log.counts.nan_losses == LINES - place
    assert history.train.curves["loss"].non_finite_count == LINES - place


def test_other_records_are_told_whole_and_in_order(tmp_path: Path) -> None:
    lines = [batch(step, 1.0) for step in range(1, LINES)]
    lines.insert(2000, json.dumps({"ts": 1.7e9, "rank": 0, "event": "warning", "text": "look here"}))
    lines.insert(3000, "{ torn")
    log, history, _ = read_burst(tmp_path / "run.jsonl", lines, head=[batch(0, 1.0)])
    assert [r.text for r in history.train.ranks[0].events] == ["look here"]
    assert log.counts.broken_lines == 1
    assert log.counts.records == LINES + 1
    steps = [r.step for r in history.train.ranks[0].batches]
    assert steps == sorted(steps)  # type: ignore[type-var]


def test_formats_without_json_are_thinned_too(tmp_path: Path) -> None:
    lines = [csv_row(step, 50.0 if step == 1234 else 1.0) for step in range(1, LINES)]
    log, history, items = read_burst(tmp_path / "log.csv", lines, head=["step,train_loss", "0,1.0"])
    assert log.counts.records == LINES
    assert items < 500
    assert max(history.train.curves["loss"].high) == 50.0
    assert history.train.step == LINES - 1


def test_a_calm_log_comes_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(batch(0, 1.0) + "\n")
    log, condenser = Log(str(path)), Condenser(str(path))
    log.look_live(2e9, 0.0, condenser)
    for second in range(20):
        with path.open("a") as file:
            file.write("".join(batch(second * 40 + n + 1, 1.0) + "\n" for n in range(40)))
        found = log.look_live(2e9, float(second), condenser)
        assert len(found) == 40
        assert all(isinstance(item, TrainRecord) and not isinstance(item, CurveBlock) for item in found)


def test_an_allowance_saves_up_and_always_lets_the_newest_pass() -> None:
    allowance = Allowance(per_second=10.0, saved_up=20.0)
    assert allowance.take(20, 0.0) == 20
    assert allowance.take(1000, 0.0) == 4
    assert allowance.take(15, 1.5) == 15
    assert allowance.take(1000, 100.0) == 4
    assert allowance.take(21, 100.0) == 4
    assert allowance.take(20, 100.0) == 20
