"""Lightning's progress bars, of tqdm and of rich.

    Epoch 3:  50%|█████     | 100/200 [00:20<00:20,  4.98it/s, v_num=0, train_loss_step=1.23, val_map=0.312]
    Validation DataLoader 0:  46%|████▌     | 73/157 [00:02<00:02, 37.48it/s]
    Epoch 3/19 ━━━━━━━━━━━━━━━━ 100/200 0:00:20 • 0:00:20 4.98it/s v_num: 0 train/loss: 0.074 val/map_50: 0.73

Epochs count from 0, and the number behind the stroke is the last one. What was logged with
`prog_bar=True` stands behind the rate; values of the validation stay there until the next one, so only a
change is a validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.generic_console import GenericConsoleParser
from yolomon.trainlog.formats.numbers import number
from yolomon.trainlog.formats.progress_bar import Frame
from yolomon.trainlog.plain_text import plain

_TQDM = re.compile(r"\s*Epoch \d{1,9}: +(?:\d{1,3}%|\|)")
_MARKS = re.compile(
    r"\bv_num=|(?:Sanity Checking|Validation) DataLoader \d|Validation sanity check|\[A\s*Epoch \d+:"
)
_RICH = re.compile(
    r"\s*Epoch (\d{1,9})/(\d{1,9}|-2) +[━╸╺ ]+(\d{1,9})/(\d{1,9}) +[\d:]+ +• +[\-\d:]+ +(\d[\d.]*)it/s *(.*)$"
)
_RICH_PAIR = re.compile(
    r"(?<![\w/.@\-])([A-Za-z_][\w/.@\-]{0,99}): (-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf))(?=\s|$)"
)


class LightningConsoleParser(GenericConsoleParser):
    """Bars of both kinds; what is printed between them is read as of any loop."""

    first_epoch = 0

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one redraw or line."""
        text = plain(line)
        rich = _RICH.match(text) if "•" in text else None
        if rich is None:
            return super().feed(line, arrival_ts)
        pairs = ", ".join(f"{name}={cell}" for name, cell in _RICH_PAIR.findall(rich[6]) if name != "v_num")
        drawn = Frame(
            words=f"Epoch {rich[1]}",
            done=int(rich[3]),
            total=int(rich[4]),
            steps_per_second=number(rich[5]) or None,
            elapsed_seconds=None,
            postfix=f", {pairs}",
        )
        if rich[2] != "-2":  # no limit
            self._epochs = int(rich[2]) + 1
        return self._bar(drawn, arrival_ts)


class LightningConsole:
    """Format: Lightning's progress bars."""

    name: ClassVar[str] = "lightning-console"
    title: ClassVar[str] = "Lightning console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By its bar of an epoch and a mark of its own: `v_num`, or its names of the other bars."""
        if b"Epoch " not in head.data:
            return 0.0
        bars = marks = False
        for line in re.split(rb"[\r\n]", head.data):
            text = plain(line)
            if _RICH.match(text) is not None:
                return 0.9
            bars = bars or _TQDM.match(text) is not None
            marks = marks or _MARKS.search(text) is not None
            if bars and marks:
                return 0.9
        return 0.0

    @staticmethod
    def parser(source: str) -> LightningConsoleParser:
        """A parser for one console."""
        return LightningConsoleParser(source)
