"""Earlier runs of a folder: found by their logs, read with an end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from yolomon import earlier_run
from yolomon.earlier_run import earlier_runs, read_curves


def write(folder: Path, age: int) -> str:
    folder.mkdir(parents=True)
    rows = [
        "epoch,time,train/box_loss,metrics/mAP50-95(B)",
        *(f"{n},{n},{1 / n},{0.9 - 0.5 / n}" for n in range(1, 9)),
    ]
    log = folder / "results.csv"
    log.write_text("\n".join(rows) + "\n")
    os.utime(folder, (1e9 - age, 1e9 - age))
    return str(log)


def test_the_runs_beside_come_newest_first_and_only_those_with_a_log(tmp_path: Path) -> None:
    write(tmp_path / "train", 30)
    write(tmp_path / "train-2", 20)
    own = write(tmp_path / "train-3", 10)
    (tmp_path / "weights").mkdir()
    assert earlier_runs(own) == [str(tmp_path / "train-2"), str(tmp_path / "train")]
    assert earlier_runs(str(tmp_path / "no" / "such" / "log.csv")) == []


def test_a_run_is_read_with_its_progress(tmp_path: Path) -> None:
    log = write(tmp_path / "train", 1)
    told: list[float] = []
    curves, failure = read_curves([log], threading.Event(), told.append)
    assert failure is None
    assert curves["map50_95"].x[-1] == 8
    assert told[-1] == 100.0


def test_reading_stops_when_it_is_asked_to(tmp_path: Path) -> None:
    log = write(tmp_path / "train", 1)
    stop = threading.Event()
    stop.set()
    told: list[float] = []
    read_curves([log], stop, told.append)
    assert told == []


def test_a_huge_log_is_refused_with_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "results.csv"
    with log.open("wb") as stream:
        stream.truncate(earlier_run.BYTES_LIMIT + 1)
    curves, failure = read_curves([str(log)], threading.Event())
    assert curves == {}
    assert failure is not None
    assert "256" in str(failure)
