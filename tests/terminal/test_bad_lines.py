"""Lines that break, terminals that take nothing more, windows that never stand still."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.terminal.on_pty import OnPty
from tests.terminal.tmux import START_SECONDS, YOLOMON

Open = Callable[..., OnPty]
ROW = '{"epoch": 1, "epochs": 3, "step": 1, "loss": 1.25}\n'


@pytest.fixture
def on_pty(surroundings: dict[str, str]) -> Iterator[Open]:
    """Opens a command, yolomon unless it is a shell's, on a terminal of its own."""
    opened: list[OnPty] = []

    def run(*arguments: str, shell: str = "", before: Callable[[], object] | None = None) -> OnPty:
        command = ("sh", "-c", shell, sys.executable) if shell else (*YOLOMON, *arguments)
        program = OnPty(command, environment=surroundings, before=before)
        opened.append(program)
        return program

    yield run
    for program in opened:
        program.close()


def ignore_hang_ups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def drawn(text: str) -> bool:
    return "DEMO" in text and "GPU 1" in text and "? help" in text


@pytest.mark.parametrize("before", [None, ignore_hang_ups], ids=["", "nohup"])
def test_a_line_that_breaks_ends_it_within_seconds(on_pty: Open, before: Callable[[], object] | None) -> None:
    program = on_pty("demo", before=before)
    program.until(drawn, START_SECONDS)
    children = psutil.Process(program.pid).children(recursive=True)
    program.drop()
    assert program.status(5) == 128 + signal.SIGHUP
    assert not [child for child in children if child.is_running()]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_is_in_the_exit_status_and_the_terminal_as_before(
    on_pty: Open, number: int, status: int
) -> None:
    program = on_pty("demo")
    program.until(drawn, START_SECONDS)
    assert not program.keys_are_lines()
    psutil.Process(program.pid).send_signal(number)
    assert program.status(5) == status
    assert number == signal.SIGHUP or b"\x1b[?1049l" in program.sent[-400:]
    assert b"Traceback" not in program.sent


def test_a_terminal_that_takes_nothing_more_keeps_nobody_from_ending_it(on_pty: Open) -> None:
    """Frozen by flow control, or a line that hangs: the queue is full, and the screen's loop waits for it."""
    program = on_pty("demo", "--speed", "50")
    program.until(drawn, START_SECONDS)
    process = psutil.Process(program.pid)
    for _ in range(40):  # nothing is read meanwhile, and all is painted anew
        program.press(b"\x0c")
        time.sleep(0.1)
    assert process.cpu_percent(0.5) < 60
    process.terminate()
    until = time.monotonic() + 8
    while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.1)
    assert program.keys_are_lines()
    assert program.status(1) == 143


def test_two_hundred_sizes_in_two_seconds(on_pty: Open) -> None:
    program = on_pty("demo")
    program.until(drawn, START_SECONDS)
    for step in range(200):
        program.resize(20 + step * 13 % 180, 4 + step * 7 % 60)
        program.read(0.01)
    program.resize(120, 30)
    program.until(lambda text: drawn(text) and text.splitlines()[-1].startswith(" ? help"))
    program.press(b"q")
    assert program.status() == 0


def test_what_is_written_to_standard_error_is_not_on_the_screen_nor_the_screen_in_it(
    on_pty: Open, tmp_path: Path
) -> None:
    errors = tmp_path / "errors.txt"
    program = on_pty(shell=f'exec "$0" -m yolomon demo 2>{errors}')
    program.until(drawn, START_SECONDS)
    program.press(b"q")
    assert program.status() == 0
    assert errors.read_bytes() == b""


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_stream_hinders_nothing(on_pty: Open, closed: str) -> None:
    program = on_pty(shell=f'exec "$0" -m yolomon demo {closed}')
    program.until(drawn, START_SECONDS)
    program.press(b"q")
    assert program.status() == 0


def test_ctrl_c_while_a_pipe_is_passed_on_after_the_screen(on_pty: Open, tmp_path: Path) -> None:
    trainer = f"while :; do printf '%s\\n' '{ROW.strip()}'; sleep 0.1; done"
    line = f'cd {tmp_path}; ({trainer}) | "$0" -m yolomon - --tee passed.log'
    program = on_pty(shell=line)
    program.until(lambda text: "1.25" in text and "? help" in text, START_SECONDS)
    program.press(b"q")
    program.until("The training goes on")
    program.read(1.0)
    size = (tmp_path / "passed.log").stat().st_size
    program.read(1.0)
    assert (tmp_path / "passed.log").stat().st_size > size
    program.press(b"\x03")
    assert program.status() in (-signal.SIGINT, 128 + signal.SIGINT)
    assert b"Aborted" not in program.sent and b"Traceback" not in program.sent


def test_a_log_piped_in_is_asked_for_where_none_is(on_pty: Open) -> None:
    program = on_pty("-")
    program.until("yolo train ... 2>&1 | yolomon -")
    assert program.status() == 2


def test_a_log_that_is_deleted_while_two_watch_it(on_pty: Open, tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    log.write_text(ROW)
    both = [on_pty(str(log)), on_pty(str(log))]
    for program in both:
        program.until("1.25", START_SECONDS)
    log.unlink()
    for program in both:
        program.until("gone")
    log.write_text(ROW.replace("1.25", "7.75"))
    for program in both:
        program.until("7.75")
        program.press(b"q")
        assert program.status() == 0
