"""The console of any other training loop: lines and tqdm bars that name an epoch or a step, and a loss.

    Epoch [3/100], Step [20/600], Loss: 0.5000, lr: 0.0010
    epoch 3 | train loss 0.5 | val loss 0.6 | mAP@0.5: 0.3
    Epoch 3/100:  50%|█████     | 50/100 [00:10<00:10,  4.98it/s, loss=0.5, lr=0.001]
    Step 200 per-step time 0.831s loss=1.192

What the numbers mean is told from their names (`roles.py`). Epochs count from 0 where the first that is
seen is 0. This format is the last resort: it takes a text only if three of its lines read so, and no
other format wants it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import RecordKind, Roles, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number
from yolomon.trainlog.formats.progress_bar import Frame, frame, whole_postfix
from yolomon.trainlog.plain_text import plain
from yolomon.trainlog.roles import RoleResolver

_EPOCH = re.compile(
    r"\bepoch(?:s)?\s{0,3}[:=#]?\s{0,3}[\[(]?\s{0,8}(\d{1,7})\b(?:\s?(?:/|of)\s?(\d{1,7})\b)?", re.I
)
_STEP = re.compile(
    r"\b(?:global[_ ]step|step|iter(?:ation)?|batch)\s{0,3}[:=#]?\s{0,3}[\[(]?\s{0,8}(\d{1,12})\b"
    r"(?:\s?(?:/|of)\s?(\d{1,12})\b)?",
    re.I,
)
_VALUE = r"(-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf))(?![\d%/]|,\d|\.\d)"  # 0,5 is a number of another language
_PAIR = re.compile(
    r"\b([A-Za-z][\w./\-]{0,60}(?: [A-Za-z][\w./\-]{0,60}){0,2}"  # up to three words
    r"(?:@[\d.]+(?:[:\-][\d.]+)?)?(?:\([\w.]{1,8}\))?)['\"]? {0,2}[:=] {0,3}" + _VALUE,
    re.I,
)
_LOSS = re.compile(r"\b((?:[A-Za-z]\w{0,40} ){0,2}\w{0,40}loss) {1,3}" + _VALUE, re.I)  # without a colon
_STEP_SECONDS = re.compile(
    r"per-step time (\d[\d.]*)s\b|\((\d[\d.]*) sec/step\)"
)  # TensorFlow's object detection
_EVALUATION = re.compile(r"\b(?:val|valid|validation|eval|evaluation|test)\b", re.I)
_COUNTERS = re.compile(r"(?:.* )?(?:epochs?|(?:global[_ ])?step|iter(?:ation)?|batch|eta|time)$", re.I)
_LINES_WANTED = 3
_LONGEST = 2000  # characters of a line that is read


class GenericConsoleParser:
    """Lines and bars. A subclass says from where epochs count, if that is known."""

    first_epoch: ClassVar[int | None] = None

    def __init__(self, source: str) -> None:
        self._source = source
        self._resolver = RoleResolver()
        self._base = self.first_epoch
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._done = 0  # of the bar of training
        self._evaluated: Roles | None = None  # what the bar said of the validation last
        self._last: tuple[object, ...] = ()

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one redraw or line."""
        text = plain(line)
        if "%" in text and len(text) < _LONGEST and (drawn := frame(text)) is not None:
            return self._bar(drawn, arrival_ts)
        if is_alarming(text):
            return [message(self._source, arrival_ts, text, self._epoch)]
        return self._line(text, arrival_ts) if len(text) < _LONGEST else ()

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()

    # ------------------------------------------------------------------ bars

    def _bar(self, drawn: Frame, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        before = self._epoch
        place = _EPOCH.search(drawn.words)
        if place is not None:
            self._take_epoch(place)
        numbers = _numbers(drawn.words) | _postfix(drawn.postfix)
        roles = self._resolver.roles(numbers, None)
        if self._epoch is None or not numbers:
            return []
        records: list[TrainRecord | BrokenLine] = []
        if self._epoch != before:
            self._done = 0
        evaluated = _of_evaluation(roles)
        if evaluated != Roles() and evaluated != self._evaluated:
            first = self._evaluated is None and drawn.done < drawn.total
            epoch = self._epoch - 1 if self._epoch != before and before is not None else self._epoch
            self._evaluated = evaluated
            if not first or _EVALUATION.search(drawn.words) is not None:
                records.append(self._record(arrival_ts, "validation", epoch, numbers, evaluated))
        trained = _of_training(roles)
        if (trained.loss is not None or trained.losses) and drawn.done > self._done:
            if _EVALUATION.search(drawn.words) is not None:
                return records  # how far the validation is
            self._done = drawn.done
            trained = msgspec.structs.replace(
                trained, step_seconds=1.0 / drawn.steps_per_second if drawn.steps_per_second else None
            )
            record = self._record(arrival_ts, "batch", self._epoch, numbers, trained)
            step = (self._epoch - 1) * drawn.total + drawn.done
            records.append(msgspec.structs.replace(record, step=step, batch=drawn.done, batches=drawn.total))
        return records

    # ------------------------------------------------------------------ printed lines

    def _line(self, text: str, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        place, step = _EPOCH.search(text), _STEP.search(text)
        numbers = _numbers(text)
        roles = self._resolver.roles(numbers, "validation" if _is_evaluation(text) else None)
        timed = _STEP_SECONDS.search(text)
        if timed is not None:
            roles = msgspec.structs.replace(roles, step_seconds=number(timed[1] or timed[2]))
        trains = roles.loss is not None or bool(roles.losses)
        if place is not None:
            self._take_epoch(place)
        if not trains and _of_evaluation(roles) == Roles():
            return []
        if self._epoch is None and step is None:
            return []
        kind: RecordKind = "validation" if not trains else "batch" if step is not None else "epoch"
        record = self._record(arrival_ts, kind, self._epoch, numbers, roles)
        if step is not None and kind == "batch":
            record = self._placed(record, int(step[1]), int(step[2]) if step[2] else None)
        told = (record.kind, record.epoch, record.step, record.roles)
        if told == self._last:
            return []  # said twice: by a logger and on the screen
        self._last = told
        return [record]

    def _placed(self, record: TrainRecord, count: int, total: int | None) -> TrainRecord:
        if record.epoch is not None and total is not None and count <= total:
            step = (record.epoch - 1) * total + count
            return msgspec.structs.replace(record, step=step, batch=count, batches=total)
        return msgspec.structs.replace(record, step=count)

    def _take_epoch(self, place: re.Match[str]) -> None:
        count = int(place[1])
        if self._base is None:
            self._base = 0 if count == 0 else 1
        self._epoch = count + 1 - self._base
        if place[2]:
            self._epochs = max(int(place[2]), self._epoch)

    def _record(
        self, arrival_ts: float, kind: RecordKind, epoch: int | None, numbers: dict[str, float], roles: Roles
    ) -> TrainRecord:
        return TrainRecord(
            ts=arrival_ts,
            kind=kind,
            source=self._source,
            epoch=epoch,
            epochs=self._epochs,
            numbers=numbers,
            roles=roles,
        )


def _numbers(text: str) -> dict[str, float]:
    """The named numbers of a line; counters are none."""
    found: dict[str, float] = {}
    for pattern in (_PAIR, _LOSS):
        for name, cell in pattern.findall(text):
            value = number(cell.rstrip("."))
            if value is not None and not _COUNTERS.match(name):
                found.setdefault(name.strip(), value)
    return found


def _postfix(postfix: str) -> dict[str, float]:
    """What a bar says behind its rate: `, loss=0.5, lr=0.001]`."""
    found: dict[str, float] = {}
    for part in whole_postfix(postfix).rstrip("] ").split(", ")[1:]:
        name, _, cell = part.partition("=") if "=" in part else part.partition(":")
        value = number(cell)
        if value is not None and name.strip() not in ("v_num", ""):
            found[name.strip()] = value
    return found


def _is_evaluation(text: str) -> bool:
    """Whether all of a line is of an evaluation: it says so before its first loss."""
    lower = text.lower()
    return "train" not in lower and _EVALUATION.search(lower[: max(0, lower.find("loss"))]) is not None


def _of_evaluation(roles: Roles) -> Roles:
    return Roles(
        validation_losses=roles.validation_losses,
        map50=roles.map50,
        map50_95=roles.map50_95,
        precision=roles.precision,
        recall=roles.recall,
    )


def _of_training(roles: Roles) -> Roles:
    return msgspec.structs.replace(
        roles, validation_losses={}, map50=None, map50_95=None, precision=None, recall=None
    )


def tells_of_training(line: str) -> bool:
    """Whether a line names an epoch or a step, and a loss with its value."""
    if "oss" not in line and "OSS" not in line:
        return False
    if _EPOCH.search(line) is None and _STEP.search(line) is None:
        return False
    names = (name for pattern in (_PAIR, _LOSS) for name, _ in pattern.findall(line))
    drawn = frame(line) if "%" in line else None
    return any("loss" in name.lower() for name in (*names, *(_postfix(drawn.postfix) if drawn else ())))


class GenericConsole:
    """Format: any console that names epochs or steps, and losses."""

    name: ClassVar[str] = "console"
    title: ClassVar[str] = "console of a training loop"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """Low, and only if three lines read so."""
        if b"oss" not in head.data and b"OSS" not in head.data:
            return 0.0
        found = 0
        for line in re.split(rb"[\r\n]", head.data):
            if len(line) < _LONGEST and tells_of_training(plain(line)):
                found += 1
                if found == _LINES_WANTED:
                    return 0.35
        return 0.0

    @staticmethod
    def parser(source: str) -> GenericConsoleParser:
        """A parser for one console."""
        return GenericConsoleParser(source)
