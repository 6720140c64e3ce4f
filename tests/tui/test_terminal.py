"""What a terminal does to a program over SSH and tmux: each test runs the real screen on a real pty."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from yolomon.tui.terminal import unusable

ROOT = Path(__file__).resolve().parents[2]


class Terminal:
    """A program on a pty of its own."""

    def __init__(self, *arguments: str, ignore_hangup: bool = False, piped: int | None = None) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if piped is not None:
                os.dup2(piped, 0)
            if ignore_hangup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.chdir(ROOT)
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
            os.execv(sys.executable, [sys.executable, "-m", "tests.tui.on_terminal", *arguments])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.read = b""
        self.open = True

    def until(self, wanted: bytes, seconds: float = 15.0) -> bool:
        """Read until that is there."""
        end = time.monotonic() + seconds
        while wanted not in self.read and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    break
                if not data:
                    break
                self.read += data
        return wanted in self.read

    def send(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.fd, keys)

    def hang_up(self) -> None:
        """The terminal goes away."""
        os.close(self.fd)
        self.open = False

    def ended_within(self, seconds: float) -> bool:
        """Whether the program ends in that time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.open:
                self.until(b"\0never\0", 0.05)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                self.pid = 0
                return True
            time.sleep(0.05)
        return False

    def close(self) -> None:
        """End what is left."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.open:
            os.close(self.fd)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    shown = Terminal()
    assert shown.until(b"healthy") or shown.until(b"GPU 0")
    yield shown
    shown.close()


def test_quits_by_key_and_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.send(b"q")
    assert terminal.ended_within(5)
    assert b"\x1b[?1049l" in terminal.read and b"\x1b[?25h" in terminal.read
    assert b"\x1b[?1000l" in terminal.read  # no mouse reports for the shell


def test_keys_come_from_the_terminal_while_a_log_is_piped_in() -> None:
    reads, writes = os.pipe()
    shown = Terminal(piped=reads)
    try:
        os.write(writes, b"qqqq the log's own bytes are no keys\n")
        assert shown.until(b"GPU 0")
        time.sleep(0.5)
        assert not shown.ended_within(0.5)
        shown.send(b"q")
        assert shown.ended_within(5)
        assert select.select([reads], [], [], 0)[0]  # the screen took nothing out of the pipe
        assert os.read(reads, 4) == b"qqqq"
    finally:
        shown.close()
        os.close(reads)
        os.close(writes)


def test_legacy_mouse_bytes_do_no_harm(terminal: Terminal) -> None:
    """What a rebuilt terminal sends after a reattach: ESC [ M and bytes that are no UTF-8 (textual#6668)."""
    terminal.send(b"\x1b[M#\xa8\xa8" * 5 + b"\xff\xfe\xc3")
    time.sleep(0.5)
    terminal.send(b"q")
    assert terminal.ended_within(5)
    assert b"Traceback" not in terminal.read and b"UnicodeDecodeError" not in terminal.read


def test_any_mouse_movement_is_not_asked_for(terminal: Terminal) -> None:
    assert b"\x1b[?1003h" not in terminal.read and b"\x1b[?1000h" in terminal.read


def test_ends_when_the_terminal_is_gone(terminal: Terminal) -> None:
    terminal.hang_up()
    assert terminal.ended_within(5)


def test_ends_when_the_terminal_is_gone_under_nohup() -> None:
    """With SIGHUP ignored an orphan must neither stay nor spin."""
    shown = Terminal(ignore_hangup=True)
    try:
        assert shown.until(b"GPU 0")
        shown.hang_up()
        assert shown.ended_within(6)
    finally:
        shown.close()


def test_stops_and_goes_on(terminal: Terminal) -> None:
    os.kill(terminal.pid, signal.SIGTSTP)
    assert terminal.until(b"\x1b[?1049l", 5)
    process, end = psutil.Process(terminal.pid), time.monotonic() + 5
    while process.status() != psutil.STATUS_STOPPED and time.monotonic() < end:
        time.sleep(0.02)
    seen = terminal.read.count(b"\x1b[?1049h")
    os.kill(terminal.pid, signal.SIGCONT)
    time.sleep(0.3)
    terminal.until(b"\0never\0", 1.5)
    assert terminal.read.count(b"\x1b[?1049h") == seen + 1
    assert terminal.read.rfind(b"GPU 0") > terminal.read.rfind(b"\x1b[?1049h")


def test_ctrl_l_paints_everything_anew(terminal: Terminal) -> None:
    terminal.until(b"\0never\0", 0.6)
    terminal.read = b""
    terminal.send(b"\x0c")
    assert terminal.until(b"yolomon", 3)


def test_a_crash_gives_the_terminal_back() -> None:
    shown = Terminal("fail")
    try:
        assert shown.ended_within(10)
        assert b"\x1b[?1049l" in shown.read and b"\x1b[?25h" in shown.read
    finally:
        shown.close()


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_without_cursor_is_told(term: str) -> None:
    assert unusable({"TERM": term}) is not None


def test_a_real_terminal_is_none_of_these() -> None:
    assert unusable({"TERM": "tmux-256color"}) is None
