"""Reading what a long log of text (a console, a table) already holds, piece by piece, for its curves."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.backlog import Block, Column
from yolomon.trainlog.epoch_length import EpochLength
from yolomon.trainlog.formats.base import BrokenLine, Format
from yolomon.trainlog.lines import LineSplitter
from yolomon.trainlog.roles import loss_is_broken
from yolomon.trainlog.segments import SegmentTracker

CHUNK_BYTES = 1 << 15  # one takes about 10 ms to read: the screen gets its turn in between


class TextReader:
    """Reads a log of lines or redraws from its start to `end`."""

    def __init__(self, path: str, format_: Format, end: int, elapsed: str | None = None) -> None:
        self.path = path
        self.format = format_
        self.end = end
        self.records = 0
        self.broken_lines = 0
        self.nan_losses = 0
        self.tracker = SegmentTracker(elapsed)
        self._length = EpochLength()
        self._parser = format_.parser(path)

    def blocks(self, now: float) -> Iterator[Block]:
        """The log's records, oldest first, a piece of the file at a time.

        Raises:
            OSError: the file cannot be read any more.
        """
        splitter = LineSplitter(redraws=self.format.reads == "redraws")
        with open(self.path, "rb", buffering=0) as file:
            offset = 0
            while offset < self.end:
                data = file.read(min(CHUNK_BYTES, self.end - offset))
                if not data:
                    break
                offset += len(data)
                parts: list[TrainRecord | Column] = []
                for line in splitter.feed(data):
                    parts.extend(self._records(line, now))
                yield Block(parts, offset)

    def _records(self, line: bytes, now: float) -> Iterator[TrainRecord]:
        for entry in self._parser.feed(line, now):
            if isinstance(entry, BrokenLine):
                self.broken_lines += 1
                continue
            self.records += 1
            record = self._length.fill(entry)
            segment = self.tracker.place(record)
            if loss_is_broken(record.roles):
                self.nan_losses += 1
            # Only curves are made of them, which want no more than the segment.
            yield msgspec.structs.replace(record, segment=segment) if segment else record
