"""Growth of a quantity at three time scales, each pooled to a few dozen buckets, with its leak test.

Short spans find fast leaks within half a minute but must see more of it; long spans find slow ones.
"""

from __future__ import annotations

from collections import deque
from statistics import median

import msgspec

from yolomon.diagnosis.statistics import Trend, leak_test


class Scale(msgspec.Struct, frozen=True):
    """A bucket's length, how many are kept, and the least rise that counts at this scale."""

    seconds: float
    buckets: int
    rise_share: float  # of the capacity
    least_rise: float  # bytes


# The least rise falls with the length of the span: in half a minute a healthy trainer's resident memory rises
# by 0.5 GB while kernels for new image sizes are loaded; in an hour 200 MB are a leak.
SCALES = (
    Scale(2.0, 30, 0.015, 1.0e9),
    Scale(15.0, 40, 0.01, 5.0e8),
    Scale(120.0, 60, 0.005, 2.0e8),
)


class Growing(msgspec.Struct, frozen=True):
    """A series that grows without end: since when, how fast, at which scale it was seen."""

    trend: Trend
    scale: Scale
    onset_ts: float
    level: float  # the newest bucket's

    @property
    def per_second(self) -> float:
        """The slope."""
        return self.trend.slope.value if self.trend.slope is not None else 0.0


class _Pool:
    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.times: deque[float] = deque(maxlen=scale.buckets)
        self.values: deque[float] = deque(maxlen=scale.buckets)
        self.open: list[float] = []
        self.open_ts: float | None = None
        self.tested = 0
        self.closed = 0
        self.result: Growing | None = None

    def add(self, ts: float, value: float) -> None:
        if self.open_ts is None:
            self.open_ts = ts
        elif ts - self.open_ts >= self.scale.seconds or ts < self.open_ts:
            self.times.append(self.open_ts)
            self.values.append(median(self.open))
            self.open.clear()
            self.open_ts = ts
            self.closed += 1
        self.open.append(value)


class GrowthSeries:
    """One quantity in bytes over time."""

    def __init__(self) -> None:
        self._pools = [_Pool(scale) for scale in SCALES]

    def add(self, ts: float, value: float) -> None:
        """Take one reading."""
        for pool in self._pools:
            pool.add(ts, value)

    def reset(self) -> None:
        """Forget all: what counted as its level has changed."""
        self._pools = [_Pool(scale) for scale in SCALES]

    def grows(self, capacity: float | None) -> Growing | None:
        """The fastest scale at which it grows now; the test runs only when a bucket has closed."""
        for pool in self._pools:
            if pool.tested != pool.closed:
                pool.tested = pool.closed
                pool.result = _test(pool, capacity)
            if pool.result is not None:
                return pool.result
        return None

    def slope_since(self, ts: float) -> float | None:
        """How fast it rose since then, per second, from first to last bucket; None without two buckets."""
        for pool in self._pools:
            if pool.times and pool.times[0] <= ts + pool.scale.seconds:
                points = [(t, v) for t, v in zip(pool.times, pool.values, strict=True) if t >= ts]
                if len(points) >= 2:
                    return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])
        return None


def _test(pool: _Pool, capacity: float | None) -> Growing | None:
    scale = pool.scale
    times, values = list(pool.times), list(pool.values)
    # The newest part is enough where the growth began within the span.
    for start in {0, len(values) // 2}:
        if len(values) - start < 8:
            continue
        trend = leak_test(
            times[start:],
            values[start:],
            capacity=capacity,
            rise_share=scale.rise_share,
            least_rise=scale.least_rise,
        )
        if trend.grows:
            return Growing(trend, scale, _onset(times, values, start), values[-1])
    return None


def _onset(times: list[float], values: list[float], start: int) -> float:
    """The last bucket that lay near the least level: growth began there."""
    least = min(values[start:])
    near = least + 0.05 * (values[-1] - least)
    return max(t for t, v in zip(times[start:], values[start:], strict=True) if v <= near)
