"""The GPUs of this machine, through NVML.

One thread keeps the time and emits, and never waits for the driver. NVML is started on a thread of its own,
each GPU is read on a thread of its own (`nvml_worker`), and Xid errors are awaited on one more
(`nvml_events`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from yolomon.messages import Message, msg
from yolomon.model import GpuSample, Header, SourceStatus, Telemetry
from yolomon.sources.base import Clock, Emit
from yolomon.sources.nvml_events import XidWatch
from yolomon.sources.nvml_library import (
    DRIVER_NOT_LOADED,
    UNINITIALIZED,
    VERSION_MISMATCH,
    NvmlFailure,
    NvmlUnavailableError,
    explain,
    library_version,
    load_binding,
    start_nvml,
)
from yolomon.sources.nvml_roster import Roster
from yolomon.sources.nvml_worker import Answer, GpuWorker

SOURCE = "nvml"
GATHER_SECONDS = 0.25
"""How long a tick waits for the GPUs that answer at once; a later answer is emitted when it comes."""
NEXT_SECONDS = 0.005
"""How long a GPU waits for the answer of the one before it: threads that read at once hinder each other."""
START_PATIENCE_SECONDS = 3.0
"""With persistence mode off the first query can take 30 s (Azure/aks-gpu#105): said, not cut short."""
DEAD_TICKS = 3
"""So many ticks on end without any value from any GPU mean that the driver went away."""
REVIVALS = 4
"""So often the old handles are asked, `retry_seconds` apart, before NVML is shut down and started again."""
ERROR_REPORT_SECONDS = 60.0
_HANDLES_INVALID = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, VERSION_MISMATCH})


@dataclass(frozen=True)
class _Started:
    nvml: Any
    count: int
    driver: str | None


@dataclass(frozen=True)
class _StartFailed:
    failure: NvmlFailure


@dataclass(frozen=True)
class _Dead:
    failure: NvmlFailure
    handles_invalid: bool  # the driver was unloaded: only a new start can help


@dataclass(frozen=True)
class _Stop:
    pass


_Event = _Started | _StartFailed | _Stop | Answer


class NvmlSource:
    """Emits `Header` (again after a change), one `Telemetry` a tick, `GpuEvent` and `SourceStatus` of "nvml".

    A GPU keeps the index under which it was first seen, by its UUID, also when a driver reload numbers anew.
    One that is lost, or that a reload did not bring back, goes on as state "lost"; one whose call does not
    return as state "no-answer", since the time it was asked. `SourceStatus.reason` is "" while all is well,
    "gpu-missing" (with `ok`) when NVML works but a GPU is lost, and else (not `ok`) "starting", "no-gpu",
    "reading-stopped" or a reason of `nvml_library`.
    """

    def __init__(
        self,
        *,
        interval_seconds: float = 1.0,
        slow_interval_seconds: float = 5.0,
        retry_seconds: float = 30.0,
        deadline_seconds: float | None = None,
        clock: Clock = time.time,
        root: Path = Path("/"),
    ) -> None:
        """All times are seconds.

        Args:
            interval_seconds: between two readings of the fast tier.
            slow_interval_seconds: between two readings of the slow tier.
            retry_seconds: before NVML is started again after a failure, and before a lost GPU is asked again.
            deadline_seconds: a GPU without an answer for so long is "no-answer"; by default two intervals,
                and at least 2.
            clock: gives the items' times.
            root: where /proc lies.
        """
        self._interval = interval_seconds
        self._slow_every = max(1, round(slow_interval_seconds / interval_seconds))
        self._retry = retry_seconds
        self._deadline = max(2.0, 2 * interval_seconds) if deadline_seconds is None else deadline_seconds
        self._clock = clock
        self._root = root
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="yolomon-nvml", daemon=True)
        self._stopping = threading.Event()
        self._emit: Emit = lambda item: None
        self.driver_version: str | None = None
        # ---- the source's thread alone uses what follows
        self._nvml: Any = None
        self._workers: list[GpuWorker] = []
        self._xid: XidWatch | None = None
        self._roster = Roster(root)
        self._dead_ticks = 0
        self._status: SourceStatus | None = None
        self._errors_before = 0

    def start(self, emit: Emit) -> None:
        """Begin to read; returns at once."""
        self._emit = emit
        self._thread.start()

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End all threads, waiting at most `timeout_seconds`; a thread stuck in the driver is left behind."""
        self._stopping.set()
        self._events.put(_Stop())
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    # ------------------------------------------------------------ the source's thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._session()
            except Exception as error:  # noqa: BLE001 - the thread's edge: a monitor that dies without a word shows
                # old values as new; the reason is told, and reading begins anew
                self._tell(
                    NvmlFailure(
                        "reading-stopped",
                        msg("Reading the GPUs stopped: {error}", error=f"{type(error).__name__}: {error}"),
                        msg("It is tried again; please report this"),
                    )
                )
            self._close_session()
            if not self._stopping.is_set():
                self._wait(self._retry)

    def _session(self) -> None:
        """From the start of NVML until it goes away or `stop`."""
        started = self._start()
        if started is None:
            return
        self._nvml, self.driver_version = started.nvml, started.driver
        if started.count == 0:
            self._tell(
                NvmlFailure(
                    "no-gpu",
                    msg("The NVIDIA driver {driver} sees no GPU", driver=started.driver or "?"),
                    msg(
                        "See whether `lspci | grep -i nvidia` lists one, and what `dmesg | grep -i nvrm` says"
                    ),
                )
            )
            return
        self._xid = XidWatch(self._nvml, self._emit, self._clock)
        self._xid.start()
        for index in range(started.count):
            self._workers.append(GpuWorker(self._nvml, index, self._events.put, self._clock, self._root))
        self._dead_ticks = 0
        while (dead := self._read_until_dead()) is not None:
            self._tell(dead.failure)
            if dead.handles_invalid or not self._revive():
                return

    def _start(self) -> _Started | None:
        threading.Thread(target=self._start_nvml, name="yolomon-nvml-start", daemon=True).start()
        began = time.monotonic()
        told = False
        while not self._stopping.is_set():
            event = self._next(0.5)
            if isinstance(event, _Started):
                return event
            if isinstance(event, _StartFailed):
                self._tell(event.failure)
                return None
            if not told and time.monotonic() - began > START_PATIENCE_SECONDS:
                told = True
                self._tell(
                    NvmlFailure(
                        "starting",
                        msg("NVML is starting and has not answered yet"),
                        msg("With persistence mode off this takes long: sudo nvidia-smi -pm 1"),
                    )
                )
        return None

    def _start_nvml(self) -> None:
        """On a thread of its own: the driver may take its time."""
        try:
            nvml = load_binding()
            count, driver = start_nvml(nvml, self._root)
        except NvmlUnavailableError as error:
            self._events.put(_StartFailed(error.failure))
        else:
            self._events.put(_Started(nvml, count, driver))

    def _revive(self) -> bool:
        """Ask the old handles now and then; whether they give values again.

        They may outlive what ails the driver, and a container that lost its devices gets no new ones from a
        fresh start (nvidia-container-toolkit#48), so NVML is shut down only when this was in vain.
        """
        for _ in range(REVIVALS):
            until = time.monotonic() + self._retry
            while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
                event = self._next(left)
                if isinstance(event, Answer):
                    self._take(event)
            if self._stopping.is_set():
                return False
            if self._tick(slow=False) is None:
                return True
        return False

    def _read_until_dead(self) -> _Dead | None:
        began = time.monotonic()
        tick = 0
        while not self._stopping.is_set():
            due = began + tick * self._interval
            now = time.monotonic()
            while now < due and not self._stopping.is_set():
                event = self._next(due - now)
                if isinstance(event, Answer) and (sample := self._take(event)) is not None:
                    self._send(event.ts, [sample])  # late: it has a time of its own
                now = time.monotonic()
            if self._stopping.is_set():
                return None
            # The first two ticks read all, so that rates and GPM are there after one interval.
            dead = self._tick(slow=tick < 2 or tick % self._slow_every == 0)
            if dead is not None:
                return dead
            tick = max(tick + 1, int((time.monotonic() - began) / self._interval))
        return None

    def _tick(self, slow: bool) -> _Dead | None:
        ts, now = self._clock(), time.monotonic()
        awake = deque(w for w in self._workers if w.asked_ts is None and now >= w.rest_until)
        outstanding: set[GpuWorker] = set()
        samples: dict[int, GpuSample] = {}
        answers: list[Answer] = []
        gather = min(GATHER_SECONDS, self._interval / 4)
        patience = min(NEXT_SECONDS, gather / 2 / max(1, len(awake)))
        until = now + gather
        while (awake or outstanding) and not self._stopping.is_set():
            if awake:
                worker = awake.popleft()
                worker.ask(slow)
                outstanding.add(worker)
            left = until - time.monotonic()
            if left <= 0 and not awake:
                break
            event = self._next(min(left, patience) if awake else left)
            if isinstance(event, Answer) and (sample := self._take(event)) is not None:
                answers.append(event)
                outstanding.discard(event.worker)
                samples[sample.index] = sample
        now = time.monotonic()
        for worker in self._workers:
            if worker.asked_ts is not None and now - worker.asked_steady >= self._deadline:
                samples[worker.shown_index] = GpuSample(
                    index=worker.shown_index, state="no-answer", state_since_ts=worker.asked_ts
                )
                self._roster.book_unopened(worker, len(self._workers))
            elif worker.asked_ts is None and worker.lost_since_ts is not None:
                samples[worker.shown_index] = _lost(
                    worker.shown_index, worker.lost_since_ts, worker.lost_error
                )
        missing = self._roster.missing(self._workers, ts)
        samples.update({index: _lost(index, since_ts, None) for index, since_ts in missing.items()})
        self._send(ts, [samples[index] for index in sorted(samples)])
        dead = self._dead(answers)
        if self._dead_ticks == 0:
            self._tell_health(ts, missing)
        return dead

    def _take(self, answer: Answer) -> GpuSample | None:
        """Book an answer; the sample to emit, or None for one of an earlier session."""
        worker = answer.worker
        if worker not in self._workers:
            return None
        worker.asked_ts = None
        if answer.opened is not None:
            self._roster.book(worker, answer.opened)
            if self._xid is not None and answer.handle is not None:
                self._xid.add(answer.handle, lambda: worker.shown_index)
        if answer.lost:
            if worker.lost_since_ts is None:
                worker.lost_since_ts = answer.ts
            worker.lost_error = answer.sample.error
            worker.rest_until = time.monotonic() + self._retry
            self._roster.book_unopened(worker, len(self._workers))
            return _lost(worker.shown_index, worker.lost_since_ts, worker.lost_error)
        worker.lost_since_ts = worker.lost_error = None
        self._roster.answered(worker, answer.ts)
        sample = answer.sample
        if sample.index != worker.shown_index:
            sample = msgspec.structs.replace(sample, index=worker.shown_index)
        return sample

    def _dead(self, answers: list[Answer]) -> _Dead | None:
        """What it is, when no GPU gave any value for several ticks and not because it is lost."""
        useless = [answer for answer in answers if answer.code is not None and not answer.lost]
        awake = [
            worker for worker in self._workers if worker.lost_since_ts is None and worker.asked_ts is None
        ]
        if not useless or len(useless) < len(awake):
            self._dead_ticks = 0
            return None
        self._dead_ticks += 1
        if self._dead_ticks < DEAD_TICKS:
            return None
        newest = useless[-1]
        library = library_version(self._nvml)
        failure = explain(newest.code, newest.sample.error or "", library, self._root)
        return _Dead(failure, newest.code in _HANDLES_INVALID)

    # ------------------------------------------------------------ emitting

    def _send(self, ts: float, samples: list[GpuSample]) -> None:
        if infos := self._roster.news():
            self._emit(Header(ts=ts, gpus=infos))
        if samples:
            self._emit(Telemetry(ts=ts, gpus=tuple(samples)))

    def _tell_health(self, ts: float, missing: Collection[int]) -> None:
        gone = [worker.shown_index for worker in self._workers if worker.lost_since_ts is not None]
        gone += missing
        if not any(worker.uuid is not None or worker.lost_since_ts is not None for worker in self._workers):
            return  # nothing known yet
        cause = remedy = None
        if gone:
            total = len(self._workers) + len(missing)
            cause = msg(
                "{here} of {total} GPUs are there; missing: {names}",
                here=total - len(gone),
                total=total,
                names=", ".join(f"gpu{index}" for index in sorted(gone)),
            )
            remedy = msg(
                "See what `sudo dmesg | grep -i xid` says; the GPU comes back after a reset or a reboot"
            )
        self._put_status(ts, True, "gpu-missing" if gone else "", cause, remedy)

    def _tell(self, failure: NvmlFailure) -> None:
        self._put_status(self._clock(), False, failure.reason, failure.cause, failure.remedy)

    def _put_status(
        self, ts: float, ok: bool, reason: str, cause: Message | None, remedy: Message | None
    ) -> None:
        errors = self._errors_before + sum(worker.errors for worker in self._workers)
        before = self._status
        same = before is not None and (before.ok, before.reason, before.cause) == (ok, reason, cause)
        if before and same and (before.errors == errors or ts - before.ts < ERROR_REPORT_SECONDS):
            return
        self._status = SourceStatus(
            ts=ts, source=SOURCE, ok=ok, reason=reason, cause=cause, remedy=remedy, errors=errors
        )
        self._emit(self._status)

    # ------------------------------------------------------------ ends

    def _next(self, timeout_seconds: float) -> _Event | None:
        try:
            return self._events.get(timeout=max(timeout_seconds, 0.001))
        except queue.Empty:
            return None

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            self._next(left)  # late answers of the session that ended are of no use

    def _close_session(self) -> None:
        """End the session's threads. NVML is shut down only when none of them is inside it."""
        self._errors_before += sum(worker.errors for worker in self._workers)
        workers, self._workers = self._workers, []
        xid, self._xid = self._xid, None
        nvml, self._nvml = self._nvml, None
        if xid is not None:
            xid.stop()
        for worker in workers:
            worker.stop()
        ended = [worker.join(0.0 if worker.asked_ts is not None else 0.5) for worker in workers]
        patience = 0.1 if self._stopping.is_set() else 1.5  # the process ends: no need of a shutdown
        if nvml is None or not all(ended) or (xid is not None and not xid.join(patience)):
            return
        try:
            nvml.nvmlShutdown()
        except nvml.NVMLError:
            return  # the driver is gone already


def _lost(index: int, since_ts: float, error: str | None) -> GpuSample:
    return GpuSample(index=index, state="lost", state_since_ts=since_ts, error=error)
