"""PaddleDetection: standard output, or `log/workerlog.N` of `paddle.distributed.launch` (one file a rank).

Epochs and iterations count from 0. `ips` is images per second of one rank. Dates have no year, so the
arrival time counts. `Found inf or nan, current scale is: ...` is AMP's loss scaling at work and no problem.
Facts: PaddleDetection ppdet/engine/callbacks.py (LogPrinter).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.coco_summary import CocoSummary
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import duration, number
from yolomon.trainlog.plain_text import plain

_ITERATION = re.compile(r"Epoch: \[ *(\d{1,9})\] \[ *(\d{1,9})/(\d{1,9})\] (.*)$")
_ETA = re.compile(r"eta: ((?:\d+ days?, )?[\d:]+)")
_PAIR = re.compile(r"([A-Za-z_][\w./]*): (-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))(?=\s|,|$)")
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
        if b"Epoch: [" in line:
            match = _ITERATION.search(plain(line))
            if match is not None:
                return self._iteration(match, arrival_ts)
        text = plain(line)
        table = self._coco.feed(text)
        if table:
            roles = Roles(map50=table.get("coco/bbox_mAP_50"), map50_95=table.get("coco/bbox_mAP"))
            return [
                TrainRecord(
                    ts=arrival_ts,
                    kind="validation",
                    source=self._source,
                    rank=self._rank,
                    epoch=self._epoch,
                    numbers=table,
                    roles=roles,
                )
            ]
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

    def _iteration(self, match: re.Match[str], arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        epoch, batch, batches = int(match[1]) + 1, int(match[2]) + 1, int(match[3])
        eta = _ETA.search(match[4])
        numbers = {}
        for name, cell in _PAIR.findall(match[4]):
            value = number(cell)
            if value is not None and name != "eta":
                numbers[name] = value
        allocated, reserved = numbers.get("max_mem_allocated"), numbers.get("max_mem_reserved")
        self._epoch = epoch
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
                epoch=epoch,
                step=(epoch - 1) * batches + batch,
                batch=batch,
                batches=batches,
                numbers=numbers,
                roles=Roles(
                    loss=numbers.get("loss"),
                    losses={n: v for n, v in numbers.items() if "loss" in n and n != "loss"},
                    learning_rate=numbers.get("learning_rate"),
                    step_seconds=numbers.get("batch_cost"),
                    data_seconds=numbers.get("data_cost"),
                    images_per_second=numbers.get("ips"),
                    eta_seconds=duration(eta[1]) if eta is not None else None,
                    memory_peak_bytes=allocated * _MIB if allocated is not None else None,
                    memory_reserved_bytes=reserved * _MIB if reserved is not None else None,
                ),
            )
        )
        return records


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
        by_name = head.name.startswith("workerlog.")
        return 0.6 if by_name and (b"paddle" in head.data or b"_utils.cc:" in head.data) else 0.0

    @staticmethod
    def parser(source: str) -> PaddleParser:
        """A parser for one log."""
        return PaddleParser(source)
