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
FRAMES_WANTED = 50_000  # of a progress bar's redraws in a whole log; a curve has some 2000 blocks
LEAST_FRAMES = 8  # of a chunk


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
        redraws = self.format.reads == "redraws"
        splitter = LineSplitter(redraws=redraws)
        frames = max(LEAST_FRAMES, FRAMES_WANTED * CHUNK_BYTES // max(1, self.end))
        with open(self.path, "rb", buffering=0) as file:
            offset = 0
            while offset < self.end:
                data = file.read(min(CHUNK_BYTES, self.end - offset))
                if not data:
                    break
                offset += len(data)
                parts: list[TrainRecord | Column] = []
                for line in splitter.feed(thinned(data, frames) if redraws else data):
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


def thinned(data: bytes, frames: int) -> bytes:
    """The text without most of the redraws of its bars, where it has more than about `frames` of them.

    Each line keeps its first and its last two (the one before a CRLF, too), and some in between: they show
    running means, so what an epoch came to, NaN included, stands in its last one.
    """
    found = data.count(b"\r")
    if found <= frames:
        return data
    every = -(-found // frames)
    return b"\n".join(
        b"\r".join(
            frame for place, frame in enumerate(parts) if place % every == 0 or place >= len(parts) - 2
        )
        if len(parts := row.split(b"\r")) > 3
        else row
        for row in data.split(b"\n")
    )
