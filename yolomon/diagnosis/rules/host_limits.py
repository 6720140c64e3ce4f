"""Host memory, /dev/shm and the run's disk that are nearly used up, against the container's limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from yolomon.diagnosis.forecast import eta
from yolomon.diagnosis.growth import GrowthSeries
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.host_memory import capacity_bytes
from yolomon.diagnosis.statistics import time_to_limit
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import HostSample, Item, Telemetry, TrainRecord
from yolomon.units import duration, size

LOW = declare("host-memory-low.share", 0.1, "share", "of the memory still available")
CRITICAL = declare("host-memory-low.critical-share", 0.04, "share", "of the memory still available")
PRESSURE = declare(
    "host-memory-low.pressure",
    10.0,
    "%",
    "of the time all tasks wait for memory (PSI full avg10): critical when low",
)
SWAP_RATE = declare("host-memory-low.swap-rate", 10e6, "bytes/s", "of swapping out: critical when low")
SHM_SHARE = declare("shm-low.share", 0.85, "share", "of /dev/shm in use")
SHM_CRITICAL = declare("shm-low.critical-share", 0.97, "share", "of /dev/shm in use")
SHM_DEFAULT = declare(
    "shm-low.small-bytes", 68e6, "bytes", "what a container gets unless told: too small for workers"
)
DISK_LOW = declare("disk-low.bytes", 5e9, "bytes", "free space below which a checkpoint may not fit soon")
DISK_CRITICAL = declare("disk-low.critical-bytes", 1e9, "bytes", "free space below which it is critical")
DISK_WITHIN = declare(
    "disk-low.within", 6 * 3600.0, "s", "a disk that is full sooner, and before the run ends, is told"
)
_CACHING = re.compile(r"[Cc]aching images \((\d+(?:\.\d+)?) ?GB (?:RAM|ram|True)\).*?(\d+)%")


class HostLimits:
    """What is left of each, judged at the newest reading."""

    codes: ClassVar[tuple[str, ...]] = ("host-memory-low", "shm-low", "disk-low")

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._disk_used = GrowthSeries()
        self._cache_bytes: float | None = None  # what the image cache will hold in one rank
        self._cache_now = 0.0
        self._cache_ts: float | None = None

    def observe(self, item: Item, view: View) -> None:
        """Follow the disk and the image cache's own forecast."""
        if isinstance(item, Telemetry) and item.host is not None:
            free, total = item.host.disk_free_bytes, item.host.disk_total_bytes
            if free is not None:
                self._disk_used.add(item.ts, (total or 0) - free)
        elif isinstance(item, TrainRecord) and item.kind == "message" and not item.backlog:
            found = _CACHING.search(item.text)
            if found is not None and int(found.group(2)) >= 3:
                self._cache_now = float(found.group(1)) * 1e9
                self._cache_bytes = self._cache_now * 100 / int(found.group(2))
                self._cache_ts = item.ts

    def check(self, view: View) -> Iterator[Claim]:
        """The host's newest reading."""
        sample = view.history.host.sample
        if sample is None:
            return
        for claim in (
            self._memory(sample, view) or self._cache(sample, view),
            self._shm(sample, view),
            self._disk(sample, view),
        ):
            if claim is not None:
                yield claim

    def _onset(self, name: str, wrong: bool, now_ts: float) -> float:
        if not wrong:
            self._since.pop(name, None)
            return now_ts
        return self._since.setdefault(name, now_ts)

    def _memory(self, sample: HostSample, view: View) -> Claim | None:
        capacity, available = capacity_bytes(view.history), sample.memory_available_bytes
        limits = view.thresholds
        low = bool(capacity) and available is not None and available < limits[LOW] * (capacity or 0.0)
        onset = self._onset("memory", low, view.now_ts)
        if not low or available is None or not capacity:
            return None
        share = available / capacity
        swapping = _rate(view, "swap_used_bytes", 10.0)
        pressure = sample.memory_pressure_full_percent
        severe = (
            share < limits[CRITICAL]
            or (swapping or 0.0) > limits[SWAP_RATE]
            or (pressure or 0.0) > limits[PRESSURE]
        )
        contained = view.history.host_info.memory_limit_bytes is not None
        return Claim(
            code="host-memory-low",
            target="host",
            severity="critical" if severe else "warning",
            onset_ts=onset,
            summary=msg(
                "{available} of {capacity} memory left", available=size(available), capacity=size(capacity)
            ),
            cause=msg("The container's memory limit is nearly reached; the kernel kills the largest process")
            if contained
            else msg("The machine's memory is nearly used up; the kernel kills the largest process"),
            remedy=_memory_remedy(view),
            evidence={
                "available_bytes": float(available),
                "capacity_bytes": capacity,
                "available_share_percent": round(100 * share, 1),
                "swap_bytes_per_second": swapping,
                "memory_pressure_full_percent": pressure,
                "limit_of": "container" if contained else "machine",
            },
            signals=("memory_available_bytes", "swap_used_bytes"),
            explains=("slowdown",) if severe else (),
            raise_after_seconds=5.0,
            clear_after_seconds=30.0,
        )

    def _cache(self, sample: HostSample, view: View) -> Claim | None:
        """An image cache that will not fit: each rank fills its own (ultralytics#22307: 8 x 205 GB)."""
        available = sample.memory_available_bytes
        if self._cache_bytes is None or self._cache_ts is None or available is None:
            return None
        if view.now_ts - self._cache_ts > 60.0 or view.phases.known:
            return None
        ranks = max(view.job.size, view.history.train.run.world_size or 1, 1)
        still = max(self._cache_bytes - self._cache_now, 0.0) * ranks
        if still <= available:
            return None
        return Claim(
            code="host-memory-low",
            target="host",
            severity="critical",
            onset_ts=self._cache_ts,
            summary=msg(
                "The image cache will need {need} ({ranks} ranks), {available} is left",
                need=size(self._cache_bytes * ranks),
                ranks=ranks,
                available=size(available),
            ),
            cause=msg("cache=ram keeps every image once in each rank"),
            remedy=msg("Stop and start with cache=disk"),
            evidence={
                "cache_bytes_per_rank": self._cache_bytes,
                "ranks": float(ranks),
                "available_bytes": float(available),
            },
            signals=("memory_available_bytes",),
            raise_after_seconds=2.0,
        )

    def _shm(self, sample: HostSample, view: View) -> Claim | None:
        used, total = sample.shm_used_bytes, sample.shm_total_bytes
        if used is None or not total:
            return None
        run, limits = view.history.train.run, view.thresholds
        share = used / total
        tiny = total <= limits[SHM_DEFAULT] and (run.workers or 0) > 0
        onset = self._onset("shm", tiny or share > limits[SHM_SHARE], view.now_ts)
        if not tiny and share <= limits[SHM_SHARE]:
            return None
        contained = view.history.host_info.container is not None
        return Claim(
            code="shm-low",
            target="host",
            severity="critical" if share > limits[SHM_CRITICAL] else "warning",
            onset_ts=onset,
            summary=msg("/dev/shm: {used} of {total} used", used=size(used), total=size(total)),
            cause=msg(
                "Loader workers hand batches over in /dev/shm; when it is full they die with a bus error"
            ),
            remedy=msg("docker run --ipc=host or --shm-size=8g; else fewer workers")
            if contained or tiny
            else msg("Fewer workers or a smaller prefetch_factor; see what else lies in /dev/shm"),
            evidence={
                "used_bytes": float(used),
                "total_bytes": float(total),
                "used_share_percent": round(100 * share, 1),
                "workers": None if run.workers is None else float(run.workers),
            },
            signals=("shm_used_bytes",),
            raise_after_seconds=3.0,
            clear_after_seconds=30.0,
        )

    def _disk(self, sample: HostSample, view: View) -> Claim | None:
        free, total, limits = sample.disk_free_bytes, sample.disk_total_bytes, view.thresholds
        if free is None:
            return None
        growing = self._disk_used.grows(float(total) if total else None)
        forecast = None
        if growing is not None and growing.scale.seconds >= 10.0:
            forecast = time_to_limit(growing.trend, 0.0, float(free), horizon=limits[DISK_WITHIN])
        left = None if forecast is None else eta(view.history, view.phases)
        ends_before = forecast is not None and left is not None and left.high < forecast.earliest
        low = free < limits[DISK_LOW] or (forecast is not None and not ends_before)
        onset = self._onset("disk", low, view.now_ts)
        if not low:
            return None
        return Claim(
            code="disk-low",
            target="host",
            severity="critical" if free < limits[DISK_CRITICAL] else "warning",
            onset_ts=onset if growing is None or forecast is None else growing.onset_ts,
            summary=msg("{free} of disk left where the run is saved", free=size(free))
            if forecast is None
            else msg(
                "{free} of disk left where the run is saved: full in {time} ({low} to {high})",
                free=size(free),
                time=duration(forecast.time),
                low=duration(forecast.earliest),
                high=duration(forecast.latest),
            ),
            cause=msg("A checkpoint that cannot be written ends the run"),
            remedy=msg(
                "Delete old runs and checkpoints, or move the run; save_period=-1 keeps last and best only"
            ),
            evidence={
                "free_bytes": float(free),
                "total_bytes": None if total is None else float(total),
                "seconds_to_full": None if forecast is None else round(forecast.time),
            },
            signals=("disk_free_bytes",),
            raise_after_seconds=5.0,
            clear_after_seconds=30.0,
        )


def _rate(view: View, column: str, seconds: float) -> float | None:
    """How fast a column of the host rose over the last seconds, per second."""
    times, values = view.history.host.table.window(column, view.now_ts - seconds, view.now_ts)
    if len(values) < 2 or times[-1] - times[0] < seconds / 3:
        return None
    return (values[-1] - values[0]) / (times[-1] - times[0])


def _memory_remedy(view: View) -> Message:
    run = view.history.train.run
    if (run.cache or "").lower() in ("ram", "true"):
        return msg("cache=disk instead of cache=ram; save a checkpoint now")
    if run.workers:
        return msg("Fewer workers (now {workers} a rank); save a checkpoint now", workers=run.workers)
    return msg("Save a checkpoint now; see `ps aux --sort=-rss | head` for what else is there")
