"""`yolomon record` as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yolomon.model import Header, Telemetry, TrainRecord
from yolomon.sources.replay import read_all


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_a_whole_recording(tmp_path: Path, number: signal.Signals) -> None:
    log, out = tmp_path / "train.jsonl", tmp_path / "out.jsonl"
    log.write_text('{"epoch": 1, "step": 1, "loss": 0.5}\n{"epoch": 1, "step": 2, "loss": 0.4}\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "yolomon", "record", "-o", str(out), str(log)],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "LANG": "C.UTF-8", "YOLOMON_LANGUAGE": "en"},
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 20
    while not (out.exists() and out.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert out.read_bytes().endswith(b"\n")
    items = list(read_all(out))
    assert isinstance(items[0], Header)
    assert any(isinstance(item, Telemetry) and item.host is not None for item in items)
    assert [item.roles.loss for item in items if isinstance(item, TrainRecord) and item.roles.loss] == [
        0.5,
        0.4,
    ]


def test_an_existing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("precious\n")
    done = subprocess.run(
        [sys.executable, "-m", "yolomon", "record", "-o", str(out), "--seconds", "1"],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "YOLOMON_LANGUAGE": "en"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert "Traceback" not in done.stderr
    assert out.read_text() == "precious\n"
