"""However it ends, the shell has its terminal back, and the status says how."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.terminal.conftest import Open
from tests.terminal.tmux import START_SECONDS, YOLOMON, Tmux

pytestmark = pytest.mark.tmux


@pytest.mark.parametrize("key", ["q", "C-c"])
def test_a_key_leaves_with_status_0(yolomon: Open, key: str) -> None:
    pane = yolomon("demo")
    pane.until("GPU 1", START_SECONDS)
    pane.press(key)
    assert pane.until_left() == 0
    assert "Traceback" not in pane.screen()


def test_sigterm_ends_it_within_seconds(yolomon: Open) -> None:
    pane = yolomon("demo")
    pane.until("GPU 1", START_SECONDS)
    pane.kill(signal.SIGTERM)
    pane.until_left(4)
    assert "Traceback" not in pane.screen()


def test_a_window_that_is_closed_ends_it_within_seconds(yolomon: Open) -> None:
    """tmux sends SIGHUP and takes the terminal away: nothing stays behind and spins."""
    pane = yolomon("demo")
    pane.until("GPU 1", START_SECONDS)
    process = pane.process()
    pane.close()
    assert process in psutil.wait_procs([process], timeout=5)[0]


def test_a_failure_of_its_own_is_one_line_and_the_terminal_is_as_before(
    tmux: Tmux, surroundings: dict[str, str], tmp_path: Path
) -> None:
    pane = tmux.open(
        [sys.executable, "-m", "tests.tui.on_terminal", "fail"], folder=tmp_path, environment=surroundings
    )
    assert pane.until_left(START_SECONDS) != 0
    shown = pane.screen()
    assert "yolomon failed (RuntimeError). The training is not affected." in shown.replace("\n", "")
    assert "Traceback" not in shown
    pane.close()


@pytest.mark.parametrize("by", ["key", "signal"])
def test_stopped_and_back_in_the_foreground(
    tmux: Tmux, surroundings: dict[str, str], tmp_path: Path, by: str
) -> None:
    """Ctrl-Z, or `kill -TSTP` from outside: the shell has its terminal until `fg`."""
    line = f"set -m; {shlex.join(YOLOMON)} demo; echo now stopped; read -r answer; fg"
    pane = tmux.open(["sh", "-c", line], folder=tmp_path, environment=surroundings)
    pane.until("GPU 1", START_SECONDS)
    if by == "key":
        pane.press("C-z")
    else:
        pane.process().children()[0].send_signal(signal.SIGTSTP)
    pane.until("now stopped")
    assert pane.ask("alternate_on") == "0"
    pane.press("Enter")
    pane.until(lambda text: "GPU 1" in text and "now stopped" not in text)
    assert pane.ask("alternate_on") == "1"
    pane.press("q")
    assert pane.until_left() == 0
    pane.close()
