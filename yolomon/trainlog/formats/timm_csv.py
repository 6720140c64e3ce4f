"""timm's summary.csv: `epoch,train_loss,eval_loss,eval_top1,...`, epochs counted from 0.

On resume timm trims and rewrites the file; the follower then reads it anew.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.keras_csv import ZeroBasedCsvParser
from yolomon.trainlog.formats.table import header_of


class TimmCsv:
    """Format: timm summary.csv."""

    name: ClassVar[str] = "timm-csv"
    title: ClassVar[str] = "timm summary.csv"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `train_loss` and `eval_...` beside `epoch`."""
        columns = header_of(head)
        if columns[:1] != ["epoch"] or "train_loss" not in columns:
            return 0.0
        if any(name.startswith("eval_") for name in columns):
            return 0.95
        return 0.6 if head.name == "summary.csv" else 0.0

    @staticmethod
    def parser(source: str) -> ZeroBasedCsvParser:
        """A parser for one file."""
        return ZeroBasedCsvParser(source)
