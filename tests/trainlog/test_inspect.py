"""What `yolomon inspect` says of long logs, which are read in columns."""

from __future__ import annotations

import json
from pathlib import Path

from yolomon.trainlog.inspect import FAST_BYTES, inspect


def test_the_newest_values_are_those_at_the_end_of_the_file(tmp_path: Path) -> None:
    """A record of an epoch after its batches: columns of batches are no newer than it."""
    batches = [
        json.dumps({"epoch": 1, "step": step, "loss": 2.5, "lr": 0.01, "note": "x" * 60})
        for step in range(1, FAST_BYTES // 100)
    ]
    epoch = json.dumps({"event": "epoch", "epoch": 1, "train_loss": 1.25, "val_mAP50": 0.5})
    log = tmp_path / "train.jsonl"
    log.write_text("\n".join([*batches, epoch, ""]))
    assert log.stat().st_size > FAST_BYTES
    found = inspect(log)
    (segment,) = found.segments
    assert found.records == len(batches) + 1
    assert (segment.last.loss, segment.last.learning_rate, segment.last.map50) == (1.25, 0.01, 0.5)


def test_a_run_that_begins_in_the_last_lines_has_its_own_newest_values(tmp_path: Path) -> None:
    lines = [json.dumps({"epoch": 9, "step": step, "loss": 2.5, "lr": 0.01, "note": "x" * 60})
             for step in range(1, FAST_BYTES // 100)]  # fmt: skip
    lines += [json.dumps({"epoch": 1, "step": step, "loss": 5.5}) for step in (1, 2)]
    log = tmp_path / "train.jsonl"
    log.write_text("\n".join([*lines, ""]))
    first, second = inspect(log).segments
    assert (first.last.loss, first.last.learning_rate) == (2.5, 0.01)
    assert (second.last.loss, second.last.learning_rate) == (5.5, None)


def test_equal_values_name_no_role_by_something_else(tmp_path: Path) -> None:
    """After a first epoch precision and recall are 0 like both mAP; here they stand before them."""
    row = {
        "epoch": 1, "start_epoch": 0, "train/loss": 4.0, "lr/pg0": 0.01, "metrics/precision(B)": 0.0,
        "metrics/recall(B)": 0.0, "metrics/mAP50(B)": 0.0, "metrics/mAP50-95(B)": 0.0,
    }  # fmt: skip
    log = tmp_path / "train.jsonl"
    log.write_text(json.dumps(row) + "\n" + json.dumps({**row, "epoch": 2}) + "\n")
    names = inspect(log).roles
    assert (names["map50"], names["map50_95"]) == ("metrics/mAP50(B)", "metrics/mAP50-95(B)")
    assert (names["loss"], names["learning_rate"]) == ("train/loss", "lr/pg0")


def test_a_path_with_a_line_end_is_one_line_of_the_report(tmp_path: Path) -> None:
    log = tmp_path / "a\nb\x1b[31m.jsonl"
    log.write_text('{"epoch": 1, "loss": 0.5}\n')
    assert inspect(log).text().splitlines()[0].endswith("a?b?[31m.jsonl: JSON lines")
