"""Opening a long log: its newest records at once, the curves of the whole run afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from yolomon.model import CurveBlock, TrainRecord
from yolomon.trainlog.backlog import HEAD_BYTES, BacklogReader, can_read_fast, pool
from yolomon.trainlog.curves import CurveBuilder
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.json_records import JsonParser
from yolomon.trainlog.formats.registry import recognise
from yolomon.trainlog.lines import LineSplitter
from yolomon.trainlog.log import ELAPSED, Log
from yolomon.trainlog.segments import SegmentTracker
from yolomon.trainlog.text_backlog import TextReader

LONG_BYTES = 1 << 20
TAIL_BYTES = 1 << 18
SAMPLES = 64  # places that are looked at to guess how many runs lie before the newest records
SAMPLE_BYTES = 8192
BLOCKS_A_CURVE = 2000  # the screen shows up to 1024 buckets
CHUNKS_A_TURN = 8
YIELD_SECONDS = 0.0003  # after every few chunks, so that the screen's thread gets its turn


class LongLog(msgspec.Struct):
    """A long log that was opened at its end."""

    log: Log
    reader: BacklogReader | TextReader
    starts: list[TrainRecord]  # what the head tells of the run
    segment_guess: int


def open_long(path: str, now: float) -> LongLog | None:
    """Open a log longer than `LONG_BYTES` at its end; None where it is shorter or only its whole tells."""
    reader = can_read_fast(path, LONG_BYTES)
    if reader is None:
        return _open_text(path, now)
    parser = reader.format.parser(path)
    if not isinstance(parser, JsonParser):
        return None
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size
            at = max(0, size - TAIL_BYTES)
            file.seek(at)
            cut = file.read(TAIL_BYTES).find(b"\n")
            offset = at + cut + 1 if cut >= 0 else 0
            guess = _guess_segments(file, size, parser, now)
    except OSError:
        return None
    starts = []
    for line in head.split(b"\n")[:-1]:  # also teaches the parser whether epochs count from 0
        for record in parser.feed(line, now):
            if not isinstance(record, BrokenLine) and record.kind == "start":
                starts.append(record)
    log = Log(path, offset=offset, format_=reader.format, parser=parser)
    log.tracker.segment = guess
    reader.end = offset
    return LongLog(log, reader, starts, guess)


def _open_text(path: str, now: float) -> LongLog | None:
    """A long console or table: its head teaches the parser (columns, epochs), then its end is read."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < LONG_BYTES:
                return None
            head = file.read(HEAD_BYTES)
            file.seek(size - TAIL_BYTES)
            tail = file.read(TAIL_BYTES)
    except OSError:
        return None  # whoever reads it next tells why
    where = Path(path)
    found = recognise(Head(where.name, where.parent.name, head))
    if found is None or found.reads not in ("lines", "redraws"):
        return None
    cut = tail.find(b"\n")
    if cut < 0 and found.reads == "redraws":
        cut = tail.find(b"\r")
    if cut < 0:
        return None
    parser = found.parser(path)
    starts = []
    for line in LineSplitter(redraws=found.reads == "redraws").feed(head):
        for record in parser.feed(line, now):
            if not isinstance(record, BrokenLine) and (record.kind == "start" or record.run is not None):
                starts.append(record)
    offset = size - TAIL_BYTES + cut + 1
    log = Log(path, offset=offset, format_=found, parser=parser)
    return LongLog(log, TextReader(path, found, offset, ELAPSED.get(found.name)), starts, 0)


def _guess_segments(file: object, size: int, parser: JsonParser, now: float) -> int:
    """How often counters go back between samples; the backlog tells exactly, later."""
    tracker = SegmentTracker()
    for number in range(SAMPLES):
        file.seek(size * number // SAMPLES)  # type: ignore[attr-defined]
        lines = file.read(SAMPLE_BYTES).split(b"\n")[1:-1]  # type: ignore[attr-defined]
        for line in lines[:4]:
            for record in parser.feed(line, now):
                if not isinstance(record, BrokenLine) and record.kind != "start":
                    tracker.place(record)
    return tracker.segment


def fill_curves(
    reader: BacklogReader | TextReader,
    newest: list[TrainRecord],
    now: float,
    stopped: Callable[[], bool],
    told: Callable[[float], None] | None = None,
) -> Iterator[CurveBlock]:
    """The curves of what lies before the newest records, and of those, in order, with the mark of the end.

    Args:
        reader: reads the log up to where `newest` begins.
        newest: the records of the tail, already shown.
        now: the arrival of all of them.
        stopped: asked after each chunk.
        told: is told the percentage, about once a percent.
    """
    builder: CurveBuilder | None = None
    percent = 0
    for number, block in enumerate(reader.blocks(now)):
        if builder is None:
            records = reader.records * reader.end / max(1, block.offset)
            builder = CurveBuilder(reader.path, max(1, int(records / BLOCKS_A_CURVE)))
        pool(block, builder)
        yield from builder.take()
        if stopped():
            return
        if told is not None and block.offset * 100 // max(1, reader.end) > percent:
            percent = block.offset * 100 // max(1, reader.end)
            told(float(percent))
        if number % CHUNKS_A_TURN == 0:
            time.sleep(YIELD_SECONDS)
    builder = builder or CurveBuilder(reader.path)
    for record in newest:
        builder.add(record)
    yield from builder.finish()
