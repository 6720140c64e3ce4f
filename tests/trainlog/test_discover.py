"""Finding the log that is meant."""

from __future__ import annotations

import json
import os
from pathlib import Path

from yolomon.trainlog.discover import ProcessHint, find_logs, logs_of_run

EVENT = json.dumps({"ts": 1.7e9, "rank": 0, "event": "batch", "epoch": 1, "loss": 1.0}) + "\n"
TABLE = "epoch,time,train/box_loss,metrics/mAP50(B)\n1,1.5,0.5,0.1\n"
NOW = 2e9


def put(path: Path, text: str, age_seconds: float = 0.0) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (NOW - age_seconds, NOW - age_seconds))
    return str(path)


def test_the_log_that_grows_comes_first(tmp_path: Path) -> None:
    put(tmp_path / "runs/detect/train/results.csv", TABLE, 9000)
    new = put(tmp_path / "runs/detect/train-2/results.csv", TABLE, 5)
    found = find_logs(tmp_path, now=NOW)
    assert found[0].path == new
    assert [candidate.growing for candidate in found] == [True, False]
    assert str(found[0].reason) == "growing now"


def test_the_files_of_a_run_are_one_candidate_with_the_stream_first(tmp_path: Path) -> None:
    run = tmp_path / "runs/detect/train"
    logs = [
        put(run / "yolomon.jsonl", EVENT),
        put(run / "yolomon.rank1.jsonl", EVENT),
        put(run / "results.csv", TABLE),
    ]
    (candidate,) = find_logs(tmp_path, now=NOW)
    assert list(candidate.paths) == logs
    assert list(logs_of_run(logs[0])) == [logs[0], *sorted(logs[1:])]


def test_a_file_that_a_gpu_process_has_open_wins(tmp_path: Path) -> None:
    put(tmp_path / "here/runs/train/results.csv", TABLE, 1)
    open_file = put(tmp_path / "elsewhere/log.jsonl", EVENT, 3000)
    found = find_logs(tmp_path / "here", [ProcessHint(pid=42, files=(open_file, "/dev/null"))], now=NOW)
    assert (found[0].path, found[0].pid) == (open_file, 42)
    assert "42" in str(found[0].reason)


def test_the_working_folder_of_a_process_is_searched(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    path = put(tmp_path / "job/runs/train/results.csv", TABLE)
    assert [
        c.path for c in find_logs(tmp_path / "here", [ProcessHint(pid=1, cwd=str(tmp_path / "job"))], now=NOW)
    ] == [path]


def test_folders_of_weights_and_images_are_not_searched(tmp_path: Path) -> None:
    put(tmp_path / "runs/weights/results.csv", TABLE)
    put(tmp_path / "runs/images/results.csv", TABLE)
    put(tmp_path / "runs/train/labels.csv", TABLE)
    assert find_logs(tmp_path, now=NOW) == []


def test_the_double_of_an_mmengine_log_is_left_out(tmp_path: Path) -> None:
    row = json.dumps({"loss": 1.0, "iter": 1, "step": 1, "data_time": 0.1, "time": 0.2, "epoch": 1}) + "\n"
    folder = tmp_path / "work_dirs/yolo/20230805_113504/vis_data"
    path = put(folder / "20230805_113504.json", row)
    put(folder / "scalars.json", row)
    (candidate,) = find_logs(tmp_path, now=NOW)
    assert candidate.paths == (path,)


def test_a_file_that_is_no_training_log_is_no_candidate(tmp_path: Path) -> None:
    put(tmp_path / "runs/app.log", "hello\nworld\n")
    put(tmp_path / "runs/empty.jsonl", "")
    assert find_logs(tmp_path, now=NOW) == []
