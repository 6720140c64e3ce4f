"""A curve of a whole run in bounded memory: min, max and last of neighbouring points, merged when full."""

from __future__ import annotations

from array import array
from math import inf, isfinite


class Curve:
    """y over x (an epoch's progress or a step), with at most `capacity` buckets.

    x rises; a step back (a resumed run) starts a new segment and breaks the line. NaN and infinity are not
    drawn as numbers: their places are kept in `non_finite`.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._per_bucket = 1
        self.x = array("d")  # the last x of each bucket
        self.low = array("d")
        self.high = array("d")
        self.last = array("d")
        self._count = array("L")
        self.breaks: list[float] = []  # x where a new segment began
        self.non_finite: list[float] = []  # the first places of NaN or infinity, bounded
        self.non_finite_count = 0

    def __len__(self) -> int:
        return len(self.x)

    def add(self, x: float, y: float) -> None:
        """Add one point."""
        if not isfinite(y):
            self.add_non_finite(x)
            return
        self.add_block(x, x, y, y, y, 1)

    def add_non_finite(self, x: float, count: int = 1) -> None:
        """Note NaN or infinity at x."""
        self.non_finite_count += count
        if len(self.non_finite) < 64:
            self.non_finite.append(x)

    def add_block(
        self, x_first: float, x_last: float, low: float, high: float, last: float, count: int
    ) -> None:
        """Add what `count` neighbouring points amount to."""
        if self.x and x_first < self.x[-1]:
            if len(self.breaks) < 256:
                self.breaks.append(x_first)
        elif self.x and self._count[-1] + count <= self._per_bucket:
            self.x[-1], self.last[-1] = x_last, last
            self._count[-1] += count
            if low < self.low[-1]:
                self.low[-1] = low
            if high > self.high[-1]:
                self.high[-1] = high
            return
        self.x.append(x_last)
        self.low.append(low)
        self.high.append(high)
        self.last.append(last)
        self._count.append(count)
        if len(self.x) >= self._capacity:
            self._merge_pairs()

    def extend(self, later: Curve) -> None:
        """Put the points of another curve behind these."""
        for i in range(len(later)):
            x = later.x[i]
            self.add_block(x, x, later.low[i], later.high[i], later.last[i], later._count[i])
        self.non_finite_count += later.non_finite_count
        self.non_finite.extend(later.non_finite[: 64 - len(self.non_finite)])

    def _merge_pairs(self) -> None:
        """Halve the buckets; neighbours on two sides of a break stay apart."""
        x, low, high, last, counts = self.x, self.low, self.high, self.last, self._count
        self.x, self.low, self.high, self.last = array("d"), array("d"), array("d"), array("d")
        self._count = array("L")
        i = 0
        while i < len(x):
            pair = i + 1 < len(x) and x[i + 1] >= x[i]
            j = i + 1 if pair else i
            self.x.append(x[j])
            self.low.append(min(low[i], low[j]))
            self.high.append(max(high[i], high[j]))
            self.last.append(last[j])
            self._count.append(counts[i] + counts[j] if pair else counts[i])
            i = j + 1
        self._per_bucket *= 2

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest y so far."""
        least, most = min(self.low, default=inf), max(self.high, default=-inf)
        return None if least > most else (least, most)

    def points(self) -> tuple[list[float], list[float]]:
        """X and y to draw: the last value of each bucket."""
        return list(self.x), list(self.last)
