"""The console of YOLOv6 (and of Gold-YOLO, which is built on it).

         Epoch        lr  iou_loss  dfl_loss  cls_loss
           0/4   0.00062       1.1         0      2.11: 100%|██████████| 39/39 [00:30<00:00,  1.25it/s]
    Epoch: 0 | mAP@0.5: 0.034 | mAP@0.50:0.95: 0.006

Epochs count from 0, and the number behind the stroke is the last one. The losses are running means over the
epoch; there is no total and no memory. The bar is cut at 100 columns or the terminal's width, without a mark.
Facts: meituan/YOLOv6 yolov6/core/engine.py; `lr` came with 0.4, `l1_loss` and `obj_loss` were in 0.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number, sane_map, total
from yolomon.trainlog.formats.progress_bar import Frame, frame
from yolomon.trainlog.plain_text import plain, shown
from yolomon.trainlog.settings_files import run_info_of_settings

_HEADER = re.compile(r"\s*Epoch((?: +(?:lr|\w+_loss))* +cls_loss(?: +\w+_loss)*)\s*$")
_ROW = re.compile(r"\s*(\d{1,9})/(\d{1,9})((?: +(?:[-+.\de]+|nan|-?inf))+)( +|:.*)?$")
_EVALUATION = re.compile(r"Epoch: (\d{1,9}) \| mAP@0\.5: (\S+) \| mAP@0\.50:0\.95: (\S+)")
_SETTINGS = re.compile(r"training args are: Namespace\((.*)\)")
_ARGUMENT = re.compile(r"(\w+)=('[^']*'|\[[^\]]*\]|[^,\s)]+)")
_COMPLETED = re.compile(r"Training completed in ")


class YoloV6ConsoleParser:
    """Frames, epochs and evaluations."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._run = RunInfo(trainer="YOLOv6")
        self._names: list[str] = []
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._done = -1
        self._pending: TrainRecord | None = None  # the last frame of the epoch

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one redraw or line."""
        text = plain(line)
        row = _ROW.match(text) if self._names and "/" in text else None
        if row is not None:
            return self._frame(row, frame(text), arrival_ts)
        if (header := _HEADER.match(text)) is not None:
            self._names = header[1].split()
            return self._end_epoch(arrival_ts)
        if (evaluation := _EVALUATION.search(text)) is not None:
            return [*self._end_epoch(arrival_ts), *self._evaluation(evaluation, arrival_ts)]
        if (settings := _SETTINGS.search(text)) is not None:
            cells = {name: value.strip("'") for name, value in _ARGUMENT.findall(settings[1])}
            self._run = msgspec.structs.replace(run_info_of_settings(cells), trainer="YOLOv6")
        elif text.lstrip().startswith("Training start"):
            self._epoch, self._done = None, -1
            return [self._record(arrival_ts, "start", run=self._run)]
        elif _COMPLETED.match(text.lstrip()):
            return [*self._end_epoch(arrival_ts), self._record(arrival_ts, "end", text=shown(text))]
        elif is_alarming(text):
            return [message(self._source, arrival_ts, text, self._epoch)]
        return ()

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The epoch whose bar was full when the log ended."""
        pending = self._pending
        full = pending is not None and (pending.batch is None or pending.batch == pending.batches)
        return self._end_epoch(arrival_ts) if full else ()

    def _frame(
        self, row: re.Match[str], drawn: Frame | None, arrival_ts: float
    ) -> Iterable[TrainRecord | BrokenLine]:
        values = [number(cell) for cell in row[3].split()]
        if drawn is None and not row[4]:
            values = values[:-1]  # cut within the row: the last number may be half a number
        epoch = int(row[1]) + 1
        records: list[TrainRecord | BrokenLine] = []
        done = drawn.done if drawn is not None else 0
        if epoch != self._epoch or done < self._done:
            records += self._end_epoch(arrival_ts)
            self._epoch, self._epochs, self._done = epoch, int(row[2]) + 1, 0
            records.append(self._record(arrival_ts, "epoch_start"))
        cells = {n: v for n, v in zip(self._names, values, strict=False) if v is not None}
        losses = {name: value for name, value in cells.items() if name != "lr"}
        rate = drawn.steps_per_second if drawn is not None else None
        batch_size = self._run.batch_size
        complete = len(cells) == len(self._names)
        self._pending = self._record(
            arrival_ts,
            "batch",
            step=(epoch - 1) * drawn.total + drawn.done if drawn is not None else None,
            batch=drawn.done if drawn is not None else None,
            batches=drawn.total if drawn is not None else None,
            numbers=cells,
            roles=Roles(
                loss=total(losses.values()) if complete else None,
                losses=losses,
                learning_rate=cells.get("lr"),
                step_seconds=1.0 / rate if rate else None,
                images_per_second=rate * batch_size if rate and batch_size else None,
            ),
        )
        if done > self._done:
            self._done = done
            records.append(self._pending)
        return records

    def _end_epoch(self, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        last, self._pending = self._pending, None
        if last is None:
            return []
        roles = Roles(loss=last.roles.loss, losses=last.roles.losses, learning_rate=last.roles.learning_rate)
        return [self._record(arrival_ts, "epoch", step=last.step, numbers=last.numbers, roles=roles)]

    def _evaluation(self, match: re.Match[str], arrival_ts: float) -> list[TrainRecord]:
        map50, map50_95 = sane_map(number(match[2])), sane_map(number(match[3]))
        metrics = {"mAP@0.5": map50, "mAP@0.50:0.95": map50_95}
        record = self._record(
            arrival_ts,
            "validation",
            numbers={name: value for name, value in metrics.items() if value is not None},
            roles=Roles(map50=map50, map50_95=map50_95),
        )
        epoch = int(match[1]) + 1
        if self._epochs is not None and epoch > self._epochs:
            epoch = self._epochs  # the last evaluation counts one further
        return [msgspec.structs.replace(record, epoch=epoch)]

    def _record(
        self,
        arrival_ts: float,
        kind: Literal["start", "epoch_start", "batch", "epoch", "validation", "end"],
        **more: object,
    ) -> TrainRecord:
        record = TrainRecord(
            ts=arrival_ts,
            kind=kind,
            source=self._source,
            epoch=self._epoch,
            epochs=self._epochs or self._run.epochs,
        )
        return msgspec.structs.replace(record, **more)


class YoloV6Console:
    """Format: console text of YOLOv6."""

    name: ClassVar[str] = "yolov6-console"
    title: ClassVar[str] = "YOLOv6 console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By its table header, which has no memory, or by a line of an evaluation."""
        lines = [plain(line) for line in head.data.replace(b"\r", b"\n").split(b"\n") if b"Epoch" in line]
        if any(_HEADER.match(line) or _EVALUATION.search(line) for line in lines):
            return 0.95
        return 0.8 if b"training args are: Namespace(" in head.data and b"yolov6" in head.data else 0.0

    @staticmethod
    def parser(source: str) -> YoloV6ConsoleParser:
        """A parser for one console."""
        return YoloV6ConsoleParser(source)
