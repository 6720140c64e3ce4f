"""Detectron2's log.txt and console.

    [08/07 00:36:32 d2.utils.events]:  eta: 15:32:55  iter: 14999  total_loss: 0.6601  loss_cls: 0.2847  ...
      time: 1.8881  last_time: 1.8  data_time: 0.0777  lr: 0.06  max_mem: 18165M

`iter` counts from 0 and there are no epochs; losses are medians of 20 iterations, `time` is seconds an
iteration, `max_mem` torch's `max_memory_allocated` in MiB. AP is 0 to 100. Dates have no year. Source:
detectron2/utils/events.py (CommonMetricPrinter), evaluation/testing.py (print_csv_format). Its forerunner
maskrcnn-benchmark (and FCOS, ATSS, GLIP, which are built on it) writes the median and, in parentheses,
the mean of each, with `loss` as the total: `iter: 20 loss: 1.2 (1.9) time: 0.5 (0.6) max mem: 4358`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import Roles, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import duration, number, sane_map
from yolomon.trainlog.plain_text import plain, shown

_ITERATION = re.compile(r"(?:^|\]:?|INFO:)\s+(?:eta: (\S+(?: days?, \S+)?)\s+)?iter: (\d{1,12})\s+(.*)$")
_PAIR = re.compile(
    r"(?<![\w./\-])(max mem|[A-Za-z_][\w./\-]{0,99}): (-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf))(M)?(?=\s|$)"
)
_COPYPASTE = re.compile(r"copypaste: (.*)$")
_MIB = 2**20


class Detectron2TextParser:
    """Iterations, evaluations and errors."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._step: int | None = None
        self._task = ""
        self._columns: list[str] = []

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of one line."""
        text = plain(line)
        if "iter: " in text:
            match = _ITERATION.search(text)
            if match is not None:
                return [self._iteration(match, arrival_ts)]
        elif "copypaste: " in text:
            found = _COPYPASTE.search(text)
            return self._evaluation(found[1], arrival_ts) if found is not None else ()
        elif is_alarming(text):
            return [message(self._source, arrival_ts, shown(text))]
        return ()

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _iteration(self, match: re.Match[str], arrival_ts: float) -> TrainRecord:
        self._step = int(match[2]) + 1
        numbers = {n: v for n, cell, _ in _PAIR.findall(match[3]) if (v := number(cell)) is not None}
        memory = numbers.get("max_mem", numbers.get("max mem"))
        total = "total_loss" if "total_loss" in numbers else "loss"
        return TrainRecord(
            ts=arrival_ts,
            kind="batch",
            source=self._source,
            step=self._step,
            numbers=numbers,
            roles=Roles(
                loss=numbers.get(total),
                losses={n: v for n, v in numbers.items() if "loss" in n and n != total},
                learning_rate=numbers.get("lr"),
                step_seconds=numbers.get("time"),
                data_seconds=numbers.get("data_time", numbers.get("data")),
                memory_peak_bytes=memory * _MIB if memory else None,
                eta_seconds=duration(match[1]) if match[1] else None,
            ),
        )

    def _evaluation(self, words: str, arrival_ts: float) -> Iterable[TrainRecord]:
        """Three lines: the task, the names, the values of 0 to 100."""
        if words.startswith("Task: "):
            self._task, self._columns = words[len("Task: ") :].strip(), []
            return ()
        cells = [cell.strip() for cell in words.split(",")]
        if not self._columns:
            self._columns = cells
            return ()
        names, self._columns = self._columns, []
        values = {n: v for n, cell in zip(names, cells, strict=False) if (v := number(cell)) is not None}
        numbers = {
            f"{self._task}/{name}": value for name, value in values.items() if value == value
        }  # no NaN
        boxes = self._task == "bbox"
        ap, ap50 = values.get("AP"), values.get("AP50")
        return [
            TrainRecord(
                ts=arrival_ts,
                kind="validation",
                source=self._source,
                step=self._step,
                numbers=numbers,
                roles=Roles(
                    map50_95=sane_map(ap / 100) if boxes and ap is not None else None,
                    map50=sane_map(ap50 / 100) if boxes and ap50 is not None else None,
                ),
            )
        ]


class Detectron2Text:
    """Format: Detectron2's text log."""

    name: ClassVar[str] = "detectron2-text"
    title: ClassVar[str] = "Detectron2 log.txt"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By an iteration line or the loggers' names."""
        if re.search(rb"\biter: \d+  (?:total_loss|loss\w*): ", head.data):
            return 0.95
        return 0.8 if re.search(rb"\] d2\.[\w.]+ INFO: |d2\.[\w.]+\]: ", head.data) else 0.0

    @staticmethod
    def parser(source: str) -> Detectron2TextParser:
        """A parser for one log."""
        return Detectron2TextParser(source)
