"""Darknet's standard output (YOLOv3, v4): one line an iteration, among many a region.

     1400: 6.294297, 7.920310 avg loss, 0.001000 rate, 3.606512 seconds, 89600 images, 24.199946 hours left

`-nan` in a `Region ... count: 0` line means that no object fell to that layer and is no problem; those
lines are not read. The loss jumps after `Resizing`. There are no epochs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import Roles, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number, sane_map
from yolomon.trainlog.plain_text import plain

_VALUE = r"(-?(?:[\d.]+(?:e[+-]?\d+)?|nan(?:\(ind\))?|inf))"
_ITERATION = re.compile(
    rf"\s*(\d{{1,12}}): {_VALUE}, {_VALUE} avg(?: loss)?, {_VALUE} rate, {_VALUE} seconds, "
    rf"(\d{{1,15}}) images(?:, {_VALUE} hours left)?"
)
_LAST = re.compile(r"Last accuracy mAP@0\.50? = (-?[\d.]+) ?%")
_MAP = re.compile(r"mean[ _]average[ _]precision \(mAP@0\.50?\) = (-?[\d.]+|-?nan)")
_MOST_GPUS = 16


class DarknetParser:
    """Iterations and mAP."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._step: int | None = None
        self._images: int | None = None
        self._stride = 0  # iterations from one line to the next
        self._percent: float | None = None  # the newest mAP, as `Last accuracy` repeats it

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of one line."""
        if b" rate, " in line:
            match = _ITERATION.match(plain(line))
            if match is not None:
                return [self._iteration(match, arrival_ts)]
        elif b"(mAP@" in line:
            found = _MAP.search(plain(line))
            value = sane_map(number(found[1])) if found is not None else None
            if value is not None:
                self._percent = 100 * value
                return [self._evaluation(value, arrival_ts)]
        elif b"Last accuracy" in line:
            last = _LAST.search(plain(line))
            percent = number(last[1]) if last is not None else None
            # It is printed before each iteration, rounded to a hundredth of a percent.
            if percent is not None and (self._percent is None or abs(percent - self._percent) > 0.006):
                self._percent = percent
                if (value := sane_map(percent / 100)) is not None:
                    return [self._evaluation(value, arrival_ts)]
        elif b"Region" not in line:
            text = plain(line)
            if is_alarming(text) or text.lstrip().startswith("Resizing"):
                return [message(self._source, arrival_ts, text)]
        return ()

    def _evaluation(self, value: float, arrival_ts: float) -> TrainRecord:
        return TrainRecord(
            ts=arrival_ts,
            kind="validation",
            source=self._source,
            step=self._step,
            numbers={"mAP@0.50": value},
            roles=Roles(map50=value),
        )

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _iteration(self, match: re.Match[str], arrival_ts: float) -> TrainRecord:
        step, images = int(match[1]), int(match[6])
        cells = {
            "loss": match[2],
            "avg_loss": match[3],
            "rate": match[4],
            "seconds": match[5],
            "hours_left": match[7],
        }
        numbers = {
            name: value for name, cell in cells.items() if cell and (value := number(cell)) is not None
        }
        seconds, hours = numbers.get("seconds"), numbers.get("hours_left")
        batch = images / step if step else None  # every iteration has the same number of images
        if self._images is not None and self._step is not None and images > self._images:
            stride = step - self._step
            # With several GPUs a line is of as many iterations, line after line.
            if stride == 1 or (stride == self._stride and 1 < stride <= _MOST_GPUS):
                batch = float(images - self._images)
            self._stride = stride
        self._step, self._images = step, images
        return TrainRecord(
            ts=arrival_ts,
            kind="batch",
            source=self._source,
            step=step,
            numbers=numbers | {"images": float(images)},
            roles=Roles(
                loss=numbers.get("loss"),
                learning_rate=numbers.get("rate"),
                step_seconds=seconds,
                images=batch,
                images_per_second=batch / seconds if batch and seconds else None,
                eta_seconds=hours * 3600 if hours is not None and hours >= 0 else None,
            ),
        )


class Darknet:
    """Format: Darknet's output."""

    name: ClassVar[str] = "darknet"
    title: ClassVar[str] = "Darknet output"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By an iteration line, or a region line before the first of them."""
        text = head.data.decode("utf-8", "replace")
        if re.search(rf"^{_ITERATION.pattern}", text, re.MULTILINE):
            return 0.95
        return 0.8 if re.search(r"Region \d+ Avg \(?IOU", text) else 0.0

    @staticmethod
    def parser(source: str) -> DarknetParser:
        """A parser for one log."""
        return DarknetParser(source)
