"""TensorBoard event files, read without TensorFlow: TFRecords of protobuf `Event`s with scalars in them.

A record is: length (u64), masked CRC-32C of the length, the event, masked CRC-32C of the event. The
length's sum is checked, so that a torn file is noticed; the event's is not, for its cost. Events have a
wall clock, so this is the one format whose records all have a time of their own. A restart writes a new
file. Sources: tensorflow/core/lib/io/record_writer, tensorflow/core/util/event.proto,
framework/summary.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.epoch_count import EpochCount
from yolomon.trainlog.formats.protobuf import fields, signed
from yolomon.trainlog.formats.scalar_points import LOGGED_EPOCH, record_of_scalars, yolo_epoch_base
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import RoleResolver

EVENT_LIMIT = 256 << 20  # bytes; an event with a large image or a graph
_HEADER = struct.Struct("<QI")


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)  # Castagnoli, reflected
        table.append(byte)
    return tuple(table)


_CRC = _crc_table()


def masked_crc(data: bytes) -> int:
    """TFRecord's masked CRC-32C."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class TensorboardParser:
    """Scalars, those of one step in one record, also where a piece of the file ends within the step."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._resolver = RoleResolver()
        self._buffer = bytearray()
        self._broken = False
        # Of the newest step, while the event behind it is incomplete: it may belong to the same step.
        self._held: dict[str, float] = {}
        self._step: int | None = None
        self._wall: float | None = None
        self._base: int | None = None  # where steps are epochs: the number of the first
        self._epochs = EpochCount()

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of all events that are complete in the bytes so far."""
        if self._broken:
            return
        self._buffer += line
        for event in self._events():
            if isinstance(event, BrokenLine):
                self._broken = True
                self._buffer.clear()
                yield event
                break
            try:
                event_wall, event_step, scalars = _scalars(event)
            except (ValueError, struct.error) as error:
                yield BrokenLine("event", str(error))
                continue
            if not scalars:
                continue
            if event_step != self._step:
                yield from self.finish(arrival_ts)
            self._step, self._wall = event_step, event_wall
            self._held |= scalars
        if not self._buffer:
            yield from self.finish(arrival_ts)

    def finish(self, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        """The newest step; a torn event behind it is no record."""
        numbers, self._held = self._held, {}
        return [self._record(numbers, self._step, self._wall, arrival_ts)] if numbers else []

    def _events(self) -> Iterator[bytes | BrokenLine]:
        """The complete events at the start of the buffer, taken out of it."""
        at = 0
        while len(self._buffer) - at >= _HEADER.size:
            length, crc = _HEADER.unpack_from(self._buffer, at)
            if length > EVENT_LIMIT or crc != masked_crc(bytes(self._buffer[at : at + 8])):
                yield BrokenLine("event file", "the length of an event does not fit its checksum")
                return
            end = at + _HEADER.size + length + 4
            if end > len(self._buffer):
                break
            yield bytes(self._buffer[at + _HEADER.size : end - 4])
            at = end
        del self._buffer[:at]

    def _record(
        self, numbers: dict[str, float], step: int | None, wall: float | None, arrival_ts: float
    ) -> TrainRecord:
        if self._base is None:
            self._base = yolo_epoch_base(numbers)
        epoch = None
        told = [numbers[name] for name in LOGGED_EPOCH if name in numbers]
        if self._base is not None and step is not None:
            epoch, step = step + 1 - self._base, None
        elif told:
            epoch = self._epochs.number(told[0])
        return record_of_scalars(self._source, self._resolver, numbers, step, wall, arrival_ts, epoch)


def _scalars(event: bytes) -> tuple[float | None, int | None, dict[str, float]]:
    """Wall time, step and scalars of an `Event`."""
    wall: float | None = None
    step = 0
    scalars: dict[str, float] = {}
    for field, value in fields(event):
        if field == 1 and isinstance(value, bytes):
            wall = struct.unpack("<d", value)[0]
        elif field == 2 and isinstance(value, int):
            step = signed(value)
        elif field == 5 and isinstance(value, bytes):
            for inner, entry in fields(value):
                if inner == 1 and isinstance(entry, bytes):
                    tag, scalar = _value(entry)
                    if scalar is not None:
                        scalars[shown(tag, 120)] = scalar
    return wall, step, scalars


def _value(entry: bytes) -> tuple[str, float | None]:
    """Tag and number of a `Summary.Value`: a simple value, or a tensor of one float."""
    tag, scalar = "", None
    for field, value in fields(entry):
        if not isinstance(value, bytes):
            continue
        if field == 1:
            tag = value.decode("utf-8", "replace")
        elif field == 2:
            scalar = struct.unpack("<f", value)[0]
        elif field == 8:
            scalar = _tensor(value)
    return tag, scalar


def _tensor(data: bytes) -> float | None:
    """The number of a `TensorProto` that holds exactly one float or double."""
    kind, number = 0, None
    for field, value in fields(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field in (4, 5, 6) and isinstance(value, bytes):  # tensor_content, float_val, double_val
            double = field == 6 or (field == 4 and kind == 2)
            if len(value) == (8 if double else 4) and (field != 4 or kind in (1, 2)):
                number = struct.unpack("<d" if double else "<f", value)[0]
    return number


class Tensorboard:
    """Format: TensorBoard event file."""

    name: ClassVar[str] = "tensorboard"
    title: ClassVar[str] = "TensorBoard events"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "bytes"

    @staticmethod
    def score(head: Head) -> float:
        """By the first event: its length with the right checksum, and the words `brain.Event:`."""
        if len(head.data) < _HEADER.size:
            return 0.0
        length, crc = _HEADER.unpack_from(head.data)
        if length > EVENT_LIMIT or crc != masked_crc(head.data[:8]):
            return 0.0
        return 1.0 if b"brain.Event:" in head.data[:200] else 0.9

    @staticmethod
    def parser(source: str) -> TensorboardParser:
        """A parser for one file."""
        return TensorboardParser(source)
