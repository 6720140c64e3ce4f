"""How far long work is, as one line on the terminal, renewed in place; Ctrl-C stops the work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from yolomon.messages import Message, Translate, one_line

FIRST_AFTER_SECONDS = 1.0  # what is done by then needs no line
EVERY_SECONDS = 0.2


class Progress:
    """Writes to standard error, where it is a terminal; nothing into files, pipes and reports.

    Args:
        what: the work, e.g. msg("reading {path}", path=...).
        tr: the reader's language.
        clock: seconds that never jump.
    """

    def __init__(self, what: Message, tr: Translate, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._tr = tr
        self._clock = clock
        self._next = clock() + FIRST_AFTER_SECONDS
        self._shown = False
        self._wanted = sys.stderr.isatty()

    def __call__(self, percent: float | None, **values: object) -> None:
        """Tell how much is done (None: not known), and other fields of the text; cheap when called often."""
        if not self._wanted or self._clock() < self._next:
            return
        self._next = self._clock() + EVERY_SECONDS
        self._shown = True
        done = "?" if percent is None else f"{percent:.0f}"
        work = Message(self._what.template, {**self._what.values, **values})
        line = self._tr("{percent} % (Ctrl-C stops it): {work}", percent=done, work=work)
        self._write(f"\r{_fitting(line)}\x1b[K")

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:  # the terminal is gone and the work is to go on (nohup)
            self._wanted = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _fitting(line: str) -> str:
    """As much as one line of the terminal holds; the end of a path may be lost."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80  # 0: it tells no size
    except (OSError, ValueError):
        columns = 80
    printable = one_line(line)
    wide = [2 if ord(sign) >= 0x2E80 else 1 for sign in printable]  # Chinese takes two cells a sign
    while wide and sum(wide) >= max(columns, 20):
        wide.pop()
    return printable[: len(wide)]
