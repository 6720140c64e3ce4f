"""Writes what flows as `yolomon.telemetry/1`: one object a line, plain or gzip, whole lines only."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from yolomon.messages import Message, UserError, msg
from yolomon.model import CurveBlock, Finding, Header, Item, TrainRecord
from yolomon.telemetry import encode

QUEUE_LIMIT = 20_000
FLUSH_SECONDS = 1.0
GZIP_BATCH_BYTES = 64 * 1024
GZIP_BATCH_SECONDS = 10.0


class RecorderError(UserError):
    """A recording that cannot be begun. `message` says why, for the user."""


class Recorder:
    """Writes items on a thread of its own, once a second. `add` never blocks and never fails.

    Lines are written whole: where the disk is full, the part of a line that went through is taken back, the
    reason is kept in `warning`, and writing goes on when there is room again; what came meanwhile and did not
    fit the queue is counted in `lost`. A path that ends in ".gz" gets one gzip member a batch, so that a
    crash costs at most the last batch.

    Args:
        path: the file.
        mode: "new" refuses a file that has content, "append" goes on in it, "overwrite" empties it.
        on_warning: called once, from the writing thread, with what went wrong first.

    Raises:
        RecorderError: the file cannot be opened for writing, or has content and `mode` is "new".
    """

    def __init__(
        self,
        path: str | Path,
        mode: Literal["new", "append", "overwrite"] = "new",
        on_warning: Callable[[Message], object] | None = None,
    ) -> None:
        self.path = Path(path)
        self.written = 0  # lines
        self.lost = 0  # items
        self.warning: Message | None = None
        self._on_warning = on_warning
        self._zip = self.path.suffix == ".gz"
        self._queue: deque[Item | Finding] = deque()
        self._last_header: dict[bool, Header] = {}
        self._begun = False
        self._closing = threading.Event()
        self._file = self._open(mode)
        self._end = os.fstat(self._file).st_size
        self._thread = threading.Thread(target=self._run, name="yolomon-recorder", daemon=True)
        self._thread.start()

    def add(self, item: Item | Finding) -> None:
        """Take one item; from any thread."""
        if self._closing.is_set() or len(self._queue) >= QUEUE_LIMIT:
            self.lost += 1
            return
        self._queue.append(item)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Write what is left and close the file. May be called more than once."""
        self._closing.set()
        self._thread.join(timeout_seconds)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _open(self, mode: str) -> int:
        try:
            if mode == "new" and self.path.exists() and (not self.path.is_file() or self.path.stat().st_size):
                raise RecorderError(
                    msg("{path} exists already; choose another name or remove it", path=str(self.path))
                )
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if mode == "overwrite" else 0)
            file = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise RecorderError(
                msg("{path} cannot be written: {why}", path=str(self.path), why=error.strerror or str(error))
            ) from error
        os.lseek(file, 0, os.SEEK_END)
        return file

    def _run(self) -> None:
        batch = bytearray()
        lines = 0
        waited = 0.0
        while True:
            closing = self._closing.wait(FLUSH_SECONDS)
            waited += FLUSH_SECONDS
            while self._queue and len(batch) < (1 << 20):
                new = self._lines(self._queue.popleft())
                batch += new
                lines += new.count(b"\n")
            due = closing or not self._zip or len(batch) >= GZIP_BATCH_BYTES or waited >= GZIP_BATCH_SECONDS
            if batch and due and self._write(bytes(batch)):
                self.written += lines
                batch.clear()
                lines, waited = 0, 0.0
            if closing and (not self._queue or batch):
                if batch:  # no room even for the end
                    self.lost += lines + len(self._queue)
                break
        os.close(self._file)

    def _lines(self, item: Item | Finding) -> bytes:
        """The item as a line; before the first one a header, which makes the file a recording."""
        if isinstance(item, Header):
            if self._last_header.get(item.host is None) == item:
                return b""
            self._last_header[item.host is None] = item
        first = b""
        if not self._begun:
            self._begun = True
            if not isinstance(item, Header):
                first = encode(Header(ts=_begin_ts(item))) + b"\n"
        return first + encode(item) + b"\n"

    def _write(self, data: bytes) -> bool:
        """Write all of it or nothing."""
        if self._zip:
            data = gzip.compress(data, 6, mtime=0)
        try:
            done = 0
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError as error:
            self._take_back()
            self._warn(error)
            return False
        self._end += len(data)
        return True

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._file, self._end)
            os.lseek(self._file, self._end, os.SEEK_SET)
        except OSError:
            return  # a pipe or a device: nothing to take back from

    def _warn(self, error: OSError) -> None:
        if self.warning is not None:
            return
        self.warning = msg(
            "The recording {path} cannot be written: {why}; trying on",
            path=str(self.path),
            why=error.strerror or str(error),
        )
        if self._on_warning is not None:
            self._on_warning(self.warning)


def _begin_ts(item: Item | Finding) -> float:
    """When a recording begins; what was in a log before tells nothing about that."""
    if isinstance(item, CurveBlock) or (isinstance(item, TrainRecord) and item.backlog):
        return time.time()
    return item.raised_ts if isinstance(item, Finding) else item.ts
