"""Ultralytics' results.csv: a row an epoch, appended by rank 0.

Up to 8.3.8 padded to 23 characters and without `time`; plain from 8.3.9 on. `epoch` counts from 1, `time`
is seconds since this process began to train, so it falls when a run is resumed in the same file. Rows have
no partial cells. With `val=False` all metrics and validation losses are written as 0 until the last epoch:
not measured, so absent. A learning rate of 0 in the first row is the first batch of the warm-up and says
nothing of the epoch. What stands under `train/` and `val/` is a loss whatever its name: the model's criterion
names them (YOLOv10: `box_om`, `cls_oo`). Facts read in ultralytics 8.0 to 8.4, engine/trainer.py
(save_metrics).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import numbers_of, whole
from yolomon.trainlog.formats.table import Table, header_of
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import Meaning, RoleResolver, meaning

_NO_LOSS = ("acc", "iou", "lr", "precision", "recall", "time")  # words of what is no loss under `train/`


def is_header(cells: list[str]) -> bool:
    """Whether this is the header line; a second one in the file belongs to another run with other columns."""
    return cells[0] == "epoch"


def without_unmeasured(numbers: dict[str, float]) -> dict[str, float]:
    """The numbers without metrics and validation losses, where all of them are 0: nothing was validated."""
    measured = [name for name in numbers if name.startswith(("val/", "metrics/"))]
    validated = any(name.startswith("val/") for name in measured)
    if not validated or any(numbers[name] for name in measured):  # NaN counts as measured
        return numbers
    return {name: value for name, value in numbers.items() if name not in measured}


def losses_by_place(columns: list[str]) -> dict[str, Meaning]:
    """The columns that are losses by where they stand, not by their names."""
    found = {}
    for column in columns:
        place, _, name = column.partition("/")
        if place not in ("train", "val") or meaning(column).role not in ("", "part"):
            continue
        if name.endswith("loss") or not name.startswith(_NO_LOSS):
            found[column] = Meaning("part" if place == "train" else "validation_part")
    return found


class UltralyticsCsvParser:
    """Rows as epoch records."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._table = Table(is_header)
        self._resolver = RoleResolver(map_factor=1.0)
        self._columns: list[str] = []  # that the resolver knows
        self._last: tuple[int, float | None] | None = None  # epoch and time of the row before

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of a row."""
        cells = self._table.row(line)
        if cells is None:
            return ()
        if isinstance(cells, BrokenLine):
            return [cells]
        epoch = whole(cells.get("epoch", ""))
        if epoch is None:
            return [BrokenLine(shown(line.decode("utf-8", "replace"), 120), "no epoch")]
        if self._table.columns is not self._columns:
            self._columns = self._table.columns
            self._resolver = RoleResolver(losses_by_place(self._columns), map_factor=1.0)
        numbers = without_unmeasured(numbers_of(cells))
        del numbers["epoch"]
        roles = self._resolver.roles(numbers)
        if roles.learning_rate == 0 and epoch == 1:
            roles = msgspec.structs.replace(roles, learning_rate=None)
        elapsed = numbers.get("time")
        seconds = self._epoch_seconds(epoch, elapsed)
        self._last = (epoch, elapsed)
        return [
            TrainRecord(
                ts=arrival_ts,
                kind="epoch",
                source=self._source,
                epoch=epoch,
                numbers=numbers,
                roles=msgspec.structs.replace(roles, epoch_seconds=seconds),
            )
        ]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _epoch_seconds(self, epoch: int, elapsed: float | None) -> float | None:
        """How long this epoch took, by the clock of the trainer; None where a row is missing between."""
        if elapsed is None:
            return None
        if self._last is None:
            return elapsed if epoch == 1 else None
        last_epoch, last_elapsed = self._last
        if last_elapsed is None or elapsed < last_elapsed:  # resumed: the clock began anew
            return elapsed
        return elapsed - last_elapsed if epoch == last_epoch + 1 else None


class UltralyticsCsv:
    """Format: Ultralytics results.csv."""

    name: ClassVar[str] = "ultralytics-csv"
    title: ClassVar[str] = "Ultralytics results.csv"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By its columns: `epoch` first, `train/...`, `lr/pg0` or the metrics with (B)."""
        columns = header_of(head)
        if not columns or columns[0] != "epoch" or not any(c.startswith("train/") for c in columns):
            return 0.0
        if "test/loss" in columns or "lr/0" in columns:
            return 0.0  # YOLOv5's classifier
        if any(c.startswith("lr/pg") for c in columns):
            return 0.98
        if any(c in ("metrics/mAP50-95(B)", "metrics/accuracy_top1") for c in columns):
            return 0.95
        return 0.5 if head.name == "results.csv" and "step" not in columns and "x/lr0" not in columns else 0.0

    @staticmethod
    def parser(source: str) -> UltralyticsCsvParser:
        """A parser for one file."""
        return UltralyticsCsvParser(source)
