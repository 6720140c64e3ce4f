"""results.csv of YOLOv5 v6 and later and of YOLOv9: padded to 20 characters, epochs counted from 0.

Columns `train/{box,obj,cls}_loss` (v9: dfl instead of obj), `metrics/mAP_0.5:0.95`, `val/...`, `x/lr0..2`.
On COCO data the last validation appends the last epoch's row a second time. The PyPI package adds
`metrics/<class>_mAP` cells to some rows beyond the header. The classifier (classify/train.py) writes
`train/loss`, `test/loss`, `metrics/accuracy_top1` and `lr/0`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import numbers_of, whole
from yolomon.trainlog.formats.table import Table, header_of
from yolomon.trainlog.formats.ultralytics_csv import is_header, without_unmeasured
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import RoleResolver


class YoloV5CsvParser:
    """Rows as epoch records; a row that repeats the one before (same epoch) is a validation."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._table = Table(is_header, long_rows=True)
        self._resolver = RoleResolver(map_factor=1.0)
        self._epoch: int | None = None

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of a row."""
        cells = self._table.row(line)
        if cells is None:
            return ()
        if isinstance(cells, BrokenLine):
            return [cells]
        counted = whole(cells.get("epoch", ""))
        if counted is None:
            return [BrokenLine(shown(line.decode("utf-8", "replace"), 120), "no epoch")]
        epoch = counted + 1
        again = epoch == self._epoch
        self._epoch = epoch
        numbers = without_unmeasured(numbers_of(cells))
        del numbers["epoch"]
        return [
            TrainRecord(
                ts=arrival_ts,
                kind="validation" if again else "epoch",
                source=self._source,
                epoch=epoch,
                numbers=numbers,
                roles=self._resolver.roles(numbers),
            )
        ]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


class YoloV5Csv:
    """Format: YOLOv5 results.csv."""

    name: ClassVar[str] = "yolov5-csv"
    title: ClassVar[str] = "YOLOv5 / v9 results.csv"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `x/lr0` or `metrics/mAP_0.5`; the classifier by `lr/0` or `test/loss`."""
        columns = header_of(head)
        if not columns or columns[0] != "epoch":
            return 0.0
        if "x/lr0" in columns or {"lr/0", "train/loss"} <= set(columns):
            return 0.98
        if {"test/loss", "metrics/accuracy_top1"} <= set(columns):
            return 0.95
        return 0.95 if "metrics/mAP_0.5" in columns or "metrics/mAP_0.5:0.95" in columns else 0.0

    @staticmethod
    def parser(source: str) -> YoloV5CsvParser:
        """A parser for one file."""
        return YoloV5CsvParser(source)
