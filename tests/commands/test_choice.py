"""A folder stands for the newest run in it: every command says which, and what else is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yolomon import live
from yolomon.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
ROW = '{{"ts": {ts}, "epoch": 1, "epochs": {epochs}, "step": {step}, "loss": 0.5}}\n'


def yolomon(*arguments: str | Path, folder: Path, language: str = "en") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yolomon", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "YOLOMON_LANGUAGE": language},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def write_run(folder: Path, epochs: int, hours_ago: float) -> Path:
    folder.mkdir(parents=True)
    log = folder / "train.jsonl"
    now = time.time() - 3600 * hours_ago
    log.write_text("".join(ROW.format(ts=now + step, epochs=epochs, step=step) for step in range(1, 9)))
    os.utime(log, (now, now))
    return log


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, the newer one of 22 epochs."""
    write_run(tmp_path / "runs" / "old", 11, 5)
    write_run(tmp_path / "runs" / "new", 22, 1)
    return tmp_path


@pytest.mark.parametrize("command", [("--once",), ("inspect",), ("diagnose",), ("doctor",)])
def test_the_chosen_log_is_told_on_stderr_and_so_is_the_other(command: tuple[str, ...], runs: Path) -> None:
    result = yolomon(*command, "runs", folder=runs)
    assert result.returncode == 0, result.stderr
    first, second = result.stderr.splitlines()
    assert first.startswith("reading ") and "runs/new/train.jsonl" in first and "1 h ago" in first
    assert second.startswith("not read: ") and "runs/old/train.jsonl" in second and "5 h ago" in second
    assert "not read" not in result.stdout


def test_a_report_for_programs_stays_one(runs: Path) -> None:
    result = yolomon("--once", "--json", "runs", folder=runs)
    assert json.loads(result.stdout)["train"]["epochs"] == 22
    assert "runs/new" in result.stderr


def test_a_recording_says_what_it_follows(runs: Path) -> None:
    result = yolomon("record", "-o", "out.jsonl", "--seconds", "2", "runs", folder=runs)
    assert result.returncode == 0
    assert "reading runs/new/train.jsonl" in result.stderr
    assert "not read: runs/old/train.jsonl" in result.stderr


def test_where_none_is_surely_meant_the_user_is_asked_to_name_one(runs: Path) -> None:
    result = yolomon("--once", folder=runs)
    assert result.returncode == 0
    assert "name the one that is meant" in result.stderr
    assert result.stderr.count("not read: ") == 2
    assert "epoch" not in result.stdout


def test_a_log_that_was_found_without_a_name_is_told(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "only", 7, 1)
    result = yolomon("--once", folder=tmp_path)
    assert "reading" in result.stderr and "only/train.jsonl" in result.stderr
    assert "epoch 1/7" in result.stdout


@pytest.mark.parametrize(
    ("command", "status"), [("--once", 2), ("inspect", 2), ("diagnose", 2), ("doctor", 1)]
)
def test_a_folder_without_a_log(command: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = yolomon(command, "empty", folder=tmp_path)
    assert result.returncode == status
    assert "empty holds no log" in result.stdout + result.stderr


def test_a_control_sign_in_a_name_reaches_no_terminal(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a\x1b]0;owned\x07", 7, 1)
    result = yolomon("inspect", "runs", folder=tmp_path)
    assert "\x1b" not in result.stderr and "owned" in result.stderr


def test_a_named_folder_is_followed_once_a_log_appears_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    session = live.attach([str(folder)], Settings())
    session.start()
    try:
        session.drain()
        assert session.followed == ()
        (folder / "train.jsonl").write_text(ROW.format(ts=time.time(), epochs=5, step=1))
        until = time.monotonic() + 10
        while not session.followed and time.monotonic() < until:
            time.sleep(0.05)
            session.drain()
        assert [path.name for path in session.followed] == ["train.jsonl"]
    finally:
        session.stop()


def test_the_other_runs_of_a_named_folder_can_be_picked(runs: Path) -> None:
    session = live.attach([str(runs / "runs")], Settings())
    assert [path.parent.name for path in session.followed] == ["new"]
    session.start()
    try:
        until = time.monotonic() + 10
        while len(session.candidates()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert {Path(entry.path).parent.name for entry in session.candidates()} == {"new", "old"}
        session.drain()
        assert not session.needs_choice
    finally:
        session.stop()
