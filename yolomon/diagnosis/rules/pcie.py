"""PCIe links under load that are narrower or slower than card and slot allow, or that repeat packets."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.model import Item, Severity

BUSY = declare("pcie-degraded.busy", 50.0, "%", "only readings at this utilization count: idle links sleep")
WINDOW = declare("pcie-degraded.window", 60.0, "s", "how much time is looked at")
SHARE = declare("pcie-degraded.share", 0.8, "share", "part of the readings under load that must be below")
NARROW = declare(
    "pcie-degraded.narrow-lanes", 4.0, "lanes", "at most so many of 16 lanes cost a trainer speed"
)
# NVIDIA DCGM's health check: replays a minute and lane that a healthy link stays below, by generation.
REPLAYS_PER_LANE_MINUTE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
_TURNS = 8  # passes until each GPU was looked at: fewer seconds than a claim must hold


class Pcie:
    """Width and generation under load, and the replay counter."""

    codes: ClassVar[tuple[str, ...]] = ("pcie-degraded",)

    def __init__(self) -> None:
        self._passes = 0
        self._levels: dict[str, tuple[int, int, int] | None] = {}  # by UUID
        self._claims: dict[str, Claim | None] = {}
        self._since: dict[str, float] = {}
        self._replay_alarms: dict[str, list[float]] = {}

    def observe(self, item: Item, view: View) -> None:
        """Nothing to keep; the history holds the link over time."""

    def check(self, view: View) -> Iterator[Claim]:
        """A part of the GPUs in turn, so that no pass pays for all: each comes every few seconds."""
        self._passes += 1
        gpus = view.history.by_index()
        for place, gpu in enumerate(gpus):
            if (place + self._passes) % _TURNS:
                continue
            self._levels[gpu.info.uuid] = self._level(gpu, view)
            self._claims[gpu.info.uuid] = self._link(gpu, view) or self._replays(gpu, view)
        if self._passes >= _TURNS:  # all peers were looked at
            yield from (claim for claim in self._claims.values() if claim is not None)

    def _level(self, gpu: GpuHistory, view: View) -> tuple[int, int, int] | None:
        """Typical generation and width under load and how many readings tell; None where nothing does."""
        if gpu.info.unified_memory or gpu.slow is None or gpu.slow.pcie_generation is None:
            return None  # no PCIe link between GPU and memory (GB10: nvtop#426 shows "GEN1@1x")
        start = view.now_ts - view.thresholds[WINDOW]
        rows = gpu.slow_table.rows(start, view.now_ts, "pcie_generation", "pcie_width")
        generations, widths = [], []
        for ts, generation, width in rows:
            if ts is None or generation is None or width is None:
                continue
            load = gpu.fast.window("utilization_percent", ts - 5.0, ts)[1]
            if load and min(load) >= view.thresholds[BUSY]:  # awake for some seconds
                generations.append(generation)
                widths.append(width)
        if len(generations) < 3:
            return None
        # The value that a share of the readings does not exceed: a link that wakes now and then is awake.
        place = min(int(view.thresholds[SHARE] * len(generations)), len(generations) - 1)
        return int(sorted(generations)[place]), int(sorted(widths)[place]), len(generations)

    def _link(self, gpu: GpuHistory, view: View) -> Claim | None:
        level = self._levels[gpu.info.uuid]
        info = gpu.info
        best_generation, best_width = info.pcie_generation_max, info.pcie_width_max
        if level is None or best_generation is None or best_width is None:
            self._since.pop(info.uuid, None)
            return None
        generation, width, readings = level
        if generation >= best_generation and width >= best_width:
            self._since.pop(info.uuid, None)
            return None
        peers = [
            other
            for uuid, other in self._levels.items()
            if uuid != info.uuid
            and other is not None
            and uuid in view.history.gpus
            and view.history.gpus[uuid].info.name == info.name
        ]
        alike = bool(peers) and all(other[:2] == (generation, width) for other in peers)
        ratio = (2.0**generation * width) / (2.0**best_generation * best_width)
        narrow = width < best_width and width <= view.thresholds[NARROW]
        severity: Severity = "warning" if narrow or (generation < best_generation and not alike) else "info"
        onset = self._since.setdefault(info.uuid, view.now_ts)
        if alike and not narrow:
            cause = msg("All GPUs of this machine run so: the board or its BIOS limits the slots")
        elif narrow:
            cause = msg("A riser, a loose card or a slot with few lanes")
        elif width < best_width:
            cause = msg("The board splits its lanes, or the card sits in a shorter slot")
        else:
            cause = msg("Slot, riser or BIOS hold the link at an older generation")
        return Claim(
            code="pcie-degraded",
            target=f"gpu{info.index}",
            severity=severity,
            onset_ts=onset,
            summary=msg(
                "GPU {index}: PCIe {generation} x{width} under load, {best_generation} x{best_width} "
                "possible",
                index=info.index,
                generation=generation,
                width=width,
                best_generation=best_generation,
                best_width=best_width,
            ),
            cause=cause,
            remedy=_remedy(narrow, alike),
            evidence={
                "generation": float(generation),
                "generation_max": float(best_generation),
                "width_lanes": float(width),
                "width_max_lanes": float(best_width),
                "bandwidth_share_percent": round(100 * ratio, 1),
                "readings_under_load": float(readings),
                "peers_differ": "no" if alike else "yes" if peers else None,
            },
            signals=("pcie_tx_kib_per_second", "pcie_rx_kib_per_second"),
            raise_after_seconds=10.0,
            clear_after_seconds=60.0,
        )

    def _replays(self, gpu: GpuHistory, view: View) -> Claim | None:
        slow, now = gpu.slow, view.now_ts
        if (
            slow is None
            or slow.pcie_replays is None
            or slow.pcie_generation is None
            or slow.pcie_width is None
        ):
            return None
        times, counts = gpu.slow_table.window("pcie_replays", now - 75.0, now)
        if len(counts) < 3 or times[-1] - times[0] < 30.0 or counts[-1] < counts[0]:
            return None
        per_minute = (counts[-1] - counts[0]) * 60.0 / (times[-1] - times[0])
        lanes = REPLAYS_PER_LANE_MINUTE.get(slow.pcie_generation, 1.92)
        limit = ceil(lanes * slow.pcie_width)
        alarms = self._replay_alarms.setdefault(gpu.info.uuid, [])
        alarms[:] = [ts for ts in alarms if now - ts <= 600.0]
        if per_minute <= limit:
            return None
        if not alarms or now - alarms[-1] >= 60.0:
            alarms.append(now)
        return Claim(
            code="pcie-degraded",
            target=f"gpu{gpu.info.index}",
            severity="critical" if len(alarms) >= 2 else "warning",
            onset_ts=alarms[0],
            summary=msg(
                "GPU {index}: the PCIe link repeats {per_minute} packets a minute ({limit} is the limit)",
                index=gpu.info.index,
                per_minute=f"{per_minute:.0f}",
                limit=limit,
            ),
            cause=msg("Packets are corrupted on the way: riser, slot, dirt or heat"),
            remedy=msg("Reseat the card, replace the riser; see `dmesg | grep -i aer`"),
            evidence={
                "replays_per_minute": round(per_minute, 1),
                "limit_per_minute": float(limit),
            },
            clear_after_seconds=120.0,
        )


def _remedy(narrow: bool, alike: bool) -> Message:
    if narrow:
        return msg("Reseat the card in a slot with 16 lanes, replace the riser")
    if alike:
        return msg("Nothing to do unless data transfer is slow: a detector sends little over the link")
    return msg("Try another slot, set the slot's generation in the BIOS, replace the riser")
