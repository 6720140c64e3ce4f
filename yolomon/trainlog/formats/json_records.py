"""JSON objects made into records by the names of their fields: what all JSON-lines formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import floor, isfinite
from typing import Any, ClassVar

import msgspec

from yolomon.model import RecordKind, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.epoch_count import EpochCount
from yolomon.trainlog.json_lines import Body, objects
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import Meaning, Phase, RoleResolver
from yolomon.trainlog.timestamps import duration_seconds, place_in_time, unix_seconds

NUMBERS_LIMIT = 512  # of one record
NAME_LIMIT = 120
SHAPES_LIMIT = 512
_CONTAINERS = frozenset(
    {
        "metrics",
        "extra",
        "kpi",
        "scalars",
        "data",
        "values",
        "logs",
        "losses",
        "stats",
        "record",
        "train",
        "results",
    }
)
_WITH_UNIT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s?(%|[KMGkmg](?=i?[Bb]?\s*$))")
_UNITS = {"%": 0.01, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30}  # a share, or torch's binary bytes
_RATES = frozenset({"lr", "learning_rate", "train_lr"})  # one for each group of parameters
_WORDS = {"nan": float("nan"), "infinity": float("inf"), "-infinity": float("-inf"), "inf": float("inf"),
          "-inf": float("-inf"), "-nan": float("nan")}  # fmt: skip

_PLACES: dict[str, tuple[str, ...]] = {
    # role -> names, best first; compared without case, with _ for blanks and dashes
    "epoch": ("epoch", "current_epoch", "epoch_idx", "epoch_index", "cur_epoch", "ep", "trainer/epoch",
              "train/epoch"),
    "epochs": ("epochs", "max_epochs", "max_epoch", "num_epochs", "total_epochs", "n_epochs",
               "num_train_epochs"),
    "step": ("step", "global_step", "iteration", "iter", "iters", "it", "current_iter", "train_step",
             "global_iter",
             "step_idx", "n_iter", "trainer/global_step", "train/global_step", "_step", "steps"),
    "batch": ("batch", "batch_idx", "batch_i", "batch_index", "batch_id", "iter_in_epoch", "step_in_epoch"),
    "batches": ("batches", "num_batches", "steps_per_epoch", "iters_per_epoch", "batches_per_epoch",
                "n_batches",
                "total_batches", "epoch_size"),
    "rank": ("rank", "global_rank", "process_rank"),
    "pid": ("pid", "process_id"),
    "ts": ("ts", "timestamp", "_timestamp", "time_stamp", "unix_time", "wall_time", "datetime", "created_at",
           "asctime",
           "@timestamp", "date", "time"),
    "word": ("event", "mode", "phase", "split", "stage", "type", "kind", "ev"),
    "text": ("message", "msg", "text"),
}  # fmt: skip
_PLACE_OF = {name: (role, rank) for role, names in _PLACES.items() for rank, name in enumerate(names)}
_COUNTERS = ("epoch", "epochs", "step", "batch", "batches", "rank", "pid")


class Shape(msgspec.Struct, frozen=True):
    """Where in an object of one set of keys its place in the run stands. A missing one is ""."""

    epoch: str = ""
    epochs: str = ""
    step: str = ""
    batch: str = ""
    batches: str = ""
    rank: str = ""
    pid: str = ""
    ts: str = ""
    word: str = ""
    text: str = ""
    names: dict[str, str] = {}  # key -> the name under which its number is kept


def shape_of(keys: Iterable[object]) -> Shape:
    """Work out the shape of one set of keys."""
    best: dict[str, tuple[int, str]] = {}
    for key in keys:
        if not isinstance(key, str):
            continue
        found = _PLACE_OF.get(key.lower().replace(" ", "_").replace("-", "_"))
        if found is not None and (found[0] not in best or found[1] < best[found[0]][0]):
            best[found[0]] = (found[1], key)
    taken = {best[role][1] for role in (*_COUNTERS, "word") if role in best}
    names = {key: shown(key, NAME_LIMIT) for key in keys if isinstance(key, str) and key not in taken}
    return Shape(**{role: key for role, (_, key) in best.items()}, names=names)


class JsonParser:
    """Objects to records. A format changes what it knows better: `overrides`, `kind_of`, `record`."""

    overrides: ClassVar[Mapping[str, Meaning]] = {}
    map_factor: ClassVar[float | None] = None
    zero_based: ClassVar[bool | None] = None  # None: an epoch 0 in the file tells

    def __init__(self, source: str) -> None:
        self.source = source
        self.resolver = RoleResolver(self.overrides, self.map_factor)
        self._epochs = EpochCount(self.zero_based)
        self._shapes: dict[tuple[object, ...], Shape] = {}

    def feed(self, line: bytes, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        """The records of one line."""
        found: list[TrainRecord | BrokenLine] = []
        for body in objects(line):
            if isinstance(body, BrokenLine):
                found.append(body)
                continue
            record = self.record(body, arrival_ts)
            if record is not None:
                found.append(record)
        return found

    def finish(self, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        """Nothing is held back."""
        return []

    # ------------------------------------------------------------ to be changed by a format

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """The record of one object."""
        return self.make(body, arrival_ts)

    def kind_of(self, body: Body, shape: Shape, numbers: Mapping[str, float]) -> tuple[RecordKind, Phase]:
        """What a record is, by the word it says of itself, else by its numbers."""
        word = body.get(shape.word)
        if isinstance(word, str):
            found = kind_by_word(word, shape)
            if found is not None:
                return found
        return kind_by_numbers(shape, numbers, self.resolver)

    # ------------------------------------------------------------ the common part

    def shape(self, body: Body) -> Shape:
        """The shape of this object's keys, remembered."""
        keys = tuple(body)
        shape = self._shapes.get(keys)
        if shape is None:
            if len(self._shapes) >= SHAPES_LIMIT:
                self._shapes.clear()
            shape = self._shapes[keys] = shape_of(keys)
        return shape

    def make(
        self,
        body: Body,
        arrival_ts: float,
        *,
        kind: RecordKind | None = None,
        phase: Phase = None,
        own_ts: float | None = None,
        run: RunInfo | None = None,
        features: dict[str, dict[str, float]] | None = None,
        text: str | None = None,
    ) -> TrainRecord:
        """The record of an object; what is given is not worked out from the names."""
        shape = self.shape(body)
        if not shape.epoch and is_share(body.get(shape.epochs)):  # how many are done, not how many there are
            shape = msgspec.structs.replace(shape, epoch=shape.epochs, epochs="")
        numbers = numbers_of(body, shape)
        if kind is None:
            kind, phase = self.kind_of(body, shape, numbers)
        if own_ts is None and shape.ts:
            own_ts = unix_seconds(body[shape.ts])
        if own_ts is not None and shape.ts and numbers.get(shape.ts) is not None:
            del numbers[shape.ts]
        if text is None:
            text = shown(value) if shape.text and isinstance(value := body[shape.text], str) else ""
        return TrainRecord(
            ts=place_in_time(own_ts, arrival_ts),
            own_ts=own_ts,
            kind=kind,
            source=self.source,
            rank=whole(body.get(shape.rank)),
            pid=whole(body.get(shape.pid)),
            epoch=self.epoch(body.get(shape.epoch)),
            epochs=whole(body.get(shape.epochs)),
            step=whole(body.get(shape.step)),
            batch=whole(body.get(shape.batch)),
            batches=whole(body.get(shape.batches)),
            numbers=numbers,
            roles=self.resolver.roles(numbers, phase),
            run=run,
            features=features,
            text=text,
        )

    def epoch(self, value: object) -> int | None:
        """The epoch counted from 1; None where the value is none."""
        if isinstance(value, str):
            value = number(value)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return self._epochs.number(value)


def is_share(value: object) -> bool:
    """Whether this is a number with a fraction."""
    return isinstance(value, float) and isfinite(value) and value != floor(value)


def whole(value: object) -> int | None:
    """A whole number of a JSON value, else None."""
    if type(value) is int:
        return value
    if isinstance(value, float):
        return int(value) if isfinite(value) and abs(value) < 2**62 else None
    if isinstance(value, str):
        found = number(value)
        return int(found) if found is not None and isfinite(found) and abs(found) < 2**62 else None
    return None


def number(text: str) -> float | None:
    """A number that was written as a JSON string: "0.513", "NaN", "Infinity"; None for words."""
    if len(text) > 40:
        return None
    try:
        return float(text)
    except ValueError:
        return _WORDS.get(text.strip().lower())


def numbers_of(body: Mapping[str, Any], shape: Shape) -> dict[str, float]:
    """All numbers of an object under the trainer's names; nested ones as "outer/inner"."""
    numbers: dict[str, float] = {}
    for key, name in shape.names.items():
        value = body[key]
        if type(value) is float:
            numbers[name] = value
        elif type(value) is int:
            add_number(numbers, name, value)
        elif value is not None and not isinstance(value, bool):
            add_other(numbers, name, value, 0)
    return numbers


def add_number(numbers: dict[str, float], name: str, value: float) -> None:
    """Add one number, if it has a place in a float and in the record."""
    if (len(numbers) < NUMBERS_LIMIT and -1e308 < value < 1e308) or value != value:
        numbers[name] = float(value)


def add_other(numbers: dict[str, float], name: str, value: object, depth: int) -> None:
    """Add the numbers of a text, a duration or a nested object, and the first of learning rates.

    Other lists and words are left out.
    """
    if isinstance(value, str):
        found = number(value)
        if found is None and ":" in value:
            found = duration_seconds(value)
        if found is None and (match := _WITH_UNIT.match(value)):
            found = float(match[1]) * _UNITS[match[2].upper()]
        if found is not None and len(numbers) < NUMBERS_LIMIT:
            numbers[name] = found
    elif isinstance(value, dict) and depth < 4:
        outer = "" if name.lower() in _CONTAINERS else name + "/"
        for key, inner in value.items():
            inner_name = outer + shown(str(key), NAME_LIMIT)
            if isinstance(inner, float):
                if len(numbers) < NUMBERS_LIMIT:
                    numbers[inner_name] = inner
            elif type(inner) is int:
                add_number(numbers, inner_name, inner)
            elif inner is not None and not isinstance(inner, bool):
                add_other(numbers, inner_name, inner, depth + 1)
    elif (
        isinstance(value, list)
        and value
        and type(value[0]) in (int, float)
        and name.lower().rpartition("/")[2] in _RATES
    ):
        add_number(numbers, name, value[0])


_KINDS: dict[str, tuple[RecordKind, Phase]] = {
    "train": ("batch", "train"),
    "training": ("batch", "train"),
    "batch": ("batch", "train"),
    "step": ("batch", "train"),
    "iter": ("batch", "train"),
    "train_step": ("batch", "train"),
    "train_batch": ("batch", "train"),
    "val": ("validation", "validation"),
    "valid": ("validation", "validation"),
    "validation": ("validation", "validation"),
    "eval": ("validation", "validation"),
    "evaluation": ("validation", "validation"),
    "test": ("validation", "validation"),
    "epoch": ("epoch", None),
    "epoch_done": ("epoch", None),
    "epoch_start": ("epoch_start", None),
    "train_epoch_start": ("epoch_start", None),
    "epoch_end": ("epoch", None),
    "fit_epoch_end": ("epoch", None),
    "train_epoch_end": ("epoch_end", "train"),
    "train_batch_end": ("batch", "train"),
    "val_start": ("val_start", None),
    "val_end": ("val_end", "validation"),
    "model_save": ("checkpoint", None),
    "checkpoint": ("checkpoint", None),
    "save": ("checkpoint", None),
    "train_start": ("start", None),
    "start": ("start", None),
    "train_end": ("end", None),
    "end": ("end", None),
    "teardown": ("end", None),
    "finished": ("end", None),
}


def kind_by_word(word: str, shape: Shape) -> tuple[RecordKind, Phase] | None:
    """The kind a record's own word tells; None where it tells none."""
    name = word.strip().lower().replace(" ", "_").replace("-", "_").removeprefix("on_")
    found = _KINDS.get(name)
    if found is not None and found[0] == "batch" and not (shape.step or shape.batch) and shape.epoch:
        return "epoch", found[1]
    return found


def kind_by_numbers(
    shape: Shape, numbers: Mapping[str, float], resolver: RoleResolver
) -> tuple[RecordKind, Phase]:
    """The kind as the numbers tell: a batch has a step, an epoch's record none, a validation only metrics."""
    plan = resolver.plan(tuple(numbers))
    roles = {role for role, _, _ in plan.single}
    trains = bool(
        plan.parts or plan.summed or roles & {"loss", "learning_rate", "step_seconds", "images_per_second"}
    )
    evaluates = bool(plan.maps or plan.validation)
    if evaluates and not trains:
        return "validation", "validation"
    if evaluates:
        return "epoch", None
    if trains or plan.memory:
        return ("batch" if shape.step or shape.batch or not shape.epoch else "epoch"), "train"
    return "message", None
