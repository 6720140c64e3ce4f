"""A recording as a source: its items come at the pace at which they were recorded, or any other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path

import msgspec

from yolomon.messages import msg
from yolomon.model import CurveBlock, Item, SourceStatus, TrainRecord
from yolomon.sources.base import Emit
from yolomon.sources.recording import RecordingError, RecordingReader, end_ts, merge_by_time, read_all
from yolomon.sources.timeshift import shifted

__all__ = ["RecordingError", "RecordingReader", "ReplayClock", "ReplaySource", "read_all"]

LOOP_GAP_SECONDS = 2.0
FASTEST = 1e6  # recorded seconds a second: eleven days


class ReplayClock:
    """The time inside a recording. Rises with `speed` and never falls; safe for several threads.

    Reading it before the first item gives 0.

    Args:
        speed: recorded seconds a second, 0 (stands still) to `FASTEST`.
        monotonic: seconds that never jump.

    Raises:
        ValueError: another speed. With NaN or infinity the time itself would be NaN from then on.
    """

    def __init__(self, speed: float = 1.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._speed = _possible(speed)
        self._paused = False
        self._anchor: tuple[float, float] | None = None  # monotonic, time of the recording
        self._limit: float | None = None  # the recording's end, once it was reached

    def __call__(self) -> float:
        """UNIX seconds on the recording's axis."""
        with self._changed:
            return self._now()

    @property
    def rate(self) -> float:
        """How many recorded seconds pass in a second: 0 when paused."""
        return 0.0 if self._paused else self._speed

    @property
    def speed(self) -> float:
        """The speed set, whether paused or not."""
        return self._speed

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._paused

    def set(self, *, speed: float | None = None, paused: bool | None = None) -> None:
        """Change the pace from now on; the time itself does not jump.

        Raises:
            ValueError: a speed that is below 0, above `FASTEST`, or no number; nothing is changed then.
        """
        speed = None if speed is None else _possible(speed)
        with self._changed:
            if self._anchor is not None:
                self._anchor = (self._monotonic(), self._now())
            if speed is not None:
                self._speed = speed
            if paused is not None:
                self._paused = paused
            self._changed.notify_all()

    def advance_to(self, ts: float) -> None:
        """Jump ahead to `ts`; a time in the past changes nothing. The first call starts the clock.

        Raises:
            ValueError: no time.
        """
        if not isfinite(ts):
            raise ValueError(f"no time: {ts}")
        with self._changed:
            if self._anchor is None or ts > self._now():
                self._anchor = (self._monotonic(), ts)
                self._changed.notify_all()

    def end_at(self, ts: float | None) -> None:
        """Stand still from `ts` on (None: go on)."""
        with self._changed:
            if self._anchor is not None:
                self._anchor = (self._monotonic(), self._now())
            self._limit = ts
            self._changed.notify_all()

    def wait_until(self, ts: float, stopping: threading.Event) -> bool:
        """Wait until the recording's time reaches `ts`; False when `stopping` was set first."""
        with self._changed:
            while not stopping.is_set():
                ahead = ts - self._now()
                if ahead <= 0:
                    return True
                rate = self.rate
                self._changed.wait(min(0.5, ahead / rate) if rate > 0 else 0.5)
            return False

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def _now(self) -> float:
        if self._anchor is None:
            return 0.0
        at, ts = self._anchor
        now = ts + (self._monotonic() - at) * self.rate
        return now if self._limit is None else max(ts, min(now, self._limit))


class ReplaySource:
    """Plays a recording and logs beside it.

    Args:
        path: the recording.
        records: records of logs beside it, each in order of time.
        speed: recorded seconds a second; 0 stands still.
        loop: start again at the end, all times moved so that they go on rising; the trainer's records
            then count as a new segment of the run.
        rebase_to: the time that the first item gets instead of its own (e.g. now); None keeps the recorded.
        skip_seconds: what is played at once, without waiting, from the start.

    Raises:
        ValueError: a speed or a time that is none.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        records: Sequence[Sequence[TrainRecord]] = (),
        speed: float = 1.0,
        loop: bool = False,
        rebase_to: float | None = None,
        skip_seconds: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = Path(path)
        self.clock = ReplayClock(speed, monotonic)
        self.ended = False
        self._records = records
        self._loop = loop
        self._rebase_to = rebase_to
        if not isfinite(skip_seconds) or not isfinite(rebase_to or 0.0):
            raise ValueError(f"no time: {skip_seconds}, {rebase_to}")
        self._skip_seconds = skip_seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._percent: float | None = None

    # what the screen may do while it plays

    @property
    def speed(self) -> float:
        """Recorded seconds a second."""
        return self.clock.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self.clock.set(speed=speed)

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self.clock.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self.clock.set(paused=paused)

    @property
    def position_percent(self) -> float | None:
        """How much was played, by the recording's time where its end is known; None before it began."""
        return self._percent

    def skip_to(self, ts: float) -> None:
        """Play at once what lies before `ts`. To go back, start a new source: history does not unlearn."""
        self.clock.advance_to(ts)

    # a source

    def start(self, emit: Emit) -> None:
        """Begin to play; returns at once. A file that cannot be played is told as a `SourceStatus`."""
        self._thread = threading.Thread(target=self._run, args=(emit,), name="yolomon-replay", daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End the thread."""
        self._stopping.set()
        self.clock.wake()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def _run(self, emit: Emit) -> None:
        try:
            self._play(emit)
        except RecordingError as error:
            self.ended = True
            emit(
                SourceStatus(
                    ts=self.clock(), source="replay", ok=False, reason="unreadable", cause=error.message
                )
            )

    def _play(self, emit: Emit) -> None:
        shift: float | None = None
        last = 0.0
        turn = 0
        first: float | None = None
        end = end_ts(self.path)
        while not self._stopping.is_set():
            first_of_turn = True
            reader = RecordingReader(self.path)
            for item in self._items(reader):
                if _is_backlog(item):  # older than the recording: no time to wait for
                    if turn == 0:
                        emit(shifted(item, shift or 0.0))
                    continue
                if first is None:
                    first = item.ts
                if shift is None:
                    shift = 0.0 if self._rebase_to is None else self._rebase_to - item.ts
                    self.clock.advance_to(item.ts + shift)
                    if self._skip_seconds > 0:
                        self.clock.advance_to(item.ts + shift + self._skip_seconds)
                elif first_of_turn and turn:
                    shift = last + LOOP_GAP_SECONDS - item.ts
                first_of_turn = False
                moved = shifted(item, shift)
                if turn and isinstance(moved, TrainRecord):
                    moved = msgspec.structs.replace(moved, segment=moved.segment + turn)
                if not self.clock.wait_until(moved.ts, self._stopping):
                    return
                last = max(last, moved.ts)
                if end is not None and end > first:
                    self._percent = max(0.0, min(100.0, 100 * (item.ts - first) / (end - first)))
                else:
                    self._percent = reader.read_percent
                emit(moved)
            self._percent = 100.0
            status = reader.status(last)
            if status is not None and turn == 0:
                emit(status)
            if not self._loop:
                break
            turn += 1
        self.ended = True
        self.clock.end_at(last)
        emit(
            SourceStatus(
                ts=last, source="replay-end", ok=True, reason="ended", cause=msg("The recording has ended")
            )
        )

    def _items(self, reader: RecordingReader) -> Iterator[Item]:
        streams: list[Iterable[Item]] = [reader, *self._records]
        return merge_by_time(*streams) if self._records else iter(reader)


def _possible(speed: float) -> float:
    if not 0 <= speed <= FASTEST:  # NaN is neither
        raise ValueError(f"a speed from 0 to {FASTEST:.0f}, not {speed}")
    return speed


def _is_backlog(item: Item) -> bool:
    return isinstance(item, CurveBlock) or (isinstance(item, TrainRecord) and item.backlog)
