"""VisualDL's vdlrecords.*.log (PaddleDetection with --use_vdl), read without VisualDL: scalars one by one.

A record is its length (u64) and a protobuf `Record` of `Value`s: {id = 1 (the step), tag = 2, timestamp = 3
(milliseconds), value = 4 (float)}; images and histograms have other fields. There is no checksum and no mark
at the start, so the file's name has to tell, and what cannot be a record is told as damage.
Sources: PaddlePaddle/VisualDL visualdl/writer/record_writer.py, visualdl/proto/record.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.protobuf import fields, signed
from yolomon.trainlog.formats.scalar_points import record_of_scalars
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import RoleResolver

RECORD_LIMIT = 256 << 20  # bytes; a record with an image or embeddings
_LENGTH = struct.Struct("<Q")
_MILLISECONDS = 1e-3


class VisualDlParser:
    """Scalars, those of one step in one record, also where a piece of the file ends within the step."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._resolver = RoleResolver()
        self._buffer = bytearray()
        self._broken = False
        # Of the newest step, while the record behind it is incomplete: it may belong to the same step.
        self._held: dict[str, float] = {}
        self._step: int | None = None
        self._wall: float | None = None

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of all that is complete in the bytes so far."""
        if self._broken:
            return
        self._buffer += line
        damage = ""
        for data in self._records():
            try:
                scalars = list(_scalars(data))
            except (ValueError, struct.error) as error:
                damage = str(error)
                break
            for tag, number, at, when in scalars:
                if at != self._step or tag in self._held:
                    yield from self.finish(arrival_ts)
                self._step, self._wall = at, when
                self._held[tag] = number
        if damage or not self._buffer:
            yield from self.finish(arrival_ts)
        if damage:
            self._broken = True
            self._buffer.clear()
            yield BrokenLine("record", damage)

    def finish(self, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        """The newest step; a torn record behind it is none."""
        numbers, self._held = self._held, {}
        return [self._record(numbers, self._step, self._wall, arrival_ts)] if numbers else []

    def _records(self) -> Iterator[bytes]:
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > RECORD_LIMIT:
                yield b"\xff"  # no message: told as damage
                return
            end = at + _LENGTH.size + length
            if end > len(self._buffer):
                break
            yield bytes(self._buffer[at + _LENGTH.size : end])
            at = end
        del self._buffer[:at]

    def _record(
        self, numbers: dict[str, float], step: int | None, wall: float | None, arrival_ts: float
    ) -> TrainRecord:
        return record_of_scalars(self._source, self._resolver, numbers, step, wall, arrival_ts)


def _scalars(record: bytes) -> Iterator[tuple[str, float, int, float | None]]:
    """Tag, number, step and UNIX seconds of a `Record`'s scalars."""
    for field, value in fields(record):
        if field != 1 or not isinstance(value, bytes):
            continue
        tag, number, step, wall = "", None, 0, None
        for inner, entry in fields(value):
            if inner == 1 and isinstance(entry, int):
                step = signed(entry)
            elif inner == 2 and isinstance(entry, bytes):
                tag = entry.decode("utf-8", "replace")
            elif inner == 3 and isinstance(entry, int):
                wall = signed(entry) * _MILLISECONDS
            elif inner == 4 and isinstance(entry, bytes) and len(entry) == 4:
                number = struct.unpack("<f", entry)[0]
        if tag and number is not None:
            yield shown(tag, 120), number, step, wall


class VisualDl:
    """Format: VisualDL's records."""

    name: ClassVar[str] = "visualdl"
    title: ClassVar[str] = "VisualDL records"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "bytes"

    @staticmethod
    def score(head: Head) -> float:
        """By the name, and a first record that can be read."""
        if "vdlrecords" not in head.name or len(head.data) < _LENGTH.size:
            return 0.0
        (length,) = _LENGTH.unpack_from(head.data)
        first = head.data[_LENGTH.size : _LENGTH.size + length]
        try:
            list(fields(first))
        except ValueError:
            return 0.0 if len(first) == length else 0.5
        return 0.9

    @staticmethod
    def parser(source: str) -> VisualDlParser:
        """A parser for one file."""
        return VisualDlParser(source)
