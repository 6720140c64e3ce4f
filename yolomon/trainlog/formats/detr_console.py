"""The console of DETR, Deformable DETR, RT-DETR and D-FINE (the `MetricLogger` of the DETR code base).

    Epoch: [0]  [150/225]  eta: 0:00:25  lr: 0.000100  class_error: 90.0  loss: 19.4377 (25.4237)
      loss_ce: 0.6484 (0.7362)  ...  time: 0.6446  data: 0.0123  max mem: 5123

A value is the median of the last 20 iterations, the one in parentheses the mean of the epoch. Epochs and
iterations count from 0 (some of its heirs add how many epochs there are: `[0/50]`); `max mem` is torch's
`max_memory_allocated` in MiB. Source: facebookresearch/detr, util/misc.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import Roles, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.coco_summary import CocoSummary
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number
from yolomon.trainlog.plain_text import plain
from yolomon.trainlog.roles import RoleResolver

_ITERATION = re.compile(r"\s*Epoch: \[(\d{1,9})(?:/(\d{1,9}))?\] +\[ *(\d{1,9})/(\d{1,9})\] +(.*)$")
_PAIR = re.compile(
    r"(?<![\w./])(max mem|[A-Za-z_][\w./]{0,99}): +(-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf))(?=\s|$)"
)
_MIB = 2**20


class DetrConsoleParser:
    """Iterations, COCO tables and errors."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._coco = CocoSummary()
        self._resolver = RoleResolver()
        self._epoch: int | None = None
        self._epochs: int | None = None

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of one line."""
        text = plain(line)
        match = _ITERATION.match(text) if "Epoch: [" in text else None
        if match is not None:
            return [self._iteration(match, arrival_ts)]
        table = self._coco.feed(text)
        if table:
            roles = Roles(map50=table.get("coco/bbox_mAP_50"), map50_95=table.get("coco/bbox_mAP"))
            return [
                TrainRecord(
                    ts=arrival_ts,
                    kind="validation",
                    source=self._source,
                    epoch=self._epoch,
                    epochs=self._epochs,
                    numbers=table,
                    roles=roles,
                )
            ]
        if is_alarming(text) or text.startswith(("Loss is ", "Training time ")):
            return [message(self._source, arrival_ts, text, self._epoch)]
        return ()

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _iteration(self, match: re.Match[str], arrival_ts: float) -> TrainRecord:
        self._epoch = int(match[1]) + 1
        self._epochs = int(match[2]) if match[2] else self._epochs
        batch, batches = int(match[3]) + 1, int(match[4])
        numbers = {n: v for n, cell in _PAIR.findall(match[5]) if (v := number(cell)) is not None}
        memory = numbers.pop("max mem", None)
        step_seconds, data_seconds = numbers.pop("time", None), numbers.pop("data", None)
        roles = msgspec.structs.replace(
            self._resolver.roles(numbers, "train"),
            step_seconds=step_seconds,
            data_seconds=data_seconds,
            memory_peak_bytes=memory * _MIB if memory else None,
            eta_seconds=None,  # the trainer's is of the epoch
        )
        return TrainRecord(
            ts=arrival_ts,
            kind="batch",
            source=self._source,
            epoch=self._epoch,
            epochs=self._epochs,
            step=(self._epoch - 1) * batches + batch,
            batch=batch,
            batches=batches,
            numbers=numbers,
            roles=roles,
        )


class DetrConsole:
    """Format: console of the DETR family."""

    name: ClassVar[str] = "detr-console"
    title: ClassVar[str] = "DETR / RT-DETR / D-FINE console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By an iteration line with a median and a mean."""
        found = re.search(
            rb"^\s*Epoch: \[\d+(?:/\d+)?\] +\[ *\d+/\d+\] +eta: .*loss\w*: \S+ \(\S+\)",
            head.data,
            re.MULTILINE,
        )
        return 0.95 if found is not None else 0.0

    @staticmethod
    def parser(source: str) -> DetrConsoleParser:
        """A parser for one console."""
        return DetrConsoleParser(source)
