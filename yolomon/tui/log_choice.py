"""Feeds that can be told which log to follow: a live session can, a recording cannot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from yolomon.trainlog.discover import Candidate


@runtime_checkable
class LogChooser(Protocol):
    """The part of a live session that the log picker needs. All calls return at once."""

    followed: tuple[Path, ...]

    @property
    def needs_choice(self) -> bool:
        """Several logs fit equally well and none is followed."""
        ...

    def candidates(self) -> list[Candidate]:
        """Logs to pick from, best first."""
        ...

    def attach(self, paths: Sequence[Path]) -> None:
        """Follow these instead of what was followed."""
        ...
