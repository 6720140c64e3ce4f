"""Ends a command without a screen in an orderly way: what is queued gets written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM, SIGINT (Ctrl-C) and SIGHUP set instead of ending the program.

    A second signal of the same kind acts as usual. Must be entered on the main thread.
    """
    stopping = threading.Event()
    before = {number: signal.getsignal(number) for number in ENDING}

    def stop(number: int, _frame: FrameType | None) -> None:
        stopping.set()
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)

    for number in ENDING:
        if before[number] is not signal.SIG_IGN:  # started by nohup: SIGHUP stays ignored
            signal.signal(number, stop)
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
