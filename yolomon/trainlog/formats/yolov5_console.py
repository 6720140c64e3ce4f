"""The console of YOLOv5, YOLOv7 and YOLOv9: epochs counted from 0, and a gigabyte of 1e9 bytes.

Up to YOLOv5 v5 and in v7 the header is `Epoch gpu_mem box obj cls total labels img_size` (with a total of
the losses; GIoU instead of box in the first versions), from v6 on `Epoch GPU_mem box_loss obj_loss cls_loss
Instances Size`; v9 has dfl_loss instead of obj_loss. Unlike Ultralytics' its validation has `P`, not `Box(P`,
in the header. YOLOv3 of the same authors writes the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.yolo_console import YoloConsole
from yolomon.trainlog.plain_text import plain
from yolomon.trainlog.settings_files import run_info_of_settings

_GREETING = re.compile(r"^ *(YOLOv[35]|YOLOR|YOLOv?7|YOLO) +(?:🚀 *)?v?[\w.\-]+ .*torch[- ]", re.MULTILINE)
_TRAINERS = {"YOLOR": "YOLOv7", "YOLO": "YOLOv9", "YOLO7": "YOLOv7"}  # as they greet
_OLD_HEADER = re.compile(r"^ *Epoch +gpu_mem +(?:box|GIoU) +obj +cls ", re.MULTILINE)
_HEADER = re.compile(
    r"^ *Epoch +GPU_mem +box_loss +(?:seg_loss +)?(?:obj_loss|cls_loss +dfl_loss)", re.MULTILINE
)
_VALIDATION = re.compile(r"^ *Class +Images +Instances +P +R +mAP50 +mAP50-95", re.MULTILINE)  # no `Box(`
_ZERO_BASED = re.compile(r"^ *0/\d+ +[\d.]+G ", re.MULTILINE)
_ARGUMENT = re.compile(r"(\w+)=('[^']*'|\[[^\]]*\]|[^,\s)]+)")
_STARTING = re.compile(r"Starting training for (\d{1,9}) epochs")
_SAVE = re.compile(r"Logging results to (.+)$")


class YoloV5ConsoleParser(YoloConsole):
    """YOLOv5's lines of words: settings, start, early stopping."""

    first_epoch = 0
    gigabyte = 1e9
    _trainer = "YOLOv5"

    def line(self, text: str, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """A line of words of YOLOv5, v7 or v9."""
        if (greeting := _GREETING.match(text)) is not None:
            self._trainer = _TRAINERS.get(greeting[1], greeting[1])
            return ()
        if text.startswith(("train: weights=", "Namespace(")):
            settings = {name: value.strip("'\"") for name, value in _ARGUMENT.findall(text)}
            settings.setdefault("batch_size", settings.get("total_batch_size", ""))
            self.run = run_info_of_settings(settings)
            return ()
        if (starting := _STARTING.match(text)) is not None:
            self.run = msgspec.structs.replace(
                self.run, epochs=int(starting[1]), trainer=self.run.trainer or self._trainer
            )
            return [self.start(arrival_ts)]
        if (save := _SAVE.match(text)) is not None:
            self.run = msgspec.structs.replace(self.run, save_directory=save[1].strip())
            return ()
        if "Stopping training early" in text or "EarlyStopping patience" in text:
            return [msgspec.structs.replace(self.message(text, arrival_ts), kind="stopping")]
        if text.startswith(("AutoAnchor:", "AutoBatch:", "optimizer:", "Resuming training")):
            return [self.message(text, arrival_ts)]
        return super().line(text, arrival_ts)


class YoloV5Console:
    """Format: console text of YOLOv5, v7 and v9."""

    name: ClassVar[str] = "yolov5-console"
    title: ClassVar[str] = "YOLOv5 / v7 / v9 console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By the table header, then the greeting; Ultralytics' own greeting rules it out."""
        text = "\n".join(plain(line) for line in head.data.replace(b"\r", b"\n").split(b"\n"))
        if re.search(r"^Ultralytics \D{0,8}\d+\.\d+\.\d+|engine[/\\]trainer: ", text, re.MULTILINE):
            return 0.0
        if _OLD_HEADER.search(text) is not None:
            return 0.95
        header = _HEADER.search(text)
        if header is not None and (
            "obj_loss" in header[0]
            or _ZERO_BASED.search(text) is not None
            or _VALIDATION.search(text) is not None
        ):
            return 0.95
        return 0.8 if _GREETING.search(text) is not None else 0.0

    @staticmethod
    def parser(source: str) -> YoloV5ConsoleParser:
        """A parser for one console."""
        return YoloV5ConsoleParser(source)
