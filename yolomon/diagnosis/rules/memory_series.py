"""Device memory over the steps of a run, pooled to blocks of steps, with the leak test at several lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from yolomon.diagnosis.statistics import Trend, leak_test, median, thin

BLOCKS_LIMIT = 480
LENGTHS = (10, 20, 40, BLOCKS_LIMIT)  # newest blocks that are tested
POINTS = 60  # at most, for one test


class Growing(msgspec.Struct, frozen=True):
    """Memory that grows without end: by how much a step and a second, since when."""

    trend: Trend  # over steps
    onset_ts: float
    onset_step: float
    first_bytes: float
    last_bytes: float
    steps: float
    seconds: float
    blocks: int

    @property
    def bytes_per_step(self) -> float:
        """The slope."""
        return self.trend.slope.value if self.trend.slope is not None else 0.0

    @property
    def steps_per_second(self) -> float:
        """Over the whole span, pauses included."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0


class MemorySeries:
    """One quantity in bytes, read at steps.

    Args:
        pick: what stands for a block: `min` for what is allocated at the end of a step (it alternates with
            gradient accumulation and rises with the objects in a batch), `median` for what is reserved.
        least_records: a block has at least so many, and
        least_seconds: lasts at least so long.
    """

    def __init__(
        self,
        pick: Callable[[Sequence[float]], float] = min,
        least_records: int = 6,
        least_seconds: float = 1.0,
    ) -> None:
        self._pick = pick
        self._least_records = least_records
        self._least_seconds = least_seconds
        self._open: list[float] = []
        self._open_ts = 0.0
        self._ts: list[float] = []
        self._steps: list[float] = []
        self._values: list[float] = []
        self._count = 0
        self.closed = 0  # blocks so far: a test is worth while when this changed

    def clear(self) -> None:
        """Begin anew."""
        for column in (self._open, self._ts, self._steps, self._values):
            column.clear()
        self._count = 0

    def add(self, ts: float, value: float, step: int | None = None) -> None:
        """Take the value at one more step, or at `step` where values and steps are not one to one."""
        self._count = self._count + 1 if step is None else step
        if not self._open:
            self._open_ts = ts
        self._open.append(value)
        if len(self._open) >= self._least_records and ts - self._open_ts >= self._least_seconds:
            self._ts.append(ts)
            self._steps.append(float(self._count))
            self._values.append(self._pick(self._open))
            self._open.clear()
            self.closed += 1
            if len(self._values) >= BLOCKS_LIMIT:
                self._halve()

    def _halve(self) -> None:
        """Merge neighbouring blocks: half as many, twice as long from now on."""
        count = len(self._values) // 2
        self._values = [self._pick(self._values[2 * i : 2 * i + 2]) for i in range(count)]
        self._ts = [self._ts[2 * i + 1] for i in range(count)]
        self._steps = [self._steps[2 * i + 1] for i in range(count)]
        self._least_records *= 2
        self._least_seconds *= 2

    def grows(
        self,
        capacity: float | None,
        *,
        least_rise: float,
        rise_share: float,
        straight: float | None = None,
        least_span_seconds: float = 0.0,
    ) -> Growing | None:
        """The shortest span over which it grows without end now; None where it does not.

        Args:
            capacity: of the device, bytes.
            least_rise: bytes.
            rise_share: of the capacity.
            straight: how far (as a share of the rise) a block may lie from the line at most; a leak adds the
                same at each step, an allocator that still finds new image sizes climbs in stairs.
            least_span_seconds: shorter spans are not tested.
        """
        least = max(least_rise, rise_share * (capacity or 0.0))
        for length in LENGTHS:
            n = min(length, len(self._values))
            if n < 8 or (length != LENGTHS[0] and n <= LENGTHS[LENGTHS.index(length) - 1]):
                continue
            ts, steps, values = self._ts[-n:], self._steps[-n:], self._values[-n:]
            if values[-1] - values[0] < least or ts[-1] - ts[0] < least_span_seconds:
                continue
            found = self._test(ts, steps, values, capacity, least, straight)
            if found is not None:
                return found
        return None

    def _test(
        self,
        ts: list[float],
        steps: list[float],
        values: list[float],
        capacity: float | None,
        least: float,
        straight: float | None,
    ) -> Growing | None:
        x, y = thin(steps, values, POINTS)
        trend = leak_test(x, y, capacity=capacity, least_rise=least, rise_share=0.0)
        if not trend.grows or trend.slope is None:
            return None
        slope = trend.slope
        if straight is not None:
            middle = median(v - slope.value * s for s, v in zip(x, y, strict=True))
            worst = max(abs(v - slope.value * s - middle) for s, v in zip(x, y, strict=True))
            if worst > straight * trend.rise:
                return None
        place = self._onset(slope.value)
        return Growing(
            trend,
            self._ts[place],
            self._steps[place],
            values[0],
            values[-1],
            steps[-1] - steps[0],
            ts[-1] - ts[0],
            len(values),
        )

    def _onset(self, slope: float) -> int:
        """The oldest block from which on it rose at no less than half the slope without a long rest."""
        place = len(self._values) - 1
        reach = 8
        while place > 0:
            back = max(place - reach, 0)
            rise = self._values[place] - self._values[back]
            if rise < 0.5 * slope * (self._steps[place] - self._steps[back]):
                break
            place = back
        # within the last stretch: the last block at its lowest level
        end = min(place + reach, len(self._values) - 1)
        low = min(self._values[place : end + 1])
        for at in range(end, place - 1, -1):
            if self._values[at] <= low + 0.02 * abs(slope) * (self._steps[end] - self._steps[place]):
                return at
        return place
