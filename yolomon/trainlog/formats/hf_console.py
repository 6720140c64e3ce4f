"""The dicts that Hugging Face's Trainer prints to the console.

    {'loss': 1.2345, 'grad_norm': 3.21, 'learning_rate': 4.9e-05, 'epoch': 0.12}
    {'eval_loss': '0.91', 'eval_map': '0.31', 'eval_map_50': '0.52', 'eval_runtime': '12.1', 'epoch': '1.0'}

Values are numbers, or strings from transformers 5 on. The step is in tqdm's bar beside them, not in the
dict (but for TensorFlow's Trainer). The bar counts optimizer steps: seconds a step are of those, and
images per second are those of the whole job. How many epochs there are is among the words before the
first step, if they are shown. NaN losses are hidden by default (`logging_nan_inf_filter`). -1 in eval_*
means "no such objects".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

import msgspec

from yolomon.model import RecordKind, Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number, sane_map
from yolomon.trainlog.formats.progress_bar import frame
from yolomon.trainlog.plain_text import plain

_PAIR = re.compile(r"'([^']{1,99})': '?(-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))'?(?=[,}])")
_WORDS = re.compile(r"(Num Epochs|Total train batch size[^=]*) = ([\d,]+)")
_DICT = re.compile(r"\{'(?:[\w/.\-]+)': [^{}]*\}")


def trainer_record(
    source: str, arrival_ts: float, numbers: dict[str, float], step: int | None, epochs: int | None = None
) -> TrainRecord:
    """A record from one entry of the Trainer's log, printed or in trainer_state.json.

    `epoch` is a fraction there: 0.12 is in the first epoch, 1.0 is its end.
    """
    numbers = {n: v for n, v in numbers.items() if not (n.startswith("eval_") and v == -1)}
    share = numbers.get("epoch")
    epoch = max(1, math.ceil(share)) if share is not None and math.isfinite(share) else None
    kind: RecordKind = "batch"
    if "train_runtime" in numbers:
        kind = "end"
    elif any(name.startswith("eval_") for name in numbers):
        kind = "validation"
    return TrainRecord(
        ts=arrival_ts,
        kind=kind,
        source=source,
        epoch=epoch,
        epochs=epochs,
        step=step,
        numbers=numbers,
        roles=_roles(numbers, kind),
    )


def _roles(numbers: Mapping[str, float], kind: RecordKind) -> Roles:
    if kind == "validation":
        return Roles(
            validation_losses={n: v for n, v in numbers.items() if n.startswith("eval_") and "loss" in n},
            map50=sane_map(numbers.get("eval_map_50")),
            map50_95=sane_map(numbers.get("eval_map")),
        )
    if kind == "end":
        return Roles(images_per_second=numbers.get("train_samples_per_second"))
    return Roles(
        loss=numbers.get("loss"),
        losses={n: v for n, v in numbers.items() if "loss" in n and n != "loss"},
        learning_rate=numbers.get("learning_rate"),
        gradient_norm=numbers.get("grad_norm"),
    )


class HfConsoleParser:
    """Dicts, with the step of the bar of training."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._step: int | None = None
        self._steps: int | None = None
        self._step_seconds: float | None = None
        self._run: RunInfo | None = None  # told before the first step
        self._start_is_due = False

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one line or redraw."""
        text = plain(line)
        if "{'" in text:
            return self._dicts(text, arrival_ts)
        if "%" in text and "[" in text:
            drawn = frame(text)
            # The first bar without words is that of training; later ones of another length are evaluation.
            if drawn is not None and not drawn.words.strip() and drawn.total == (self._steps or drawn.total):
                self._step, self._steps = drawn.done, drawn.total
                if drawn.steps_per_second:
                    self._step_seconds = 1.0 / drawn.steps_per_second
        elif "***** Running training *****" in text:
            self._run, self._start_is_due = RunInfo(trainer="Hugging Face Trainer"), True
            self._step = self._steps = self._step_seconds = None
        elif self._run is not None and (words := _WORDS.search(text)) is not None:
            self._note(words[1], int(words[2].replace(",", "") or 0))
        elif is_alarming(text):
            return [message(self._source, arrival_ts, text)]
        return ()

    def _note(self, name: str, value: int) -> None:
        assert self._run is not None  # set by the caller
        if name == "Num Epochs":
            self._run = msgspec.structs.replace(self._run, epochs=value)
        else:
            self._run = msgspec.structs.replace(self._run, batch_size=float(value))

    def _dicts(self, text: str, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        records: list[TrainRecord | BrokenLine] = []
        epochs = self._run.epochs if self._run is not None else None
        for entry in _DICT.findall(text):
            numbers = {n: v for n, cell in _PAIR.findall(entry) if (v := number(cell)) is not None}
            if "epoch" not in numbers and "train_runtime" not in numbers:
                continue
            if self._start_is_due:
                self._start_is_due = False
                records.append(
                    TrainRecord(
                        ts=arrival_ts, kind="start", source=self._source, epochs=epochs, run=self._run
                    )
                )
            written = numbers.get("step")
            step = int(written) if written is not None and math.isfinite(written) else self._step
            record = trainer_record(self._source, arrival_ts, numbers, step, epochs)
            if record.kind == "batch" and self._step_seconds is not None:
                batch_size = self._run.batch_size if self._run is not None else None
                roles = msgspec.structs.replace(
                    record.roles,
                    step_seconds=self._step_seconds,
                    images_per_second=batch_size / self._step_seconds if batch_size else None,
                )
                record = msgspec.structs.replace(record, roles=roles)
            records.append(record)
        return records

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


class HfConsole:
    """Format: the HF Trainer's printed dicts."""

    name: ClassVar[str] = "hf-console"
    title: ClassVar[str] = "Hugging Face Trainer console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By a printed dict with a loss and an epoch."""
        text = head.data.decode("utf-8", "replace")
        return 0.9 if re.search(r"\{'(?:eval_)?\w*loss': [^{}\n]*'epoch': ", text) else 0.0

    @staticmethod
    def parser(source: str) -> HfConsoleParser:
        """A parser for one console."""
        return HfConsoleParser(source)
