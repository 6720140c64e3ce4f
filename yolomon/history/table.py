"""Rows on one time axis in bounded memory: recent rows as they came, older ones pooled to min, mean and max.

Three levels: raw rows, 15 s buckets, and buckets of 240 s that are joined in pairs whenever they become too
many, so that a run of any length is there from its first minute. Pooling keeps each bucket's extremes: no
spike is lost however long the window is (down-sampling that hides spikes: wandb#1374). A column takes no
memory before its first value.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import isnan, nan

import msgspec

MEDIUM_SECONDS = 15.0
COARSE_SECONDS = 240.0
COARSE_ROWS = 1008
_Put = Callable[[float, float, float, float], None]
_PRECISE = ("_bytes", "_joules", "_ns", "step", "_ts")


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """What one column held during one span of time."""

    minimum: float
    mean: float
    maximum: float


class Table:
    """Columns of numbers over time. A hole (None) is a value that was not available.

    Args:
        columns: names; they carry their units.
        raw_rows: how many rows are kept as they came.
        medium_rows: how many 15 s buckets (960: 4 h).
        coarse_rows: how many of the coarsest buckets at most (1008: 240 s each up to 2.8 days, then 480 s
            each up to 5.6 days, and so on).
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        raw_rows: int = 1800,
        medium_rows: int = 960,
        coarse_rows: int = COARSE_ROWS,
    ) -> None:
        self.columns = tuple(columns)
        self._index = {name: place for place, name in enumerate(self.columns)}
        self._raw_rows = raw_rows
        self.times = array("d")
        self._dropped = False  # whether raw rows were given up
        self._raw: list[array[float] | None] = [None] * len(self.columns)
        self._open: float | None = None  # the bucket of the newest rows, and the first of them
        self._open_row = 0
        self._coarse = _Level(len(self.columns), COARSE_SECONDS, coarse_rows, None)
        self._medium = _Level(len(self.columns), MEDIUM_SECONDS, medium_rows, self._coarse)

    def __len__(self) -> int:
        return len(self.times)

    def append(self, ts: float, values: Sequence[float | None]) -> None:
        """Add a row; one that is not newer than the last is dropped (clock jumps, doubled reads)."""
        times = self.times
        if times and ts <= times[-1]:
            return
        bucket = ts - ts % MEDIUM_SECONDS
        if bucket != self._open:
            if self._open is not None:
                self._close_bucket(self._open)
            self._open, self._open_row = bucket, len(times)
        times.append(ts)
        row = [nan if value is None else value for value in values]
        for place, (column, value) in enumerate(zip(self._raw, row, strict=True)):
            if column is not None:
                column.append(value)
            elif value == value:
                kind = "d" if self.columns[place].endswith(_PRECISE) else "f"
                self._raw[place] = begun = _holes(kind, len(times))
                begun[-1] = value
        if len(times) > self._raw_rows + self._raw_rows // 4:
            drop = len(times) - self._raw_rows
            self._dropped = True
            self._open_row = max(0, self._open_row - drop)
            del times[:drop]
            for column in self._raw:
                if column is not None:
                    del column[:drop]

    def _close_bucket(self, bucket: float) -> None:
        """Pool the rows of a bucket that no further one falls into: all at once is cheaper than each."""
        low, mean, high = ([nan] * len(self._raw) for _ in range(3))
        for place, column in enumerate(self._raw):
            values = () if column is None else [v for v in column[self._open_row :] if v == v]
            if values:
                low[place], high[place] = min(values), max(values)
                mean[place] = sum(values) / len(values)
        self._medium.store(bucket, low, mean, high)

    def latest(self, name: str) -> tuple[float, float] | None:
        """The newest value that was available, with its time; None if there is none in the raw rows."""
        column = self._raw[self._index[name]]
        if column is None:
            return None
        for place in range(len(column) - 1, -1, -1):
            if not isnan(column[place]):
                return self.times[place], column[place]
        return None

    def window(self, name: str, start_ts: float, end_ts: float) -> tuple[list[float], list[float]]:
        """Times and available values of the raw rows with start <= time <= end, holes left out."""
        first, last = bisect_left(self.times, start_ts), bisect_right(self.times, end_ts)
        column = self._raw[self._index[name]]
        times: list[float] = []
        values: list[float] = []
        if column is None:
            return times, values
        for place in range(first, last):
            value = column[place]
            if value == value:
                times.append(self.times[place])
                values.append(value)
        return times, values

    def rows(self, start_ts: float, end_ts: float, *names: str) -> list[tuple[float | None, ...]]:
        """Rows (time, value, ...) with start <= time <= end; a hole is None."""
        first, last = bisect_left(self.times, start_ts), bisect_right(self.times, end_ts)
        columns = [self._raw[self._index[name]] for name in names]
        return [
            (self.times[place], *(None if c is None or isnan(c[place]) else c[place] for c in columns))
            for place in range(first, last)
        ]

    def pooled(self, name: str, start_ts: float, end_ts: float, count: int) -> list[Bucket | None]:
        """`count` buckets of equal length over [start, end); None where nothing was read."""
        width = (end_ts - start_ts) / count
        if count == 1 and self._raw_serves(start_ts, width):
            return [self._raw_bucket(name, start_ts, end_ts)]
        low, high, total, number = [nan] * count, [nan] * count, [0.0] * count, [0] * count
        place_of = self._index[name]

        def put(ts: float, least: float, mean: float, most: float) -> None:
            place = int((ts - start_ts) / width)
            if least == least and 0 <= place < count:
                low[place] = least if not low[place] <= least else low[place]
                high[place] = most if not high[place] >= most else high[place]
                total[place] += mean
                number[place] += 1

        raw_start = self.times[0] if self.times else end_ts
        use_raw_from = start_ts
        for level in (self._coarse, self._medium):
            # A pooled level serves where finer data is gone, or where the buckets are wide enough anyway.
            until = (
                end_ts
                if width >= level.seconds * 2
                else min(end_ts, level.finer_start(raw_start, self._medium))
                if self._dropped
                else start_ts  # all raw rows are still there: a pooled one would begin before its values did
            )
            if use_raw_from < until:
                reached = level.put_into(place_of, use_raw_from, until, put)
                if reached is not None:
                    use_raw_from = max(use_raw_from, reached)
        column = self._raw[place_of]
        if column is not None:
            first = bisect_left(self.times, max(use_raw_from, start_ts))
            for row in range(first, bisect_left(self.times, end_ts)):
                value = column[row]
                put(self.times[row], value, value, value)
        return [Bucket(low[i], total[i] / number[i], high[i]) if number[i] else None for i in range(count)]

    def _raw_serves(self, start_ts: float, width: float) -> bool:
        """Whether `pooled` needs nothing but raw rows."""
        return width < 2 * self._medium.seconds and (
            not self._dropped or (bool(self.times) and start_ts >= self.times[0])
        )

    def _raw_bucket(self, name: str, start_ts: float, end_ts: float) -> Bucket | None:
        """One bucket of raw rows: a graph's newest column, read again for each picture."""
        column = self._raw[self._index[name]]
        if column is None:
            return None
        first, last = bisect_left(self.times, start_ts), bisect_left(self.times, end_ts)
        values = [value for value in column[first:last] if value == value]
        return Bucket(min(values), sum(values) / len(values), max(values)) if values else None

    @property
    def held_rows(self) -> int:
        """Rows and buckets of all levels together: what bounds the memory."""
        return len(self.times) + len(self._medium.times) + len(self._coarse.times)

    @property
    def first_ts(self) -> float | None:
        """The time of the oldest value still held at any level."""
        for times in (self._coarse.times, self._medium.times, self.times):
            if times:
                return times[0]
        return None


class _Level:
    """Buckets of one length, aligned to the clock.

    A level with a coarser one hands it each bucket that closes and drops its oldest; the coarsest joins its
    buckets in pairs instead.
    """

    def __init__(self, columns: int, seconds: float, rows: int, coarser: _Level | None) -> None:
        self.seconds = seconds
        self.times = array("d")
        self._rows = rows
        self._coarser = coarser
        self._stored: list[_Stored | None] = [None] * columns
        self._open: float | None = None
        self._low = [nan] * columns
        self._high = [nan] * columns
        self._sum = [0.0] * columns
        self._count = [0] * columns

    def add(self, ts: float, least: Sequence[float], mean: Sequence[float], most: Sequence[float]) -> None:
        bucket = ts - ts % self.seconds
        if self._open is None:
            self._open = bucket
        elif bucket != self._open:
            self._close()
            self._open = ts - ts % self.seconds
        low, high, sums, counts = self._low, self._high, self._sum, self._count
        for i, value in enumerate(mean):
            if value == value:
                if not low[i] <= least[i]:
                    low[i] = least[i]
                if not high[i] >= most[i]:
                    high[i] = most[i]
                sums[i] += value
                counts[i] += 1

    def _close(self) -> None:
        assert self._open is not None
        means = [s / n if n else nan for s, n in zip(self._sum, self._count, strict=True)]
        self.store(self._open, self._low, means, self._high)
        columns = len(means)
        self._low, self._high = [nan] * columns, [nan] * columns
        self._sum, self._count = [0.0] * columns, [0] * columns

    def store(
        self, bucket: float, least: Sequence[float], mean: Sequence[float], most: Sequence[float]
    ) -> None:
        """Keep one closed bucket."""
        self.times.append(bucket)
        for i, value in enumerate(mean):
            stored = self._stored[i]
            if stored is None and value == value:
                stored = self._stored[i] = _Stored(len(self.times) - 1)
            if stored is not None:
                stored.add(least[i], value, most[i])
        if self._coarser is not None:
            self._coarser.add(bucket, least, mean, most)
            if len(self.times) > self._rows + self._rows // 8:
                self._drop(len(self.times) - self._rows)
        elif len(self.times) >= self._rows and bucket % (2 * self.seconds):
            self._join_pairs()  # the newest bucket is the second of its pair: no half pair stays open

    def _drop(self, count: int) -> None:
        del self.times[:count]
        for stored in self._stored:
            if stored is not None:
                stored.drop(count)

    def _join_pairs(self) -> None:
        self.seconds *= 2
        times = array("d")
        pairs: list[tuple[int, int]] = []  # places of the first and the last bucket that become one
        for place, ts in enumerate(self.times):
            start = ts - ts % self.seconds
            if times and times[-1] == start:
                pairs[-1] = (pairs[-1][0], place)
            else:
                times.append(start)
                pairs.append((place, place))
        self.times = times
        for stored in self._stored:
            if stored is not None:
                stored.join(pairs)

    def finer_start(self, raw_start: float, medium: _Level) -> float:
        """Up to when this level is needed because finer data is gone."""
        if self is medium:
            return raw_start
        return medium.times[0] if medium.times else raw_start

    def put_into(self, column: int, start_ts: float, until_ts: float, put: _Put) -> float | None:
        """Hand over the closed buckets that begin in [start, until); returns the end of the last one."""
        first = bisect_left(self.times, start_ts - self.seconds + 1e-9)
        last = bisect_left(self.times, until_ts)
        stored = self._stored[column]
        if stored is not None:
            for row in range(first, last):
                put(max(self.times[row], start_ts), stored.least[row], stored.mean[row], stored.most[row])
        return self.times[last - 1] + self.seconds if last > first else None


class _Stored:
    """The closed buckets of one column, from its first value on; NaN where there was none."""

    def __init__(self, holes: int) -> None:
        self.least, self.mean, self.most = _holes("f", holes), _holes("f", holes), _holes("f", holes)

    def add(self, least: float, mean: float, most: float) -> None:
        self.least.append(least)
        self.mean.append(mean)
        self.most.append(most)

    def drop(self, count: int) -> None:
        for column in (self.least, self.mean, self.most):
            del column[:count]

    def join(self, pairs: Sequence[tuple[int, int]]) -> None:
        least, mean, most = self.least, self.mean, self.most
        self.least = array("f", [_joined(min, least[i], least[j]) for i, j in pairs])
        self.mean = array("f", [_joined(_middle, mean[i], mean[j]) for i, j in pairs])
        self.most = array("f", [_joined(max, most[i], most[j]) for i, j in pairs])


def _joined(how: Callable[[float, float], float], a: float, b: float) -> float:
    """Of two values, or of the one that there is."""
    if a != a:
        return b
    return a if b != b else how(a, b)


def _middle(a: float, b: float) -> float:
    return (a + b) / 2


def _holes(kind: str, count: int) -> array[float]:
    return array(kind, [nan]) * count
