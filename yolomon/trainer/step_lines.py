"""Lines of training steps, gathered and written together a few times a second.

A step may last ten milliseconds, and nobody looks at the stream a hundred times a second. So each step only
leaves its times and references to its losses here. Five times a second (a step of 0.2 s or longer: every
time) the losses of all steps since then are read in one copy, each step becomes the line it would have been
alone, and all lines are one write. What costs more than that, a caller adds to the line for which `due` says
so.

Nothing is lost by a training that stops: other events write what is held first, a thread writes it when the
next step does not come (a hang), and so does the end of the process. Only a process that is killed takes up
to 0.2 s of steps with it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

from yolomon.trainer.plain import encode
from yolomon.trainer.readings import Held, Transfer

WRITE_SECONDS = 0.2  # between two writes; the newest line of a working trainer is hardly older
LINES_LIMIT = 64  # held at most
PATIENCE_SECONDS = 1.0  # lines wait for the next step, or for their losses, at most about twice that
SETTLE_SECONDS = 2.0  # an event waits for losses queued on the device at most
IDLE_SECONDS = 30.0  # without a line, after which the thread ends

_all: weakref.WeakSet[StepLines] = weakref.WeakSet()
_of_the_parent: list[object] = []  # after a fork: CUDA's things must not be taken down where CUDA is not


Made = tuple[dict[str, object], Held | None]  # a line, and those of its values that are not read yet


class _Line(NamedTuple):
    record: dict[str, object]
    held: Held | None
    at: float


class _Note(NamedTuple):
    make: Callable[[], Made]
    at: float


class _Batch(NamedTuple):
    lines: list[_Line]
    transfer: Transfer
    at: float


class StepLines:
    """Holds and writes the lines of steps. For several threads.

    Args:
        append: writes lines, each with its newline; never raises.
        gather: hold every line. False: a line without values on a device is written at once, unless it would
            overtake others.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        append: Callable[[Sequence[bytes]], object],
        *,
        gather: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._append = append
        self._gather = gather
        self._clock = clock
        self.must_copy = False  # held tensors turned out to be used again by their owner
        self._blank_slate()
        _all.add(self)

    def _blank_slate(self) -> None:
        self._lock = threading.RLock()  # re-entrant: a signal handler may log
        self._lines: list[_Line | _Note] = []
        self._batch: _Batch | None = None  # lines that wait for their values
        self._late: _Batch | None = None  # values of lines that were written without
        self._began = float("-inf")
        self._added = float("-inf")
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def due(self) -> bool:
        """Whether a line added now is written now, with all before it."""
        return self._clock() - self._began >= WRITE_SECONDS or len(self._lines) >= LINES_LIMIT - 1

    def add(self, record: dict[str, object], held: Held | None = None, *, due: bool) -> None:
        """Take a step's line; `due` is what `due()` said before the line was made."""
        now = self._clock()
        with self._lock:
            if held is None and not self._gather and not self._lines and self._batch is None:
                if due:
                    self._began = now
                self._append([encode(record)])
                return
            self._take(_Line(record, self._copied(held) if self.must_copy else held, now), now, due=due)

    def note(self, make: Callable[[], Made], *, due: bool) -> None:
        """Take a step whose line is made only when it is written, next to others: that costs the step least.

        Args:
            make: makes the line. What it holds must not change.
            due: as in `add`.
        """
        now = self._clock()
        with self._lock:
            if self.must_copy:
                record, held = make()
                self._take(_Line(record, self._copied(held), now), now, due=due)
            else:
                self._take(_Note(make, now), now, due=due)

    def follow(self, record: dict[str, object]) -> None:
        """Write a line that is in no hurry behind those that are held."""
        with self._lock:
            if self._lines or self._batch is not None:
                self._lines.append(_Line(record, None, self._clock()))
            else:
                self._append([encode(record)])

    def poll(self) -> None:
        """Write lines whose values have arrived meanwhile."""
        if self._batch is not None:
            with self._lock:
                self._finish()

    def settle(self) -> None:
        """Write everything now. Values that are still queued on the device are waited for, 2 s at most."""
        if not self._lines and self._batch is None:
            return
        with self._lock:
            until = time.monotonic() + SETTLE_SECONDS
            for _ in range(2):
                while self._batch is not None and not self._finish() and time.monotonic() < until:
                    time.sleep(0.0005)
                self._finish(give_up=True)
                if self._lines:
                    self._start(self._clock(), wait=True)

    def close(self) -> None:
        """Write everything and let the thread end. A later line begins anew."""
        self.settle()
        self._closed.set()
        self._thread = None

    # ------------------------------------------------------------ under the lock

    def _take(self, line: _Line | _Note, now: float, *, due: bool) -> None:
        self._added = now
        self._lines.append(line)
        if self._batch is not None:
            self._finish(give_up=len(self._lines) > LINES_LIMIT)
        if due and self._batch is None:
            self._start(now)
            self._keep_watch()

    def _made(self) -> list[_Line]:
        """The held lines, which are held no more."""
        lines, self._lines = self._lines, []
        return [_Line(*line.make(), line.at) if isinstance(line, _Note) else line for line in lines]

    def _start(self, now: float, *, wait: bool = False) -> None:
        """Begin to read what the held lines' steps left on the device."""
        self._began = now
        lines = self._made()
        held = [line.held for line in lines if line.held is not None]
        transfer: Transfer | None = None
        if held:
            try:
                transfer = Transfer(held)
            except RuntimeError:  # used again by CUDA graphs, or the device failed
                self.must_copy = True
        if transfer is None:
            self._write(lines)
            return
        self._batch = _Batch(lines, transfer, now)
        # The only line in so long: nobody waits a whole long step for it, its losses follow.
        self._finish(give_up=len(lines) == 1 and not wait)

    def _finish(self, *, give_up: bool = False) -> bool:
        """Write the lines that wait for values if those have arrived; with `give_up` in any case."""
        batch = self._batch
        if batch is None:
            return True
        values = _values(batch.transfer)
        if values is None and not give_up:
            return False
        self._batch = None
        if values is not None:
            self._late = None
            self._write(batch.lines, values)
        else:
            self._tell_late(batch.lines)
            self._late = batch
            self._write(batch.lines)
        return True

    def _tell_late(self, lines: list[_Line]) -> None:
        """Put values of earlier lines that arrived meanwhile into the newest of `lines`, with their step."""
        if self._late is None:
            return
        values = _values(self._late.transfer)
        if not values:
            return
        steps = [line.record.get("step") for line in self._late.lines if line.held is not None]
        sick = [n for n, row in enumerate(values) if any(v - v != 0 for v in row.values())]
        place = sick[0] if sick else -1
        lines[-1].record.update(values[place])
        if steps[place] is not None:
            lines[-1].record["loss_step"] = steps[place]
        self._late = None

    def _write(self, lines: list[_Line], values: list[dict[str, float]] | None = None) -> None:
        rows = iter(values or ())
        for line in lines:
            if line.held is not None and values is not None:
                line.record.update(next(rows))
        self._append([encode(line.record) for line in lines])

    def _copied(self, held: Held | None) -> Held | None:
        try:
            return None if held is None else held.copied()
        except RuntimeError:  # the device failed: the trainer will say so itself
            return None

    # ------------------------------------------------------------ when no next step comes

    def _keep_watch(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._closed = threading.Event()
            self._thread = threading.Thread(
                target=_watch, args=(weakref.ref(self), self._closed), name="yolomon-lines", daemon=True
            )
            self._thread.start()

    def rescue(self) -> bool:
        """Write lines that wait too long. Touches no device. False: there was no line for long."""
        with self._lock:
            now = self._clock()
            if self._batch is not None and now - self._batch.at > PATIENCE_SECONDS:
                self._finish(give_up=True)
            if self._lines and now - self._lines[0].at > PATIENCE_SECONDS and self._batch is None:
                lines = self._made()
                held = [line.held for line in lines if line.held is not None]
                readable = bool(held) and all(step.on_host for step in held)
                self._write(lines, _values(Transfer(held)) if readable else None)
            return now - self._added < IDLE_SECONDS

    def _after_fork(self) -> None:
        """In the child: what is held is the parent's, the lock may be held by a thread that is not here."""
        _of_the_parent.append((self._lines, self._batch, self._late))
        self._blank_slate()


def _values(transfer: Transfer) -> list[dict[str, float]] | None:
    """The values where they are there, one empty row a step where the device failed, None: not there yet."""
    try:
        return transfer.values() if transfer.arrived() else None
    except RuntimeError:
        return [{}] * transfer.steps


def _watch(lines: weakref.ref[StepLines], closed: threading.Event) -> None:
    while not closed.wait(PATIENCE_SECONDS):
        held = lines()
        if held is None or not held.rescue():
            return
        del held


def _settle_all() -> None:
    for lines in list(_all):
        lines.settle()


def _forget_all() -> None:
    for lines in list(_all):
        lines._after_fork()


atexit.register(_settle_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
