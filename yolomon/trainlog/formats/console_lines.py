"""Lines of words on a trainer's console that are worth keeping: warnings and errors."""

from __future__ import annotations

import re

from yolomon.model import TrainRecord
from yolomon.trainlog.plain_text import shown

_ALARMING = re.compile(
    r"WARNING|ERROR\b|CRITICAL|FATAL|^Traceback \(most recent call last\)"
    r"|^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt)(?::|$)"
    r"|FatalError|out of memory|No space left on device|[Dd]isk quota exceeded|^Killed"
    r"|Segmentation fault|Bus error|DataLoader worker .* (?:exited|killed)"
    r"|Watchdog caught|slurmstepd: error|oom-kill"
)


def is_alarming(text: str) -> bool:
    """Whether a line says that something is wrong: a warning, an error, a traceback, an OOM kill."""
    return _ALARMING.search(text) is not None


def message(source: str, arrival_ts: float, text: str, epoch: int | None = None) -> TrainRecord:
    """A record of kind "message" for a line of words."""
    return TrainRecord(ts=arrival_ts, kind="message", source=source, epoch=epoch, text=shown(text))
