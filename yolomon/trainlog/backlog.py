"""Reading what a long JSON-lines log already holds, in columns, at disk speed and in little memory."""

# Paths are strings here: they are looked at several times a second.
# ruff: noqa: PTH116

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.columns import KEY_MARK, ColumnEnd, ColumnShape, Points, column_shape, finite_words
from yolomon.trainlog.curves import CurveBuilder, progress
from yolomon.trainlog.epoch_length import EpochLength
from yolomon.trainlog.formats.base import BrokenLine, Format, Head
from yolomon.trainlog.formats.json_records import JsonParser
from yolomon.trainlog.formats.registry import recognise
from yolomon.trainlog.json_lines import objects
from yolomon.trainlog.lines import LINE_LIMIT
from yolomon.trainlog.roles import loss_is_broken
from yolomon.trainlog.segments import SegmentTracker

CHUNK_BYTES = 1 << 17  # its rows stay in the cache; larger ones also set off the garbage collector
HEAD_BYTES = 1 << 16
FAILURES_LIMIT = 16  # chunks in a row that do not fit the shape before another one is looked for


class Column(msgspec.Struct, frozen=True):
    """Neighbouring records of one shape and one segment."""

    segment: int
    count: int
    first_epoch: int | None
    newest: TrainRecord
    x_first: float | None
    x_last: float | None
    points: list[Points]
    nan_losses: int


class Block(msgspec.Struct, frozen=True):
    """What one chunk of the log held, in order: records that stand alone and columns."""

    parts: list[TrainRecord | Column]
    offset: int  # where the next chunk begins

    @property
    def records(self) -> list[TrainRecord]:
        """The records that stand alone."""
        return [part for part in self.parts if isinstance(part, TrainRecord)]

    @property
    def columns(self) -> list[Column]:
        """The records that came in columns."""
        return [part for part in self.parts if isinstance(part, Column)]


class BacklogReader:
    """Reads a JSON-lines log from its start to `end` (its size unless given)."""

    def __init__(self, path: str, format_: Format, parser: JsonParser, end: int | None = None) -> None:
        self.path = path
        self.format = format_
        self.parser = parser
        self.end = os.stat(path).st_size if end is None else end
        self.records = 0
        self.broken_lines = 0
        self.nan_losses = 0
        self.broken_example = ""
        self.tracker = SegmentTracker()
        self._length = EpochLength()
        self._shape: ColumnShape | None = None
        self._end: ColumnEnd | None = None
        self._failures = 0
        self._has_words = False
        self._exact = False
        self.broken_alone = 0  # how many records a chunk whose loss is not finite are told one by one
        self._shortest, self._longest = 1 << 62, -1  # lengths of lines that were found to be of the shape
        self._chunks_until_search = 0

    def blocks(self, now: float, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Block]:
        """The log's blocks, oldest first.

        Raises:
            OSError: the file cannot be read any more.
        """
        with open(self.path, "rb", buffering=0) as file:
            offset, rest = 0, b""
            while offset < self.end:
                data = file.read(min(chunk_bytes, self.end - offset))
                if not data:
                    break
                offset += len(data)
                cut = data.rfind(b"\n") + 1
                if not cut and offset < self.end and len(rest) + len(data) < LINE_LIMIT:
                    rest += data
                    continue
                if offset >= self.end:
                    cut = len(data)
                whole, rest = rest + data[:cut], data[cut:]
                yield Block(self._parts(whole, now), offset)

    def share(self, tracker: SegmentTracker, length: EpochLength) -> None:
        """Go on where another reader of the same log stands, and let it go on where this one will stand."""
        self.tracker, self._length = tracker, length
        self._end = None

    def _parts(self, data: bytes, now: float) -> list[TrainRecord | Column]:
        if b"\0" in data:
            data = data.replace(b"\0", b"")
        columns = self._all_regular(data)
        if columns is not None and self._shape is not None:
            first, last = data[: data.index(b"\n")], data[data.rindex(b"\n", 0, -1) + 1 : -1]
            column = self._column(self._shape, first, last, columns, 0, len(columns[0]), now)
            if column is not None:
                return [column]
        return self.parts(data.split(b"\n"), now)

    def _all_regular(self, data: bytes) -> list[tuple[Any, ...]] | None:
        """The columns where all lines are of the usual shape, which is found without taking them apart."""
        shape = self._shape
        if shape is None or self._has_words or not data.endswith(b"\n"):
            return None
        try:
            columns = shape.columns(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
            return None
        count = len(columns[0]) if columns else 0
        if count < 3:
            return None
        # Counting one byte is a third cheaper, and as good unless texts in the lines have colons, too.
        if data.count(b":") == count * shape.colons or data.count(KEY_MARK) == count * shape.key_marks:
            return columns
        return None

    def parts(self, lines: list[bytes], now: float) -> list[TrainRecord | Column]:
        """What neighbouring lines hold: records that stand alone, and columns."""
        if self._shape is None:
            self._shape = self._find_shape(lines)
        shape = self._shape
        if shape is None:
            return self._singly(lines, now)
        regular = self._regular(shape, lines)
        columns = self._decode(shape, lines, regular) if len(regular) * 4 >= len(lines) else None
        if columns is None and not self._exact:
            self._exact = True  # another kind of record is as long as the usual one
            regular = self._regular(shape, lines)
            columns = self._decode(shape, lines, regular) if len(regular) * 4 >= len(lines) else None
        if columns is None:
            self._fail()
            return self._singly(lines, now)
        self._failures = 0
        others: list[int] = []
        if len(regular) != len(lines):
            usual = set(regular)
            others = [place for place in range(len(lines)) if place not in usual and lines[place]]
        if self.broken_alone and self._has_words:
            rows = shape.nan_rows(columns)[: self.broken_alone]
            others = sorted({*others, *(regular[row] for row in rows)})
        return self._together(shape, lines, regular, others, columns, now)

    def _regular(self, shape: ColumnShape, lines: list[bytes]) -> list[int]:
        """The places of the lines that have the usual keys.

        Counting the keys of each line costs a fifth of the time. So a line within the lengths of
        lines that were
        counted before is taken for one of them, until that proves wrong once (`_exact`). A line with keys of
        its own is longer, one that lacks a field that is needed does not decode.
        """
        marks, low, high = shape.key_marks, self._shortest, self._longest
        if self._exact:
            return [place for place, line in enumerate(lines) if line.count(KEY_MARK) == marks]
        lengths = list(map(len, lines))
        regular = [place for place, length in enumerate(lengths) if low <= length <= high]
        if len(regular) == len(lines):
            return regular
        more = [
            place
            for place, length in enumerate(lengths)
            if not low <= length <= high and length and lines[place].count(KEY_MARK) == marks
        ]
        if more:
            found = [lengths[place] for place in more]
            self._shortest, self._longest = min(low, *found), max(high, *found)
            regular = sorted(regular + more)
        return regular

    def _decode(
        self, shape: ColumnShape, lines: list[bytes], regular: list[int]
    ) -> list[tuple[Any, ...]] | None:
        """The columns; None where a line is not of the shape. NaN is looked for where it was seen before."""
        data = b"\n".join(lines if len(regular) == len(lines) else [lines[place] for place in regular])
        if not self._has_words:
            try:
                return shape.columns(data)
            except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
                pass
        replaced = finite_words(data)
        self._has_words = replaced is not data
        try:
            return shape.columns(replaced)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
            return None

    def _together(
        self,
        shape: ColumnShape,
        lines: list[bytes],
        regular: list[int],
        others: list[int],
        columns: list[tuple[Any, ...]],
        now: float,
    ) -> list[TrainRecord | Column]:
        parts: list[TrainRecord | Column] = []
        done = 0
        for place in others:
            for record in self._records(lines[place], now):
                # Where a segment may begin, or counters of one kind go on, what came before is closed first.
                if record.kind in ("start", "end", shape.kind):
                    upto = bisect_left(regular, place)
                    parts.extend(self._columns(shape, lines, regular, columns, done, upto, now))
                    done = upto + (upto < len(regular) and regular[upto] == place)
                parts.append(self._placed(record))
        parts.extend(self._columns(shape, lines, regular, columns, done, len(regular), now))
        return parts

    def _columns(
        self,
        shape: ColumnShape,
        lines: list[bytes],
        regular: list[int],
        columns: list[tuple[Any, ...]],
        first: int,
        last: int,
        now: float,
    ) -> list[TrainRecord | Column]:
        if last - first >= 3:
            found = self._column(
                shape, lines[regular[first]], lines[regular[last - 1]], columns, first, last, now
            )
            if found is not None:
                return [found]
        return self._singly([lines[place] for place in regular[first:last]], now)

    def _column(
        self,
        shape: ColumnShape,
        first_line: bytes,
        last_line: bytes,
        columns: list[tuple[Any, ...]],
        first: int,
        last: int,
        now: float,
    ) -> Column | None:
        """Rows `first` to `last` (exclusive) as one; None where a run may end among them."""
        if not shape.rises(columns, first, last):
            return None
        oldest = None
        if not shape.follows(columns, first, self._end):
            oldest = self._end_record(first_line, now)
            if oldest is None:
                return None
        newest = self._end_record(last_line, now)
        if newest is None:
            return None
        before, self._end = self._end, shape.end(columns, last - 1, newest)
        count = last - first
        nan_losses = shape.nan_losses(columns, first, last)
        self.records += count
        self.nan_losses += nan_losses
        if (
            oldest is None
        ):  # the chunk goes on where the last one ended: its first line need not be taken apart
            first_epoch, x_first = shape.first_epoch(columns, first, self._end), before.x if before else None
        else:
            first_epoch, x_first = oldest.epoch, progress(oldest)
        return Column(
            segment=newest.segment,
            count=count,
            first_epoch=first_epoch,
            newest=newest,
            x_first=x_first,
            x_last=self._end.x,
            points=shape.points(columns, first, last),
            nan_losses=nan_losses,
        )

    def _end_record(self, line: bytes, now: float) -> TrainRecord | None:
        found = self._records(line, now)
        return self._filled(found[0]) if len(found) == 1 else None

    def _singly(self, lines: list[bytes], now: float) -> list[TrainRecord | Column]:
        return [self._placed(record) for line in lines if line for record in self._records(line, now)]

    def _records(self, line: bytes, now: float) -> list[TrainRecord]:
        found = []
        for entry in self.parser.feed(line, now):
            if isinstance(entry, BrokenLine):
                self.broken_lines += 1
                self.broken_example = f"{entry.text} ({entry.reason})"
            else:
                found.append(entry)
        return found

    def _filled(self, record: TrainRecord) -> TrainRecord:
        record = self._length.fill(record)
        segment = self.tracker.place(record)
        return msgspec.structs.replace(record, segment=segment) if segment else record

    def _placed(self, record: TrainRecord) -> TrainRecord:
        self.records += 1
        self._end = None
        if loss_is_broken(record.roles):
            self.nan_losses += 1
        return self._filled(record)

    def _find_shape(self, lines: list[bytes]) -> ColumnShape | None:
        if self._chunks_until_search > 0:
            self._chunks_until_search -= 1
            return None
        self._chunks_until_search = FAILURES_LIMIT
        marks = Counter(line.count(KEY_MARK) for line in lines[:2000] if line)
        if not marks:
            return None
        usual, _ = marks.most_common(1)[0]
        for line in lines:
            if line.count(KEY_MARK) == usual:
                entries = objects(line)
                if len(entries) == 1 and isinstance(entries[0], dict):
                    return column_shape(self.parser, entries[0], line)
        return None

    def _fail(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES_LIMIT:
            self._shape, self._failures, self._chunks_until_search = None, 0, 0
            self._exact = False
            self._shortest, self._longest = 1 << 62, -1


def pool(block: Block, builder: CurveBuilder) -> None:
    """Add a block's records and columns to curves."""
    for part in block.parts:
        if isinstance(part, TrainRecord):
            builder.add(part)
        else:
            pool_part(part, builder)


def pool_part(part: Column, builder: CurveBuilder) -> None:
    """Add columns to curves."""
    if part.newest.rank or part.x_first is None or part.x_last is None:
        return
    builder.has_batches = builder.has_batches or part.newest.kind == "batch"
    for name, low, high, last, count, non_finite in part.points:
        builder.add_block(name, part.segment, part.x_first, part.x_last, low, high, last, count, non_finite)


def can_read_fast(path: str, least_bytes: int) -> BacklogReader | None:
    """A reader for this log, if it is at least that long and of JSON lines.

    Raises:
        OSError: it cannot be read.
    """
    try:
        if os.stat(path).st_size < least_bytes:
            return None
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return None  # whoever reads it next tells why
    where = Path(path)
    found = recognise(Head(where.name, where.parent.name, head))
    if found is None or found.reads != "lines":
        return None
    parser = found.parser(path)
    return BacklogReader(path, found, parser) if isinstance(parser, JsonParser) else None
