"""A reading that may be slow or never return, on a thread of its own: nobody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Probe(Generic[T]):
    """Calls `read` again and again and keeps the newest value.

    A call that hangs (an NFS server that went away, aristocratos/btop#448) holds this thread alone; the value
    then grows old and `latest` gives None. The thread is a daemon: it never keeps the program from ending.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], T | None],
        *,
        interval_seconds: float,
        max_age_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.errors = 0
        self.error: str | None = None  # why the last call gave no value
        self._read = read
        self._interval_seconds = interval_seconds
        self._max_age_seconds = max_age_seconds
        self._monotonic = monotonic
        self._value: tuple[float, T | None] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to read."""
        self._thread = threading.Thread(target=self._run, name=f"yolomon-{self.name}", daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 0.0) -> None:
        """End after the call under way; waits for it at most `timeout_seconds`."""
        self._stopping.set()
        if self._thread is not None and timeout_seconds > 0:
            self._thread.join(timeout_seconds)

    def latest(self) -> T | None:
        """The newest value; None before the first, after a failure, and when it is too old."""
        value = self._value
        if value is None or self._monotonic() - value[0] > self._max_age_seconds:
            return None
        return value[1]

    def read_once(self) -> None:
        """One call, on the thread of the caller. An error is kept as a reason and counted."""
        try:
            value = self._read()
            self.error = None
        except (OSError, ValueError) as error:
            value = None
            self.errors += 1
            self.error = str(error)
        self._value = (self._monotonic(), value)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.read_once()
            self._stopping.wait(self._interval_seconds)
