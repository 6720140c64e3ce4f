"""Robust statistics on a few hundred points, in plain Python: levels, trends, leaks, change of level.

Every trend works on at most `POINTS_LIMIT` points; `thin` pools longer series. The cost is quadratic in the
number of points for slopes (60 points: about 0.5 ms), so callers pool to some tens of buckets.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import exp, inf, isfinite, log, sqrt
from typing import Literal

import msgspec

POINTS_LIMIT = 120
MAD_TO_SIGMA = 1.4826  # of a normal distribution
NORMAL_95 = 1.96
NORMAL_99 = 2.58

WhyNot = Literal[
    "",
    "too-few",  # fewer buckets than the test needs
    "no-trend",  # Mann-Kendall does not see one
    "flat-bound",  # the slope's lower bound is not above zero
    "one-step",  # one step makes most of the rise
    "staircase",  # a few steps make most of the rise
    "saturating",  # the newer half rises much less than the whole
    "wandering",  # a random walk goes as far
    "too-small",  # the rise is of no consequence
]


def median(values: Iterable[float]) -> float:
    """The middle value (mean of the two middle ones).

    Raises:
        ValueError: no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("median of nothing")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, linear between neighbours.

    Raises:
        ValueError: no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("quantile of nothing")
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float], floor: float = 0.0) -> float:
    """Robust standard deviation: 1.4826 times the median absolute deviation, at least `floor`."""
    center = median(values)
    return max(MAD_TO_SIGMA * median(abs(v - center) for v in values), floor)


def robust_z(value: float, values: Sequence[float], floor: float = 0.0) -> float:
    """How many robust standard deviations `value` lies above the median of `values`.

    Without any spread (and no floor) it is 0 at the median and infinite elsewhere.
    """
    center, sigma = median(values), spread(values, floor)
    if sigma == 0:
        return 0.0 if value == center else inf if value > center else -inf
    return (value - center) / sigma


def mann_kendall(values: Sequence[float]) -> float:
    """The z of Mann-Kendall's test for a monotone trend, with tie and continuity correction.

    Source: Mann 1945, Kendall 1975. 0 for fewer than 3 values or none that differ.
    """
    n = len(values)
    if n < 3:
        return 0.0
    score, variance = _kendall(values)
    if variance <= 0 or score == 0:
        return 0.0
    return (score - 1 if score > 0 else score + 1) / sqrt(variance)


def _kendall(values: Sequence[float]) -> tuple[int, float]:
    """Kendall's S and its variance under no trend."""
    score = 0
    seen: list[float] = []
    for value in values:
        score += bisect_left(seen, value) - (len(seen) - bisect_right(seen, value))
        insort(seen, value)
    n = len(seen)
    ties = 0.0
    start = 0
    while start < n:
        end = bisect_right(seen, seen[start])
        equal = end - start
        ties += equal * (equal - 1) * (2 * equal + 5)
        start = end
    return score, (n * (n - 1) * (2 * n + 5) - ties) / 18


class Slope(msgspec.Struct, frozen=True):
    """A slope with its confidence interval, in units of value per unit of time."""

    value: float
    low: float
    high: float
    level: float  # of the fitted line at the newest time


def theil_sen(times: Sequence[float], values: Sequence[float], z: float = NORMAL_95) -> Slope | None:
    """The median of all pairwise slopes with Sen's interval (Sen 1968); None for fewer than 3 points.

    Args:
        times: rising; pairs at equal times are left out.
        values: one a time.
        z: of the normal distribution, two-sided: 1.96 for 95 %.
    """
    n = len(values)
    slopes: list[float] = []
    for place in range(n - 1):
        t0, v0 = times[place], values[place]
        later = zip(times[place + 1 :], values[place + 1 :], strict=True)
        slopes += [(v - v0) / (t - t0) for t, v in later if t > t0]
    if n < 3 or not slopes:
        return None
    slopes.sort()
    count = len(slopes)
    half = z * sqrt(max(_kendall(values)[1], 0.0)) / 2
    low = slopes[min(max(round(count / 2 - half) - 1, 0), count - 1)]
    high = slopes[min(max(round(count / 2 + half), 0), count - 1)]
    slope = median(slopes)
    intercept = median(v - slope * t for t, v in zip(times, values, strict=True))
    return Slope(slope, low, high, intercept + slope * times[-1])


# ---------------------------------------------------------------- pooling


def pool_medians(
    times: Sequence[float], values: Sequence[float], seconds: float
) -> tuple[list[float], list[float]]:
    """Medians of spans of `seconds` from the first time on; each with the mean time of its values."""
    return _pool(times, values, seconds, median)


def lower_envelope(
    times: Sequence[float], values: Sequence[float], seconds: float
) -> tuple[list[float], list[float]]:
    """The least value of each span of `seconds`: what an allocator keeps whatever passes through it."""
    return _pool(times, values, seconds, min)


def _pool(
    times: Sequence[float], values: Sequence[float], seconds: float, pick: Callable[[Sequence[float]], float]
) -> tuple[list[float], list[float]]:
    out_times: list[float] = []
    out_values: list[float] = []
    start = 0
    while start < len(times):
        end = bisect_left(times, times[start] + seconds, start + 1)
        out_times.append(sum(times[start:end]) / (end - start))
        out_values.append(pick(values[start:end]))
        start = end
    return out_times, out_values


def maxima_by(keys: Sequence[Hashable], values: Sequence[float]) -> list[float]:
    """The greatest value of each run of equal neighbouring keys, e.g. an epoch's peak memory."""
    peaks: list[float] = []
    before: Hashable = None
    for key, value in zip(keys, values, strict=True):
        if peaks and key == before:
            peaks[-1] = max(peaks[-1], value)
        else:
            peaks.append(value)
            before = key
    return peaks


def thin(
    times: Sequence[float], values: Sequence[float], limit: int = POINTS_LIMIT
) -> tuple[list[float], list[float]]:
    """At most `limit` points: means of equally many neighbours each."""
    n = len(values)
    if n <= limit:
        return list(times), list(values)
    edges = [n * i // limit for i in range(limit + 1)]
    spans = list(itertools.pairwise(edges))
    return (
        [sum(times[a:b]) / (b - a) for a, b in spans],
        [sum(values[a:b]) / (b - a) for a, b in spans],
    )


# ---------------------------------------------------------------- leaks


class Trend(msgspec.Struct, frozen=True):
    """What the leak test saw. `why_not` is empty when the series grows without end."""

    why_not: WhyNot
    z: float = 0.0  # Mann-Kendall's
    slope: Slope | None = None
    rise: float = 0.0  # of the fitted line over the span
    largest_step_share: float = 0.0  # of all rises

    @property
    def grows(self) -> bool:
        """Whether all guards passed."""
        return not self.why_not


class Forecast(msgspec.Struct, frozen=True):
    """Time until a limit is reached, from now, with the bounds that the slope's interval gives."""

    time: float
    earliest: float
    latest: float


def leak_test(
    times: Sequence[float],
    values: Sequence[float],
    *,
    capacity: float | None,
    least_buckets: int = 8,
    least_z: float = NORMAL_99,
    step_share: float = 0.5,
    newer_half_share: float = 0.7,
    least_steps: int = 5,
    rise_share: float = 0.005,
    least_rise: float = 200e6,
) -> Trend:
    """Whether a series of pooled values (medians, minima or epoch maxima) grows without end.

    A trend alone is a false-alarm machine: on real YOLO runs without a leak plain Mann-Kendall reaches z 12
    for 5 MB in two hours. So all of these must hold: (1) Mann-Kendall above `least_z`; (2) the lower 95 %
    bound of the Theil-Sen slope above 0; (3) no step or staircase: no single rise makes `step_share` of all
    rises, one step between two levels does not fit better than the line, and at least `least_steps` rises
    make 80 % of all; (4) not saturating: the newer half's slope is above `newer_half_share` of the whole's
    and of the older half's; (5) an effect: the rise exceeds `rise_share` of the capacity and `least_rise`;
    and (6) a random walk with the same steps would not have gone as far.

    Args:
        times: rising, any unit; the slope is per that unit.
        values: one a time, at most `POINTS_LIMIT` are used.
        capacity: what the series can reach, in its own unit; None: unknown, then only `least_rise` counts.
        least_buckets: fewer give "too-few".
        least_z: of Mann-Kendall.
        step_share: see above.
        newer_half_share: see above.
        least_steps: see above.
        rise_share: see above.
        least_rise: in the series' own unit.
    """
    times, values = thin(times, values)
    n = len(values)
    if n < least_buckets:
        return Trend("too-few")
    z = mann_kendall(values)
    if z <= least_z:
        return Trend("no-trend", z)
    needed = max(least_rise, rise_share * (capacity or 0.0))
    steps = [b - a for a, b in itertools.pairwise(values)]
    risen = sum(step for step in steps if step > 0)
    largest = max(steps) / risen if risen > 0 else 0.0
    # Cheap guards first: slopes cost the square of the number of points.
    if max(values) - min(values) <= needed:
        return Trend("too-small", z, None, max(values) - min(values), largest)
    if largest >= step_share or _one_step_fits_better(times, values):
        return Trend("one-step", z, None, risen, largest)
    if _steps_of_most(steps, 0.8 * risen) < least_steps:
        return Trend("staircase", z, None, risen, largest)
    if _wander_z(steps) <= NORMAL_99:
        return Trend("wandering", z, None, risen, largest)
    slope = theil_sen(times, values)
    if slope is None:
        return Trend("too-few", z)
    rise = slope.value * (times[-1] - times[0])

    def answer(why_not: WhyNot) -> Trend:
        return Trend(why_not, z, slope, rise, largest)

    if slope.low <= 0:
        return answer("flat-bound")
    older, newer = theil_sen(times[: n // 2], values[: n // 2]), theil_sen(times[n // 2 :], values[n // 2 :])
    if older is None or newer is None or newer.value <= newer_half_share * max(slope.value, older.value):
        return answer("saturating")
    if rise <= needed:
        return answer("too-small")
    return answer("")


def _steps_of_most(steps: Sequence[float], most: float) -> int:
    """How many of the largest steps it takes to rise by `most`."""
    reached = 0.0
    for count, step in enumerate(sorted(steps, reverse=True), 1):
        reached += step
        if reached >= most:
            return count
    return len(steps)


def _wander_z(steps: Sequence[float]) -> float:
    """How far the sum of the steps lies above what as many steps without direction would reach."""
    n = len(steps)
    mean = sum(steps) / n
    # Noise around a line makes each step undo the one before it: that part takes nothing from the drift,
    # so the neighbours' (negative) covariance is added, like a long-run variance at lag 1.
    variance = sum((s - mean) ** 2 for s in steps) / n
    neighbours = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(steps)) / n
    variance = max(variance + min(neighbours, 0.0), 0.25 * variance)
    return inf if variance == 0 and mean > 0 else 0.0 if variance == 0 else mean * sqrt(n / variance)


def _one_step_fits_better(times: Sequence[float], values: Sequence[float]) -> bool:
    """Whether two levels with one step between them leave less (squared) than a straight line."""
    n = len(values)
    mean_t, mean_v = sum(times) / n, sum(values) / n
    tt = sum((t - mean_t) ** 2 for t in times)
    tv = sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values, strict=True))
    total = sum((v - mean_v) ** 2 for v in values)
    line = total - tv * tv / tt if tt > 0 else total
    best_gain = 0.0
    left = 0.0
    for place in range(1, n):
        left += values[place - 1] - mean_v
        best_gain = max(best_gain, left * left * n / (place * (n - place)))
    return total - best_gain < line


def time_to_limit(
    trend: Trend, level: float, limit: float, *, horizon: float | None = None
) -> Forecast | None:
    """When a growing series reaches `limit` from `level`, with a range.

    None when the trend is not significant, the limit is behind, or the latest time lies beyond `horizon`.
    """
    slope = trend.slope
    if not trend.grows or slope is None or slope.low <= 0 or level >= limit:
        return None
    room = limit - level
    forecast = Forecast(room / slope.value, room / max(slope.high, slope.value), room / slope.low)
    return None if horizon is not None and forecast.latest > horizon else forecast


# ---------------------------------------------------------------- change of level


class Cusum:
    """One-sided, self-normalised CUSUM on the log of step times: tells when steps became slower for good.

    The first `baseline_count` values give median and spread (at least `sigma_floor`); later ones count by
    their z, clamped to +-3 so that outliers cannot raise it alone, less `drift`. Page 1954; with drift 0.5
    and limit 20 a +20 % step time is told after about 11 steps. After an alarm `ratio` compares the
    newest values' median with the baseline, which drops what came and went.
    """

    def __init__(
        self, *, baseline_count: int = 50, drift: float = 0.5, limit: float = 20.0, sigma_floor: float = 0.02
    ) -> None:
        self._count = baseline_count
        self._drift, self._limit, self._floor = drift, limit, sigma_floor
        self._learn: list[float] = []
        self._recent: deque[float] = deque(maxlen=30)
        self.center: float | None = None  # of the log
        self._sigma = sigma_floor
        self.score = 0.0
        self.since_ts: float | None = None  # when the score last left zero

    def reset(self) -> None:
        """Learn a new baseline from now on (after close-mosaic, a resume, another image size)."""
        self._learn.clear()
        self._recent.clear()
        self.center = None
        self.score, self.since_ts = 0.0, None

    def add(self, ts: float, value: float) -> bool:
        """Take one value; True while the score is above the limit. Values not above 0 are left out."""
        if not (value > 0 and isfinite(value)):
            return self.alarm
        x = log(value)
        if self.center is None:
            self._learn.append(x)
            if len(self._learn) >= self._count:
                self.center = median(self._learn)
                self._sigma = spread(self._learn, self._floor)
                self._learn.clear()
            return False
        self._recent.append(x)
        z = min(max((x - self.center) / self._sigma, -3.0), 3.0)
        before = self.score
        self.score = min(max(0.0, before + z - self._drift), 2 * self._limit)  # bounded, so that it can fall
        if self.score == 0:
            self.since_ts = None
        elif before == 0:
            self.since_ts = ts
        return self.alarm

    @property
    def alarm(self) -> bool:
        """Whether the score is above the limit."""
        return self.score > self._limit

    @property
    def baseline(self) -> float | None:
        """The value at the start, in the unit of the values."""
        return None if self.center is None else exp(self.center)

    @property
    def ratio(self) -> float | None:
        """Median of the newest (up to 30) values over the baseline; None before there are ten."""
        if self.center is None or len(self._recent) < 10:
            return None
        return exp(median(self._recent) - self.center)


class Ewma:
    """Exponentially weighted mean over about `span` values; the first values count in full."""

    def __init__(self, span: float) -> None:
        self._alpha = 2 / (span + 1)
        self._weight = 0.0
        self._sum = 0.0
        self.count = 0

    def add(self, value: float) -> float:
        """Take one value and give the mean."""
        keep = 1 - self._alpha
        self._sum = keep * self._sum + self._alpha * value
        self._weight = keep * self._weight + self._alpha
        self.count += 1
        return self._sum / self._weight

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return None if self.count == 0 else self._sum / self._weight
