"""`yolomon inspect LOG`: what was recognised in a log, as a report of a log that is read wrongly needs it."""

# Paths are strings here: they are looked at several times a second.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from yolomon.messages import Translate, UserError, english, msg, one_line
from yolomon.model import Roles, TrainRecord
from yolomon.trainlog.backlog import BacklogReader, can_read_fast
from yolomon.trainlog.formats.json_records import JsonParser
from yolomon.trainlog.log import Log, looks_binary
from yolomon.trainlog.roles import loss_is_broken, meaning
from yolomon.trainlog.segments import SegmentTracker

FAST_BYTES = 4 << 20  # a longer JSON-lines log is read in columns
_TAIL_BYTES = 1 << 16  # of such a log are read in order
_NEWEST = ("loss", "learning_rate", "map50", "map50_95", "images_per_second", "step_seconds")


class InspectError(UserError):
    """A path that holds no log. `message` says why, for the user."""


class Newest(msgspec.Struct):
    """The newest value of each role; None where the log has none."""

    loss: float | None = None
    learning_rate: float | None = None
    map50: float | None = None
    map50_95: float | None = None
    images_per_second: float | None = None
    step_seconds: float | None = None
    memory_bytes: float | None = None

    def take(self, roles: Roles) -> None:
        """Take what a record says."""
        for name in _NEWEST:
            value = getattr(roles, name)
            if value is not None:
                setattr(self, name, value)
        for memory in (roles.memory_reserved_bytes, roles.memory_peak_bytes, roles.memory_allocated_bytes):
            if memory is not None:
                self.memory_bytes = memory
                break


class Segment(msgspec.Struct):
    """One run, or one part of a resumed run. Epochs count from 1; `epochs` is how many there are to be."""

    records: int = 0
    first_epoch: int | None = None
    last_epoch: int | None = None
    epochs: int | None = None
    last: Newest = msgspec.field(default_factory=Newest)

    def take(self, record: TrainRecord) -> None:
        """Take one record."""
        self.records += 1
        if record.epoch is not None and record.kind != "features":  # noqa: SIM102 - the comment is of the inner one
            if self.epochs is None or record.epoch <= self.epochs:  # a final validation counts one further
                self.first_epoch = (
                    record.epoch if self.first_epoch is None else min(self.first_epoch, record.epoch)
                )
                self.last_epoch = (
                    record.epoch if self.last_epoch is None else max(self.last_epoch, record.epoch)
                )
        told = record.epochs or (record.run.epochs if record.run is not None else None)
        self.epochs = told or self.epochs
        self.last.take(record.roles)


class Inspection(msgspec.Struct):
    """What is in a log. `format` is "" where none was recognised."""

    path: str
    format: str
    title: str
    records: int = 0
    broken_lines: int = 0
    nan_losses: int = 0
    segments: list[Segment] = msgspec.field(default_factory=list)
    roles: dict[str, str] = msgspec.field(default_factory=dict)  # role -> the trainer's name, as last seen
    first: TrainRecord | None = None
    newest: TrainRecord | None = None
    broken_example: str = ""

    def as_json(self) -> dict[str, Any]:
        """The object of `yolomon inspect --json`; NaN and infinity are the strings "NaN", "Infinity"."""
        return {
            "format": self.format or None,
            "records": self.records,
            "broken_lines": self.broken_lines,
            "nan_losses": self.nan_losses,
            "segments": [
                {
                    "records": segment.records,
                    "first_epoch": segment.first_epoch,
                    "last_epoch": segment.last_epoch,
                    "epochs": segment.epochs,
                    "last": {name: spelled(getattr(segment.last, name)) for name in Newest.__struct_fields__},
                }
                for segment in self.segments
            ],
        }

    def encode(self) -> bytes:
        """`as_json` as one line of JSON."""
        return msgspec.json.encode(self.as_json())

    def text(self, tr: Translate = english) -> str:
        """The report for a person."""
        rows = [
            tr("{path}: {format}", path=self.path, format=self.title or tr("no known format")),
            tr(
                "{records} records, {broken} broken lines, {nan} with a loss that is NaN or infinite",
                records=self.records,
                broken=self.broken_lines,
                nan=self.nan_losses,
            ),
        ]
        if self.broken_example:
            rows.append(tr("a broken line: {text}", text=self.broken_example))
        for number, segment in enumerate(self.segments, 1):
            rows.append(
                tr(
                    "segment {number}: {records} records, epochs {first} to {last} of {epochs}",
                    number=number,
                    records=segment.records,
                    first=_or_unknown(segment.first_epoch),
                    last=_or_unknown(segment.last_epoch),
                    epochs=_or_unknown(segment.epochs),
                )
            )
            for name in Newest.__struct_fields__:
                value = getattr(segment.last, name)
                if value is not None:
                    rows.append(f"    {name} = {value:.6g}")
        if self.roles:
            rows.append(tr("names that were understood:"))
            rows.extend(f"    {role} <- {name}" for role, name in sorted(self.roles.items()))
        for label, record in ((tr("first record:"), self.first), (tr("last record:"), self.newest)):
            if record is not None:
                rows.append(f"{label} {_describe(record)}")
        return "\n".join(map(one_line, rows))

    def take(self, record: TrainRecord) -> None:
        """Take one record."""
        self.records += 1
        while len(self.segments) <= record.segment:
            self.segments.append(Segment())
        self.segments[record.segment].take(record)
        if loss_is_broken(record.roles):
            self.nan_losses += 1
        if self.first is None:
            self.first = record
        self.newest = record
        if len(self.roles) < 64:
            self._learn_names(record)

    def _learn_names(self, record: TrainRecord) -> None:
        for role in ("learning_rate", "map50", "map50_95", "loss", "step_seconds", "data_seconds"):
            value = getattr(record.roles, role)
            if value is not None and role not in self.roles:
                name = _named(role, value, record)
                if name is not None:
                    self.roles[role] = name


def _named(role: str, value: float, record: TrainRecord) -> str | None:
    """The trainer's name of a role's value; never the name of something else that has the same value.

    All metrics are 0 after a first epoch, so that the value alone does not tell.
    """
    same = [name for name, number in record.numbers.items() if number == value]
    means = {name: meaning(name).role for name in same}
    called = next((name for name in same if means[name] == role), None)
    return called or next((name for name in same if means[name] in ("", "part")), None)


def spelled(value: float | None) -> float | str | None:
    """A number for strict JSON."""
    if value is None or isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _or_unknown(value: int | None) -> int | str:
    return "?" if value is None else value


def _describe(record: TrainRecord) -> str:
    parts: list[str] = [record.kind]
    for name in ("epoch", "epochs", "batch", "batches", "step", "rank"):
        value = getattr(record, name)
        if value is not None:
            parts.append(f"{name}={value}")
    parts.extend(f"{name}={value:.6g}" for name, value in list(record.numbers.items())[:8])
    if record.text:
        parts.append(record.text[:80])
    return " ".join(parts)


def inspect(
    path: str | os.PathLike[str], now: float = 0.0, told: Callable[[float], object] | None = None
) -> Inspection:
    """Read a whole log and say what is in it.

    Args:
        path: a regular file.
        now: UNIX seconds, taken as the arrival of all records; 0 unless given.
        told: is told the percentage that is read, after each piece.

    Raises:
        InspectError: there is no such file, it cannot be read, or it is no text of any known format.
    """
    path = os.fspath(path)
    _check(path)
    fast = can_read_fast(path, FAST_BYTES)
    if fast is not None:
        return _inspect_fast(path, fast, now, told)
    log = Log(path)
    found = Inspection(path=path, format="", title="")
    try:
        records = log.look(now)
        while records or log.follower.offset < log.follower.size:
            for record in records:
                _count(found, record, log)
            if told is not None and log.follower.size:
                told(100 * log.follower.offset / log.follower.size)
            before = log.follower.offset
            records = log.look(now)
            if not records and log.follower.offset == before:
                break
        for record in log.finish(now):
            _count(found, record, log)
        if log.follower.state == "unreadable" and log.follower.detail is not None:
            raise InspectError(log.follower.detail)
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InspectError(msg("cannot be read: {reason}", reason=error.strerror or str(error))) from error
    finally:
        log.close()
    if log.format is None:
        if not head.strip(b"\0 \r\n"):
            raise InspectError(msg("the file is empty"))
        if looks_binary(head):
            raise InspectError(msg("a binary file of no known format"))
    else:
        found.format, found.title = log.format.name, log.format.title
    found.broken_lines = log.counts.broken_lines
    if log.counts.last_broken is not None:
        found.broken_example = f"{log.counts.last_broken.text} ({log.counts.last_broken.reason})"
    return found


def _count(found: Inspection, record: TrainRecord, log: Log) -> None:
    # On a console words lie between the records; in a stream of objects each one is a record.
    if (
        record.kind == "message"
        and not record.numbers
        and log.format is not None
        and log.format.reads == "redraws"
    ):
        return
    found.take(record)


def _inspect_fast(
    path: str, reader: BacklogReader, now: float, told: Callable[[float], object] | None
) -> Inspection:
    found = Inspection(path=path, format=reader.format.name, title=reader.format.title)
    for block in reader.blocks(now):
        if told is not None:
            told(100 * block.offset / max(1, reader.end))
        for record in block.records:
            found.take(record)
        for column in block.columns:
            while len(found.segments) <= column.segment:
                found.segments.append(Segment())
            segment = found.segments[column.segment]
            segment.take(column.newest)
            segment.records += column.count - 1
            if column.first_epoch is not None:
                first = segment.first_epoch
                segment.first_epoch = column.first_epoch if first is None else min(first, column.first_epoch)
            found.records += column.count
            found.nan_losses += column.nan_losses
            found.newest = column.newest
            found.first = found.first or column.newest
            found._learn_names(column.newest)
    found.broken_lines = reader.broken_lines
    found.broken_example = reader.broken_example
    if found.segments:
        for record in _newest_in_order(path, reader.parser, now):
            found.segments[-1].last.take(record.roles)
            found.newest = record
    return found


def _newest_in_order(path: str, parser: JsonParser, now: float) -> list[TrainRecord]:
    """The records at the file's end, of its last segment: columns do not tell which of two kinds is newer."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return []  # gone since it was read
    tracker = SegmentTracker()
    records: list[TrainRecord] = []
    for line in lines[size > _TAIL_BYTES :]:
        for record in parser.feed(line, now):
            if isinstance(record, TrainRecord):
                before = tracker.segment
                if tracker.place(record) != before:
                    records.clear()
                records.append(record)
    return records


def _check(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InspectError(msg("no such file")) from None
    except OSError as error:
        raise InspectError(msg("cannot be read: {reason}", reason=error.strerror or str(error))) from error
    if stat.S_ISDIR(mode):
        raise InspectError(msg("is a folder, not a log file"))
    if not stat.S_ISREG(mode):
        raise InspectError(msg("is no regular file (a pipe, device or socket)"))
