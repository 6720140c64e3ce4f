"""How commands end: the exit status says what happened, signals end them as they end any other program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from yolomon.trainlog import stream

ROOT = Path(__file__).resolve().parents[2]
YOLOMON = [sys.executable, "-m", "yolomon"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "YOLOMON_LANGUAGE": "en"}
ROW = '{{"ts": {ts}, "epoch": 1, "epochs": 3, "step": {step}, "step_time": 0.1, "loss": {loss}}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A healthy log, one with NaN, and one that is none."""
    good = "".join(ROW.format(ts=1_796_000_000 + step, step=step, loss=1.0) for step in range(1, 50))
    (tmp_path / "good.jsonl").write_text(good)
    bad = "".join(ROW.format(ts=1_796_000_050 + step, step=50 + step, loss="NaN") for step in range(1, 9))
    (tmp_path / "nan.jsonl").write_text(good + bad)
    (tmp_path / "novel.txt").write_text("Call me Ishmael.\n" * 50)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--help",), 0),
        (("--version",), 0),
        (("explain",), 0),
        (("explain", "nan-loss"), 0),
        (("explain", "no-such"), 2),
        (("config",), 0),
        (("config", "--nosuch"), 2),
        (("inspect", "good.jsonl"), 0),
        (("inspect", "novel.txt"), 2),
        (("inspect", "none.jsonl"), 2),
        (("inspect",), 2),
        (("diagnose", "good.jsonl"), 0),
        (("diagnose", "nan.jsonl"), 1),
        (("diagnose", "novel.txt"), 2),
        (("diagnose", "none.jsonl"), 2),
        (("diagnose",), 2),
        (("diagnose", "--telemetry", "none.jsonl"), 2),
        (("--once", "good.jsonl"), 0),
        (("--once", "nan.jsonl"), 0),
        (("--once", "novel.txt"), 2),
        (("--once", "none.jsonl"), 2),
        (("--once", "good.jsonl", "none.jsonl"), 2),
        (("doctor", "good.jsonl"), 0),
        (("doctor", "novel.txt"), 1),
        (("doctor", "none.jsonl"), 1),
        (("record", "-o", "out.jsonl", "--seconds", "1"), 0),
        (("record", "-o", "good.jsonl", "--seconds", "1"), 2),
        (("record", "-o", "no/such/out.jsonl", "--seconds", "1"), 2),
        (("record",), 2),
        (("replay", "none.jsonl"), 2),
        (("replay", "good.jsonl"), 2),
        (("demo",), 2),
        (("good.jsonl",), 2),
        (("run", "sh", "-c", "exit 7"), 7),
        (("run", "no-such-command"), 127),
        (("run", "./good.jsonl"), 126),
        (("run",), 2),
        (("serve", "--port", "0"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_the_exit_status_says_what_happened(arguments: tuple[str, ...], status: int, folder: Path) -> None:
    done = subprocess.run(
        [*YOLOMON, *arguments], cwd=folder, env={**ENVIRONMENT, "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def long_log(folder: Path) -> Path:
    path = folder / "long.jsonl"
    with path.open("w") as file:
        for step in range(1, 200_000):
            file.write(ROW.format(ts=1_796_000_000 + step, step=step, loss=1.0))
    return path


def reading(path: Path) -> Callable[[int], bool]:
    """Whether a process has that file open."""

    def question(pid: int) -> bool:
        opened = Path(f"/proc/{pid}/fd")
        try:
            return any(entry.readlink() == path for entry in opened.iterdir())
        except OSError:
            return False

    return question


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["diagnose", "inspect"])
def test_a_signal_ends_a_command_as_any_other(command: str, number: signal.Signals, tmp_path: Path) -> None:
    path = long_log(tmp_path)
    process = subprocess.Popen(
        [*YOLOMON, command, str(path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 20
    is_reading = reading(path)
    while not is_reading(process.pid) and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(number)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == -number
    assert (output, errors) == ("", ""), "no word, no half report"


def test_ctrl_c_while_a_pipe_is_read_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*YOLOMON, "--once", "-"], env=ENVIRONMENT, cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(ROW.format(ts=1, step=1, loss=1.0).encode())
    process.stdin.flush()
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert errors == b""


@pytest.mark.parametrize(
    "arguments", [("explain",), ("config", "--thresholds"), ("--help",), ("inspect", "good.jsonl")]
)
def test_a_reader_that_leaves_ends_it_silently(arguments: tuple[str, ...], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*YOLOMON, *arguments], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=write, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(write)
    assert done.returncode == -signal.SIGPIPE
    assert done.stderr == ""


def test_what_ignores_ctrl_c_goes_on_ignoring_it(folder: Path) -> None:
    """In the background of a script a shell has its children ignore SIGINT."""
    process = subprocess.Popen(
        [*YOLOMON, "--once", "good.jsonl"], cwd=folder, env=ENVIRONMENT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "epoch 1/3" in output


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_with_closed_streams_nothing_is_read_or_written_in_their_place(closed: str, folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m yolomon --once good.jsonl {closed}', sys.executable],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert "epoch 1/3" in done.stdout


def test_a_recording_of_a_pipe_ends_with_it(folder: Path) -> None:
    with (folder / "good.jsonl").open("rb") as log:
        done = subprocess.run(
            [*YOLOMON, "record", "-o", "out.jsonl", "-"], cwd=folder, env=ENVIRONMENT,
            stdin=log, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '"step":49' in (folder / "out.jsonl").read_text()


def test_a_recording_that_is_over_lets_the_training_that_is_piped_in_go_on(folder: Path) -> None:
    writer = (
        "import time\n"
        "for n in range(40):\n"
        '    print(\'{"epoch": 1, "step": %d}\' % n, flush=True)\n'
        "    time.sleep(0.1)\n"
        "open('finished', 'w').close()"
    )
    line = '"$0" -c "$1" | "$0" -m yolomon record -o out.jsonl --seconds 1 -'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, writer], cwd=folder, env=ENVIRONMENT,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "finished").exists()
    assert '"step": 39' in done.stdout, "its output is passed on"


def test_a_copy_that_cannot_be_written_is_in_the_exit_status(folder: Path) -> None:
    with (folder / "good.jsonl").open("rb") as log:
        done = subprocess.run(
            [*YOLOMON, "--once", "-", "--tee", "/dev/full"], cwd=folder, env=ENVIRONMENT,
            stdin=log, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    assert "epoch 1/3" in done.stdout and "No space left" in done.stdout


@pytest.mark.parametrize("target", ["/dev/full", "/no/such/folder/tee.log"])
def test_a_full_disk_under_what_is_passed_on_does_not_end_the_training(target: str) -> None:
    read, write = os.pipe()
    faults: list[OSError] = []
    reader = threading.Thread(target=lambda: stream.pass_on(read, target, faults.append))
    reader.start()
    for _ in range(50):
        os.write(write, b"x" * 10_000)  # more than a pipe holds
    os.close(write)
    reader.join(10)
    assert not reader.is_alive()
    os.close(read)
    assert len(faults) == 1
