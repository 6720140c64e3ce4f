"""Ultralytics' tune results: a row a TRIAL (a whole training) with its fitness, not an epoch.

`tune_results.csv` up to 8.3, `tune_results.ndjson` from 8.4 on. Both are recognised so that no epochs or
losses are read into them; a trial becomes a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import numbers_of
from yolomon.trainlog.formats.table import Table, header_of
from yolomon.trainlog.plain_text import shown


class _Trial(msgspec.Struct):
    iteration: int
    fitness: float | None = None
    hyperparameters: dict[str, float | None] = {}


class UltralyticsTuneParser:
    """Trials as messages."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._table = Table(lambda cells: cells[0] == "fitness")
        self._trials = 0

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The message of one trial."""
        if line.lstrip().startswith(b"{"):
            try:
                trial = msgspec.json.decode(line, type=_Trial)
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                return [BrokenLine(shown(line.decode("utf-8", "replace"), 120), str(error))]
            numbers = {name: value for name, value in trial.hyperparameters.items() if value is not None}
            if trial.fitness is not None:
                numbers["fitness"] = trial.fitness
            self._trials = trial.iteration
        else:
            cells = self._table.row(line)
            if cells is None:
                return ()
            if isinstance(cells, BrokenLine):
                return [cells]
            numbers = numbers_of(cells)
            self._trials += 1
        fitness = numbers.get("fitness")
        words = f"trial {self._trials}" + (f": fitness {fitness:g}" if fitness is not None else "")
        return [TrainRecord(ts=arrival_ts, kind="message", source=self._source, numbers=numbers, text=words)]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


class UltralyticsTune:
    """Format: Ultralytics tune results."""

    name: ClassVar[str] = "ultralytics-tune"
    title: ClassVar[str] = "Ultralytics tune results (trials, not epochs)"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `fitness` first and a hyperparameter after it."""
        start = head.data.lstrip()[:4096]
        if start.startswith(b"{"):
            return 0.95 if b'"fitness"' in start and b'"hyperparameters"' in start else 0.0
        columns = header_of(head)
        return (
            0.95 if columns[:1] == ["fitness"] and {"lr0", "momentum", "box"}.intersection(columns) else 0.0
        )

    @staticmethod
    def parser(source: str) -> UltralyticsTuneParser:
        """A parser for one file."""
        return UltralyticsTuneParser(source)
