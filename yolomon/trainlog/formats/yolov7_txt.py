"""results.txt of YOLOv7 and of YOLOv5 up to v5: no header, columns by position, epochs "0/99" from 0.

    0/99  3.97G  0.0899  0.0183 0.0276  0.1357  193    640   0.024 0.019 0.0022 0.00037   0.118   0.033 0.029
    epoch memory box     obj    cls     total   labels size  P     R     mAP50  mAP50-95  val/box obj   cls

Memory is torch's reserved memory over 1e9. Seven zeros at the end mean that this epoch was not validated.
Forks with more losses (keypoints, heading) put them between cls and total, some also after the validation's
cls. A resumed v7 run rewrites the whole file.
ultralytics/yolov3 (2019 to 2020) wrote the same columns, but F1 in the place of mAP50-95, and `%10.3g` where
the others have `%10.4g`: a file in which no number has a fourth digit is one of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import Roles, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import number, sane_map
from yolomon.trainlog.plain_text import plain, shown

_ROW = re.compile(r"\s*(\d{1,9})/(\d{1,9})\s+(\d{1,9}(?:\.\d*)?)([GM])\s+(.+?)\s*$")
_DIGITS = re.compile(r"-?0*\.?0*(\d*)\.?(\d*)")
_LEAST_SIZE = 32  # of an image, in pixels: the greatest stride of the models
_WIDTH = 10  # of a column, in what the trainers write
_RESULTS = 7  # P, R, mAP50, mAP50-95, then validation losses: three, or more
_LEAST = 4 + 2 + _RESULTS  # box, obj, cls, total; labels, size


class YoloV7TxtParser:
    """Rows as epoch records."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._four_digits = False  # a number of this file has four: no yolov3

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The record of a row."""
        text = plain(line)
        if not text.strip():
            return ()
        match = _ROW.match(text)
        cells = match[5].split() if match is not None else []
        values = [number(cell) for cell in cells]
        if match is None or len(cells) < _LEAST or None in values:
            return [BrokenLine(shown(text, 120), "not a row of results.txt")]
        known = [value for value in values if value is not None]
        at = _labels_place(cells)
        parts, total, labels, size, results = (
            known[: at - 1],
            known[at - 1],
            known[at],
            known[at + 1],
            known[at + 2 :],
        )
        losses = dict(zip(_names("train", len(parts)), parts, strict=True))
        numbers = losses | {"train/total": total, "labels": labels, "img_size": size}
        precision = recall = map50 = map50_95 = None
        validation: dict[str, float] = {}
        if any(results):
            precision, recall, map50, map50_95 = results[:4]
            names = _names("val", len(results) - 4)
            if len(names) == len(parts) + 1:
                names[-1] = "val/total"
            validation = dict(zip(names, results[4:], strict=True))
            names_of_results = ["metrics/precision", "metrics/recall", "metrics/mAP50", "metrics/mAP50-95"]
            self._four_digits = self._four_digits or any(_digits(cell) >= 4 for cell in cells)
            if not self._four_digits and len(text.rstrip()) == _WIDTH * (len(cells) + 2):
                names_of_results[3], map50_95 = "metrics/F1", None
            numbers |= dict(zip(names_of_results, results[:4], strict=True)) | validation
        memory = float(match[3]) * (1e9 if match[4] == "G" else 1e6)
        return [
            TrainRecord(
                ts=arrival_ts,
                kind="epoch",
                source=self._source,
                epoch=int(match[1]) + 1,
                epochs=int(match[2]) + 1,
                numbers=numbers,
                roles=Roles(
                    loss=total,
                    losses=losses,
                    validation_losses=validation,
                    precision=precision,
                    recall=recall,
                    map50=sane_map(map50),
                    map50_95=sane_map(map50_95),
                    image_size=size,
                    memory_reserved_bytes=memory or None,
                ),
            )
        ]

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


def _names(place: str, count: int) -> list[str]:
    """Names for so many losses."""
    known = ["box", "obj", "cls"][:count]
    return [f"{place}/{name}" for name in (*known, *(f"loss_{n}" for n in range(4, count + 1)))]


def _labels_place(cells: list[str]) -> int:
    """Where the number of labels stands: the first whole number with an image's size after it.

    From the end where there is none: a number of labels may be written as 1.234e+04.
    """
    for place in range(2, len(cells) - _RESULTS - 1):
        if cells[place].isdigit() and cells[place + 1].isdigit() and int(cells[place + 1]) >= _LEAST_SIZE:
            return place
    return len(cells) - _RESULTS - 2


def _digits(cell: str) -> int:
    """How many significant digits a fraction has; 0 for whole numbers and words."""
    match = _DIGITS.match(cell) if "." in cell else None
    return len(match[1]) + len(match[2]) if match is not None else 0


class YoloV7Txt:
    """Format: results.txt."""

    name: ClassVar[str] = "yolov7-txt"
    title: ClassVar[str] = "YOLOv7 results.txt"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By the shape of its first row; a bar after it would be a console."""
        for line in head.lines[:3]:
            match = _ROW.match(line)
            if match is not None and "%" not in line:
                cells = match[5].split()
                if len(cells) >= _LEAST and all(number(cell) is not None for cell in cells):
                    return 0.95
        return 0.0

    @staticmethod
    def parser(source: str) -> YoloV7TxtParser:
        """A parser for one file."""
        return YoloV7TxtParser(source)
