"""Keras' CSVLogger: `epoch`, then the logs sorted by name; epochs counted from 0.

The separator is the user's choice, a missing value is written `NA`, a list as `"[a, b]"`. A table of the same
columns that begins with epoch 1 was written by a loop of somebody's own, and counts from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import numbers_of, whole
from yolomon.trainlog.formats.table import Table, header_of
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import RoleResolver

_DELIMITERS = (",", ";", "\t", "|")


class ZeroBasedCsvParser:
    """Rows of a table with an epoch counted from 0 (unless the first is 1) as epoch records."""

    def __init__(self, source: str, delimiter: str | None = ",") -> None:
        self._source = source
        self._table = Table(lambda cells: cells[0] == "epoch", delimiter) if delimiter is not None else None
        self._resolver = RoleResolver()
        self._offset: int | None = None

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of a row."""
        if self._table is None:
            self._table = Table(
                lambda cells: cells[0] == "epoch", _delimiter(line.decode("utf-8", "replace"))
            )
        cells = self._table.row(line)
        if cells is None:
            return ()
        if isinstance(cells, BrokenLine):
            return [cells]
        counted = whole(cells.get("epoch", ""))
        if counted is None:
            return [BrokenLine(shown(line.decode("utf-8", "replace"), 120), "no epoch")]
        if self._offset is None:
            self._offset = 0 if counted == 1 else 1
        numbers = numbers_of(cells)
        del numbers["epoch"]
        return [
            TrainRecord(
                ts=arrival_ts,
                kind="epoch",
                source=self._source,
                epoch=counted + self._offset,
                numbers=numbers,
                roles=self._resolver.roles(numbers),
            )
        ]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


def _delimiter(header: str) -> str:
    """The separator of a header line: the one after `epoch`."""
    rest = header.lstrip("\ufeff ").removeprefix("epoch").lstrip(" ")
    return rest[0] if rest and rest[0] in _DELIMITERS else ","


class KerasCsv:
    """Format: Keras CSVLogger."""

    name: ClassVar[str] = "keras-csv"
    title: ClassVar[str] = "Keras CSVLogger"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `epoch` first, `loss` after it, and the columns in order of name."""
        lines = [line for line in head.lines if line.strip()]
        if not lines or not lines[0].lstrip("\ufeff").startswith("epoch"):
            return 0.0
        columns = header_of(head, _delimiter(lines[0]))
        names = columns[1:]
        if "loss" not in names or names != sorted(names) or any("/" in n for n in names):
            return 0.0
        if {"step", "batch", "iter", "iteration", "global_step", "eval_loss"}.intersection(names):
            return 0.0  # a row that is less than an epoch
        return 0.85

    @staticmethod
    def parser(source: str) -> ZeroBasedCsvParser:
        """A parser for one file; the separator is found in its header."""
        return ZeroBasedCsvParser(source, delimiter=None)
