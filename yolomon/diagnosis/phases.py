"""Which phase of the training each rank is in over time, by the stream's events or from its steps."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from statistics import median
from typing import Literal

import msgspec

from yolomon.model import TrainRecord

Phase = Literal[
    "starting",  # before the first step
    "caching",  # images are scanned or cached before the first step
    "warmup",  # the first steps, while kernels are chosen and the allocator grows
    "train",
    "validation",
    "checkpoint",  # after validation: metrics, saving, waiting for the rank that saves
    "epoch-turn",
    "close-mosaic",  # the epoch turn at which the loader is rebuilt without mosaic
    "final-validation",
    "ended",
]
INTERVALS_LIMIT = 4096
WARMUP_BATCHES = 5
TRAINING: frozenset[str] = frozenset({"train", "warmup"})
STEPPED_BY_OTHERS = frozenset({"validation", "checkpoint", "epoch-turn", "close-mosaic", "final-validation"})


class Interval(msgspec.Struct, gc=False):
    """One phase of one rank. `end_ts` is None while it lasts."""

    phase: Phase
    start_ts: float
    end_ts: float | None = None
    epoch: int | None = None
    inferred: bool = False  # no event told it


class RankPhases:
    """One rank's phases, and how long its steps take."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.intervals: list[Interval] = []
        self.batches = 0  # seen live since the start
        self.last_batch_ts: float | None = None
        self.first_batch_ts: float | None = None
        self.last_record_ts: float | None = None
        self.begins_epoch = False  # the newest record told that an epoch starts
        self.gaps: deque[float] = deque(maxlen=127)  # between two batch records of one epoch, seconds
        self.longest_gap: float | None = None  # after warm-up
        self.longest_turn: float | None = None  # from an epoch's last step to the next one's first
        self.epochs_done = 0
        self._told: tuple[int | None, int | None, int] = (None, None, 1)  # newest batch, of how many, spacing
        self._turn_from: float | None = None
        self._epoch_events = False
        self._gaps_median: tuple[int, float | None] = (-1, None)

    @property
    def current(self) -> Interval | None:
        """The phase that lasts."""
        return self.intervals[-1] if self.intervals else None

    @property
    def tells_phases(self) -> bool:
        """Whether more than epoch rows is told (results.csv has no other): steps, or epochs that begin."""
        return self._epoch_events or self.batches > 0 or self.last_batch_ts is not None

    def typical_gap(self) -> float | None:
        """Median seconds between two batch records; None before there are three gaps."""
        if self._gaps_median[0] != self.batches:
            self._gaps_median = (self.batches, median(self.gaps) if len(self.gaps) >= 3 else None)
        return self._gaps_median[1]

    def _paused(self, ts: float) -> bool:
        """Whether the time since the newest step is many times the usual."""
        typical = self.typical_gap()
        return (
            typical is not None
            and self.last_batch_ts is not None
            and ts - self.last_batch_ts > max(1.0, 5 * typical)
        )

    def stepped_until(self) -> float:
        """Until when steps surely were made: a little after the newest one, so that a hang is no training."""
        if self.last_batch_ts is None:
            return float("-inf")
        gap = self.typical_gap() or 0.0
        batch, batches, spacing = self._told
        if self.may_turn_untold and batch is not None and batches is not None:  # the rest of the epoch
            return self.last_batch_ts + min(max(1.0, 2 * gap), 1.0 + gap * (batches - batch) / spacing)
        return self.last_batch_ts + max(1.0, 2 * gap)

    @property
    def may_turn_untold(self) -> bool | None:
        """Whether the epoch may be over without a word: the next step that is logged lies in the next one.

        None where the log does not tell how many steps an epoch has.
        """
        batch, batches, spacing = self._told
        if batch is None or batches is None:
            return None
        return batch + spacing > batches

    def at(self, ts: float) -> Interval | None:
        """The phase at that time."""
        place = bisect_right(self.intervals, ts, key=_start) - 1
        return self.intervals[place] if place >= 0 else None

    def between(self, start_ts: float, end_ts: float) -> list[Interval]:
        """The phases that touch [start, end]."""
        first = max(bisect_right(self.intervals, start_ts, key=_start) - 1, 0)
        found = []
        for interval in self.intervals[first:]:
            if interval.start_ts > end_ts:
                break
            if interval.end_ts is None or interval.end_ts > start_ts:
                found.append(interval)
        return found

    def observe(self, record: TrainRecord, close_mosaic: int | None) -> None:
        """Take one record of this rank."""
        kind = record.kind
        if kind in ("epoch_start", "epoch_end"):
            self._epoch_events = True
        if record.backlog:
            return
        self.begins_epoch = kind == "epoch_start"
        ts = record.ts
        if self.last_record_ts is not None and ts < self.last_record_ts:
            ts = self.last_record_ts
        self.last_record_ts = ts
        if kind == "batch":
            self._batch(ts, record)
        elif kind == "start":
            self._restart(ts)
        elif kind == "epoch_start":
            closing = (
                close_mosaic
                and record.epochs
                and record.epoch is not None
                and record.epoch == record.epochs - close_mosaic + 1
            )
            if self.batches:
                self._enter("close-mosaic" if closing else "epoch-turn", ts, record.epoch)
            elif self.current is None:
                self._enter("starting", ts, record.epoch)
        elif kind == "epoch_end":
            self._end_of_epoch(ts, record.epoch, inferred=False)
        elif kind == "val_start":
            last = self.current is not None and self.current.phase == "ended"
            done = record.epochs is not None and self.epochs_done >= record.epochs
            self._enter("final-validation" if last or done else "validation", ts, record.epoch)
        elif kind == "val_end":
            self._enter("checkpoint", ts, record.epoch)
        elif kind in ("epoch", "validation"):
            if self.current is None or self.current.phase != "ended":
                self._end_of_epoch(ts, record.epoch, inferred=not self._epoch_events)
        elif kind in ("end", "stopping"):
            self._enter("ended", ts, record.epoch)
        elif kind == "message" and not self.batches:
            text = record.text.lower()
            if "caching images" in text or "scanning " in text:
                self._enter("caching", ts, None)
        if kind == "checkpoint" and self.current is not None and self.current.phase == "checkpoint":
            self._enter("epoch-turn", ts, record.epoch)

    def _restart(self, ts: float) -> None:
        self.batches = 0
        self.last_batch_ts = self.first_batch_ts = self._turn_from = None
        self.gaps.clear()
        self.longest_gap = self.longest_turn = None
        self.epochs_done = 0
        self._gaps_median = (-1, None)
        self._enter("starting", ts, None)

    def _end_of_epoch(self, ts: float, epoch: int | None, *, inferred: bool) -> None:
        if self.current is not None and self.current.phase in TRAINING:
            self.epochs_done += 1
            self._turn_from = self.last_batch_ts
        self._enter("epoch-turn", ts, epoch, inferred=inferred)

    def _batch(self, ts: float, record: TrainRecord) -> None:
        before, _, spacing = self._told
        if before is not None and record.batch is not None and record.batch > before:
            spacing = record.batch - before
        self._told = (record.batch, record.batches, spacing)
        current = self.current
        training = current is not None and current.phase in TRAINING
        if (
            training
            and not self._epoch_events
            and current is not None
            and current.epoch is not None
            and record.epoch is not None
            and record.epoch > current.epoch
            and self.last_batch_ts is not None
        ):  # a log without events: the epoch changed between two steps
            self._end_of_epoch(self.last_batch_ts, current.epoch, inferred=True)
            training = False
        if training and not self._epoch_events and self._paused(ts) and self.last_batch_ts is not None:
            self._enter("epoch-turn", self.last_batch_ts, record.epoch, inferred=True)  # or some other pause
            self._turn_from = self.last_batch_ts
            current, training = self.current, False
        if not training:
            begin = ts
            step = record.roles.step_seconds
            typical = self.typical_gap()
            if self.batches and step is not None and step == step:
                begin = ts - min(step, 3 * typical if typical else step)
            if current is not None:
                begin = max(begin, current.start_ts)
            if self.batches and self._turn_from is not None:
                turn = ts - self._turn_from
                self.longest_turn = max(self.longest_turn or 0.0, turn)
                self._turn_from = None
            self._enter(
                "train" if self.batches >= WARMUP_BATCHES else "warmup",
                begin,
                record.epoch,
                inferred=not self._epoch_events,
            )
        elif self.last_batch_ts is not None and ts > self.last_batch_ts:
            gap = ts - self.last_batch_ts
            self.gaps.append(gap)
            if self.batches > WARMUP_BATCHES:
                self.longest_gap = max(self.longest_gap or 0.0, gap)
        self.batches += 1
        if self.first_batch_ts is None:
            self.first_batch_ts = ts
        if self.batches == WARMUP_BATCHES and training:
            self._enter("train", ts, record.epoch, inferred=not self._epoch_events)
        self.last_batch_ts = ts
        if not self._epoch_events and record.batches and record.batch == record.batches:
            self._end_of_epoch(ts, record.epoch, inferred=True)

    def _enter(self, phase: Phase, ts: float, epoch: int | None, *, inferred: bool = False) -> None:
        current = self.current
        if current is not None:
            if current.phase == phase and current.end_ts is None:
                if epoch is not None:
                    current.epoch = epoch
                return
            if current.phase in TRAINING and self._paused(ts) and self.last_batch_ts is not None:
                ts = self.last_batch_ts  # the log told of it late: training ended with the last step
            ts = max(ts, current.start_ts)
            current.end_ts = ts
            if epoch is None:
                epoch = current.epoch
        self.intervals.append(Interval(phase, ts, None, epoch, inferred))
        if len(self.intervals) > INTERVALS_LIMIT:
            del self.intervals[: INTERVALS_LIMIT // 8]


class Phases:
    """The phases of all ranks that the log tells of."""

    def __init__(self) -> None:
        self.ranks: dict[int, RankPhases] = {}
        self.heard_ts: float | None = None  # when the newest step came, by the machine's clock
        self._close_mosaic: int | None = None
        self._spans: dict[tuple[float, float], list[tuple[float, float]]] = {}

    def observe(self, record: TrainRecord, heard_ts: float | None = None) -> None:
        """Take one record, which came at `heard_ts` by the machine's clock where that is known."""
        if record.kind in ("start", "batch") and not record.backlog and heard_ts is not None:
            self.heard_ts = heard_ts
        if record.run is not None and record.run.close_mosaic is not None:
            self._close_mosaic = record.run.close_mosaic
        rank = record.rank or 0
        if rank not in self.ranks:
            self.ranks[rank] = RankPhases(rank)
        self.ranks[rank].observe(record, self._close_mosaic)
        self._spans.clear()

    @property
    def known(self) -> bool:
        """Whether any rank's steps are seen, so that training can be told from the rest."""
        return any(rank.batches for rank in self.ranks.values())

    @property
    def leader(self) -> RankPhases | None:
        """The lowest rank that is seen."""
        return self.ranks[min(self.ranks)] if self.ranks else None

    @property
    def current(self) -> Phase | None:
        """The phase of the lowest rank."""
        leader = self.leader
        return None if leader is None or leader.current is None else leader.current.phase

    def all_training(self) -> bool:
        """Whether every rank is between the first and the last step of an epoch."""
        return bool(self.ranks) and all(
            rank.current is not None and rank.current.phase in TRAINING for rank in self.ranks.values()
        )

    def training_spans(self, start_ts: float, end_ts: float) -> list[tuple[float, float]]:
        """When all ranks were training (after warm-up), within [start, end], in order."""
        found = self._spans.get((start_ts, end_ts))
        if found is not None:
            return found
        spans = [(start_ts, end_ts)] if self.ranks else []
        for rank in self.ranks.values():
            own = [
                (
                    max(i.start_ts, start_ts),
                    min(rank.stepped_until(), end_ts) if i.end_ts is None else min(i.end_ts, end_ts),
                )
                for i in rank.between(start_ts, end_ts)
                if i.phase == "train"
            ]
            spans = _both(spans, own)
        if len(self._spans) > 8:
            self._spans.clear()
        self._spans[(start_ts, end_ts)] = spans
        return spans

    def last_batch_ts(self) -> float | None:
        """The newest step of any rank."""
        times = [rank.last_batch_ts for rank in self.ranks.values() if rank.last_batch_ts is not None]
        return max(times, default=None)

    def patience_seconds(self, floor_seconds: float, steps: float, gaps: float) -> float | None:
        """How long after a step the next one is overdue; None before a usual gap is known.

        The largest of a floor, `steps` usual gaps and `gaps` times the longest gap of the run so far.

        The longest gap counts so that a run with known slow steps is not called stalled: one step took 195 s
        when label assignment fell back to the CPU (ultralytics#25990).
        """
        typical = [gap for rank in self.ranks.values() if (gap := rank.typical_gap()) is not None]
        if not typical:
            return None
        longest = max((rank.longest_gap or 0.0 for rank in self.ranks.values()), default=0.0)
        return max(floor_seconds, steps * max(typical), gaps * longest)


def _start(interval: Interval) -> float:
    return interval.start_ts


def _both(a: list[tuple[float, float]], b: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Where spans of both lists overlap."""
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            out.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return out
