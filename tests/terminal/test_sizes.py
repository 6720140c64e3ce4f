"""Any size of window, changed at any time."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.terminal.conftest import Open
from tests.terminal.tmux import START_SECONDS, Pane, Tmux

pytestmark = pytest.mark.tmux


def fills(columns: int, rows: int) -> Callable[[str], bool]:
    """Whether a screen has been drawn for that size: its last line is in the last row."""

    def question(text: str) -> bool:
        lines = text.splitlines()
        return len(lines) == rows and max(map(len, lines)) <= columns and bool(lines[-1].strip())

    return question


def test_smaller_down_to_one_cell_and_back(yolomon: Open) -> None:
    pane = yolomon("demo", "--speed", "4")
    pane.until("GPU 1", START_SECONDS)
    pane.resize(80, 24)
    pane.until(lambda text: fills(80, 24)(text) and text.splitlines()[-1].startswith(" ? help"))
    pane.resize(40, 10)
    shown = pane.until(lambda text: fills(40, 10)(text) and "DEMO" in text)
    assert "findings" in shown or "GPU" in shown
    for columns, rows in ((1, 1), (2, 30), (200, 2), (7, 3), (1, 1)):
        pane.resize(columns, rows)
        assert pane.process().is_running()
    pane.resize(140, 40)
    whole = ("╭ trainer", "GPU 0", "GPU 1", "DEMO")  # waited for: half a picture may have arrived
    pane.until(lambda text: fills(140, 40)(text) and all(word in text for word in whole))
    pane.press("q")
    assert pane.until_left() == 0


@contextmanager
def attached(tmux: Tmux, pane: Pane, columns: int, rows: int) -> Iterator[None]:
    """A terminal of that size is attached to the pane's session, as after a new SSH login."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.environ.pop("TMUX", None)
        command = [*tmux.client_command, "attach-session", "-t", pane.name]
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def swallow() -> None:
        try:
            while os.read(terminal, 65536):
                pass
        except OSError:
            return  # the client has left

    reader = threading.Thread(target=swallow, daemon=True)
    reader.start()
    yield
    tmux("detach-client", "-s", pane.name, check=False)
    os.waitpid(pid, 0)
    os.close(terminal)
    reader.join(5)


def test_reattached_at_another_size(tmux: Tmux, yolomon: Open) -> None:
    pane = yolomon("demo", "--speed", "4")
    pane.until("GPU 1", START_SECONDS)
    with attached(tmux, pane, 100, 30):
        pane.until(lambda text: fills(100, 30)(text) and "DEMO" in text)
    with attached(tmux, pane, 61, 17):
        shown = pane.until(lambda text: fills(61, 17)(text) and "DEMO" in text)
        assert len(shown.splitlines()) == 17
    pane.press("?")
    pane.until("keys on every page")
