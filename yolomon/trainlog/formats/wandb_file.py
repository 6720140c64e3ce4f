"""W&B's run-<id>.wandb, read without wandb: the history in a LevelDB log of protobuf `Record`s.

After a header of 7 bytes (`:W&B`, E1 BE, version 0) come blocks of 32 KiB with records of: CRC (u32),
length (u16), type (u8: 1 full, 2 first, 3 middle, 4 last), data. The header counts into the first block. A
history item is {key = 1, nested_key = 2, value_json = 16}; `_step`, `_timestamp` and `_runtime` are among
them. Sources: leveldb doc/log_format.md, wandb/proto/wandb_internal.proto.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.epoch_count import EpochCount
from yolomon.trainlog.formats.protobuf import fields
from yolomon.trainlog.formats.scalar_points import LOGGED_EPOCH, record_of_scalars, yolo_epoch_base
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import RoleResolver

_MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 32768
_PART = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_HISTORY = 2  # field of Record
_WORDS = {b"NaN": math.nan, b"Infinity": math.inf, b"-Infinity": -math.inf}


class WandbParser:
    """History records."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._resolver = RoleResolver()
        self._buffer = bytearray()
        self._offset = 0  # of the buffer's start in the file
        self._pieces = bytearray()  # of a record that goes over a block's end
        self._base: int | None = None
        self._epochs = EpochCount()

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of all history that is complete in the bytes so far."""
        self._buffer += line
        for data in self._records():
            try:
                numbers = _history(data)
            except ValueError as error:
                yield BrokenLine("record", str(error))
                continue
            if numbers:
                yield self._record(numbers, arrival_ts)

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _records(self) -> Iterator[bytes]:
        at = 0
        if self._offset == 0:
            if len(self._buffer) < len(_MAGIC):
                return
            at = len(_MAGIC)
        while True:
            left_in_block = _BLOCK - (self._offset + at) % _BLOCK
            if left_in_block < _PART.size:  # filled with zeros
                if len(self._buffer) - at < left_in_block:
                    break
                at += left_in_block
                continue
            if len(self._buffer) - at < _PART.size:
                break
            _, length, kind = _PART.unpack_from(self._buffer, at)
            end = at + _PART.size + length
            if (
                kind == 0 or length > left_in_block - _PART.size
            ):  # zeros, or damaged: the next block begins afresh
                self._pieces.clear()
                end = at + left_in_block
                kind = 0
            if len(self._buffer) < end:
                break
            if kind in (_FULL, _FIRST):
                self._pieces.clear()
            if kind:
                self._pieces += self._buffer[at + _PART.size : end]
            at = end
            if kind in (_FULL, _LAST):
                yield bytes(self._pieces)
                self._pieces.clear()
        del self._buffer[:at]
        self._offset += at

    def _record(self, numbers: dict[str, float], arrival_ts: float) -> TrainRecord:
        step, wall = numbers.pop("_step", None), numbers.pop("_timestamp", None)
        numbers.pop("_runtime", None)
        if self._base is None:
            self._base = yolo_epoch_base(numbers)
        whole_step = int(step) if step is not None else None
        told = [numbers.pop(name) for name in LOGGED_EPOCH if name in numbers]
        epoch = None
        if self._base is not None and whole_step is not None:
            epoch, whole_step = whole_step + 1 - self._base, None
        elif told:
            epoch = self._epochs.number(told[0])
        return record_of_scalars(self._source, self._resolver, numbers, whole_step, wall, arrival_ts, epoch)


def _history(record: bytes) -> dict[str, float]:
    """The numbers of a `Record`'s history; empty for other records."""
    numbers: dict[str, float] = {}
    for field, history in fields(record):
        if field != _HISTORY or not isinstance(history, bytes):
            continue
        for inner, item in fields(history):
            if inner != 1 or not isinstance(item, bytes):
                continue
            names, raw = [], b""
            for part, value in fields(item):
                if part in (1, 2) and isinstance(value, bytes):
                    names.append(value.decode("utf-8", "replace"))
                elif part == 16 and isinstance(value, bytes):
                    raw = value
            number = _json_number(raw)
            if names and number is not None:
                numbers[shown("/".join(names), 120)] = number
    return numbers


def _json_number(raw: bytes) -> float | None:
    """The number of a JSON value; None for media, words and lists."""
    if raw.strip(b'"') in _WORDS:
        return _WORDS[raw.strip(b'"')]
    try:
        return msgspec.json.decode(raw, type=float)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


class WandbFile:
    """Format: .wandb file."""

    name: ClassVar[str] = "wandb"
    title: ClassVar[str] = "W&B run file"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "bytes"

    @staticmethod
    def score(head: Head) -> float:
        """By the header."""
        return 1.0 if head.data.startswith(_MAGIC[:4]) else 0.0

    @staticmethod
    def parser(source: str) -> WandbParser:
        """A parser for one file."""
        return WandbParser(source)
