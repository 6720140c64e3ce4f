"""The host as a source: its own figures each interval, the training job's processes more slowly.

Threads: one for the host, one for the processes (reading the command line of a process that hangs in the
kernel may hang as well), and one for each thing that may never answer: the run's file system, sensors, PSS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from yolomon.messages import msg
from yolomon.model import Header, HostInfo, ProcessSample, SourceStatus, Telemetry
from yolomon.sources.base import Clock, Emit
from yolomon.sources.container import pid_namespace_shared
from yolomon.sources.probe import Probe
from yolomon.sources.processes import ProcessTree, proportional_set_bytes
from yolomon.sources.procfs import REAL, Roots
from yolomon.sources.space import Space, space_of
from yolomon.sources.temperature import CpuTemperature
from yolomon.sources.trainers import TrainerSearch, may_train, trains_here

if TYPE_CHECKING:
    from yolomon.sources.hostreader import HostReader

SMALL_TREE, LARGE_TREE = 64, 256
"""A tree up to the one is read at twice the slow tier's rate, above the other at half of it."""
PSS_INTERVAL_SECONDS = 10.0
PSS_SHARE = 1 / 300
"""PSS walks page tables: after each process we rest 300 times as long as it took."""
PSS_MAX_AGE_SECONDS = 300.0
SEARCH_INTERVAL_SECONDS = 10.0
MAX_STUCK_PROBES = 4


class HostSource:
    """Reads the host. `watch_pids` and `watch_folder` may be called from any thread at any time."""

    def __init__(
        self,
        interval_seconds: float = 1.0,
        slow_interval_seconds: float = 5.0,
        clock: Clock = time.time,
        *,
        roots: Roots = REAL,
        search_trainers: bool = True,
    ) -> None:
        self._interval_seconds = interval_seconds
        self._slow_interval_seconds = slow_interval_seconds
        self._clock = clock
        self._roots = roots
        self._search_trainers = search_trainers
        self._stopping = threading.Event()
        self._wake_processes = threading.Event()
        self._threads: list[threading.Thread] = []
        self._emit: Emit = _nowhere
        self._watched: dict[str, tuple[int, ...]] = {}
        self._tree = ProcessTree(roots)
        self._pss: dict[int, tuple[float, int]] = {}
        self._disk: Probe[Space] | None = None
        self._disk_probes = 0
        self._folder: str | None = None
        self._trainer_pid: int | None = None
        self._temperature = Probe[float](
            "temperature",
            _LazyTemperature(roots).read,
            interval_seconds=slow_interval_seconds,
            max_age_seconds=slow_interval_seconds * 4,
        )

    def start(self, emit: Emit) -> None:
        """Begin to read; returns at once."""
        self._emit = emit
        self._temperature.start()
        for name, run in (
            ("host", self._run_host),
            ("processes", self._run_processes),
            ("pss", self._run_pss),
        ):
            thread = threading.Thread(target=run, name=f"yolomon-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End all threads; one that hangs in the kernel is left behind."""
        self._stopping.set()
        self._wake_processes.set()
        self._temperature.stop()
        if self._disk is not None:
            self._disk.stop()
        until = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def watch_pids(self, pids: Iterable[int], origin: str = "gpu") -> None:
        """The processes whose trees are read: those that use a GPU, or that the log names.

        Each `origin` ("gpu", "log") replaces what it said before.
        """
        new = tuple(dict.fromkeys(pid for pid in pids if pid > 0))
        if self._watched.get(origin, ()) != new:
            self._watched = {**self._watched, origin: new}
            self._wake_processes.set()

    def watch_folder(self, path: str) -> None:
        """The folder whose file system's free room is told: the run's."""
        if path == self._folder or self._disk_probes >= MAX_STUCK_PROBES:
            return
        self._folder = path
        if self._disk is not None:
            self._disk.stop()
        self._disk_probes += 1
        self._disk = Probe(
            "disk-space", lambda: self._space(path), interval_seconds=15.0, max_age_seconds=90.0
        )
        self._disk.start()

    def _space(self, path: str) -> Space | None:
        space = space_of(path)
        self._disk_probes = 1  # it answered: no thread hangs
        return space

    # ------------------------------------------------------------ threads

    def _run_host(self) -> None:
        from yolomon.sources.hostreader import (
            HostReader,  # here, so that psutil does not delay the first paint
        )

        reader = HostReader(self._roots)
        known: HostInfo | None = None
        told: tuple[str, ...] | None = None
        trainer: int | None = None
        next_info = 0.0
        for now in self._ticks(lambda: self._interval_seconds):
            if trainer != self._trainer_pid:
                trainer = self._trainer_pid
                reader.follow_trainer(trainer)
                next_info = 0.0
            if now >= next_info:
                next_info = now + 60.0  # limits can be changed while the container runs
                info = reader.info()
                if info != known:
                    known = info
                    self._emit(Header(ts=self._clock(), host=info))
            sample = reader.sample(
                disk=None if self._disk is None else self._disk.latest(),
                cpu_temperature_celsius=self._temperature.latest(),
            )
            self._emit(Telemetry(ts=self._clock(), host=sample))
            failing = tuple(sorted(reader.failing))
            if failing != told:
                told = failing
                self._emit(self._status(reader))

    def _status(self, reader: HostReader) -> SourceStatus:
        ts = self._clock()
        if not reader.failing:
            return SourceStatus(ts=ts, source="host", ok=True, errors=reader.errors)
        parts = ", ".join(sorted(reader.failing))
        why = next(iter(reader.failing.values()))
        return SourceStatus(
            ts=ts,
            source="host",
            ok=False,
            reason="part-unreadable",
            cause=msg("Not readable on this host: {parts} ({why})", parts=parts, why=why),
            remedy=msg("The other figures go on; in a container, /proc and /sys may be hidden."),
            errors=reader.errors,
        )

    def _run_processes(self) -> None:
        search = TrainerSearch(self._roots)
        shared = pid_namespace_shared(self._roots)
        searched_at = -1e9
        found: tuple[int, ...] = ()
        watched: dict[str, tuple[int, ...]] = {}
        judged_at = -1e9
        gpu_pids: tuple[int, ...] = ()
        log_pids: tuple[int, ...] = ()

        def interval() -> float:
            count = len(self._tree.pids)
            pace = 0.5 if count <= SMALL_TREE else 1.0 if count <= LARGE_TREE else 2.0
            return max(1.0, self._slow_interval_seconds * pace)

        for now in self._ticks(interval, self._wake_processes):
            if watched is not self._watched or now - judged_at >= SEARCH_INTERVAL_SECONDS:
                watched, judged_at = self._watched, now
                meant = trains_here if shared is False else may_train
                gpu_pids = tuple(pid for pid in watched.get("gpu", ()) if meant(pid, self._roots))
                log_pids = tuple(pid for pid in watched.get("log", ()) if may_train(pid, self._roots))
            roots = [*log_pids, *gpu_pids]
            if not gpu_pids and self._search_trainers:
                if now - searched_at >= SEARCH_INTERVAL_SECONDS:
                    searched_at, found = now, search.find()
                roots += found
            samples = self._tree.read(roots, now)
            self._trainer_pid = samples[0].pid if samples else None
            self._emit(
                Telemetry(
                    ts=self._clock(), processes=tuple(self._with_pss(sample, now) for sample in samples)
                )
            )

    def _with_pss(self, sample: ProcessSample, now: float) -> ProcessSample:
        read = self._pss.get(sample.pid)
        if read is None or now - read[0] > PSS_MAX_AGE_SECONDS:
            return sample
        return msgspec.structs.replace(sample, pss_bytes=read[1])

    def _run_pss(self) -> None:
        """Round after round over the tree, resting in between so that the cost stays below a bound."""
        while not self._stopping.wait(1.0 if not self._tree.pids else 0.0):
            began = time.monotonic()
            pids = self._tree.pids
            for pid in pids:
                spent = time.thread_time()
                size = proportional_set_bytes(pid, self._roots)
                spent = time.thread_time() - spent
                if size is not None:
                    self._pss[pid] = (time.monotonic(), size)
                if self._stopping.wait(spent / PSS_SHARE):
                    return
            for pid in set(self._pss) - set(self._tree.pids):
                self._pss.pop(pid, None)
            if pids and self._stopping.wait(max(0.0, PSS_INTERVAL_SECONDS - (time.monotonic() - began))):
                return

    def _ticks(self, interval: Callable[[], float], wake: threading.Event | None = None) -> Iterable[float]:
        """Monotonic times at which to read, on a steady beat; beats missed while a read hung are left out."""
        due = time.monotonic()
        event = wake or self._stopping
        while not self._stopping.is_set():
            now = time.monotonic()
            yield now
            due = max(due + interval(), time.monotonic() + 0.05)
            if event.wait(max(0.0, due - time.monotonic())) and wake is not None:
                wake.clear()
                due = time.monotonic()


class _LazyTemperature:
    """Looks for the sensors on the probe's thread, not at start."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._sensors: CpuTemperature | None = None

    def read(self) -> float | None:
        if self._sensors is None:
            self._sensors = CpuTemperature(self._roots)
        return self._sensors.read()


def _nowhere(_item: object) -> None:
    """Before `start` there is nobody to tell."""
