"""Many JSON lines of one shape at once: only the fields that are needed are decoded, column by column.

msgspec decodes into a struct made for the shape and skips all other fields without building them. Non-finite
words, which strict JSON has not, are replaced by the greatest double before and told apart afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import add
from typing import Any, Literal

import msgspec
from msgspec.structs import astuple

from yolomon.model import RecordKind, TrainRecord
from yolomon.trainlog.curves import points, progress
from yolomon.trainlog.formats.json_records import JsonParser, shape_of
from yolomon.trainlog.json_lines import Body
from yolomon.trainlog.roles import Plan

NON_FINITE = 1.7976931348623157e308
_NON_FINITE_WORD = re.compile(rb"(?<=[:,\[ ])-?(?:NaN|Infinity)(?=\s*[,}\]])")
KEY_MARK = b'":'
Points = tuple[str, float, float, float, int, int]  # name, minimum, maximum, last, finite, non-finite


def finite_words(data: bytes) -> bytes:
    """The lines with NaN and Infinity replaced by `NON_FINITE`."""
    if b"NaN" in data or b"Infinity" in data:
        return _NON_FINITE_WORD.sub(b"1.7976931348623157e308", data)
    return data


class Row(msgspec.Struct, frozen=True):
    """One curve's columns: their sum times `factor`, over the column `divisor` where there is one."""

    name: str
    columns: tuple[int, ...]
    factor: float
    is_map: bool
    divisor: int | None = None


class ColumnEnd(msgspec.Struct, frozen=True):
    """The last line of a chunk: its counters as written, and what they mean."""

    shape: ColumnShape
    counters: tuple[float, ...]  # epoch and step, those that there are
    epoch: int | None
    x: float | None


class ColumnShape:
    """How lines with one set of keys are read in columns.

    Attributes:
        key_marks: how many times `":` stands in such a line.
        colons: how many colons stand in it.
    """

    def __init__(
        self, fields: list[tuple[str, Any]], rows: list[Row], losses: tuple[int, ...], line: bytes
    ) -> None:
        names = [f"f{number}" for number in range(len(fields))]
        struct = msgspec.defstruct(
            "Line",
            [(name, kind) for name, (_, kind) in zip(names, fields, strict=True)],
            rename=dict(zip(names, (key for key, _ in fields), strict=True)),
            gc=False,
        )
        self._decoder = msgspec.json.Decoder(struct)
        self._rows = rows
        self._losses = losses
        self._fields = fields
        self.key_marks = line.count(KEY_MARK)
        self.colons = line.count(b":")
        self.kind: RecordKind = "batch"
        self.epoch_column: int | None = None
        self.step_column: int | None = None

    def columns(self, data: bytes) -> list[tuple[Any, ...]]:
        """The columns of these lines.

        Raises:
            msgspec.MsgspecError: a line is not of this shape.
        """
        return list(zip(*map(astuple, self._decoder.decode_lines(data)), strict=True))

    def rises(self, columns: Sequence[tuple[Any, ...]], first: int, last: int) -> bool:
        """Whether epoch and step only rise from row `first` to `last` (exclusive): one segment."""
        for number in (self.epoch_column, self.step_column):
            if number is not None:
                counter = list(columns[number][first:last])
                if counter[0] > counter[-1] or counter != sorted(counter):
                    return False
        return True

    def end(self, columns: Sequence[tuple[Any, ...]], row: int, record: TrainRecord) -> ColumnEnd:
        """The end of a chunk at that row, which reads as `record`."""
        return ColumnEnd(self, self._counters(columns, row), record.epoch, progress(record))

    def follows(self, columns: Sequence[tuple[Any, ...]], row: int, end: ColumnEnd | None) -> bool:
        """Whether the row goes on where another chunk of this shape ended: no counter is lower."""
        if end is None or end.shape is not self or not end.counters:
            return False
        return all(now >= then for now, then in zip(self._counters(columns, row), end.counters, strict=True))

    def first_epoch(self, columns: Sequence[tuple[Any, ...]], row: int, end: ColumnEnd) -> int | None:
        """The row's epoch, in a chunk that ends so."""
        if end.epoch is None or self.epoch_column is None:
            return end.epoch
        return end.epoch - int(end.counters[0] - columns[self.epoch_column][row])

    def _counters(self, columns: Sequence[tuple[Any, ...]], row: int) -> tuple[float, ...]:
        return tuple(
            columns[number][row] for number in (self.epoch_column, self.step_column) if number is not None
        )

    def points(self, columns: Sequence[tuple[Any, ...]], first: int, last: int) -> list[Points]:
        """What rows `first` to `last` (exclusive) amount to, a curve each."""
        found = []
        for row in self._rows:
            values: Sequence[float] = columns[row.columns[0]][first:last]
            if row.divisor is not None:
                found.extend(_ratio_points(row, values, columns[row.divisor][first:last]))
                continue
            for column in row.columns[1:]:
                values = list(map(add, values, columns[column][first:last]))
            finite = len(values)
            high, low = max(values), min(values)
            if high >= NON_FINITE or (row.is_map and low < 0):
                values = [v for v in values if v < NON_FINITE and not (row.is_map and v < 0)]
                if not values:
                    found.append((row.name, 0.0, 0.0, 0.0, 0, finite))
                    continue
                high, low = max(values), min(values)
            count = len(values)
            f = row.factor
            found.append(
                (row.name, low * f, high * f, values[-1] * f, count, 0 if row.is_map else finite - count)
            )
        return found

    def nan_losses(self, columns: Sequence[tuple[Any, ...]], first: int, last: int) -> int:
        """How many rows have a loss that is not finite."""
        losses = [columns[n][first:last] for n in self._losses]
        if not any(max(column) >= NON_FINITE for column in losses):
            return 0
        return sum(max(row) >= NON_FINITE for row in zip(*losses, strict=True))

    def nan_rows(self, columns: Sequence[tuple[Any, ...]]) -> list[int]:
        """The rows that have a loss which is not finite."""
        losses = [columns[n] for n in self._losses]
        if not any(max(column) >= NON_FINITE for column in losses):
            return []
        return [place for place, row in enumerate(zip(*losses, strict=True)) if max(row) >= NON_FINITE]


def column_shape(parser: JsonParser, body: Body, line: bytes) -> ColumnShape | None:
    """The shape of lines like this one; None where columns cannot stand for its records."""
    record = parser.record(body, 0.0)
    if record is None or record.kind not in ("batch", "epoch", "validation"):
        return None
    plan = parser.resolver.plan(tuple(record.numbers), "train" if record.kind == "batch" else None)
    if plan.measured:
        return None  # zeros that mean "not measured" are told apart a record at a time
    fields: list[tuple[str, Any]] = []
    places: dict[str, int] = {}

    def column(name: str) -> int | None:
        if name not in places:
            if type(body.get(name)) not in (int, float):
                return None
            places[name] = len(fields)
            fields.append((name, float))
        return places[name]

    rows = _rows(record, plan, parser, column)
    if not rows:
        return None
    losses = tuple(
        n
        for name in {*plan.parts, *plan.summed, *plan.validation, *_single(plan, "loss")}
        if (n := column(name)) is not None
    )
    shape = shape_of(body)
    epoch = column(shape.epoch) if shape.epoch else None
    step = column(shape.step) if shape.step and record.step == body[shape.step] else None
    for key in (shape.word, shape.rank):
        if key and isinstance(body[key], (str, int)) and not isinstance(body[key], bool):
            fields.append((key, Literal[body[key]]))
    made = ColumnShape(fields, rows, losses, line)
    made.kind = record.kind
    made.epoch_column, made.step_column = epoch, step
    return made


def _single(plan: Plan, role: str) -> list[str]:
    return [name for found, name, _ in plan.single if found == role]


def _rows(
    record: TrainRecord, plan: Plan, parser: JsonParser, column: Callable[[str], int | None]
) -> list[Row]:
    rows = []
    for name, _ in points(record, record.kind == "batch"):
        sources: tuple[str, ...]
        factor, is_map = 1.0, False
        divisor: int | None = None
        if name == "images_per_second" and not _single(plan, name):  # derived, see `with_rate`
            divisor = column(_single(plan, "step_seconds")[0])
            if divisor is None:
                return []
            sources = tuple(_single(plan, "images"))
        elif name in plan.parts or name in plan.validation:
            sources = (name,)
        elif name == "loss" and plan.summed:
            sources = plan.summed
        elif name in ("map50", "map50_95"):
            sources = tuple(source for role, source in plan.maps if role == name)
            factor, is_map = _map_factor(parser, sources), True
        else:
            sources = tuple(_single(plan, name))
            factor = next((f for role, _, f in plan.single if role == name), 1.0)
        numbers = tuple(place for source in sources if (place := column(source)) is not None)
        if not numbers or len(numbers) != len(sources):
            return []
        rows.append(Row(name, numbers, factor, is_map, divisor))
    return rows


def _ratio_points(row: Row, values: Sequence[float], divisors: Sequence[float]) -> list[Points]:
    """What the finite quotients of two columns amount to; a divisor that is not above 0 gives none."""
    least, most = min(divisors), max(divisors)
    if least > 0 and most < NON_FINITE and min(values) == (value := max(values)) < NON_FINITE:
        return [(row.name, value / most, value / least, value / divisors[-1], len(values), 0)]
    ratios = [
        a / b for a, b in zip(values, divisors, strict=True) if 0 < b < NON_FINITE and 0 < a < NON_FINITE
    ]
    return [(row.name, min(ratios), max(ratios), ratios[-1], len(ratios), 0)] if ratios else []


def _map_factor(parser: JsonParser, names: tuple[str, ...]) -> float:
    value = parser.resolver.map_value(names[0], 1.0) if names else None
    return 1.0 if value is None else value
