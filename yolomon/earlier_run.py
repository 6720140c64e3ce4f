"""Reads an earlier run of the same folder for comparison, on a thread of its own, bounded and stoppable."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from yolomon.history import Curve, TrainHistory
from yolomon.messages import Message, msg
from yolomon.trainlog.discover import logs_in
from yolomon.trainlog.log import Log

BYTES_LIMIT = 256 << 20
SIBLINGS_LIMIT = 64
ENTRIES_LIMIT = 2000
SECONDS_LIMIT = 10.0


def earlier_runs(log: str, stop: threading.Event | None = None) -> list[str]:
    """The folders beside a log's own that are runs too, the newest first.

    Looks at names and times of one folder; for a thread where it may lie on a network.
    """
    own = Path(log).parent
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(own.parent) as entries:
            for count, entry in enumerate(entries):
                if count >= ENTRIES_LIMIT:
                    break
                if entry.is_dir() and entry.name != own.name and not entry.name.startswith("."):
                    found.append((entry.stat().st_mtime, entry.path))
    except OSError:
        return []
    found.sort(reverse=True)
    runs = []
    until = time.monotonic() + SECONDS_LIMIT
    for _, path in found[:SIBLINGS_LIMIT]:
        if time.monotonic() > until or (stop is not None and stop.is_set()):
            break
        if logs_in(path):
            runs.append(path)
    return runs


class EarlierRuns:
    """The runs beside this one and the curves of the one that is compared with.

    `look` and `read` return at once; the rest is told by attributes, which only the thread writes.
    """

    def __init__(self) -> None:
        self.runs: tuple[str, ...] | None = None  # None: not looked for yet
        self.chosen: str | None = None
        self.curves: dict[str, Curve] = {}
        self.progress_percent: float | None = None  # while reading
        self.failure: Message | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def look(self, log: str) -> None:
        """Find the runs beside that of `log`."""
        self._begin(lambda stop: self._look(log, stop))

    def read(self, run: str) -> None:
        """Read the curves of one of them."""
        self.chosen, self.curves, self.failure = run, {}, None
        self.progress_percent = 0.0
        self._begin(lambda stop: self._read(run, stop))

    def stop(self) -> None:
        """Stop what is under way; what was read so far is not shown."""
        self._stop.set()
        self.progress_percent = None

    def clear(self) -> None:
        """Compare with no run."""
        self.stop()
        self.chosen, self.curves, self.failure = None, {}, None

    def _begin(self, work: Callable[[threading.Event], None]) -> None:
        self._stop.set()  # the thread before this one ends by itself, and tells nothing more
        stop = self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: work(stop), name="yolomon-earlier-run", daemon=True)
        self._thread.start()

    def _look(self, log: str, stop: threading.Event) -> None:
        runs = tuple(earlier_runs(log, stop))
        if not stop.is_set():
            self.runs = runs

    def _read(self, run: str, stop: threading.Event) -> None:
        def told(percent: float) -> None:
            if not stop.is_set():
                self.progress_percent = percent

        curves, failure = read_curves(logs_in(run), stop, told)
        if not stop.is_set():
            self.curves, self.failure = curves, failure
            self.progress_percent = None


def read_curves(
    logs: Sequence[str], stop: threading.Event, told: Callable[[float], object] | None = None
) -> tuple[dict[str, Curve], Message | None]:
    """The curves of a run's logs, or why there are none.

    Args:
        logs: the best one first; the first that has curves is taken, as one run is told once.
        stop: ends the reading between two pieces.
        told: called with the percentage that is read.
    """
    for path in logs:
        try:
            length = os.stat(path).st_size  # noqa: PTH116 - the path may hold odd bytes
        except OSError:
            continue
        if length > BYTES_LIMIT:
            return {}, msg("its log is larger than {n} MiB", n=BYTES_LIMIT >> 20)
        history = TrainHistory()
        log = Log(path)
        try:
            now = time.time()
            while not stop.is_set():
                before = log.follower.offset
                for record in log.look(now):
                    history.add(msgspec.structs.replace(record, backlog=False))
                if log.follower.offset == before:
                    break
                if told is not None and length:
                    told(min(100.0, 100 * log.follower.offset / length))
            for record in log.finish(now):
                history.add(msgspec.structs.replace(record, backlog=False))
        finally:
            log.close()
        if history.curves:
            return history.curves, None
    return {}, msg("no curve could be read from its log")
