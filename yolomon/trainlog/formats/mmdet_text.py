r"""The text log of MMDetection, MMYOLO and the other OpenMMLab trainers, of mmcv 1.x and of MMEngine.

    2020-05-08 18:44:23,494 - mmdet - INFO - Epoch [1][1200/7517]\tlr: 0.00125, eta: 4:44:04, time: 0.593, ...
    2023/05/24 20:17:36 - mmengine - INFO - Epoch(train)  [1][   1/1051]  lr: 9.0e-09  eta: 4:44:34  ...

`time` is seconds an iteration, `memory` the most that torch had allocated, in MiB. A time stamp has no zone
and is read as local time; early MMEngine's has no year and is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.local_time import local_minute
from yolomon.trainlog.formats.numbers import duration, number, sane_map
from yolomon.trainlog.plain_text import plain, shown
from yolomon.trainlog.timestamps import place_in_time

_STAMP = re.compile(
    r"\s*(?:(\d{4})[-/])?(\d\d)[-/](\d\d) (\d\d):(\d\d):(\d\d)(?:,\d+)? - (?:(\w+) - )?([A-Z]+) - (.*)$"
)
_PLACE = re.compile(r"(Epoch|Iter)(?:\((train|val|test)\))? *((?:\[ *\d{1,9}(?: */ *\d{1,9})? *\] *)+)(.*)$")
_COUNT = re.compile(r"\[ *(\d{1,9})(?: */ *(\d{1,9}))? *\]")
_ETA = re.compile(r"\beta: ((?:\d+ days?, )?[\d:]+),?")
_PAIR = re.compile(r"(?<![^\s:,])([^\s:,]{1,99}): (-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))(?=[\s,]|$)")
_MAX_EPOCHS = re.compile(r"\bmax:? *(\d{1,9}) epochs|\b(?:max_epochs|total_epochs) ?= ?(\d{1,9})\b")
_LOOP = re.compile(r"(?:train_cfg|runner) ?= ?dict\(")  # what counts in the dump of a config
_MIB = 2**20
_BOOKKEEPING = frozenset({"time", "data_time", "memory", "eta"})


class MmdetTextParser:
    """Training and validation lines, warnings and errors."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._in_loop = False  # within the settings of the training loop, in the dump of the config

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one line."""
        text = plain(line)
        stamp = _STAMP.match(text)
        if stamp is None:
            if is_alarming(text):
                return [message(self._source, arrival_ts, text, self._epoch)]
            self._config(text)
            return ()
        words = stamp[9]
        place = _PLACE.match(words)
        if place is None:
            if (limit := _MAX_EPOCHS.search(words)) is not None:
                self._epochs = int(limit[1] or limit[2])
            if words.startswith("Start running"):
                return [self._start(stamp, arrival_ts)]
            if stamp[8] in ("WARNING", "ERROR", "CRITICAL") or is_alarming(words):
                return [message(self._source, arrival_ts, shown(f"{stamp[8]} {words}"), self._epoch)]
            return ()
        counts = [(int(a), int(b) if b else None) for a, b in _COUNT.findall(place[3])]
        if place[2] in ("val", "test") and not _BOOKKEEPING.issuperset(n for n, _ in _PAIR.findall(place[4])):
            return [self._validation(stamp, counts, place[1], place[4], arrival_ts)]
        if place[2] in ("val", "test"):
            return ()  # how far the validation is
        return [self._iteration(stamp, counts, place[1], place[4], arrival_ts)]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    def _config(self, text: str) -> None:
        """A line of the config's dump: schedules of other things may name a number of epochs, too."""
        if _LOOP.match(text) is not None:
            self._in_loop = True
        elif text[:1] not in (" ", "\t"):
            self._in_loop = False
        if "_epochs" in text and (self._in_loop or self._epochs is None):
            limit = _MAX_EPOCHS.search(text)
            if limit is not None:
                self._epochs = int(limit[1] or limit[2])

    def _start(self, stamp: re.Match[str], arrival_ts: float) -> TrainRecord:
        return TrainRecord(
            ts=place_in_time(_local_time(stamp), arrival_ts),
            own_ts=_local_time(stamp),
            kind="start",
            source=self._source,
            epochs=self._epochs,
            run=RunInfo(trainer="MMEngine" if stamp[7] == "mmengine" else "MMDetection", epochs=self._epochs),
        )

    def _iteration(
        self,
        stamp: re.Match[str],
        counts: list[tuple[int, int | None]],
        unit: str,
        rest: str,
        arrival_ts: float,
    ) -> TrainRecord:
        numbers, eta = _numbers(rest)
        batch, batches = counts[-1]
        step: int | None = batch
        if unit == "Epoch" and len(counts) > 1:
            self._epoch = counts[0][0]
            self._epochs = counts[0][1] or self._epochs  # Det3D writes `[1/20]`
            step = (self._epoch - 1) * batches + batch if batches else None
        else:
            batches_of_run, batches = batches, None
            if batches_of_run:
                numbers["max_iters"] = float(batches_of_run)
        memory = numbers.get("memory")
        by_epoch = batches is not None
        return TrainRecord(
            ts=place_in_time(_local_time(stamp), arrival_ts),
            own_ts=_local_time(stamp),
            kind="batch",
            source=self._source,
            epoch=self._epoch if by_epoch else None,
            epochs=self._epochs if by_epoch else None,
            step=step,
            batch=batch if by_epoch else None,
            batches=batches,
            numbers=numbers,
            roles=Roles(
                loss=numbers.get("loss"),
                losses={n: v for n, v in numbers.items() if "loss" in n and n != "loss"},
                learning_rate=numbers.get("lr", numbers.get("base_lr")),
                step_seconds=numbers.get("time"),
                data_seconds=numbers.get("data_time"),
                gradient_norm=numbers.get("grad_norm"),
                memory_peak_bytes=memory * _MIB if memory else None,
                eta_seconds=eta,
            ),
        )

    def _validation(
        self,
        stamp: re.Match[str],
        counts: list[tuple[int, int | None]],
        unit: str,
        rest: str,
        arrival_ts: float,
    ) -> TrainRecord:
        numbers, _ = _numbers(rest)
        metrics = {
            n: v for n, v in numbers.items() if n not in _BOOKKEEPING and v != -1
        }  # -1: no such objects

        def best(*endings: str) -> float | None:
            return next((sane_map(v) for end in endings for n, v in metrics.items() if n.endswith(end)), None)

        return TrainRecord(
            ts=place_in_time(_local_time(stamp), arrival_ts),
            own_ts=_local_time(stamp),
            kind="validation",
            source=self._source,
            epoch=counts[0][0] if unit == "Epoch" else self._epoch,
            epochs=self._epochs,
            step=counts[0][0] if unit == "Iter" and counts[0][1] is None else None,
            numbers=metrics,
            roles=Roles(
                map50=best("bbox_mAP_50", "AP50", "segm_mAP_50"),
                map50_95=best("bbox_mAP", "segm_mAP"),
                validation_losses={n: v for n, v in metrics.items() if "loss" in n},
            ),
        )


def _numbers(text: str) -> tuple[dict[str, float], float | None]:
    """The `key: number` pairs of a line, and its eta in seconds."""
    eta = _ETA.search(text)
    if eta is not None:
        text = text[: eta.start()] + text[eta.end() :]
    numbers = {}
    for name, cell in _PAIR.findall(text):
        value = number(cell)
        if value is not None and not name.endswith("_copypaste"):  # six numbers in one string
            numbers[name] = value
    return numbers, duration(eta[1]) if eta is not None else None


def _local_time(stamp: re.Match[str]) -> float | None:
    """UNIX seconds of the stamp read as this machine's local time; None without a year."""
    minute = local_minute(stamp[1], stamp[2], stamp[3], stamp[4], stamp[5]) if stamp[1] is not None else None
    return None if minute is None else minute + int(stamp[6])


class MmdetText:
    """Format: OpenMMLab text log."""

    name: ClassVar[str] = "mmdet-text"
    title: ClassVar[str] = "MMDetection / MMEngine text log"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By the logger's name or the shape of a training line."""
        data = head.data
        if re.search(rb" - (?:mm[a-z0-9]+ - )?INFO - (?:Epoch|Iter)(?:\(\w+\))? *\[", data):
            return 0.95
        return 0.85 if re.search(rb"\d\d:\d\d:\d\d(?:,\d+)? - mm[a-z0-9]+ - [A-Z]+ - ", data) else 0.0

    @staticmethod
    def parser(source: str) -> MmdetTextParser:
        """A parser for one log."""
        return MmdetTextParser(source)
