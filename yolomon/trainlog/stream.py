"""A log piped in: `yolo train ... 2>&1 | yolomon -`, passed through to a file with `--tee`."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

from yolomon.messages import Message, msg
from yolomon.model import Item, LogStatus
from yolomon.trainlog.log import Log

STDIN = "-"
READ_BYTES = 1 << 16


class StreamSource:
    """Reads a pipe and emits its records; at its end the log has "ended".

    Args:
        descriptor: the pipe's file descriptor; 0 is standard input.
        tee: a file to which all bytes are appended as they come.
        clock: UNIX seconds.
    """

    def __init__(
        self, descriptor: int = 0, tee: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._descriptor = descriptor
        self._tee_path = tee
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._tee_fault: Message | None = None

    def start(self, emit: Callable[[Item], None]) -> None:
        """Begin to read; returns at once."""
        self._thread = threading.Thread(target=self._run, args=(emit,), name="log stdin", daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End the thread. The pipe is left open: closing it would end the trainer that writes to it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    @property
    def tee_fault(self) -> Message | None:
        """Why the file has not got all of the input; None while it has."""
        return self._tee_fault

    def _run(self, emit: Callable[[Item], None]) -> None:
        log = Log(STDIN)
        tee = self._open_tee()
        told: tuple[object, ...] = ()
        ended = False
        try:
            while not self._stop.is_set() and not ended:
                data = b""
                try:
                    if select.select([self._descriptor], [], [], 0.2)[0]:
                        data = os.read(self._descriptor, READ_BYTES)
                        ended = not data
                except OSError:
                    ended = True
                now = self._clock()
                if data:
                    tee = self._write_tee(tee, data)
                for record in log.push(data, now, time.monotonic()) if not ended else log.finish(now):
                    emit(record)
                counts = (log.counts.records, log.counts.broken_lines, log.format, ended, self._tee_fault)
                if counts != told:
                    told = counts
                    emit(self._status(log, now, ended))
        finally:
            if tee is not None:
                os.close(tee)

    def _status(self, log: Log, now: float, ended: bool) -> LogStatus:
        return LogStatus(
            ts=now,
            source=STDIN,
            state="ended" if ended else "following",
            format="" if log.format is None else log.format.title,
            records=log.counts.records,
            broken_lines=log.counts.broken_lines,
            last_growth_ts=log.last_growth_ts,
            detail=self._tee_fault or (msg("the pipe has ended") if ended else None),
        )

    def _open_tee(self) -> int | None:
        if self._tee_path is None:
            return None
        try:
            return os.open(self._tee_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self._tee_fault = msg("cannot write {path}: {reason}", path=self._tee_path, reason=error.strerror)
            return None

    def _write_tee(self, tee: int | None, data: bytes) -> int | None:
        if tee is None:
            return None
        try:
            while data:
                data = data[os.write(tee, data) :]
        except OSError as error:
            self._tee_fault = msg("cannot write {path}: {reason}", path=self._tee_path, reason=error.strerror)
            os.close(tee)
            return None
        return tee


def pass_on(
    descriptor: int = 0, tee: str | None = None, told: Callable[[OSError], object] | None = None
) -> None:
    """Go on reading a pipe to its end, into the file, or onto the terminal without one.

    A trainer that writes into a pipe nobody reads is ended by it (SIGPIPE) or waits for ever. So where the
    output cannot be written (a full disk, a terminal that is gone) that is told once, and reading goes on.
    """
    target: int | None = 1
    try:
        if tee is not None:
            target = os.open(tee, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        target = None
        if told is not None:
            told(error)
    try:
        while data := os.read(descriptor, READ_BYTES):
            try:
                while data and target is not None:
                    data = data[os.write(target, data) :]
            except OSError as error:
                if tee is not None and target is not None:
                    os.close(target)
                target = None
                if told is not None:
                    told(error)
    finally:
        if tee is not None and target is not None:
            os.close(target)


def has_ended(descriptor: int = 0) -> bool:
    """Whether the writer of a pipe is gone and nothing is left to read."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    ready = poller.poll(0)
    return bool(ready) and not ready[0][1] & select.POLLIN
