"""Keras' console, of versions 2 and 3 (KerasCV, keras-retinanet, keras-yolo3).

    Epoch 1/100
     24/110 [====>.........................] - ETA: 8:47 - loss: 18.5 - box_loss: 1.5
    110/110 [==============================] - 19s 175ms/step - loss: 18.2 - val_loss: 17.5
    150/150 ━━━━━━━━━━━━━━━━━━━━ 45s 300ms/step - loss: 3.3 - val_loss: 3.0 - learning_rate: 1.0e-04

Epochs count from 1. Losses are running means over the epoch. With `verbose=2` an epoch is the last line
alone, without a bar (`110/110 - 19s - loss: 18.2`). Validation metrics stand in the last frame of an
epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number
from yolomon.trainlog.plain_text import plain
from yolomon.trainlog.roles import RoleResolver

_EPOCH = re.compile(r"\s*Epoch (\d{1,9})/(\d{1,9})\s*$")
_FRAME = re.compile(
    r"\s*(\d{1,9})/(\d{1,9}) +(?:\[[=>.]+\] +-|━+|- (?=\d))"  # a bar of 2, one of 3, or none
)
_STEP = re.compile(r"(\d{1,9})(s|ms|us|µs)/(?:step|sample)")
_PAIR = re.compile(
    r"(?<![\w/.@\-])([A-Za-z_][\w/.@\-]{0,99}): (-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf))(?=\s|$)"
)
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "µs": 1e6}


class KerasConsoleParser:
    """Frames, and epochs with their validation."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._resolver = RoleResolver()
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._done = 0
        self._pending: TrainRecord | None = None  # the full frame of the epoch

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one redraw or line."""
        text = plain(line)
        if "Epoch " in text and (epoch := _EPOCH.match(text)) is not None:
            ended = self._end_epoch()
            self._epoch, self._epochs, self._done = int(epoch[1]), int(epoch[2]), 0
            begun = TrainRecord(
                ts=arrival_ts, kind="epoch_start", source=self._source, epoch=self._epoch, epochs=self._epochs
            )
            return [*ended, begun]
        if "/" in text and (frame := _FRAME.match(text)) is not None:
            return self._frame(frame, text[frame.end() :], arrival_ts)
        if is_alarming(text):
            return [message(self._source, arrival_ts, text, self._epoch)]
        return ()

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The epoch whose bar was full when the log ended."""
        return self._end_epoch()

    def _frame(
        self, frame: re.Match[str], words: str, arrival_ts: float
    ) -> Iterable[TrainRecord | BrokenLine]:
        done, total = int(frame[1]), int(frame[2])
        numbers = {n: v for n, cell in _PAIR.findall(words) if (v := number(cell)) is not None}
        roles = self._resolver.roles(numbers, "train")
        if self._epoch is None or (roles.loss is None and not roles.losses):
            return ()  # a prediction or an evaluation
        step = _STEP.search(words)
        # A step of 0 ms is one that took less than half a millisecond.
        seconds = float(step[1]) / _A_SECOND[step[2]] if step is not None else 0.0
        roles = msgspec.structs.replace(roles, step_seconds=seconds if seconds > 0 else None)
        record = TrainRecord(
            ts=arrival_ts,
            kind="batch",
            source=self._source,
            epoch=self._epoch,
            epochs=self._epochs,
            step=(self._epoch - 1) * total + done,
            batch=done,
            batches=total,
            numbers={n: v for n, v in numbers.items() if not n.startswith("val_")},
            roles=msgspec.structs.replace(roles, validation_losses={}, map50=None, map50_95=None),
        )
        if done == total:
            self._pending = msgspec.structs.replace(record, kind="epoch", numbers=numbers, roles=roles)
        if done <= self._done:
            return ()
        self._done = done
        return [record]

    def _end_epoch(self) -> list[TrainRecord | BrokenLine]:
        ended, self._pending = self._pending, None
        return [ended] if ended is not None else []


class KerasConsole:
    """Format: Keras' console."""

    name: ClassVar[str] = "keras-console"
    title: ClassVar[str] = "Keras console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By `Epoch 1/10` on a line of its own and a frame with a loss."""
        epoch = False
        for line in re.split(rb"[\r\n]", head.data):
            if b"/" not in line:
                continue
            text = plain(line)
            if epoch and "oss: " in text and _FRAME.match(text) is not None:
                return 0.9
            epoch = epoch or _EPOCH.match(text) is not None
        return 0.0

    @staticmethod
    def parser(source: str) -> KerasConsoleParser:
        """A parser for one console."""
        return KerasConsoleParser(source)
