"""Graphs as rows of characters on fixed scales, with holes. Pure functions; nothing here knows a widget.

A column is one bucket of time. One row of height shows eight levels; more rows show eight each. In one row
the height is the bucket's maximum or mean, as the signal asks; a value above zero never looks like zero, so
that a short spike leaves a mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil, floor
from operator import is_

import msgspec

from yolomon.history import Bucket, Table
from yolomon.tui.glyphs import Glyphs

Column = tuple[str, str]  # the sign and its ink
Columns = Sequence[Bucket | None]
DRAWN_LIMIT = 1024  # graphs that are remembered
_Kept = tuple[float, int, int, list[Bucket | None], float | None]
LONGEST_HOLD_SECONDS = 10.0  # no signal that is drawn is read more seldom
MOVE_SECONDS = 5.0  # a graph moves no more often: a move draws all of it anew, over a slow line too


class TimeAxis(msgspec.Struct, frozen=True):
    """Columns of time aligned to the clock: the newest one holds `end_ts` and is still filling.

    With a `jump` of more than one the last column may be ahead of the newest: the graph then moves on by so
    many columns at once, and in between only its newest column changes.
    """

    end_ts: float
    seconds_per_column: float
    jump: int = 1

    @property
    def newest(self) -> int:
        """The number, since the epoch of the clock, of the column that holds `end_ts`."""
        return floor(self.end_ts / self.seconds_per_column)

    @property
    def last(self) -> int:
        """The number of the rightmost column."""
        return (self.newest // self.jump + 1) * self.jump - 1

    def place(self, ts: float, count: int) -> int | None:
        """In which of the `count` columns (0 is the oldest) a time lies; None outside."""
        place = floor(ts / self.seconds_per_column) - (self.last - count + 1)
        return place if 0 <= place < count else None

    def start_of(self, place: int, count: int) -> float:
        """When a column begins."""
        return (self.last - count + 1 + place) * self.seconds_per_column


def axis_for(window_seconds: float, columns: int, end_ts: float) -> TimeAxis:
    """The axis on which `columns` columns span about `window_seconds`."""
    seconds = max(window_seconds / max(1, columns), 0.05)
    return TimeAxis(end_ts, seconds, min(ceil(MOVE_SECONDS / seconds), max(1, columns // 12)))


class ColumnCache:
    """Pooled columns of many signals; between two turns only the newest column is read and drawn again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._drawn: dict[tuple[object, ...], _Drawn] = {}
        self._made: dict[tuple[object, ...], tuple[tuple[object, ...], list[list[Column]]]] = {}
        self._judged: dict[tuple[object, ...], tuple[tuple[Columns, Columns, Columns], list[bool]]] = {}

    def get(
        self,
        key: tuple[object, ...],
        table: Table,
        name: str,
        axis: TimeAxis,
        count: int,
        *,
        filling: int = 1,
    ) -> Columns:
        """The `count` columns up to the axis' end.

        Args:
            key: who asks (a GPU's UUID, ...); with the name and count it is the cache's key.
            table: where the signal is.
            name: its column there.
            axis: the time axis.
            count: how many columns.
            filling: how many of the newest columns may still get values.

        Where columns are shorter than the time between two readings a reading holds until the next is due.
        """
        columns = self._read(key, table, name, axis, count, filling)
        held = held_columns(table, axis.seconds_per_column)
        return holding(columns, held, axis.newest - axis.last + count) if held else columns

    def _read(
        self,
        key: tuple[object, ...],
        table: Table,
        name: str,
        axis: TimeAxis,
        count: int,
        filling: int,
    ) -> list[Bucket | None]:
        width, last, newest = axis.seconds_per_column, axis.last, axis.newest
        key = (*key, name, count)
        known = self._kept.get(key)
        newest_row = table.times[-1] if table.times else None
        if known is not None and known[:3] == (width, last, newest) and newest_row == known[4]:
            return known[3]  # read before for the same picture
        if known is not None and known[0] == width and 0 <= last - known[1] < count and newest >= known[2]:
            buckets = known[3]
            buckets.extend([None] * (last - known[1]))
            del buckets[:-count]
            for index in range(max(known[2] - filling, last - count) + 1, newest + 1):
                buckets[index - last - 1] = table.pooled(name, index * width, (index + 1) * width, 1)[0]
        else:
            buckets = table.pooled(name, (last - count + 1) * width, (last + 1) * width, count)
            if newest > last - count:  # as it will be read from now on: a reading on its border may move
                buckets[newest - last - 1] = table.pooled(name, newest * width, (newest + 1) * width, 1)[0]
        self._kept[key] = (width, last, newest, buckets, newest_row)
        return buckets

    def rows(
        self,
        key: tuple[object, ...],
        columns: Columns,
        style: Style,
        glyphs: Glyphs,
        height: int,
        waits: Sequence[bool] = (),
    ) -> list[list[Column]]:
        """As `many_rows`; only columns that are others than at the last call with that key are drawn."""
        key = (*key, len(columns), height, style.scale, style.base, style.measure, glyphs.style)
        known = self._drawn.get(key)
        if known is None:
            if len(self._drawn) >= DRAWN_LIMIT:
                self._drawn.clear()
            known = self._drawn[key] = _Drawn([], [], many_rows([], style, glyphs, height))
        if len(known.columns) == len(columns) and len(known.waits) == len(waits):
            known.move(moved(known.columns, columns))
            changed = differing(known.columns, columns)
            if waits and known.waits != waits:
                others = (p for p, (a, b) in enumerate(zip(known.waits, waits, strict=True)) if a != b)
                changed = list({*changed, *others})
        else:
            changed = list(range(len(columns)))
        if 2 * len(changed) > len(columns):
            known.rows = many_rows(columns, style, glyphs, height, waits)
        else:
            for place in changed:
                part = many_rows([columns[place]], style, glyphs, height, waits[place : place + 1])
                for row, (column,) in zip(known.rows, part, strict=True):
                    row[place] = column
        known.columns, known.waits = list(columns), list(waits)
        return [list(row) for row in known.rows]

    def waiting(
        self,
        key: tuple[object, ...],
        utilization: Columns,
        memory_utilization: Columns,
        power: Columns,
        limit: float | None,
    ) -> list[bool]:
        """As `waiting`; only columns that are others than at the last call with that key are judged."""
        key = (*key, "waits", len(utilization), limit)
        known = self._judged.get(key)
        now = (utilization, memory_utilization, power)
        if known is None or any(len(a) != len(b) for a, b in zip(known[0], now, strict=True)):
            waits = waiting(*now, limit)
        else:
            waits = known[1]
            places = {p for a, b in zip(known[0], now, strict=True) for p in differing(a, b)}
            if 2 * len(places) > len(utilization):
                waits = waiting(*now, limit)
            else:
                for p in places:
                    a, b, c = (columns[p : p + 1] for columns in now)
                    (waits[p],) = waiting(a, b, c, limit)
        if len(self._judged) >= DRAWN_LIMIT:
            self._judged.clear()
        self._judged[key] = ((list(utilization), list(memory_utilization), list(power)), waits)
        return waits

    def kept(
        self, key: tuple[object, ...], state: tuple[object, ...], make: Callable[[], list[list[Column]]]
    ) -> list[list[Column]]:
        """What was made for that key, as long as the state is the same. It must not be changed."""
        known = self._made.get(key)
        if known is not None and known[0] == state:
            return known[1]
        if len(self._made) >= DRAWN_LIMIT:
            self._made.clear()
        made = make()
        self._made[key] = (state, made)
        return made

    def clear(self) -> None:
        """Forget everything (another window, a jump in time)."""
        self._kept.clear()
        self._drawn.clear()
        self._judged.clear()
        self._made.clear()


def held_columns(table: Table, seconds_per_column: float) -> int:
    """For how many columns a reading may hold: one and a half times what lies between the newest readings."""
    if seconds_per_column >= LONGEST_HOLD_SECONDS or len(table.times) < 2:
        return 0
    recent = table.times[-5:]
    apart = min(later - before for before, later in pairwise(recent))
    return (
        int(min(1.5 * apart, LONGEST_HOLD_SECONDS) / seconds_per_column) if apart > seconds_per_column else 0
    )


def holding(columns: Columns, longest: int, end: int) -> list[Bucket | None]:
    """The columns before `end` with holes of up to `longest` filled; longer holes stay, less what is due."""
    filled = list(columns)
    left, bucket = 0, None
    for place in range(min(end, len(filled))):
        found = filled[place]
        if found is not None:
            left, bucket = longest, found
        elif left:
            filled[place] = bucket
            left -= 1
    return filled


def differing(before: Columns, now: Columns) -> list[int]:
    """Where two rows of columns of one length hold another bucket."""
    same = list(map(is_, before, now))
    found: list[int] = []
    place = -1
    for _ in range(same.count(False)):
        place = same.index(False, place + 1)
        found.append(place)
    return found


def moved(before: Columns, now: Columns) -> int:
    """By how many columns a graph moved on, told by its oldest bucket; 0: not at all, or by a third."""
    oldest = next((place for place, bucket in enumerate(now) if bucket is not None), None)
    if oldest is None:
        return 0
    most = min(len(before) - oldest, len(before) // 3)
    return next((by for by in range(most) if before[oldest + by] is now[oldest]), 0)


class _Drawn:
    """A graph as it was drawn last, and what it was drawn from."""

    def __init__(self, columns: list[Bucket | None], waits: list[bool], rows: list[list[Column]]) -> None:
        self.columns = columns
        self.waits = waits
        self.rows = rows

    def move(self, by: int) -> None:
        """Move on by so many columns, with holes at the new end."""
        if by:
            self.columns = [*self.columns[by:], *([None] * by)]
            self.waits = [*self.waits[by:], *([False] * by)] if self.waits else []
            self.rows = [[*row[by:], *([(" ", "dim")] * by)] for row in self.rows]


def waiting(
    utilization: Columns, memory_utilization: Columns, power: Columns, limit: float | None
) -> list[bool]:
    """Which columns are busy without work: kernels run, but the memory is untouched and the power is low.

    A rank that spins in a collective shows 100 % utilization; its memory controller is idle and its power far
    below the limit (on an H200: 121 W of 700 W waiting, 230 to 560 W at work).
    """
    result = []
    for busy, memory, watts in zip(utilization, memory_utilization, power, strict=True):
        waits = (
            busy is not None
            and memory is not None
            and watts is not None
            and limit is not None
            and limit > 0
            and busy.mean >= 50
            and memory.mean <= 0.08 * busy.mean
            and watts.mean <= 0.45 * limit
        )
        result.append(waits)
    return result


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How a signal is drawn."""

    scale: float | None  # the full height; None: not known, nothing can be drawn
    base: float = 0.0  # the value at the bottom
    measure: str = "max"  # which part of a bucket the height shows: "max" or "mean"
    ink: Callable[[float], str]  # the ink of a value


def fraction(value: float, style: Style) -> float:
    """Where a value stands on the fixed scale, 0 to 1."""
    if style.scale is None or style.scale <= style.base:
        return 0.0
    return min(1.0, max(0.0, (value - style.base) / (style.scale - style.base)))


def one_row(
    columns: Columns, style: Style, glyphs: Glyphs, waits: Sequence[bool] = (), *, wait_ink: str = "wait"
) -> list[Column]:
    """A graph of one row: a sign and its ink a column. A hole is a blank."""
    if style.scale is None:
        return [(" ", "dim")] * len(columns)
    levels, full = glyphs.levels, len(glyphs.levels) - 1
    row: list[Column] = []
    use_mean = style.measure == "mean"
    for place, bucket in enumerate(columns):
        if bucket is None:
            row.append((" ", "dim"))
            continue
        if waits and waits[place]:
            row.append((glyphs.wait, wait_ink))
            continue
        value = bucket.mean if use_mean else bucket.maximum
        level = ceil(fraction(value, style) * full - 1e-6)
        if level <= 1 and bucket.maximum > style.base + 0.02 * (style.scale - style.base):
            level = 2 if use_mean and value < bucket.maximum / 2 else max(level, 1)
        row.append((levels[max(1, level)], style.ink(value)))
    return row


def many_rows(
    columns: Columns,
    style: Style,
    glyphs: Glyphs,
    height: int,
    waits: Sequence[bool] = (),
    *,
    wait_ink: str = "wait",
) -> list[list[Column]]:
    """A graph of several rows, the top one first: solid up to the mean, dim from there to the maximum.

    The cell in which the mean ends has the dim part as its ground (the ink "work/band"): no gap is between.
    """
    if height <= 1:
        return [one_row(columns, style, glyphs, waits, wait_ink=wait_ink)]
    steps = len(glyphs.levels) - 1
    rows: list[list[Column]] = [[] for _ in range(height)]
    for place, bucket in enumerate(columns):
        if bucket is None or style.scale is None:
            for row in rows:
                row.append((" ", "dim"))
            continue
        waited = bool(waits) and waits[place]
        ink = wait_ink if waited else style.ink(bucket.mean if style.measure == "mean" else bucket.maximum)
        mean = max(1, ceil(fraction(bucket.mean, style) * steps * height - 1e-6))
        most = max(mean, ceil(fraction(bucket.maximum, style) * steps * height - 1e-6))
        solid = most if style.measure == "max" else mean
        for level in range(height):
            row = rows[height - 1 - level]
            filled = min(steps, max(0, solid - level * steps))
            spread = min(steps, max(0, most - level * steps))
            if waited:
                row.append((glyphs.wait if spread > steps // 2 or level == 0 else " ", ink))
            elif filled:
                joined = filled < steps == spread and glyphs.style != "ascii"  # ASCII's signs fill no cell
                row.append((glyphs.levels[filled], f"{ink}/band" if joined else ink))
            elif spread:
                row.append((glyphs.levels[spread], "band"))
            else:
                row.append((" ", "dim"))
    return rows


def mark(row: list[Column], place: int | None, sign: str, ink: str) -> None:
    """Put a vertical mark into a row, at a column."""
    if place is not None and 0 <= place < len(row):
        row[place] = (sign, ink)


def runs(row: Sequence[Column]) -> list[Column]:
    """Neighbours of one ink joined; the newest column stays a piece of its own: it alone is redrawn."""
    if len(row) < 2:
        return list(row)
    signs, inks = zip(*row, strict=True)
    text = "".join(signs)
    joined: list[Column] = []
    start, last = 0, len(row) - 1
    while start < last:
        ink = inks[start]
        end = start + 1
        while end < last and inks[end] == ink:
            end += 1
        joined.append((text[start:end], ink))
        start = end
    return [*joined, row[-1]]


_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def halves(axis: TimeAxis) -> TimeAxis:
    """The axis whose columns are half as long: two of them, one beside the other, are a cell in braille."""
    return TimeAxis(axis.end_ts, axis.seconds_per_column / 2, 2 * axis.jump)


def braille_rows(
    columns: Columns,
    style: Style,
    glyphs: Glyphs,
    height: int,
    waits: Sequence[bool] = (),
    *,
    wait_ink: str = "wait",
) -> list[list[Column]]:
    """As `many_rows` in braille: two buckets a cell, four levels a row.

    Args:
        columns: twice as many buckets as the graph has cells.
        style: scale, measure and ink.
        glyphs: for the sign of waiting.
        height: in rows.
        waits: which cells are busy without work.
        wait_ink: their ink.
    """
    rows: list[list[Column]] = [[] for _ in range(height)]
    for cell in range(len(columns) // 2):
        pair = columns[2 * cell : 2 * cell + 2]
        known = [bucket for bucket in pair if bucket is not None]
        if not known or style.scale is None:
            for row in rows:
                row.append((" ", "dim"))
            continue
        waited = bool(waits) and waits[cell]
        worst = max(bucket.mean if style.measure == "mean" else bucket.maximum for bucket in known)
        ink = wait_ink if waited else style.ink(worst)
        for level in range(height):
            row = rows[height - 1 - level]
            if waited:
                row.append((glyphs.wait, ink))
                continue
            solid, spread = (
                _dots(pair, style, height, level, mean=style.measure == "mean"),
                _dots(pair, style, height, level, mean=False) if height > 1 else 0,
            )
            # Where the mean ends within a cell all its dots have the ink of the greater part: no gap.
            bits = solid | spread
            mostly = 2 * solid.bit_count() >= bits.bit_count()
            row.append((chr(0x2800 + bits) if bits else " ", (ink if mostly else "band") if bits else "dim"))
    return rows


def _dots(pair: Columns, style: Style, height: int, level: int, *, mean: bool) -> int:
    """The dots of one cell, `level` rows above the lowest."""
    bits = 0
    for side, bucket in enumerate(pair):
        if bucket is not None:
            value = bucket.mean if mean else bucket.maximum
            total = max(1, ceil(fraction(value, style) * 4 * height - 1e-6))
            for up in range(min(4, max(0, total - 4 * level))):
                bits |= _DOTS[3 - up][side]
    return bits
