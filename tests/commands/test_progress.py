"""Long work says how far it is on a terminal, and Ctrl-C stops it; short work and pipes stay silent."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "YOLOMON_LANGUAGE": "en"}


class OnTerminal:
    """A command whose standard error is a terminal."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self.terminal, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "yolomon", *arguments],
            cwd=folder, env=ENVIRONMENT, stdin=other, stdout=subprocess.DEVNULL, stderr=other,
            start_new_session=True,
        )  # fmt: skip
        os.close(other)
        self.shown = ""

    def until(self, pattern: str, seconds: float = 40.0) -> str:
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.shown)):
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"{pattern} did not come: {self.shown!r}")
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.shown += os.read(self.terminal, 4096).decode()
        return found[0]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A console of 40 MB, which no command reads in a second."""
    path = tmp_path_factory.mktemp("long") / "train.jsonl"
    line = '{{"epoch": {epoch}, "epochs": 9999, "step": {step}, "loss": 0.5, "note": "{note}"}}\n'
    with path.open("w") as file:
        for step in range(1, 250_000):
            file.write(line.format(epoch=step // 100 + 1, step=step, note="x" * 100))
    return path


def test_a_long_diagnosis_says_how_far_it_is_and_ctrl_c_stops_it(long_log: Path) -> None:
    command = OnTerminal("diagnose", str(long_log), folder=long_log.parent)
    try:
        command.until(r"\d+ % \(Ctrl-C stops it\): reading /.*")
        command.until(r"\d+ % \(Ctrl-C stops it\): diagnosing")
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(5) == -signal.SIGINT
        assert "Traceback" not in command.shown and "Aborted" not in command.shown
    finally:
        command.close()


def test_into_a_pipe_no_progress_is_written(long_log: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yolomon", "inspect", str(long_log)],
        env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == ""
    assert "249999 records" in done.stdout
