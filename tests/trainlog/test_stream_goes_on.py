"""A piped log after the screen was left: its writer is neither stopped nor blocked."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from yolomon.trainlog.stream import has_ended, pass_on


def test_the_rest_of_a_pipe_goes_into_the_file(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    file = tmp_path / "train.log"
    file.write_bytes(b"before\n")
    rest = bytes(range(256)) * 4096  # more than a pipe holds
    passing = threading.Thread(target=pass_on, args=(reads, str(file)))
    passing.start()
    with os.fdopen(writes, "wb") as writer:
        writer.write(rest)
    passing.join(10)
    assert not passing.is_alive()
    assert file.read_bytes() == b"before\n" + rest
    os.close(reads)


def test_a_pipe_has_ended_once_its_writer_is_gone_and_all_is_read() -> None:
    reads, writes = os.pipe()
    assert not has_ended(reads)
    os.write(writes, b"x")
    os.close(writes)
    assert not has_ended(reads)
    os.read(reads, 1)
    assert has_ended(reads)
    os.close(reads)
