"""Append whole lines to a file from inside a training process.

A line, or several that come together, are one `os.write` on a descriptor opened with O_APPEND, so lines of
several threads or processes are never mixed and a killed process leaves no torn line behind. Nothing raises:
a line that cannot be written waits in a bounded queue, and what had to be dropped is counted and told in the
file as soon as it can be written again.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

logger = logging.getLogger("yolomon")

WAITING_LINES = 1024  # kept while the disk takes none
RETRY_SECONDS = 5.0  # between attempts while it does not
UNLINK_CHECK_SECONDS = 2.0

_open_files: weakref.WeakSet[LineFile] = weakref.WeakSet()


class LineFile:
    """Lines appended to `path`, opened at the first line and again when the file was removed.

    Args:
        path: the file; missing folders are made.
        fsync: force every line to the disk. Off by default: the kernel keeps written lines when a process
            is killed.
        describe_drop: makes the line that tells of dropped lines, from their number and the reason.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        fsync: bool = False,
        describe_drop: Callable[[int, str], bytes] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.fsync = fsync
        self.dropped = 0  # lines lost since the last line that told of it
        self.dropped_in_all = 0
        self._describe_drop = describe_drop
        self._clock = clock
        self._blank_slate()
        _open_files.add(self)

    def _blank_slate(self) -> None:
        self._lock = threading.RLock()  # re-entrant: a signal handler may log while a line is being written
        self._descriptor: int | None = None
        self._waiting: deque[bytes] = deque(maxlen=WAITING_LINES)
        self._retry_at = 0.0
        self._unlink_check_at = 0.0
        self._torn = False
        self._reason = ""
        self._warned = False

    def append(self, line: bytes) -> bool:
        """Append one line (with or without its newline). False: not written now; it waits or was dropped."""
        return self.append_all((line,))

    def append_all(self, lines: Sequence[bytes]) -> bool:
        """Append lines in one write: all of them, or none now. False: they wait or were dropped."""
        whole = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
        with self._lock:
            now = self._clock()
            if (self._waiting or self.dropped) and now < self._retry_at:
                self._keep(whole)
                return False
            try:
                self._write_waiting(now)
                self._write(b"".join(whole), now)
            except OSError as error:
                self._failed(error, now)
                self._keep(whole)
                return False
            return True

    def close(self) -> None:
        """Write what waits, as far as the disk takes it, and close. A later line opens the file again."""
        with self._lock:
            try:
                if self._waiting or self.dropped:
                    self._write_waiting(self._clock())
            except OSError as error:
                self._failed(error, self._clock())
            self._close_descriptor()

    def _write_waiting(self, now: float) -> None:
        if self.dropped and self._describe_drop is not None:
            self._write(self._describe_drop(self.dropped, self._reason), now)
        self.dropped = 0
        while self._waiting:
            self._write(self._waiting[0], now)
            self._waiting.popleft()

    def _write(self, line: bytes, now: float) -> None:
        descriptor = self._opened(now)
        data = b"\n" + line if self._torn else line
        written = os.write(descriptor, data)
        if written < len(data):
            self._finish(descriptor, data, written)
        self._torn = False
        if self.fsync:
            os.fsync(descriptor)

    def _finish(self, descriptor: int, data: bytes, written: int) -> None:
        """The disk took part of a line: write the rest, or take the part back so that no torn line stays."""
        try:
            rest = os.write(descriptor, data[written:])
        except OSError:
            rest = 0
        written += rest
        if written == len(data):
            return
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if os.fstat(descriptor).st_size == end:  # nobody wrote behind it
            os.ftruncate(descriptor, end - written)
        else:
            self._torn = True  # the next line begins on a line of its own
        raise OSError(errno.ENOSPC, "the disk took only part of a line")

    def _opened(self, now: float) -> int:
        if self._descriptor is not None and now >= self._unlink_check_at:
            self._unlink_check_at = now + UNLINK_CHECK_SECONDS
            # e.g. Ultralytics removes the run folder before DDP starts
            if os.fstat(self._descriptor).st_nlink == 0:
                self._close_descriptor()
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(self.path, flags, 0o644)
            self._unlink_check_at = now + UNLINK_CHECK_SECONDS
        return self._descriptor

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                os.close(descriptor)
            except OSError as error:  # NFS tells of a full quota only here
                self._failed(error, self._clock())

    def _keep(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            if len(self._waiting) == WAITING_LINES:
                self.dropped += 1
                self.dropped_in_all += 1
            self._waiting.append(line)

    def _failed(self, error: OSError, now: float) -> None:
        self._retry_at = now + RETRY_SECONDS
        self._reason = error.strerror or type(error).__name__
        if not self._warned:
            self._warned = True
            logger.warning("yolomon cannot write %s: %s. Training goes on.", self.path, self._reason)

    def _after_fork(self) -> None:
        descriptor = self._descriptor
        # The lock may be held by a thread that does not exist here; waiting lines are the parent's.
        self._blank_slate()
        self.dropped = 0
        self._descriptor = descriptor  # O_APPEND: both processes may go on with it


def _after_fork_in_child() -> None:
    for file in list(_open_files):
        file._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
