"""Whole lines, whatever the disk does."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from yolomon.trainer import line_file
from yolomon.trainer.line_file import LineFile


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def describe(lines: int, reason: str) -> bytes:
    return f"dropped {lines}: {reason}\n".encode()


def test_appends_to_what_is_there_and_makes_folders(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "train" / "yolomon.jsonl"
    first = LineFile(path)
    assert first.append(b"one")
    first.close()
    assert LineFile(path).append(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"


def test_threads_and_processes_never_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = LineFile(path)
    file.append(b"start")
    child = os.fork()
    letter = b"c" if child == 0 else b"p"

    def write(number: int) -> None:
        for _ in range(200):
            file.append(letter * (500 + number))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    lines = path.read_bytes().splitlines()
    assert len(lines) == 1 + 2 * 4 * 200
    assert all(len(set(line)) == 1 for line in lines[1:])


def test_a_fork_while_another_thread_writes_does_not_hang(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "log")
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with file._lock:
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(5)  # a child that waits for the lock dies of it
        os._exit(0 if file.append(b"child") else 1)
    status = os.waitpid(child, 0)[1]
    release.set()
    thread.join()
    assert status == 0
    assert (tmp_path / "log").read_bytes() == b"child\n"


def test_goes_on_in_a_new_file_when_the_run_folder_was_removed(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "run" / "log"
    file = LineFile(path, clock=clock)
    file.append(b"lost with its folder")
    path.unlink()
    path.parent.rmdir()
    clock.now += line_file.UNLINK_CHECK_SECONDS
    file.append(b"kept")
    assert path.read_bytes() == b"kept\n"


def test_a_folder_that_cannot_be_made_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "blocked").write_text("a file where a folder should be")
    file = LineFile(tmp_path / "blocked" / "log")
    with caplog.at_level(logging.WARNING, logger="yolomon"):
        assert not file.append(b"one")
        assert not file.append(b"two")
    assert len(caplog.records) == 1
    assert "Training goes on" in caplog.text


def test_lines_wait_while_the_disk_is_full_and_the_stream_tells_what_was_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_file, "WAITING_LINES", 3)
    clock = Clock()
    blocked = tmp_path / "run"
    blocked.write_text("")
    file = LineFile(blocked / "log", describe_drop=describe, clock=clock)
    for number in range(5):
        assert not file.append(b"%d" % number)
    blocked.unlink()
    assert not file.append(b"5"), "no attempt before the retry time: a full disk must not slow each step"
    clock.now += line_file.RETRY_SECONDS
    assert file.append(b"6")
    assert (blocked / "log").read_bytes().splitlines() == [
        b"dropped 3: " + os.strerror(errno.EEXIST).encode(),
        b"3",
        b"4",
        b"5",
        b"6",
    ]
    assert file.dropped_in_all == 3


FULL = """
import resource, signal, sys
from pathlib import Path
from yolomon.trainer.line_file import LineFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (250, resource.RLIM_INFINITY))
file = LineFile(Path(sys.argv[1]))
print([file.append(b"x" * 99) for _ in range(3)])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.close()
"""


def test_a_disk_that_takes_half_a_line_leaves_no_torn_line(tmp_path: Path) -> None:
    """A file-size limit makes the kernel take a part of the third line, as a full disk does."""
    assert resource.RLIMIT_FSIZE is not None
    path = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[True, True, False]"
    assert path.read_bytes() == (b"x" * 99 + b"\n") * 3, "the third line waited and came whole at the close"


def test_fsync_is_called_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    LineFile(tmp_path / "a").append(b"x")
    assert synced == []
    LineFile(tmp_path / "b", fsync=True).append(b"x")
    assert len(synced) == 1


def test_an_error_of_the_system_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = LineFile(tmp_path)  # a folder, not a file
    with caplog.at_level(logging.WARNING, logger="yolomon"):
        assert not file.append(b"x")
    assert os.strerror(errno.EISDIR) in caplog.text
