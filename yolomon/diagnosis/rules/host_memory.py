"""Host memory that grows without end: in the trainer, in its loader workers, or somewhere on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from yolomon.diagnosis.forecast import eta
from yolomon.diagnosis.growth import Growing, GrowthSeries
from yolomon.diagnosis.job import Job
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.statistics import Forecast, time_to_limit
from yolomon.diagnosis.thresholds import declare
from yolomon.history import History, ProcessHistory
from yolomon.messages import Message, msg
from yolomon.model import Item, Severity, Telemetry
from yolomon.units import duration, size

RESERVE = declare(
    "host-memory-growth.reserve",
    0.05,
    "share",
    "of the memory that the kernel needs itself: full is before that",
)
WARN_WITHIN = declare(
    "host-memory-growth.warn-within",
    6 * 3600.0,
    "s",
    "a limit reached sooner (and before the run ends) is a warning",
)
CRITICAL_WITHIN = declare(
    "host-memory-growth.critical-within", 900.0, "s", "a limit reached sooner is critical"
)
FAST_WITHIN = declare(
    "host-memory-growth.fast-within",
    2700.0,
    "s",
    "growth seen for less than two minutes must reach the limit sooner",
)
AGREEMENT = declare(
    "host-memory-growth.agreement",
    0.4,
    "share",
    "of the host's growth that processes must explain, and the reverse",
)
_WORKER_NAMES = ("pt_data_worker", "pt_data_pin")


class HostMemoryGrowth:
    """The trainer's processes, its workers and the host's unavailable memory, each as a series.

    Copy-on-write in loader workers is seen as growth of the workers' own memory (PSS, where it is read: sums
    of resident memory count shared pages once for each) while the trainer's stays (pytorch#13246). Reading
    PSS walks all pages of a process, so it comes late for many or large workers: until each has one, their
    resident memory says whose the host's growth is.
    """

    codes: ClassVar[tuple[str, ...]] = ("host-memory-growth",)

    def __init__(self) -> None:
        self._trainer, self._workers, self._host = GrowthSeries(), GrowthSeries(), GrowthSeries()
        self._workers_resident = GrowthSeries()  # says whose growth it is while PSS is not read for all
        self._worker_pids: frozenset[int] = frozenset()
        self._has_pss = False
        self._workers_are_pss = False

    def observe(self, item: Item, view: View) -> None:
        """Take what the processes and the host hold, once the run makes steps."""
        if not isinstance(item, Telemetry) or (item.processes is None and item.host is None):
            return
        if _settling(view):
            self._reset()
            return
        history = view.history
        if item.host is not None and item.host.memory_available_bytes is not None:
            capacity = capacity_bytes(history)
            if capacity is not None:
                self._host.add(item.ts, capacity - item.host.memory_available_bytes)
        if item.processes is not None:
            self._add_processes(item.ts, view)

    def _reset(self) -> None:
        for series in (self._trainer, self._workers, self._workers_resident, self._host):
            series.reset()
        self._worker_pids = frozenset()

    def _add_processes(self, ts: float, view: View) -> None:
        trainer, workers = job_processes(view.history, view.job)
        pids = frozenset(process.sample.pid for process in workers)
        if pids - self._worker_pids:  # new workers have a level of their own
            self._workers.reset()
            self._workers_resident.reset()
            if len(pids) > len(self._worker_pids):
                self._host.reset()
        self._worker_pids = pids
        if not self._has_pss and any(p.sample.pss_bytes is not None for p in (*trainer, *workers)):
            self._has_pss = True
            self._trainer.reset()
            self._workers.reset()
        for series, group in ((self._trainer, trainer), (self._workers, workers)):
            held = [p.sample.pss_bytes if self._has_pss else p.sample.rss_bytes for p in group]
            known = [value for value in held if value is not None]
            if group and len(known) == len(held):
                series.add(ts, float(sum(known)))
        resident = [p.sample.rss_bytes for p in workers]
        known = [value for value in resident if value is not None]
        if workers and len(known) == len(resident):
            self._workers_resident.add(ts, float(sum(known)))

    def check(self, view: View) -> Iterator[Claim]:
        """At most one claim: the host's memory has one end."""
        capacity = capacity_bytes(view.history)
        host = self._host.grows(capacity)
        workers = self._workers.grows(capacity) if self._worker_pids else None
        trainer = self._trainer.grows(capacity)
        found = host or workers or trainer
        if found is None:
            return
        agreement = view.thresholds[AGREEMENT]
        if (
            host is None
            and view.history.host.sample is not None
            and view.history.host.sample.memory_available_bytes
        ):
            # Processes grow but the host does not: pages counted twice, or taken from a cache.
            slope = self._host.slope_since(found.onset_ts)
            if slope is None or slope < agreement * found.per_second:
                return
        grown_by_workers = self._workers.slope_since(found.onset_ts)
        is_pss = self._has_pss and grown_by_workers is not None
        if grown_by_workers is None:
            grown_by_workers = self._workers_resident.slope_since(found.onset_ts) or 0.0
        grown_by_trainer = self._trainer.slope_since(found.onset_ts) or 0.0
        where = "elsewhere"
        if max(grown_by_workers, grown_by_trainer) >= agreement * found.per_second:
            where = "workers" if grown_by_workers > grown_by_trainer else "trainer"
        if where == "trainer":
            is_pss = self._has_pss
        available = _available(view.history)
        forecast = None
        if capacity is not None and available is not None:
            room = available - view.thresholds[RESERVE] * capacity
            forecast = time_to_limit(found.trend, 0.0, room) if room > 0 else Forecast(0.0, 0.0, 0.0)
        if found.scale.seconds < 10.0 and (
            forecast is None or forecast.earliest > view.thresholds[FAST_WITHIN]
        ):
            return
        if not view.phases.known and found.scale.seconds < 60.0:
            return  # without a log, start-up looks like growth for minutes
        if where == "elsewhere" and found.scale.seconds < 60.0 and self._worker_pids:
            return  # not of this job: only a long trend is told
        yield self._claim(found, forecast, where, is_pss, available, capacity, view)

    def _claim(
        self,
        found: Growing,
        forecast: Forecast | None,
        where: str,
        is_pss: bool,
        available: float | None,
        capacity: float | None,
        view: View,
    ) -> Claim:
        run = view.history.train.run
        left = eta(view.history, view.phases)
        count = len(self._worker_pids)
        rate = size(60 * found.per_second)
        words = {
            "workers": msg(
                "Memory of {count} loader workers grows by {rate} a minute", count=count, rate=rate
            ),
            "trainer": msg("Memory of the trainer grows by {rate} a minute", rate=rate),
            "elsewhere": msg("Host memory in use grows by {rate} a minute", rate=rate),
        }
        slope = found.trend.slope
        epoch = _epoch_at(forecast.time, view) if forecast is not None else None
        return Claim(
            code="host-memory-growth",
            target="host",
            severity=severity_of(forecast, None if left is None else left.low, view),
            onset_ts=found.onset_ts,
            summary=words[where] if forecast is None else _with_forecast(words[where], forecast, epoch),
            cause=_cause(where),
            remedy=_remedy(where, run.workers, count, run.cache),
            evidence={
                "grown_bytes": round(found.trend.rise),
                "bytes_per_minute": round(60 * found.per_second),
                "bytes_per_minute_low": round(60 * slope.low) if slope is not None else None,
                "bytes_per_minute_high": round(60 * slope.high) if slope is not None else None,
                "available_bytes": available,
                "capacity_bytes": capacity,
                "seconds_to_limit": None if forecast is None else round(forecast.time),
                "seconds_to_limit_low": None if forecast is None else round(forecast.earliest),
                "seconds_to_limit_high": None if forecast is None else round(forecast.latest),
                "epoch_at_limit": epoch,
                "mann_kendall_z": round(found.trend.z, 1),
                "where": where,
                "workers": float(count),
            },
            signals=("memory_available_bytes", "memory_used_bytes"),
            explains=("host-memory-low",) if forecast is not None and forecast.time > 60 else (),
            confidence="high" if where != "elsewhere" and is_pss else "medium",
            unseen=()
            if is_pss or where == "elsewhere"
            else (msg("shared pages are counted for each process: only resident memory is known"),),
            raise_after_seconds=3.0,
            clear_after_seconds=60.0,
        )


def job_processes(history: History, job: Job) -> tuple[list[ProcessHistory], list[ProcessHistory]]:
    """The job's trainers (and launchers), and its loader workers, as they are now."""
    alive = history.processes.alive()
    ranks = {member.pid for member in job.members if member.pid is not None}
    ranks |= {rank.pid for rank in history.train.ranks.values() if rank.pid is not None}
    trainers, workers = [], []
    for process in alive:
        sample = process.sample
        if sample.pid in ranks:
            trainers.append(process)
        elif sample.parent_pid in ranks or (
            sample.name.startswith(_WORKER_NAMES) and (not ranks or sample.pid in job.pids)
        ):
            workers.append(process)
        elif sample.pid in job.pids or not ranks:
            trainers.append(process)
    return trainers, workers


def capacity_bytes(history: History) -> float | None:
    """What the job can use at most: the container's limit where it is lower than the machine's memory."""
    info, sample = history.host_info, history.host.sample
    total = sample.memory_total_bytes if sample is not None else None
    known = [v for v in (info.memory_limit_bytes, total, info.memory_total_bytes) if v]
    return float(min(known)) if known else None


def severity_of(forecast: Forecast | None, run_left_seconds: float | None, view: View) -> Severity:
    """By when the limit is reached, and whether the run is over before."""
    if forecast is None or (run_left_seconds is not None and forecast.earliest > run_left_seconds):
        return "info"
    if forecast.earliest < view.thresholds[CRITICAL_WITHIN]:
        return "critical"
    return "warning" if forecast.earliest < view.thresholds[WARN_WITHIN] else "info"


def _settling(view: View) -> bool:
    """Before the first steps, while images are cached, or while the loader is rebuilt."""
    phases, train = view.phases, view.history.train
    if phases.current in ("starting", "caching", "warmup", "close-mosaic", "ended"):
        return True
    leader = phases.leader
    first = leader.first_batch_ts if leader is not None else None
    if first is not None and view.history.now_ts - first < 5.0:
        return True
    # An image cache that fills while the first epoch goes is growth with an end.
    return (
        (train.run.cache or "").lower() in ("ram", "true") and (train.epoch or 0) <= 1 and bool(train.epoch)
    )


def _available(history: History) -> float | None:
    sample = history.host.sample
    return (
        None
        if sample is None or sample.memory_available_bytes is None
        else float(sample.memory_available_bytes)
    )


def _epoch_at(seconds: float, view: View) -> float | None:
    train = view.history.train
    left = eta(view.history, view.phases)
    if left is None or train.epoch is None or train.total_epochs is None or left.seconds <= 0:
        return None
    epochs_left = train.total_epochs - train.epoch + 1
    return float(int(train.epoch + epochs_left * seconds / left.seconds))


def _with_forecast(what: Message, forecast: Forecast, epoch: float | None) -> Message:
    times = {
        "what": what,
        "time": duration(forecast.time),
        "low": duration(forecast.earliest),
        "high": duration(forecast.latest),
    }
    if epoch is None:
        return msg("{what}: full in {time} ({low} to {high})", **times)
    return msg("{what}: full in {time} ({low} to {high}), at epoch {epoch}", epoch=int(epoch), **times)


def _cause(where: str) -> Message:
    if where == "workers":
        return msg(
            "Each worker keeps what it touches: Python lists are copied page by page, or results are kept"
        )
    if where == "trainer":
        return msg("The training process keeps objects at every step")
    return msg("Not the processes of this run, as far as they can be seen: another program or a RAM disk")


def _remedy(where: str, workers: int | None, count: int, cache: str | None) -> Message:
    if where == "workers":
        fewer = max(1, (workers or count) // 2)
        return msg(
            "workers={fewer} halves it; keep annotations in one numpy array or tensor instead of Python "
            "lists",
            fewer=fewer,
        )
    if where == "trainer" and (cache or "").lower() in ("ram", "true"):
        return msg("cache=disk instead of cache=ram; look for lists that grow each step")
    if where == "trainer":
        return msg("Look for lists that grow each step (losses without .item(), outputs, logs); save often")
    return msg("See `ps aux --sort=-rss | head` and `df -h /dev/shm`")
