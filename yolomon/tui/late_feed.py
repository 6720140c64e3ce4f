"""A feed that is still being made: the screen is there, and answers keys, before the sources are loaded.

Loading NVML, the log formats and the rules takes longer than the first picture may.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from yolomon.history import History
from yolomon.model import Finding
from yolomon.tui.feed import Feed, Playback

if TYPE_CHECKING:
    from yolomon.diagnosis.engine import Engine
    from yolomon.trainlog.discover import Candidate


class Session(Feed, Protocol):
    """A feed that is started and stopped."""

    def start(self) -> None:
        """Begin to read."""
        ...

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End reading, within about that time."""
        ...


class _NoJob:
    """Before anything is known there is no job."""

    size = 0

    def rank_of(self, gpu_index: int) -> None:
        """No rank."""

    def gpu_of(self, rank: int) -> None:
        """No GPU."""


class _NoTimes:
    """Before anything is known no time was spent."""

    def ranks(self) -> list[int]:
        """No rank."""
        return []


class _NotYet:
    """What the screen looks at before there is an engine."""

    def __init__(self) -> None:
        self.history = History()
        self.job = _NoJob()
        self.timesplit = _NoTimes()


class LateFeed:
    """Stands for a session until it is made, then passes everything on.

    Args:
        make: makes the session; runs in a thread of its own; what it raises is kept in `failure`.
        demo: whether it will be a demo.
    """

    def __init__(self, make: Callable[[], Session], *, demo: bool = False) -> None:
        self._make = make
        self._demo = demo
        self._session: Session | None = None
        self._not_yet = cast("Engine", _NotYet())
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self.failure: Exception | None = None
        self.on_failure: Callable[[], object] | None = None  # called in the thread

    def start(self) -> None:
        """Begin to make the session."""
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            session = self._make()
            if not self._stopped.is_set():
                session.start()
        except Exception as error:  # noqa: BLE001 - a thread's edge: kept, and raised where the user sees it
            self.failure = error
            if self.on_failure is not None:
                self.on_failure()
            return
        self._session = session

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End what was begun."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        if self._session is not None:
            self._session.stop(timeout_seconds)

    @property
    def engine(self) -> Engine:
        """The session's engine, or one that knows nothing."""
        return self._not_yet if self._session is None else self._session.engine

    @property
    def demo(self) -> bool:
        """Whether this is a demo."""
        return self._demo if self._session is None else self._session.demo

    @property
    def replay(self) -> Playback | None:
        """The replay, if it is one."""
        return None if self._session is None else self._session.replay

    @property
    def needs_choice(self) -> bool:
        """Whether the user should pick a log."""
        return self._session is not None and self._session.needs_choice

    def drain(self, budget_seconds: float = 0.02) -> bool:
        """Move what was read into the history."""
        return self._session is not None and self._session.drain(budget_seconds)

    def clock(self) -> float:
        """Now."""
        return time.time() if self._session is None else self._session.clock()

    def findings(self) -> list[Finding]:
        """What is wrong now."""
        return [] if self._session is None else self._session.findings()

    def all_findings(self) -> list[Finding]:
        """What was wrong at any time."""
        return [] if self._session is None else self._session.all_findings()

    def candidates(self) -> Sequence[Candidate]:
        """Logs to pick from."""
        return () if self._session is None else self._session.candidates()

    def attach(self, paths: Sequence[Path]) -> None:
        """Follow these logs."""
        if self._session is not None:
            self._session.attach(paths)

    def silence(self, code: str, target: str) -> object:
        """Say this no more."""
        return None if self._session is None else self._session.silence(code, target)

    def own_cost(self) -> tuple[float, int]:
        """Own CPU share and memory."""
        return (0.0, 0) if self._session is None else self._session.own_cost()
