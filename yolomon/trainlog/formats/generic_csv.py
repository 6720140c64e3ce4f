"""Any other table with a header: its columns by their names, as a fallback.

The first epoch in the file tells whether epochs count from 0 or from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.epoch_count import EpochCount
from yolomon.trainlog.formats.numbers import numbers_of, whole
from yolomon.trainlog.formats.scalar_points import record_of_scalars
from yolomon.trainlog.formats.table import Table, header_of, looks_like_header
from yolomon.trainlog.roles import RoleResolver
from yolomon.trainlog.timestamps import unix_seconds

_DELIMITERS = (",", "\t", ";")
_EPOCHS = frozenset({"epoch", "epochs", "ep", "current_epoch"})
_STEPS = frozenset({"step", "global_step", "iteration", "iter", "iterations", "batch", "steps"})
_TIMES = frozenset({"timestamp", "_timestamp", "ts", "wall_time", "wall time", "datetime", "date"})


class GenericCsvParser:
    """Rows by the names of their columns."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._table: Table | None = None
        self._resolver = RoleResolver()
        self._epochs = EpochCount()

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of a row."""
        if self._table is None:
            text = line.decode("utf-8", "replace")
            self._table = Table(looks_like_header, max(_DELIMITERS, key=text.count))
        cells = self._table.row(line)
        if cells is None:
            return ()
        if isinstance(cells, BrokenLine):
            return [cells]
        epoch = step = None
        own_ts = None
        numbers = numbers_of(cells)
        for name, cell in cells.items():
            lower = name.lower()
            if lower in _EPOCHS:
                counted = numbers.pop(name, None)
                epoch = self._epochs.number(counted) if counted is not None else None
            elif lower in _STEPS:
                step = whole(cell)
                numbers.pop(name, None)
            elif lower in _TIMES and (moment := unix_seconds(numbers.get(name, cell))) is not None:
                own_ts = moment
                numbers.pop(name, None)
        if not numbers:
            return ()
        return [record_of_scalars(self._source, self._resolver, numbers, step, own_ts, arrival_ts, epoch)]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


class GenericCsv:
    """Format: any table with a header."""

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "Table by column names"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By a header with a counter and a loss, metric or learning rate in it."""
        lines = [line for line in head.lines if line.strip()]
        if not lines or lines[0].lstrip().startswith("{"):
            return 0.0
        columns = header_of(head, max(_DELIMITERS, key=lines[0].count))
        names = {column.lower() for column in columns}
        if not looks_like_header(columns) or len(names) != len(columns) or not names & (_EPOCHS | _STEPS):
            return 0.0
        plan = RoleResolver().plan(tuple(columns))
        return 0.4 if plan.single or plan.parts or plan.maps or plan.validation else 0.0

    @staticmethod
    def parser(source: str) -> GenericCsvParser:
        """A parser for one file."""
        return GenericCsvParser(source)
