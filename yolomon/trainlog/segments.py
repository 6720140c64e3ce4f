"""Where one run ends and the next begins in a log that says it seldom: counters that go back.

Records are told apart by what they are first (a validation counts epochs where training counts iterations),
and a
step back matters only within its kind.
"""

from __future__ import annotations

from yolomon.model import TrainRecord

_PROGRESS = frozenset({"batch", "epoch", "validation"})


class SegmentTracker:
    """Gives each record of one log the number of its segment, from 0.

    Args:
        elapsed: the number that is seconds since the process began, where the format has one: it
        falls when a run
            is resumed though the epoch goes on (Ultralytics' `time`).
    """

    def __init__(self, elapsed: str | None = None) -> None:
        self.segment = 0
        self._elapsed = elapsed
        self._marked = False  # the log marks its starts
        self._progress = False  # in this segment
        self._epoch: dict[tuple[str, int], int] = {}
        self._step: dict[tuple[str, int], int] = {}
        self._first_step: dict[tuple[str, int], int] = {}
        self._interval: dict[tuple[str, int], int] = {}
        self._seconds: float | None = None

    def place(self, record: TrainRecord) -> int:
        """The segment of this record."""
        if record.kind == "start":
            self._marked = True
            if self._progress and not record.rank:
                self.begin()
            return self.segment
        if record.kind not in _PROGRESS:
            return self.segment
        kind = (record.kind, record.rank or 0)
        if self._goes_back(kind, record):
            self.begin()
        self._progress = True
        self._remember(kind, record)
        return self.segment

    def begin(self) -> None:
        """A new segment begins here."""
        self.segment += 1
        self._progress = False
        self._seconds = None
        for counters in (self._epoch, self._step, self._first_step, self._interval):
            counters.clear()

    def _goes_back(self, kind: tuple[str, int], record: TrainRecord) -> bool:
        if self._elapsed is not None:
            seconds = record.numbers.get(self._elapsed)
            if seconds is not None and self._seconds is not None and seconds < self._seconds:
                return True
        if record.epoch is not None:
            last = self._epoch.get(kind)
            if last is not None and record.epoch != last:
                return record.epoch < last
        step, last = record.step, self._step.get(kind)
        if step is None or last is None or step >= last:
            return False
        if record.epoch is not None and last is not None:
            # The same epoch again: a redo (NaN recovery, out of memory), unless it begins where
            # the run began.
            return not self._marked and step <= self._first_step.get(kind, 0)
        # Detectron2 writes records one out of order; a step back within one interval is that.
        return last - step >= max(2, self._interval.get(kind, 1))

    def _remember(self, kind: tuple[str, int], record: TrainRecord) -> None:
        if record.epoch is not None:
            self._epoch[kind] = record.epoch
        if record.step is not None:
            last = self._step.get(kind)
            if last is None:
                self._first_step[kind] = record.step
            elif record.step > last:
                self._interval[kind] = record.step - last
            self._step[kind] = record.step
        if self._elapsed is not None and self._elapsed in record.numbers:
            self._seconds = record.numbers[self._elapsed]
