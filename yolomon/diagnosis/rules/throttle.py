"""Clocks held down by heat or power, judged by effect: a bit in the clock reasons alone is no fault."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import ClassVar

import msgspec

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.model import GpuSample, Item, Severity, Telemetry

WINDOW = declare("thermal-throttle.window", 60.0, "s", "how much time is looked at")
BITS_SHARE = declare("thermal-throttle.bits-share", 0.2, "share", "of busy readings with a thermal bit")
VIOLATION_SHARE = declare(
    "thermal-throttle.violation-share", 0.1, "share", "of the time that the driver counts as limited by heat"
)
CLOCK_SHARE = declare(
    "thermal-throttle.clock-share",
    0.9,
    "share",
    "of the GPU's own warm clock, or its peers', below which work is lost",
)
CRITICAL_CLOCK_SHARE = declare(
    "thermal-throttle.critical-clock-share", 0.6, "share", "of the warm clock below which it is critical"
)
BUSY = declare("thermal-throttle.busy", 80.0, "%", "only readings at this utilization count")
LIMIT_SHARE = declare(
    "power-throttle.limit-share",
    0.9,
    "share",
    "of the card's default limit, or its peers', below which it is capped",
)
FAR_BELOW = declare("power-throttle.clock-share", 0.5, "share", "of the maximum clock that is far below")
FAR_SECONDS = declare("power-throttle.far-seconds", 300.0, "s", "how long the clock must be far below")
BRAKE_READINGS = declare(
    "power-throttle.brake-readings", 3.0, "readings", "of a minute with the power brake on"
)

# NVML's clock event reasons (nvml.h, nvmlClocksEventReason*).
POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
_SPACING_SECONDS = 0.9
_LEARN = 30  # busy readings without thermal bits before the warm clock is known
_WARM_EVERY = 10
_ROWS = 360
_TURNS = 4  # passes until each GPU was looked at


class _Row(msgspec.Struct, frozen=True, gc=False):
    ts: float
    clock: float
    reasons: int
    power: float | None
    temperature: float | None


class _Gpu:
    """Busy readings of one GPU, at most one a second, and its own warm clock."""

    def __init__(self) -> None:
        self.seen_ts = 0.0
        self.busy: deque[_Row] = deque(maxlen=_ROWS)
        self.brakes: deque[float] = deque(maxlen=_ROWS)
        self.warm: deque[float] = deque(maxlen=600)
        self.warm_seen = 0  # readings since its median was taken
        self._warm: float | None = None
        self.thermal_since: float | None = None
        self.power_since: float | None = None

    def warm_clock(self) -> float | None:
        """Its clock at work without heat, MHz; looked at anew every ten readings, as it moves slowly."""
        if len(self.warm) < _LEARN:
            return None
        if self._warm is None or self.warm_seen >= _WARM_EVERY:
            self._warm, self.warm_seen = median(self.warm), 0
        return self._warm


class _Windows:
    """The newest busy readings of each GPU, newest first; made when asked for."""

    def __init__(self, gpus: dict[int, _Gpu], start_ts: float) -> None:
        self._gpus, self._start_ts = gpus, start_ts
        self._made: dict[int, list[_Row]] = {}

    def __getitem__(self, index: int) -> list[_Row]:
        rows = self._made.get(index)
        if rows is None:
            rows = self._made[index] = []
            for row in reversed(self._gpus[index].busy):
                if row.ts < self._start_ts:
                    break
                rows.append(row)
        return rows


class Throttle:
    """Heat and power, for each GPU against itself and its equal peers."""

    codes: ClassVar[tuple[str, ...]] = ("thermal-throttle", "power-throttle")

    def __init__(self) -> None:
        self._gpus: dict[int, _Gpu] = {}
        self._claims: dict[int, list[Claim]] = {}
        self._passes = 0

    def observe(self, item: Item, view: View) -> None:
        """Keep busy readings."""
        if isinstance(item, Telemetry):
            for sample in item.gpus:
                self._add(item.ts, sample, view)

    def _add(self, ts: float, sample: GpuSample, view: View) -> None:
        gpu = self._gpus.get(sample.index)
        if gpu is None:
            gpu = self._gpus[sample.index] = _Gpu()
        if 0 <= ts - gpu.seen_ts < _SPACING_SECONDS:
            return
        gpu.seen_ts = ts
        reasons, clock, load = sample.clock_event_reasons, sample.sm_clock_mhz, sample.utilization_percent
        if reasons is None or clock is None:
            return
        if reasons & POWER_BRAKE:
            gpu.brakes.append(ts)
        if load is None or load < view.thresholds[BUSY]:
            return
        gpu.busy.append(_Row(ts, clock, reasons, sample.power_watts, sample.temperature_celsius))
        if not reasons & (HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | POWER_BRAKE):
            gpu.warm.append(clock)
            gpu.warm_seen += 1

    def check(self, view: View) -> Iterator[Claim]:
        """A part of the GPUs in turn, so that no pass pays for all: each comes every few seconds."""
        self._passes += 1
        start = view.now_ts - view.thresholds[WINDOW]
        windows = _Windows(self._gpus, start)
        for place, (index, gpu) in enumerate(self._gpus.items()):
            if (place + self._passes) % _TURNS:
                continue
            history = view.history.gpu(index)
            self._claims[index] = [] if history is None else list(self._judge(gpu, history, windows, view))
        for claims in self._claims.values():
            yield from claims

    def _judge(self, gpu: _Gpu, history: GpuHistory, windows: _Windows, view: View) -> Iterator[Claim]:
        rows = windows[history.info.index]
        thermal = self._thermal(gpu, history, rows, windows, view) if len(rows) >= 10 else None
        gpu.thermal_since = thermal.onset_ts if thermal is not None else None
        if thermal is not None:
            yield thermal
        power = self._power(gpu, history, rows, view)
        gpu.power_since = power.onset_ts if power is not None else None
        if power is not None:
            yield power

    def _reference(
        self, gpu: _Gpu, history: GpuHistory, windows: _Windows, view: View
    ) -> tuple[float, str] | None:
        """What the clock would be without the fault, and where that is known from."""
        warm = gpu.warm_clock()
        if warm is not None:
            return warm, "own"
        peers = [
            median(row.clock for row in windows[index])
            for index, other in self._gpus.items()
            if other is not gpu
            and len(windows[index]) >= 10
            and index in view.job.gpu_indices
            and (peer := view.history.gpu(index)) is not None
            and peer.info.name == history.info.name
        ]
        if peers and history.info.index in view.job.gpu_indices:
            return median(peers), "peers"
        if history.info.sm_clock_max_mhz:
            return 0.85 * history.info.sm_clock_max_mhz, "maximum"  # full load costs some of the maximum
        return None

    def _thermal(
        self,
        gpu: _Gpu,
        history: GpuHistory,
        rows: list[_Row],
        windows: _Windows,
        view: View,
    ) -> Claim | None:
        limits = view.thresholds
        hot = [row for row in rows if row.reasons & (SW_THERMAL | HW_THERMAL)]
        share = len(hot) / len(rows)
        limited = _violation_share(history, view.now_ts - limits[WINDOW], view.now_ts)
        if share < limits[BITS_SHARE] and (limited is None or limited < limits[VIOLATION_SHARE]):
            return None
        reference = self._reference(gpu, history, windows, view)
        if reference is None or reference[0] <= 0:
            return None
        newest = rows[:30]
        clock = median(row.clock for row in newest)
        ratio = clock / reference[0]
        if ratio >= limits[CLOCK_SHARE]:
            return None
        hardware = sum(1 for row in rows if row.reasons & HW_THERMAL) / len(rows) >= limits[BITS_SHARE]
        temperatures = [row.temperature for row in newest if row.temperature is not None]
        temperature = median(temperatures) if temperatures else None
        index = history.info.index
        severity: Severity = "critical" if hardware or ratio < limits[CRITICAL_CLOCK_SHARE] else "warning"
        since = (
            min((row.ts for row in hot), default=view.now_ts)
            if gpu.thermal_since is None
            else gpu.thermal_since
        )
        limit = history.slow.power_limit_watts if history.slow is not None else None
        limit = limit if limit is not None else history.info.power_limit_watts
        return Claim(
            code="thermal-throttle",
            target=f"gpu{index}",
            severity=severity,
            onset_ts=since,
            summary=msg(
                "GPU {index}: heat holds the clock at {clock} MHz, {ratio} % of {reference} MHz",
                index=index,
                clock=f"{clock:.0f}",
                ratio=f"{100 * ratio:.0f}",
                reference=f"{reference[0]:.0f}",
            ),
            cause=msg("The driver lowers the clock at {temperature} °C", temperature=f"{temperature:.0f}")
            if temperature is not None
            else msg("The driver lowers the clock because of heat"),
            remedy=msg(
                "Check fan, air flow and dust; meanwhile lower the power limit: nvidia-smi -i {index} "
                "-pl {watts}",
                index=index,
                watts=f"{0.7 * limit:.0f}" if limit is not None else "WATTS",
            ),
            evidence={
                "sm_clock_mhz": clock,
                "reference_clock_mhz": reference[0],
                "reference": reference[1],
                "thermal_bits_share_percent": round(100 * share, 1),
                "limited_by_heat_percent": None if limited is None else round(100 * limited, 1),
                "temperature_celsius": temperature,
                "slowdown_at_celsius": history.info.temperature_slowdown_celsius,
            },
            signals=("temperature_celsius", "sm_clock_mhz"),
            explains=("slowdown", "power-throttle", "load-imbalance", "gpu-underused"),
            confidence="high" if reference[1] != "maximum" else "medium",
            raise_after_seconds=10.0,
            clear_after_seconds=60.0,
        )

    def _power(self, gpu: _Gpu, history: GpuHistory, rows: list[_Row], view: View) -> Claim | None:
        limits, info, now = view.thresholds, history.info, view.now_ts
        while gpu.brakes and now - gpu.brakes[0] > 60.0:
            gpu.brakes.popleft()
        since = now if gpu.power_since is None else gpu.power_since
        if len(gpu.brakes) >= limits[BRAKE_READINGS]:
            return _power_claim(
                info.index, "critical", gpu.brakes[0],
                msg("GPU {index}: the external power brake slows it down", index=info.index),
                msg("Power supply or rack asserts the brake: too much is drawn from it"),
                msg("Check power supply and cables; lower the power limit: nvidia-smi -i {index} -pl "
                "WATTS", index=info.index),
                {"readings_with_brake": float(len(gpu.brakes))},
            )  # fmt: skip
        if len(rows) < 20:
            return None
        capped = sum(1 for row in rows if row.reasons & POWER_CAP) / len(rows)
        if capped < 0.5:
            return None
        clock = median(row.clock for row in rows)
        powers = [row.power for row in rows if row.power is not None]
        power = sum(powers) / len(powers) if powers else None
        limit = history.slow.power_limit_watts if history.slow is not None else None
        limit = limit if limit is not None else info.power_limit_watts
        evidence: dict[str, float | str | None] = {
            "power_watts": power,
            "power_limit_watts": limit,
            "power_limit_default_watts": info.power_limit_default_watts,
            "sm_clock_mhz": clock,
            "sm_clock_max_mhz": info.sm_clock_max_mhz,
            "capped_share_percent": round(100 * capped, 1),
        }
        warm = gpu.warm_clock()
        if limit is not None:
            peers = _peer_limits(history, view)
            if peers and limit < limits[LIMIT_SHARE] * median(peers):
                evidence["peers_limit_watts"] = median(peers)
                return _power_claim(
                    info.index, "warning", since,
                    msg("GPU {index} is capped at {limit} W, its peers at {peers} "
                    "W", index=info.index, limit=f"{limit:.0f}", peers=f"{median(peers):.0f}"),
                    msg("A lower power limit on one GPU of the job makes the others wait for it"),
                    msg("Set it as on the others: nvidia-smi -i {index} -pl "
                    "{watts}", index=info.index, watts=f"{median(peers):.0f}"),
                    evidence, explains=("load-imbalance", "slowdown"),
                )  # fmt: skip
            default = info.power_limit_default_watts
            if default is not None and limit < limits[LIMIT_SHARE] * default:
                costs = (
                    info.sm_clock_max_mhz is not None and clock < limits[LIMIT_SHARE] * info.sm_clock_max_mhz
                )
                return _power_claim(
                    info.index, "warning" if costs else "info", since,
                    msg("GPU {index} is capped at {limit} W of {default} "
                    "W", index=info.index, limit=f"{limit:.0f}", default=f"{default:.0f}"),
                    msg("Someone set the power limit below the card's default; full load reaches it"),
                    msg("If it is not on purpose: nvidia-smi -i {index} -pl "
                    "{watts}", index=info.index, watts=f"{default:.0f}"),
                    evidence,
                )  # fmt: skip
        if info.sm_clock_max_mhz and clock < limits[FAR_BELOW] * info.sm_clock_max_mhz:
            long = [row for row in gpu.busy if row.ts >= now - limits[FAR_SECONDS]]
        else:
            long = []
        whole = bool(long) and now - long[0].ts > 0.8 * limits[FAR_SECONDS]
        if (
            info.sm_clock_max_mhz
            and whole
            and median(row.clock for row in long) < limits[FAR_BELOW] * info.sm_clock_max_mhz
        ):
            return _power_claim(
                info.index, "warning", long[0].ts,
                msg("GPU {index}: the power limit holds the clock at {clock} of {maximum} "
                "MHz", index=info.index, clock=f"{clock:.0f}", maximum=info.sm_clock_max_mhz),
                msg("The limit is low for this load"),
                msg("nvidia-smi -q -d POWER shows the limits and what may be set"),
                evidence,
            )  # fmt: skip
        if warm is None or limit is None or power is None or power >= 0.7 * limit:
            return None
        two_minutes = [row for row in gpu.busy if row.ts >= now - 120.0]
        if len(two_minutes) >= 80 and median(row.clock for row in two_minutes) < 0.8 * warm:
            return _power_claim(
                info.index, "warning", since,
                msg("GPU {index}: capped at {power} W although {limit} W are "
                "allowed", index=info.index, power=f"{power:.0f}", limit=f"{limit:.0f}"),
                msg("Something else than the card's own limit caps it: a group limit, the board or the "
                "supply"),
                msg("nvidia-smi -q -d POWER,PERFORMANCE shows what holds the clock"),
                evidence,
            )  # fmt: skip
        return None


def _power_claim(
    index: int,
    severity: Severity,
    onset_ts: float,
    summary: Message,
    cause: Message,
    remedy: Message,
    evidence: dict[str, float | str | None],
    explains: tuple[str, ...] = ("slowdown",),
) -> Claim:
    return Claim(
        code="power-throttle",
        target=f"gpu{index}",
        severity=severity,
        onset_ts=onset_ts,
        summary=summary,
        cause=cause,
        remedy=remedy,
        evidence=evidence,
        signals=("power_watts", "sm_clock_mhz"),
        explains=explains,
        raise_after_seconds=0.0 if severity == "critical" else 30.0,
        clear_after_seconds=60.0,
    )


def _peer_limits(history: GpuHistory, view: View) -> list[float]:
    """Power limits of the job's other GPUs of the same model."""
    indices = view.job.gpu_indices
    if history.info.index not in indices:
        return []
    found = []
    for index in indices:
        peer = view.history.gpu(index)
        if index == history.info.index or peer is None or peer.info.name != history.info.name:
            continue
        limit = peer.slow.power_limit_watts if peer.slow is not None else None
        limit = limit if limit is not None else peer.info.power_limit_watts
        if limit is not None:
            found.append(limit)
    return found


def _violation_share(history: GpuHistory, start_ts: float, end_ts: float) -> float | None:
    """The part of the time that the driver counted as limited by heat (nvmlDeviceGetViolationStatus)."""
    times, counts = history.slow_table.window("thermal_violation_ns", start_ts, end_ts)
    if len(counts) < 2 or times[-1] - times[0] < 20.0 or counts[-1] < counts[0]:
        return None
    return (counts[-1] - counts[0]) / 1e9 / (times[-1] - times[0])
