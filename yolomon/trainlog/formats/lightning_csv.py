"""metrics.csv of Lightning's CSVLogger, and so of RF-DETR 1.3 and later: sparse, CRLF, epochs counted from 0.

A row holds what was logged at one step: the learning rate, or the training means, or the validation. Rows
of the same epoch and step belong together, and the validation may come BEFORE the training means of its
epoch; the later row's record then holds both. When a new key comes the whole file is rewritten with its
columns sorted, so columns are read by name. Steps count over the run, so two rows at one step are of one
epoch, whatever they say: after training RF-DETR validates once more and writes epoch = max_epochs, and some
log an `epoch` of their own that counts from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import RecordKind, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import numbers_of, whole
from yolomon.trainlog.formats.table import Table, header_of
from yolomon.trainlog.roles import Phase, RoleResolver


def is_header(cells: list[str]) -> bool:
    """Whether this is the header line: both counters are named."""
    return "step" in cells and "epoch" in cells


class LightningCsvParser:
    """Rows as batch, validation or epoch records."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._table = Table(is_header)
        self._resolver = RoleResolver()
        self._place: tuple[int | None, int | None] = (None, None)  # epoch (from 1) and step of the row before
        self._there: dict[
            str, dict[str, float]
        ] = {}  # the latest of training and of validation at that place

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of a row."""
        cells = self._table.row(line)
        if cells is None:
            return ()
        if isinstance(cells, BrokenLine):
            return [cells]
        numbers = numbers_of(cells)
        numbers.pop("epoch", None)
        numbers.pop("step", None)
        if not numbers:
            return ()
        counted, step = whole(cells.get("epoch", "")), whole(cells.get("step", ""))
        epoch = counted + 1 if counted is not None else None
        what = self._kind(numbers)
        last_epoch, last_step = self._place
        if step is not None and step == last_step and epoch is not None and last_epoch is not None:
            epoch = last_epoch
        if (epoch, step) != self._place:
            self._place, self._there = (epoch, step), {}
        self._there[what] = numbers
        # The training means of an epoch carry the suffix _epoch, or stand at the step of its validation.
        completes = len(self._there) == 2 or any(name.endswith("_epoch") for name in numbers)
        kind: RecordKind = "epoch" if completes else what
        shown = self._there.get("validation", {}) | self._there.get("batch", {}) if completes else numbers
        phase: Phase = "validation" if kind == "validation" else None
        return [
            TrainRecord(
                ts=arrival_ts,
                kind=kind,
                source=self._source,
                epoch=epoch,
                step=step + 1 if step is not None else None,
                numbers=shown,
                roles=self._resolver.roles(shown, phase),
            )
        ]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _kind(self, numbers: dict[str, float]) -> Literal["batch", "validation"]:
        plan = self._resolver.plan(tuple(numbers))
        validates = bool(plan.validation or plan.maps) or all(n.startswith(("val", "test")) for n in numbers)
        trains = bool(plan.parts or plan.summed) or any(
            role in ("loss", "learning_rate") for role, _, _ in plan.single
        )
        return "validation" if validates and not trains else "batch"


class LightningCsv:
    """Format: Lightning metrics.csv."""

    name: ClassVar[str] = "lightning-csv"
    title: ClassVar[str] = "Lightning / RF-DETR metrics.csv"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `epoch` and `step` among its columns, and sparse rows under them or its file's name."""
        columns = header_of(head)
        if len(columns) < 3 or not is_header(columns):
            return 0.0
        sparse = any(",," in line or line.rstrip().endswith(",") for line in head.lines[1:20])
        if sparse:
            return 0.9
        return 0.75 if head.name == "metrics.csv" or head.parent.startswith("version_") else 0.0

    @staticmethod
    def parser(source: str) -> LightningCsvParser:
        """A parser for one file."""
        return LightningCsvParser(source)
