"""Where each rank's time goes, in numbers that add up to the elapsed time.

From the stream's own times where it has them (phases, data_time), else estimated from telemetry and said so:
waiting for other ranks inside a step is seen only on the GPUs, as more busy time than on the GPU that waits
least.
"""

from __future__ import annotations

from collections import deque

import msgspec

from yolomon.diagnosis.job import Job
from yolomon.diagnosis.phases import TRAINING, Interval, Phases, RankPhases
from yolomon.diagnosis.seconds import Seconds
from yolomon.model import TrainRecord

CATEGORIES = (
    "compute",
    "data-wait",
    "rank-wait",
    "validation",
    "checkpoint",
    "start-up",
    "stalled",
    "idle",  # where no step is known: the GPU ran no kernel; else between the run's end and what follows it
)
SLOT_SECONDS = 15.0
SLOTS_LIMIT = 960  # 4 hours
EPOCHS_LIMIT = 512
LEAST_WAIT_POINTS = 15.0  # healthy ranks differ by up to 10 points of busy time
_OF_PHASE = {
    "starting": "start-up",
    "caching": "start-up",
    "validation": "validation",
    "final-validation": "validation",
    "checkpoint": "checkpoint",
    "epoch-turn": "checkpoint",
    "close-mosaic": "start-up",
}


class Split(msgspec.Struct, frozen=True):
    """Seconds by category over [start, end]; they add up to `elapsed_seconds`."""

    start_ts: float
    end_ts: float
    seconds: dict[str, float]
    estimated: tuple[str, ...] = ()  # categories that telemetry gave, not the stream
    epoch: int | None = None

    @property
    def elapsed_seconds(self) -> float:
        """The length of the span."""
        return self.end_ts - self.start_ts


class _Rank:
    def __init__(self, start_ts: float) -> None:
        self.start_ts = start_ts
        self.cursor_ts = start_ts
        self.total = dict.fromkeys(CATEGORIES, 0.0)
        self.slots: deque[tuple[int, dict[str, float]]] = deque(maxlen=SLOTS_LIMIT)
        self.epochs: deque[tuple[int, float, float, dict[str, float]]] = deque(maxlen=EPOCHS_LIMIT)
        self.waits = False
        self.wait_share = 0.0  # of a step's compute part, by telemetry
        self.has_data_times = False


class TimeSplit:
    """Adds up each rank's time as its records come."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._ranks: dict[int, _Rank] = {}
        self.over_ts: float | None = None  # when the trainer ended or died: nothing is counted after that

    def observe(self, record: TrainRecord) -> None:
        """Take one record, after `Phases` has."""
        if record.backlog:
            return
        number = record.rank or 0
        rank = self._ranks.get(number)
        if rank is None:
            rank = self._ranks[number] = _Rank(record.ts)
        if record.kind == "start" and record.ts > rank.cursor_ts:
            rank.cursor_ts = rank.start_ts = record.ts  # another run
            rank.total = dict.fromkeys(CATEGORIES, 0.0)
            rank.slots.clear()
            rank.epochs.clear()
            return
        data = record.roles.data_seconds if record.kind == "batch" else None
        if data is not None:
            rank.has_data_times = True
        if record.ts > rank.cursor_ts:
            for category, start, end, epoch in self._settle(number, rank, record.ts, data):
                _add(rank, category, start, end, epoch)
            rank.cursor_ts = record.ts

    def estimate_waits(self, job: Job, seconds: Seconds, phases: Phases, now_ts: float) -> None:
        """Take the share of time that each rank waits for the others inside a step, from its GPU."""
        busy: dict[int, float] = {}
        for member in job.members:
            if member.gpu_index is not None:
                means = seconds.training_means(member.gpu_index, phases, now_ts, 8.0)
                if means is not None and means.busy_percent is not None:
                    busy[member.rank] = means.busy_percent
        least = min(busy.values(), default=0.0)
        for number, rank in self._ranks.items():
            excess = busy.get(number, least) - least
            rank.wait_share = excess / 100 if len(busy) > 1 and excess >= LEAST_WAIT_POINTS else 0.0

    def ranks(self) -> list[int]:
        """The ranks whose time is known."""
        return sorted(number for number in self._ranks if self._known(number) is not None)

    def _known(self, number: int) -> _Rank | None:
        """A rank whose log tells more than epoch rows: from those alone no part of the time can be told."""
        phases = self._phases.ranks.get(number)
        return self._ranks.get(number) if phases is None or phases.tells_phases else None

    def whole(self, rank: int, now_ts: float) -> Split | None:
        """The whole run up to now."""
        known = self._known(rank)
        if known is None:
            return None
        now_ts = self._until(known, now_ts)
        sums = dict(known.total)
        for category, start, end, _ in self._open(rank, known, now_ts):
            sums[category] += end - start
        return Split(known.start_ts, max(now_ts, known.cursor_ts), sums, _estimated(known))

    def recent(self, rank: int, now_ts: float, last_seconds: float) -> Split | None:
        """About the last `last_seconds` (whole slots of 15 s), up to now."""
        known = self._known(rank)
        if known is None:
            return None
        now_ts = self._until(known, now_ts)
        sums = dict.fromkeys(CATEGORIES, 0.0)
        start_ts = max(known.start_ts, now_ts - last_seconds)
        first = int(start_ts // SLOT_SECONDS)
        start_ts = max(known.start_ts, first * SLOT_SECONDS)
        for slot, part in reversed(known.slots):
            if slot < first:
                break
            for category, seconds in part.items():
                sums[category] += seconds
        for category, start, end, _ in self._open(rank, known, now_ts):
            sums[category] += max(end - max(start, start_ts), 0.0)
        return Split(start_ts, max(now_ts, known.cursor_ts), sums, _estimated(known))

    def epochs(self, rank: int) -> list[Split]:
        """Each epoch of the newest 512, oldest first; the last one may not be complete."""
        known = self._known(rank)
        if known is None:
            return []
        return [
            Split(start, end, dict(sums), _estimated(known), epoch)
            for epoch, start, end, sums in known.epochs
        ]

    def _until(self, rank: _Rank, now_ts: float) -> float:
        """The newest time that is still the run's."""
        return now_ts if self.over_ts is None else max(min(now_ts, self.over_ts), rank.cursor_ts)

    def _open(self, number: int, rank: _Rank, now_ts: float) -> list[tuple[str, float, float, int | None]]:
        """The parts of the time since the newest record."""
        if now_ts <= rank.cursor_ts:
            return []
        return self._settle(number, rank, now_ts, None)

    def _settle(
        self, number: int, rank: _Rank, until_ts: float, data_seconds: float | None
    ) -> list[tuple[str, float, float, int | None]]:
        phases = self._phases.ranks.get(number)
        if phases is None:
            return [("start-up", rank.cursor_ts, until_ts, None)]
        parts: list[tuple[str, float, float, int | None]] = []
        at = rank.cursor_ts
        for interval in phases.between(rank.cursor_ts, until_ts):
            start = max(interval.start_ts, at)
            end = until_ts if interval.end_ts is None else min(interval.end_ts, until_ts)
            if start > at:  # before the first phase that is known
                parts.append(("start-up", at, start, interval.epoch))
                at = start
            if end <= at:
                continue
            if interval.phase in TRAINING:
                parts += self._training(rank, phases, interval, at, end, data_seconds)
            else:
                parts.append((self._category(number, interval), at, end, interval.epoch))
            at = end
        if at < until_ts:
            parts.append(("start-up", at, until_ts, None))
        return parts

    def _training(
        self,
        rank: _Rank,
        phases: RankPhases,
        interval: Interval,
        start: float,
        end: float,
        data_seconds: float | None,
    ) -> list[tuple[str, float, float, int | None]]:
        parts: list[tuple[str, float, float, int | None]] = []
        epoch = interval.epoch
        patience = self._phases.patience_seconds(12.0, 20.0, 1.0) if end - start > 12.0 else None
        if patience is not None and end - start > patience:
            usual = phases.typical_gap() or 0.0
            parts.append(("stalled", start, end - usual, epoch))
            start = end - usual
        if data_seconds is not None and data_seconds > 0:
            wait = min(data_seconds, end - start)
            parts.append(("data-wait", start, start + wait, epoch))
            start += wait
        if rank.wait_share > 0 and end > start:
            rank.waits = True
            wait = rank.wait_share * (end - start)
            parts.append(("rank-wait", start, start + wait, epoch))
            start += wait
        if end > start:
            parts.append(("compute", start, end, epoch))
        return parts

    def _category(self, number: int, interval: Interval) -> str:
        leader = self._phases.leader
        if leader is not None and number != leader.rank and interval.phase in ("epoch-turn", "checkpoint"):
            return "rank-wait"  # the lowest rank validates or saves, the others wait for it
        if interval.phase == "ended":
            return "idle"
        return _OF_PHASE[interval.phase]


def telemetry_split(seconds: Seconds, gpu_index: int, start_ts: float, end_ts: float) -> Split | None:
    """A GPU's time where no step is known: busy or not, by telemetry alone. None without readings."""
    means = seconds.means(gpu_index, start_ts, end_ts)
    if means is None or means.busy_percent is None:
        return None
    elapsed = means.last_ts - means.first_ts
    sums = dict.fromkeys(CATEGORIES, 0.0)
    sums["compute"] = elapsed * means.busy_percent / 100
    sums["idle"] = elapsed - sums["compute"]
    return Split(means.first_ts, means.last_ts, sums, ("compute", "idle"))


def _estimated(rank: _Rank) -> tuple[str, ...]:
    return ("rank-wait",) if rank.waits else ()


def _add(rank: _Rank, category: str, start: float, end: float, epoch: int | None) -> None:
    rank.total[category] += end - start
    if epoch is not None:
        if not rank.epochs or rank.epochs[-1][0] != epoch:
            rank.epochs.append((epoch, start, end, {}))
        number, first, _, sums = rank.epochs[-1]
        sums[category] = sums.get(category, 0.0) + end - start
        rank.epochs[-1] = (number, first, end, sums)
    at = start
    while at < end:
        slot = int(at // SLOT_SECONDS)
        until = min(end, (slot + 1) * SLOT_SECONDS)
        if until <= at:  # the clock's last bits
            until = end
        if not rank.slots or rank.slots[-1][0] < slot:
            rank.slots.append((slot, {}))
        part = rank.slots[-1][1]
        part[category] = part.get(category, 0.0) + until - at
        at = until
