"""Hugging Face's trainer_state.json: rewritten as a whole at each checkpoint, with the log so far in it.

Only the entries that are new since the last reading become records, the first of all with what is known of
the run; a history that got shorter or differs (resumed from an older checkpoint) is read anew from where it
differs.
"""

from __future__ import annotations

import math
from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import msgspec

from yolomon.model import RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.hf_console import trainer_record
from yolomon.trainlog.formats.numbers import number


class _State(msgspec.Struct):
    log_history: list[dict[str, Any]]
    num_train_epochs: float | None = None
    train_batch_size: float | None = None
    max_steps: int | None = None


class HfTrainerStateParser:
    """The new entries of a history that is written again and again."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._seen: list[dict[str, Any]] = []
        self._started = False

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of the entries that were not there before. `line` is the whole file."""
        try:
            state = msgspec.json.decode(_without_bare_nan(line.removeprefix(BOM_UTF8)), type=_State)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            return [BrokenLine("trainer_state.json", str(error))]
        epochs = math.ceil(state.num_train_epochs) if state.num_train_epochs else None
        same = 0
        while (
            same < len(self._seen)
            and same < len(state.log_history)
            and self._seen[same] == state.log_history[same]
        ):
            same += 1
        records: list[TrainRecord | BrokenLine] = []
        for entry in state.log_history[same:]:
            numbers = {name: value for name, raw in entry.items() if (value := _real(raw)) is not None}
            step = numbers.pop("step", None)
            record = trainer_record(
                self._source, arrival_ts, numbers, int(step) if step is not None else None, epochs
            )
            if not self._started:
                self._started = True
                run = RunInfo(
                    trainer="Hugging Face Trainer", epochs=epochs, batch_size=state.train_batch_size
                )
                record = msgspec.structs.replace(record, run=run)
            records.append(record)
        self._seen = state.log_history
        return records

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return ()


def _real(raw: object) -> float | None:
    if isinstance(raw, bool) or raw is None:
        return None
    return float(raw) if isinstance(raw, int | float) else number(raw) if isinstance(raw, str) else None


def _without_bare_nan(data: bytes) -> bytes:
    """Python's json writes NaN and Infinity bare, which is no JSON; as strings they can be read."""
    for word in (b"-Infinity", b"Infinity", b"NaN"):
        if b": " + word in data:
            data = data.replace(b": " + word, b': "' + word + b'"')
    return data


class HfTrainerState:
    """Format: trainer_state.json."""

    name: ClassVar[str] = "hf-trainer-state"
    title: ClassVar[str] = "Hugging Face trainer_state.json"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "whole"

    @staticmethod
    def score(head: Head) -> float:
        """By its keys: they stand before or after a history that can be longer than the head."""
        if not head.data.lstrip().startswith(b"{"):
            return 0.0
        keys = (b'"log_history"', b'"global_step"', b'"is_world_process_zero"', b'"best_metric"')
        found = sum(key in head.data for key in keys)
        if b'"log_history"' in head.data and found >= 2:
            return 0.95
        return 0.8 if head.name == "trainer_state.json" and found >= 2 else 0.0

    @staticmethod
    def parser(source: str) -> HfTrainerStateParser:
        """A parser for one file."""
        return HfTrainerStateParser(source)
