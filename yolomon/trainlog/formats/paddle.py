"""PaddleDetection: standard output, or `log/workerlog.N` of `paddle.distributed.launch` (one file a rank).

    [06/24 11:20:46] ppdet.engine INFO: Epoch: [0] [ 20/134] learning_rate: 0.1 loss: 57.5 eta: 7:39:28
    2021-04-29 06:19:48,726-INFO: iter: 1400, lr: 0.00007, 'loss': '88.0', eta: 4:27:31, batch_cost: 0.33 sec

The first line is of version 2 (epochs and iterations count from 0), the second of the static graph of
before (iterations alone; `time` in the place of `batch_cost` at first). The kin PaddleX, PaddleSeg,
PaddleOCR and PaddleClas write one of three more shapes, with epochs from 1. `ips` is images per second of
one rank. Dates have no year, so the arrival time counts. `Found inf or nan, current scale is: ...` is
AMP's loss scaling at work and no problem. Facts: PaddleDetection ppdet/engine/callbacks.py (LogPrinter),
ppdet/metrics/metrics.py (VOCMetric).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal, NamedTuple

import msgspec

from yolomon.model import Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.coco_summary import CocoSummary
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import duration, number, sane_map
from yolomon.trainlog.plain_text import plain

_ITERATION = re.compile(r"Epoch: \[ *(\d{1,9})\] \[ *(\d{1,9})/(\d{1,9})\] (.*)$")
_STATIC = re.compile(r"-INFO: iter: (\d{1,12}), (.*)$")
_STEPS = re.compile(r"\[TRAIN\] epoch: (\d{1,9}), iter: (\d{1,12})/\d{1,12}, (.*)$")  # PaddleSeg
_GLOBAL = re.compile(r"epoch: \[(\d{1,9})/(\d{1,9})\], (?:global_step|iter): (\d{1,12}), (.*)$")  # PaddleOCR
_PLACED = re.compile(  # PaddleX 1 and 2; PaddleClas
    r"\[TRAIN\] Epoch=(\d{1,9})/(\d{1,9}), Step=(\d{1,9})/(\d{1,9}), (.*)$"
    r"|\[Train\]\[Epoch (\d{1,9})/(\d{1,9})\]\[Iter: (\d{1,9})/(\d{1,9})\](.*)$"
)
_LIKELY = (b"Epoch: [", b"iter: ", b"epoch: [", b"Epoch=", b"[Epoch ")
_ETA = re.compile(r"\b(?:eta[:=]|ETA) ?((?:\d+ days?, )?[\d:]+)")
_PAIR = re.compile(
    r"(?<![\w./])([A-Za-z_][\w./]{0,99})'?(?:: |=)'?(-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))'?(?=s?(?:[\s,]|$))"
)
_VOC = re.compile(r"mAP\(0\.50?, \w+\) = ([\d.]+)%")
_PADDLEX = re.compile(r"\[EVAL\] Finished, Epoch=(\d{1,9}).*\bbbox_(m?)map=([\d.]+)")
_RANK = re.compile(r"workerlog\.(\d{1,5})$")
_MIB = 2**20


class PaddleParser:
    """Iterations, COCO tables and errors."""

    def __init__(self, source: str) -> None:
        self._source = source
        rank = _RANK.search(source)
        self._rank = int(rank[1]) if rank is not None else None
        self._coco = CocoSummary()
        self._epoch: int | None = None
        self._loaded = False  # weights were loaded since the last iteration: training starts again
        self._last_words = ""

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one line."""
        text = plain(line)
        if any(mark in line for mark in _LIKELY):
            place = _place(text)
            if place is not None:
                return self._iteration(place, arrival_ts)
        table = self._coco.feed(text)
        if table:
            roles = Roles(map50=table.get("coco/bbox_mAP_50"), map50_95=table.get("coco/bbox_mAP"))
            return [self._evaluation(table, roles, arrival_ts)]
        if "mAP(" in text and (voc := _VOC.search(text)) is not None:
            return self._voc("mAP(0.50)", number(voc[1]), arrival_ts)
        if "[EVAL]" in text and (found := _PADDLEX.search(text)) is not None:
            self._epoch, value = int(found[1]), number(found[3])
            if not found[2]:
                return self._voc("bbox_map", value, arrival_ts)
            numbers = {} if value is None else {"bbox_mmap": value}
            return [self._evaluation(numbers, Roles(map50_95=sane_map(value)), arrival_ts)]
        if "Finish loading model weights" in text or "Finish resuming model weights" in text:
            self._loaded = True
        elif "Best test " in text or (is_alarming(text) and "Warning" not in text):
            # A failed assertion comes once a CUDA thread: the same words again and again.
            words = text[:80]
            if words != self._last_words:
                self._last_words = words
                told = message(self._source, arrival_ts, text, self._epoch)
                return [msgspec.structs.replace(told, rank=self._rank)]
        return ()

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _voc(self, name: str, percent: float | None, arrival_ts: float) -> list[TrainRecord]:
        if percent is None:
            return []
        value = percent / 100
        return [self._evaluation({name: value}, Roles(map50=sane_map(value)), arrival_ts)]

    def _evaluation(self, numbers: dict[str, float], roles: Roles, arrival_ts: float) -> TrainRecord:
        return TrainRecord(
            ts=arrival_ts,
            kind="validation",
            source=self._source,
            rank=self._rank,
            epoch=self._epoch,
            numbers=numbers,
            roles=roles,
        )

    def _iteration(self, place: _Place, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        eta = _ETA.search(place.words)
        numbers = {}
        for name, cell in _PAIR.findall(place.words):
            value = number(cell)
            if value is not None and name != "eta":
                numbers[name] = value

        def first(*names: str) -> float | None:
            return next((numbers[name] for name in names if name in numbers), None)

        allocated, reserved = numbers.get("max_mem_allocated"), numbers.get("max_mem_reserved")
        self._epoch = place.epoch
        records: list[TrainRecord | BrokenLine] = []
        if self._loaded:
            self._loaded = False
            run = RunInfo(trainer="PaddleDetection")
            records.append(
                TrainRecord(ts=arrival_ts, kind="start", source=self._source, rank=self._rank, run=run)
            )
        records.append(
            TrainRecord(
                ts=arrival_ts,
                kind="batch",
                source=self._source,
                rank=self._rank,
                epoch=place.epoch,
                epochs=place.epochs,
                step=place.step,
                batch=place.batch,
                batches=place.batches,
                numbers=numbers,
                roles=Roles(
                    loss=numbers.get("loss"),
                    losses={n: v for n, v in numbers.items() if "loss" in n.lower() and n != "loss"},
                    learning_rate=first("learning_rate", "lr"),
                    step_seconds=first("batch_cost", "avg_batch_cost", "time_each_step", "time"),
                    data_seconds=first("data_cost", "reader_cost", "avg_reader_cost"),
                    images_per_second=numbers.get("ips"),
                    eta_seconds=duration(eta[1]) if eta is not None else None,
                    memory_peak_bytes=allocated * _MIB if allocated is not None else None,
                    memory_reserved_bytes=reserved * _MIB if reserved is not None else None,
                ),
            )
        )
        return records


class _Place(NamedTuple):
    """Where in the run an iteration line stands, from 1, and its words."""

    epoch: int | None
    epochs: int | None
    step: int | None
    batch: int | None
    batches: int | None
    words: str


def _place(text: str) -> _Place | None:
    """The place of an iteration line of any of the five shapes; None for another line."""
    if (match := _ITERATION.search(text)) is not None:
        epoch, batch, batches = int(match[1]) + 1, int(match[2]) + 1, int(match[3])
        return _Place(epoch, None, (epoch - 1) * batches + batch, batch, batches, match[4])
    if (match := _STATIC.search(text)) is not None:
        return _Place(None, None, int(match[1]), None, None, match[2])
    if (match := _STEPS.search(text)) is not None:
        return _Place(int(match[1]), None, int(match[2]), None, None, match[3])
    if (match := _GLOBAL.search(text)) is not None:
        return _Place(int(match[1]), int(match[2]), int(match[3]), None, None, match[4])
    if (match := _PLACED.search(text)) is not None:
        of_x = match[1] is not None
        epoch, epochs, batch, batches = (int(match[i + (1 if of_x else 6)]) for i in range(4))
        batch += 0 if of_x else 1  # PaddleClas counts iterations from 0
        step = (epoch - 1) * batches + batch
        return _Place(epoch, epochs, step, batch, batches, match[5] if of_x else match[10])
    return None


class Paddle:
    """Format: PaddleDetection's text log."""

    name: ClassVar[str] = "paddle"
    title: ClassVar[str] = "PaddleDetection log"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By the logger names of ppdet; a rank above 0 writes only warnings of Paddle's C++ side."""
        if b"] ppdet." in head.data:
            return 0.95
        if b"Epoch: [" in head.data and b"batch_cost: " in head.data:
            return 0.9
        if any(
            _place(plain(line)) for line in re.split(rb"[\r\n]", head.data) if any(m in line for m in _LIKELY)
        ):
            return 0.85
        by_name = head.name.startswith("workerlog.")
        return 0.6 if by_name and (b"paddle" in head.data or b"_utils.cc:" in head.data) else 0.0

    @staticmethod
    def parser(source: str) -> PaddleParser:
        """A parser for one log."""
        return PaddleParser(source)
