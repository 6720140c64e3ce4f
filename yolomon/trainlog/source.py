"""The trainer's logs as a source: a thread a file, one run out of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from yolomon.messages import msg
from yolomon.model import CurveBlock, Item, LogStatus, RunInfo, TrainRecord
from yolomon.trainlog.burst import SAVED_UP, WHOLE_PER_SECOND, Allowance, Condenser, Told
from yolomon.trainlog.curves import CurveBuilder
from yolomon.trainlog.log import Log
from yolomon.trainlog.long_log import LongLog, fill_curves, open_long
from yolomon.trainlog.run import RunMerger
from yolomon.trainlog.settings_files import settings_beside

Emit = Callable[[Item], None]

BUSY_SECONDS = 0.1  # between looks at a log that grows fast
CALM_SECONDS = 0.25
TIMED_SECONDS = 0.5  # where the records bring their own times, and the screen draws once a second
TIMED_FORMATS = frozenset({"yolomon-jsonl"})
ABSENT_SECONDS = 0.5  # at a file that is not there
BUSY_RECORDS = 20
STATUS_SECONDS = 1.0
FILL_DELAY_SECONDS = 0.5  # the first screen comes before the curves of a long log


class LogSource:
    """Follows all logs of one run and emits `TrainRecord`, `CurveBlock` and `LogStatus`.

    Args:
        paths: files of one run (a file a rank, results.csv, a console); each may be missing yet.
        clock: UNIX seconds.
        fill_delay_seconds: how long after the start the backlog of a long log is read.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        clock: Callable[[], float] = time.time,
        *,
        fill_delay_seconds: float = FILL_DELAY_SECONDS,
    ) -> None:
        self.paths = tuple(dict.fromkeys(str(path) for path in paths))
        self._clock = clock
        self._fill_delay = fill_delay_seconds
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._merger = RunMerger()
        self._emit: Emit = lambda item: None

    def start(self, emit: Emit) -> None:
        """Begin to read; returns at once."""
        self._emit = emit
        for path in self.paths:
            self._spawn(f"log {path}", _Follower(self, path).run)

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End all threads; one that is stuck in a dead network file system is left (daemon)."""
        self._stop.set()
        end = time.monotonic() + timeout_seconds
        for thread in list(self._threads):
            thread.join(max(0.0, end - time.monotonic()))

    def _spawn(self, name: str, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    # ------------------------------------------------------------ for the followers

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait; True when it is time to stop."""
        return self._stop.wait(seconds)

    def tell(self, items: Sequence[Item]) -> None:
        """Emit items that need no merging."""
        with self._lock:
            for item in items:
                self._emit(item)

    def tell_records(self, records: Sequence[Told], format_name: str) -> None:
        """Emit those records that no other log of the run has told."""
        with self._lock:
            for record in records:
                if isinstance(record, CurveBlock):
                    if self._merger.tells_batches(record.source):
                        self._emit(msgspec.structs.replace(record, ts=self._clock()))
                    continue
                merged = self._merger.accept(record, format_name)
                if merged is not None:
                    self._emit(merged)


class _Follower:
    """The thread of one file."""

    def __init__(self, source: LogSource, path: str) -> None:
        self._source = source
        self._path = path
        self._run: RunInfo | None = None
        self._status: LogStatus | None = None
        self._status_clock = 0.0
        self._progress: float | None = None
        self._segment_fix = 0

    def run(self) -> None:
        try:
            self._follow()
        except Exception as error:  # noqa: BLE001 - a thread's edge: the reason is shown, the others go on
            detail = msg("reading it stopped: {reason}", reason=f"{type(error).__name__}: {error}")
            now = self._source._clock()
            self._source.tell([LogStatus(ts=now, source=self._path, state="unreadable", detail=detail)])

    def _follow(self) -> None:
        source = self._source
        now = source._clock()
        self._run = settings_beside(Path(self._path))
        opened = open_long(self._path, now)
        log = Log(self._path) if opened is None else opened.log
        try:
            backlog = self._read_backlog(log, opened)
            if opened is not None:
                self._fill_later(log, opened, backlog)
            pause = self._pause(log, 0)
            share = max(0.2, 1 / len(source.paths))
            condenser = Condenser(self._path, Allowance(WHOLE_PER_SECOND * share, SAVED_UP * share))
            while not source.wait(pause):
                if self._segment_fix:
                    log.tracker.segment += self._segment_fix
                    self._segment_fix = 0
                records = log.look_live(source._clock(), time.monotonic(), condenser)
                self._tell(log, records)
                pause = self._pause(log, len(records))
        finally:
            log.close()

    @staticmethod
    def _pause(log: Log, records: int) -> float:
        if log.follower.state == "reading":
            return 0.0
        if log.follower.state in ("waiting", "gone", "unreadable"):
            return ABSENT_SECONDS
        if records >= BUSY_RECORDS:
            return BUSY_SECONDS
        timed = log.format is not None and log.format.name in TIMED_FORMATS
        return TIMED_SECONDS if timed and records else CALM_SECONDS

    def _read_backlog(self, log: Log, opened: LongLog | None) -> list[TrainRecord]:
        """What the log holds as we come; of a long one the newest part. Emitted as backlog."""
        source = self._source
        found: list[TrainRecord] = []
        builder = CurveBuilder(self._path)
        if opened is not None:
            found.extend(opened.starts)
            source.tell_records(
                [_backlog(r, self._run) for r in opened.starts], log.format.name if log.format else ""
            )
        newest: list[TrainRecord] = []
        until: int | None = None
        while not source.stopped:
            records = log.look(source._clock(), time.monotonic())
            if until is None:
                until = log.follower.size
            records = [_backlog(record, None) for record in records]
            if opened is None:
                for record in records:
                    builder.add(record)
                source.tell(builder.take())
            else:
                newest.extend(records)
            self._tell(log, records)
            if log.follower.state != "reading" or log.follower.offset >= until:
                break
        if opened is None:
            source.tell(builder.finish())
        return newest

    def _fill_later(self, log: Log, opened: LongLog, newest: list[TrainRecord]) -> None:
        source = self._source

        def told(percent: float) -> None:
            self._progress = percent

        def fill() -> None:
            if source.wait(source._fill_delay):
                return
            now = source._clock()
            try:
                for block in fill_curves(opened.reader, newest, now, lambda: source.stopped, told):
                    source.tell([msgspec.structs.replace(block, ts=now)])
            except OSError as error:
                detail = msg("its older part cannot be read: {reason}", reason=error.strerror or str(error))
                source.tell([LogStatus(ts=now, source=self._path, state="following", detail=detail)])
            log.counts.records += opened.reader.records
            log.counts.broken_lines += opened.reader.broken_lines
            log.counts.nan_losses += opened.reader.nan_losses
            self._segment_fix = opened.reader.tracker.segment - opened.segment_guess
            self._progress = None

        source._spawn(f"backlog {self._path}", fill)

    def _tell(self, log: Log, records: Sequence[Told]) -> None:
        if records:
            if self._run is not None:
                records = list(records)
                first = next((n for n, r in enumerate(records) if isinstance(r, TrainRecord)), None)
                if first is not None and isinstance(record := records[first], TrainRecord):
                    run = self._run if record.run is None else _merged(self._run, record.run)
                    records[first] = msgspec.structs.replace(record, run=run)
                    self._run = None
            self._source.tell_records(records, log.format.name if log.format else "")
        clock = time.monotonic()
        if self._status is not None and clock - self._status_clock < STATUS_SECONDS:
            return
        status = log.status(self._source._clock(), self._progress)
        if self._status is None or not _same(status, self._status):
            self._source.tell([status])
            self._status, self._status_clock = status, clock


def _backlog(record: TrainRecord, run: RunInfo | None) -> TrainRecord:
    if run is None:
        return msgspec.structs.replace(record, backlog=True)
    return msgspec.structs.replace(
        record, backlog=True, run=run if record.run is None else _merged(run, record.run)
    )


def _merged(old: RunInfo, new: RunInfo) -> RunInfo:
    told = {name: getattr(new, name) for name in new.__struct_fields__ if getattr(new, name) is not None}
    return msgspec.structs.replace(old, **told)


def _same(a: LogStatus, b: LogStatus) -> bool:
    return msgspec.structs.replace(a, ts=0.0) == msgspec.structs.replace(b, ts=0.0)
