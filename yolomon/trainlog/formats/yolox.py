"""YOLOX's train_log.txt (loguru text, appended to by every start) and its console, which has the same lines.

Losses are printed with one decimal, so small changes are invisible. `mem: 8345Mb` (before 0.3) and `gpu
mem:` are torch's `max_memory_allocated` in MiB; `mem: 12.3Gb` is the host's. "Training of experiment is
done" is printed in a `finally` block, also after a crash, so it ends a run only when the last epoch was
reached.
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
from yolomon.trainlog.formats.local_time import local_minute
from yolomon.trainlog.formats.numbers import duration, number, sane_map
from yolomon.trainlog.plain_text import plain, shown
from yolomon.trainlog.timestamps import place_in_time

_STAMP = re.compile(r"\s*(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?\s*\| *(\w+) *\| *\S+ - (.*)$")
_ITERATION = re.compile(r"epoch: (\d{1,9})/(\d{1,9}), iter: (\d{1,9})/(\d{1,9}), (.*)$")
_ETA = re.compile(r",? *ETA: ((?:\d+ days?, )?[\d:]+)")
_PAIR = re.compile(r"([\w ]{1,60}): (-?[\d.]+(?:e[+-]?\d+)?|nan|-?inf)(s|Mb|Gb)?(?:, |$)")
_EXPERIMENT = re.compile(r"│ *(\w+) *│ *(.*?) *│")
_ARGUMENT = re.compile(r"(\w+)=('[^']*'|[^,\s)]+)")
_VOC = re.compile(r"map_(5095|50): *([\d.]+)$")  # two lines of the VOC evaluator
_START_EPOCH = re.compile(r"---> start train epoch(\d{1,9})")
_MIB = 2**20


class YoloxParser:
    """Iterations, COCO tables, starts and errors."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._coco = CocoSummary()
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._own_ts: float | None = None
        self._run = RunInfo(trainer="YOLOX")
        self._start_is_due = False
        self._voc: float | None = None  # map_5095, until map_50 comes

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one line."""
        text = plain(line)
        stamp = _STAMP.match(text)
        if stamp is None:
            return self._bare(text, arrival_ts)
        self._own_ts = _local_time(stamp)
        level, words = stamp[8], stamp[9]
        if words.startswith("epoch: "):
            return [*self._start(arrival_ts), *self._iteration(words, arrival_ts)]
        if words.startswith("args: Namespace("):
            return [*self._start(arrival_ts), *self._arguments(words)]
        if (begun := _START_EPOCH.match(words)) is not None:
            self._epoch = int(begun[1])
            return [*self._start(arrival_ts), self._record(arrival_ts, "epoch_start")]
        if "Training of experiment is done" in words:
            complete = self._epoch is not None and self._epoch == self._epochs
            return [self._record(arrival_ts, "end" if complete else "message", text=shown(words))]
        if level in ("WARNING", "ERROR", "CRITICAL") or is_alarming(words):
            return [
                *self._start(arrival_ts),
                self._record(arrival_ts, "message", text=shown(f"{level} {words}")),
            ]
        return self._summary(words, arrival_ts)

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """A start that nothing followed."""
        return self._start(arrival_ts)

    def _bare(self, text: str, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """A line without a time stamp: the table of the experiment, COCO's table, a traceback."""
        if text.startswith("│"):
            if self._start_is_due:
                self._setting(text)
            return ()
        if text.startswith("╘"):
            return self._start(arrival_ts)
        if is_alarming(text):
            return [message(self._source, arrival_ts, text, self._epoch)]
        if "map_50" in text and (voc := _VOC.match(text.strip())) is not None:
            return self._voc_map(voc, arrival_ts)
        return self._summary(text, arrival_ts)

    def _voc_map(self, match: re.Match[str], arrival_ts: float) -> Iterable[TrainRecord]:
        value = sane_map(number(match[2]))
        if match[1] == "5095":
            self._voc = value
            return ()
        strict, self._voc = self._voc, None
        numbers = {name: v for name, v in (("map_5095", strict), ("map_50", value)) if v is not None}
        record = self._record(arrival_ts, "validation")
        return [msgspec.structs.replace(record, numbers=numbers, roles=Roles(map50=value, map50_95=strict))]

    def _summary(self, text: str, arrival_ts: float) -> Iterable[TrainRecord]:
        table = self._coco.feed(text)
        if not table:
            return ()
        roles = Roles(map50=table.get("coco/bbox_mAP_50"), map50_95=table.get("coco/bbox_mAP"))
        return [msgspec.structs.replace(self._record(arrival_ts, "validation"), numbers=table, roles=roles)]

    def _iteration(self, words: str, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        match = _ITERATION.match(words)
        if match is None:
            return [BrokenLine(shown(words, 120), "iteration line without epoch and iter")]
        self._epoch, self._epochs, batch, batches = (int(match[i]) for i in range(1, 5))
        rest = match[5].rstrip()
        eta = _ETA.search(rest)
        pairs = {
            name.strip(): (number(value), unit) for name, value, unit in _PAIR.findall(_ETA.sub("", rest))
        }
        numbers = {name: value for name, (value, _) in pairs.items() if value is not None}
        memory = pairs.get("gpu mem") or pairs.get("mem")
        step_seconds = numbers.get("iter_time")
        batch_size = self._run.batch_size
        roles = Roles(
            loss=numbers.get("total_loss"),
            losses={n: v for n, v in numbers.items() if n.endswith("_loss") and n != "total_loss"},
            learning_rate=numbers.get("lr"),
            step_seconds=step_seconds,
            data_seconds=numbers.get("data_time"),
            images_per_second=batch_size / step_seconds if batch_size and step_seconds else None,
            image_size=numbers.get("size"),
            memory_peak_bytes=memory[0] * _MIB
            if memory and memory[0] is not None and memory[1] == "Mb"
            else None,
            eta_seconds=duration(eta[1]) if eta is not None else None,
        )
        record = self._record(arrival_ts, "batch")
        step = (self._epoch - 1) * batches + batch
        return [
            msgspec.structs.replace(
                record, step=step, batch=batch, batches=batches, numbers=numbers, roles=roles
            )
        ]

    def _arguments(self, words: str) -> Iterable[TrainRecord]:
        arguments = {name: value.strip("'") for name, value in _ARGUMENT.findall(words)}
        batch = number(arguments.get("batch_size", ""))
        devices = number(arguments.get("devices", ""))
        self._run = RunInfo(
            trainer="YOLOX",
            model=arguments.get("name")
            if arguments.get("name") != "None"
            else arguments.get("experiment_name"),
            batch_size=batch,
            world_size=int(devices) if devices else None,
            amp=arguments["fp16"] == "True" if "fp16" in arguments else None,
        )
        self._epoch = None
        self._start_is_due = True
        return ()

    def _setting(self, text: str) -> None:
        match = _EXPERIMENT.match(text)
        if match is None:
            return
        name, value = match.groups()
        size = re.match(r"\((\d+),", value)
        changes: dict[str, object] = {}
        if name == "max_epoch" and value.isdigit():
            changes["epochs"] = self._epochs = int(value)
        elif name == "data_num_workers" and value.isdigit():
            changes["workers"] = int(value)
        elif name == "input_size" and size is not None:
            changes["image_size"] = int(size[1])
        elif name == "no_aug_epochs" and value.isdigit():
            changes["close_mosaic"] = int(value)  # mosaic and mixup end that many epochs before the last
        self._run = msgspec.structs.replace(self._run, **changes)

    def _start(self, arrival_ts: float) -> Iterable[TrainRecord]:
        if not self._start_is_due:
            return ()
        self._start_is_due = False
        return [msgspec.structs.replace(self._record(arrival_ts, "start"), run=self._run)]

    def _record(
        self,
        arrival_ts: float,
        kind: Literal["start", "epoch_start", "batch", "validation", "end", "message"],
        text: str = "",
    ) -> TrainRecord:
        return TrainRecord(
            ts=place_in_time(self._own_ts, arrival_ts),
            own_ts=self._own_ts,
            kind=kind,
            source=self._source,
            epoch=self._epoch,
            epochs=self._epochs,
            text=text,
        )


def _local_time(stamp: re.Match[str]) -> float | None:
    """UNIX seconds of a stamp without a zone, read as this machine's local time; None for no date."""
    minute = local_minute(stamp[1], stamp[2], stamp[3], stamp[4], stamp[5])
    return None if minute is None else minute + int(stamp[6]) + float(stamp[7] or 0)


class Yolox:
    """Format: YOLOX's train_log.txt."""

    name: ClassVar[str] = "yolox"
    title: ClassVar[str] = "YOLOX train_log.txt"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By loguru's stamps of yolox modules."""
        data = head.data
        if b"| yolox." in data or b"|yolox." in data:
            return 0.95
        return 0.7 if b"epoch: " in data and b", iter: " in data and b"iter_time: " in data else 0.0

    @staticmethod
    def parser(source: str) -> YoloxParser:
        """A parser for one log."""
        return YoloxParser(source)
