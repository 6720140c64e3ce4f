"""What runs behind the screen: sources emit into one bounded queue, and the owner drains it.

The queue decouples the readers' threads from the owner (the screen's loop, a recorder, `--once`). Draining
moves items into the history and the diagnosis engine; only the draining thread touches those two.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import psutil

from yolomon.diagnosis.engine import Engine
from yolomon.history import History
from yolomon.model import Finding, Item, Telemetry, TrainRecord
from yolomon.sources.base import Clock, Source

QUEUE_LIMIT = 20_000
BEHIND_ITEMS = 128
BEHIND_FACTOR = 5.0
_WAIT_FOR_SPACE_SECONDS = 0.05


class Tap(Protocol):
    """Something that wants to see everything that flows: a recorder."""

    def add(self, item: Item | Finding) -> object:
        """Take one item; must not block."""
        ...


class Playback(Protocol):
    """What the screen may do with a replay."""

    speed: float
    paused: bool

    @property
    def position_percent(self) -> float | None:
        """How much has been played; None where the length is not known."""
        ...


class Monitor:
    """Sources, history and engine of one session.

    Args:
        sources: started and stopped with the monitor.
        clock: now, on the axis of the samples' times.
        demo: shown on screen all the time.
        playback: the replay behind the sources, if there is one.
        on_pids: told the pids that use a GPU or write the log, whenever they change (the host source
            looks at their process trees).
    """

    def __init__(
        self,
        sources: Sequence[Source],
        engine: Engine,
        *,
        clock: Clock = time.time,
        demo: bool = False,
        playback: Playback | None = None,
        on_pids: Callable[[Iterable[int]], object] | None = None,
        taps: Sequence[Tap] = (),
    ) -> None:
        self.sources = list(sources)
        self.engine = engine
        self.clock = clock
        self.demo = demo
        self.replay = playback
        self.dropped = 0  # telemetry that found no room (the screen was stopped for minutes)
        self._on_pids = on_pids
        self._taps = list(taps)
        self._queue: deque[Item] = deque()
        self._stopping = threading.Event()
        self._pids: frozenset[int] = frozenset()
        self._process = psutil.Process()
        self._cost_at: tuple[float, float] | None = None
        self._cost = (0.0, 0)
        self._told: dict[tuple[str, str, float], Finding] = {}

    @property
    def history(self) -> History:
        """What was read so far."""
        return self.engine.history

    # ------------------------------------------------------------ the sources' side

    def start(self) -> None:
        """Start all sources; returns at once."""
        self._process.cpu_percent()
        for source in self.sources:
            source.start(self.emit)

    def add_source(self, source: Source) -> None:
        """Start one more source."""
        self.sources.append(source)
        source.start(self.emit)

    def remove_source(self, source: Source) -> None:
        """Stop one source, e.g. the log that was followed before another was chosen."""
        if source in self.sources:
            self.sources.remove(source)
            source.stop(0.2)

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """Stop all sources, within about `timeout_seconds` in all."""
        self._stopping.set()
        deadline = time.monotonic() + timeout_seconds
        for source in self.sources:
            source.stop(max(0.05, deadline - time.monotonic()))

    def emit(self, item: Item) -> None:
        """Take one item from a source's thread.

        When the owner is behind, telemetry is dropped and counted, while a log's thread waits: the file
        keeps its records meanwhile.
        """
        queue = self._queue
        if len(queue) >= QUEUE_LIMIT:
            if isinstance(item, Telemetry):
                self.dropped += 1
                return
            while len(queue) >= QUEUE_LIMIT and not self._stopping.is_set():
                self._stopping.wait(_WAIT_FOR_SPACE_SECONDS)
        queue.append(item)

    # ------------------------------------------------------------ the owner's side

    @property
    def waiting(self) -> int:
        """Items that are not drained yet."""
        return len(self._queue)

    def drain(self, budget_seconds: float = 0.02) -> bool:
        """Move items into history and engine for at most about `budget_seconds`; True if there were any.

        With many waiting it takes `BEHIND_FACTOR` times as long, so that it does not fall behind.
        """
        queue = self._queue
        if not queue:
            return False
        if len(queue) > BEHIND_ITEMS:
            budget_seconds *= BEHIND_FACTOR
        until = time.perf_counter() + budget_seconds
        pids: set[int] | None = None
        count = 0
        while queue:
            item = queue.popleft()
            self.engine.observe(item)
            for tap in self._taps:
                tap.add(item)
            if isinstance(item, Telemetry | TrainRecord):
                pids = _pids_of(item, pids)
            count += 1
            if count % 64 == 0 and time.perf_counter() > until:
                break
        if pids and self._on_pids is not None and not pids <= self._pids:
            self._pids = frozenset((self._pids | pids) if len(self._pids) < 256 else pids)
            self._on_pids(self._pids)
        if self._taps:
            self._tell_findings()
        return True

    def findings(self) -> list[Finding]:
        """What is wrong now, worst first."""
        return self.engine.findings()

    def all_findings(self) -> list[Finding]:
        """What was wrong at any time, newest first."""
        return self.engine.all_findings()

    def silence(self, code: str, target: str) -> None:
        """Say nothing more about this; a recording notes it."""
        self.engine.silence(code, target)

    def own_cost(self) -> tuple[float, int]:
        """This process's own share of one core (percent) and resident memory (bytes), renewed every 5 s."""
        now = time.monotonic()
        if self._cost_at is None or now - self._cost_at[0] >= 5.0:
            times = os.times()
            spent = times.user + times.system
            if self._cost_at is not None:
                share = 100 * (spent - self._cost_at[1]) / (now - self._cost_at[0])
                self._cost = (share, self._process.memory_info().rss)
            else:
                self._cost = (0.0, self._process.memory_info().rss)
            self._cost_at = (now, spent)
        return self._cost

    def _tell_findings(self) -> None:
        for finding in self.engine.all_findings():
            key = (finding.code, finding.target, finding.raised_ts)
            if self._told.get(key) != finding:
                self._told[key] = finding
                for tap in self._taps:
                    tap.add(finding)
        while len(self._told) > 4096:
            del self._told[next(iter(self._told))]


def _pids_of(item: Telemetry | TrainRecord, pids: set[int] | None) -> set[int] | None:
    if isinstance(item, TrainRecord):
        found = {item.pid} if item.pid is not None and item.kind in ("start", "epoch_start") else set()
    else:
        found = {
            process.pid for gpu in item.gpus if gpu.slow is not None for process in gpu.slow.processes or ()
        }
    return (pids | found if pids else found) if found else pids
