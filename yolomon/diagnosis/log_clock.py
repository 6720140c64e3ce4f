"""A log's clock against the machine's: by when its records arrive, and by when the GPUs work.

A log may be written on another machine, in a container or a virtual one whose clock is seconds off. Live,
a record arrives right after it was written, so what its stamp and its arrival differ by is the clocks'
difference. In a recording that was put in order by its stamps nothing arrives: there the pauses between
epochs must lie where the GPUs rest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from itertools import accumulate

from yolomon.diagnosis.job import Job
from yolomon.diagnosis.phases import TRAINING, Phases
from yolomon.diagnosis.seconds import Seconds
from yolomon.model import TrainRecord

LATE_SECONDS = 1.5  # a record is read up to a second after it was written
SAMPLES = 12
LEAST_SAMPLES = 4
CHANGE_SECONDS = 0.75  # smaller changes of the difference are noise
LARGEST_SHIFT_SECONDS = 12.0
SHIFT_STEP_SECONDS = 0.5
NEAR_BEST = 0.05  # of the range of power
POWER_SECONDS = 1.0  # NVML's power is a mean over the second before (Ampere and later)
LEAST_POINTS = 12
LEAST_SPANS = 2  # one pause alone may be anything
LEAST_PAUSE_SHARE = 0.05  # of the time looked at: without pauses nothing can be aligned
BETTER_CONTRAST = (
    0.25  # of the range of power that another place must explain better; steps that wait for data
)
# at the start of an epoch, and power that is a mean over a second, make up to a tenth


class LogClock:
    """The difference of each log's clock from the machine's, by arrival.

    Between two readings of telemetry, the record with the newest stamp is the one that was read soonest
    (a log that is written in blocks shows old ones with it). Clocks differ where that record is old at every
    reading; or where even the oldest one comes from the future. A record arrived between the two readings:
    the log is behind by as much as the newest one was at the later reading, at most, so the least of that
    is the closest (by the earlier reading it would be short by their distance).
    """

    def __init__(self) -> None:
        self._telemetry_ts: float | None = None
        self._interval = 1.0
        self._open: dict[str, tuple[float, float]] = {}  # oldest and newest stamp since the last reading
        # a reading each: by how many seconds the log is behind at most, at least, and at least by its oldest
        self._lags: dict[str, deque[tuple[float, float, float]]] = {}
        self._offsets: dict[str, float] = {}

    def read(self, ts: float) -> None:
        """A reading of telemetry came."""
        before = self._telemetry_ts
        if before is not None and ts > before:
            self._interval = min(ts - before, 15.0)
            for source, (oldest, newest) in self._open.items():
                lags = self._lags.setdefault(source, deque(maxlen=SAMPLES))
                lags.append((ts - newest, before - newest, before - oldest))
                self._judge(source, lags)
        self._open.clear()
        self._telemetry_ts = ts

    def place(self, record: TrainRecord) -> float:
        """Where the record belongs on the machine's clock."""
        if record.backlog or record.own_ts is None or record.kind == "features":
            return record.ts
        key = f"{record.source}#{record.rank}"
        if self._telemetry_ts is not None:
            oldest, newest = self._open.get(key, (record.ts, record.ts))
            self._open[key] = (min(oldest, record.ts), max(newest, record.ts))
        return record.ts + self._offsets.get(key, 0.0)

    def _judge(self, source: str, lags: deque[tuple[float, float, float]]) -> None:
        if len(lags) < LEAST_SAMPLES:
            return
        ahead = max(oldest for _, _, oldest in lags)
        found = 0.0
        if min(least for _, least, _ in lags) > LATE_SECONDS:
            found = min(most for most, _, _ in lags)
        elif ahead < -(self._interval + LATE_SECONDS):
            found = ahead
        known = self._offsets.get(source, 0.0)
        if (found == 0.0) != (known == 0.0) or abs(found - known) > CHANGE_SECONDS:
            self._offsets[source] = found


def shift_by_power(
    seconds: Seconds, phases: Phases, job: Job, now_ts: float, within_seconds: float = 150.0
) -> float:
    """By how many seconds the log's phases must be moved so that the job's GPUs work where it says so.

    0 where that is best already, where there is no pause to tell by, or where power is not read.
    """
    start = now_ts - within_seconds
    power: dict[int, list[float]] = {}
    times: dict[int, float] = {}
    for index in job.gpu_indices:
        for row in seconds.rows(index, start, now_ts):
            if row.power_watts is not None:
                second = int(row.start_ts)
                power.setdefault(second, []).append(row.power_watts)
                times[second] = (row.start_ts + row.end_ts - POWER_SECONDS) / 2
    points = sorted(
        (times[at], sum(watts)) for at, watts in power.items() if len(watts) == len(job.gpu_indices)
    )
    spans = _steps_told(phases, start - LARGEST_SHIFT_SECONDS, now_ts)
    if len(spans) < LEAST_SPANS:
        return 0.0
    points = [point for point in points if point[0] >= spans[0][0] - LARGEST_SHIFT_SECONDS]
    most, least = max((w for _, w in points), default=0.0), min((w for _, w in points), default=0.0)
    if len(points) < LEAST_POINTS or most - least < 0.2 * most:
        return 0.0
    curve = _Power(points)
    count = int(LARGEST_SHIFT_SECONDS / SHIFT_STEP_SECONDS)
    shifts = [number * SHIFT_STEP_SECONDS for number in range(-count, count + 1)]
    found = [curve.contrast(spans, shift) for shift in shifts]
    reference, best = found[count], max((c for c in found if c is not None), default=0.0)
    if reference is None or best - reference <= BETTER_CONTRAST * (most - least):
        return 0.0
    # Epochs of one length fit at several places, and each for a second or so: the middle of the nearest one.
    good = [c is not None and c >= best - NEAR_BEST * (most - least) for c in found]
    place = min((at for at, fits in enumerate(good) if fits), key=lambda at: abs(shifts[at]))
    low = high = place
    while low > 0 and good[low - 1]:
        low -= 1
    while high < len(good) - 1 and good[high + 1]:
        high += 1
    return (shifts[low] + shifts[high]) / 2


def _steps_told(phases: Phases, start_ts: float, end_ts: float) -> list[tuple[float, float]]:
    """When the lowest rank's log says that it makes steps, warm-up included."""
    leader = phases.leader
    if leader is None:
        return []
    return [
        (
            interval.start_ts,
            min(leader.stepped_until(), end_ts) if interval.end_ts is None else interval.end_ts,
        )
        for interval in leader.between(start_ts, end_ts)
        if interval.phase in TRAINING
    ]


class _Power:
    """Power over time with running sums, so that the mean of any span costs two look-ups."""

    def __init__(self, points: list[tuple[float, float]]) -> None:
        self._times = [ts for ts, _ in points]
        self._sums = [0.0, *accumulate(watts for _, watts in points)]

    def contrast(self, spans: list[tuple[float, float]], shift: float) -> float | None:
        """Mean power where the log says training less that elsewhere, with the log moved by `shift`."""
        inside, count = 0.0, 0
        for begin, end in spans:
            first = bisect_left(self._times, begin + shift)
            last = bisect_right(self._times, end + shift)
            inside += self._sums[last] - self._sums[first]
            count += last - first
        rest = len(self._times) - count
        if min(count, rest) < LEAST_PAUSE_SHARE * len(self._times):
            return None
        return inside / count - (self._sums[-1] - inside) / rest
