"""What a source is: something that reads the machine in its own threads and emits immutable items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from yolomon.model import Item

Emit = Callable[[Item], None]
"""Takes one item from a source's thread. Never blocks and never raises."""

Clock = Callable[[], float]
"""UNIX seconds. `time.time` live; a recording's own time in a replay."""


class Source(Protocol):
    """A reader with threads of its own. `start` once, `stop` once, both from the owner's thread."""

    def start(self, emit: Emit) -> None:
        """Begin to read; returns at once, also where the device does not answer."""
        ...

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End all threads, waiting at most `timeout_seconds`; one stuck in a driver call is left (daemon)."""
        ...
