"""Reads a recording (`yolomon.telemetry/1`, plain or gzip) item by item, whatever state the file is in."""

from __future__ import annotations

import gzip
import heapq
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from yolomon.messages import Message, UserError, msg
from yolomon.model import Finding, Item, SourceStatus, TrainRecord
from yolomon.telemetry import TelemetryError, decode

MAX_LINE_BYTES = 16 << 20
TAIL_BYTES = 256 * 1024
MAX_ZIPPED_BYTES = 8 << 20
TRIAL_LINES = 20
"""So many lines without one that can be read: the file is no recording."""


class RecordingError(UserError):
    """A file that cannot be played at all. `message` says why, for the user."""


class RecordingReader:
    """Iterates over the items of one recording. Findings are left out: they are judged anew.

    A line that cannot be read is counted in `broken_lines` and skipped; a file cut in the middle, as a crash
    leaves it, is read to its last whole line, and `cut` is then true.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.broken_lines = 0
        self.items = 0
        self.cut = False
        self.read_percent: float | None = None
        self.first_error = ""

    def __iter__(self) -> Iterator[Item]:
        """All items in the order of the file.

        Raises:
            RecordingError: missing, unreadable, no regular file, or no recording.
        """
        size = self._size()
        try:
            with self.path.open("rb") as raw:
                zipped = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                lines = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if zipped else raw
                for count, line in enumerate(self._lines(lines)):
                    if count % 256 == 0:
                        self.read_percent = 100 * raw.tell() / size if size else None
                    yield from self._decode(line)
                self.read_percent = 100.0
        except OSError as error:
            raise RecordingError(
                msg("{path} cannot be read: {why}", path=str(self.path), why=error.strerror or str(error))
            ) from error
        if self.items == 0:
            raise RecordingError(self._no_recording())

    def status(self, ts: float) -> SourceStatus | None:
        """What the user should know about the state of the file; None when all of it was read."""
        if not self.broken_lines and not self.cut:
            return None
        cause = (
            msg(
                "{count} lines of the recording could not be read (first: {why})",
                count=self.broken_lines,
                why=self.first_error,
            )
            if self.broken_lines
            else msg("The recording is cut off; it was played to its last whole line")
        )
        return SourceStatus(
            ts=ts,
            source="replay",
            ok=False,
            reason="broken-lines" if self.broken_lines else "cut",
            cause=cause,
            errors=self.broken_lines,
        )

    def _size(self) -> int:
        try:
            found = self.path.stat()
        except OSError as error:
            raise RecordingError(
                msg("{path} cannot be read: {why}", path=str(self.path), why=error.strerror or str(error))
            ) from error
        if stat.S_ISDIR(found.st_mode):
            raise RecordingError(msg("{path} is a folder, not a recording", path=str(self.path)))
        if not stat.S_ISREG(found.st_mode):
            raise RecordingError(msg("{path} is no regular file", path=str(self.path)))
        if found.st_size == 0:
            raise RecordingError(msg("{path} is empty", path=str(self.path)))
        return found.st_size

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        while True:
            try:
                line = file.readline(MAX_LINE_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                self.cut = True
                return
            if not line:
                return
            yield line

    def _decode(self, line: bytes) -> Iterator[Item]:
        if not line.strip():
            return
        try:
            item = decode(line)
        except (TelemetryError, ValueError) as error:
            if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                self.cut = True  # the last line, half written
                return
            self.broken_lines += 1
            self.first_error = self.first_error or str(error)[:200]
            if self.items == 0 and self.broken_lines >= TRIAL_LINES:
                raise RecordingError(self._no_recording()) from error
            return
        if item is not None and not isinstance(item, Finding):
            self.items += 1
            yield item

    def _no_recording(self) -> Message:
        return msg("{path} is not a recording of yolomon", path=str(self.path))


def read_all(path: str | Path, *records: Iterable[TrainRecord]) -> Iterator[Item]:
    """All items of a recording and of the logs beside it, in the order of time, at full speed.

    Args:
        path: the recording.
        records: the records of one log each, in order.

    Yields:
        The items; at the end a `SourceStatus` if lines were broken or the file was cut.

    Raises:
        RecordingError: the file cannot be played at all.
    """
    reader = RecordingReader(path)
    ts = 0.0
    for item in merge_by_time(reader, *records):
        ts = max(ts, item.ts)
        yield item
    status = reader.status(ts)
    if status is not None:
        yield status


def end_ts(path: Path) -> float | None:
    """The time of the last whole line, without reading all of a large file; None where none can be told."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            size = raw.seek(0, 2)
            if zipped and size > MAX_ZIPPED_BYTES:
                return None
            raw.seek(0 if zipped else max(0, size - TAIL_BYTES))
            tail = gzip.GzipFile(fileobj=raw).read()[-TAIL_BYTES:] if zipped else raw.read()
    except (OSError, EOFError, zlib.error):
        return None
    for line in reversed(tail.splitlines()):
        try:
            item = decode(line)
        except TelemetryError:
            continue
        if item is not None and not isinstance(item, Finding):
            return item.ts
    return None


def merge_by_time(*streams: Iterable[Item]) -> Iterator[Item]:
    """One stream in time's order from several that are each (about) in order, e.g. telemetry and two logs.

    An item that is older than its predecessor in the same stream keeps its place in it.
    """

    def keyed(number: int, stream: Iterable[Item]) -> Iterator[tuple[float, int, int, Item]]:
        newest = float("-inf")
        for count, item in enumerate(stream):
            newest = max(newest, item.ts)
            yield newest, number, count, item

    for _, _, _, item in heapq.merge(*(keyed(i, stream) for i, stream in enumerate(streams))):
        yield item
