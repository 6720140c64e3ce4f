"""What a log format is: how it recognises itself, and how its bytes become records.

A new format is one new file in this folder, with one class listed in `registry.py`, and one test.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import ClassVar, Literal, Protocol

import msgspec

from yolomon.model import TrainRecord


class Head(msgspec.Struct, frozen=True):
    """What a format sees to recognise itself: the file's name, its parent's and its first bytes."""

    name: str  # "results.csv"
    parent: str  # "train3"
    data: bytes  # up to 64 KiB from the start (of the current content), without a byte order mark

    def __post_init__(self) -> None:
        """Take the byte order mark off: what a format looks for stands after it."""
        if self.data.startswith(BOM_UTF8):
            msgspec.structs.force_setattr(self, "data", self.data[len(BOM_UTF8) :])

    @property
    def lines(self) -> list[str]:
        """The whole lines of the head, decoded with replacement; carriage returns split lines too."""
        text = self.data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        return lines[:-1] if len(lines) > 1 else lines


class BrokenLine(msgspec.Struct, frozen=True):
    """A line that should have been a record and was not."""

    text: str  # shortened, control characters removed
    reason: str


class Parser(Protocol):
    """Turns the content of ONE file (or one stream) into records, in order. Stateful."""

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records that this line completes (often one, sometimes none or several).

        For `reads = "lines"` a line comes without its line end. For `reads = "redraws"` each piece ended by
        a newline or a carriage return comes on its own, ANSI sequences and all. For `reads = "whole"` the
        whole content comes each time it changed; for `reads = "bytes"` whatever new bytes there are.
        """
        ...

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """What is still held back, when the file is known to be complete."""
        ...


class Format(Protocol):
    """A format. `score` is 0 (not mine) to 1 (certain); the highest wins, 0.3 is the least that counts."""

    name: ClassVar[str]  # "ultralytics-csv"; what `inspect` prints
    title: ClassVar[str]  # "Ultralytics results.csv"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]]

    @staticmethod
    def score(head: Head) -> float:
        """How sure this format is that the content is its own; by content first, the name is a hint."""
        ...

    @staticmethod
    def parser(source: str) -> Parser:
        """A new parser for one file; `source` goes into the records."""
        ...
