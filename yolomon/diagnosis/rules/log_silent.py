"""A log that does not grow although the job's GPUs work: a buffered writer, a slow mount, a wrong file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.phases import TRAINING
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import msg
from yolomon.model import Item, LogStatus, TrainRecord
from yolomon.units import duration

FLOOR = declare("log-silent.floor-seconds", 90.0, "s", "shorter silence is never told")
GAPS = declare("log-silent.gaps", 8.0, "times", "the usual time between two growths")
LONGEST = declare("log-silent.longest-gaps", 2.0, "times", "the longest time without growth so far")
POWER_SHARE = declare(
    "log-silent.power-share", 0.6, "share", "of the power while the log grew: less is a hang or a stall"
)
NEVER = declare(
    "log-silent.never-seconds", 180.0, "s", "a log that never grew since we attached is told after this"
)


class LogSilent:
    """Compares how the log grew with how it is silent now, while power says that work goes on."""

    codes: ClassVar[tuple[str, ...]] = ("log-silent",)

    def __init__(self) -> None:
        self._first_ts: dict[str, float] = {}
        self._grown: dict[str, float] = {}
        self._gaps: dict[str, deque[float]] = {}

    def observe(self, item: Item, view: View) -> None:
        """Note when each log grows."""
        if isinstance(item, LogStatus):
            self._first_ts.setdefault(item.source, item.ts)
            if item.last_growth_ts is not None and item.last_growth_ts >= self._first_ts[item.source]:
                self._growth(item.source, item.last_growth_ts)
        elif isinstance(item, TrainRecord) and not item.backlog and item.source:
            self._first_ts.setdefault(item.source, item.ts)
            self._growth(item.source, item.ts)

    def _growth(self, source: str, ts: float) -> None:
        before = self._grown.get(source)
        if before is not None and ts > before:
            self._gaps.setdefault(source, deque(maxlen=64)).append(ts - before)
        if before is None or ts > before:
            self._grown[source] = ts

    def check(self, view: View) -> Iterator[Claim]:
        """The log that grew last; ranks' logs of one run are one."""
        train, now = view.history.train, view.now_ts
        if not self._first_ts or train.ended is not None:
            return
        phase = view.phases.current
        if phase is not None and phase not in TRAINING and phase != "starting":
            return  # validation writes nothing in most trainers
        source = max(self._first_ts, key=lambda name: self._grown.get(name, self._first_ts[name]))
        status = train.logs.get(source)
        if status is not None and status.state in ("gone", "unreadable", "ended", "waiting"):
            return
        grown = self._grown.get(source)
        since = self._first_ts[source] if grown is None else grown
        silent = now - since
        gaps = self._gaps.get(source, ())
        if grown is None or len(gaps) < 3:
            patience = view.thresholds[NEVER]
        else:
            patience = max(
                view.thresholds[FLOOR],
                view.thresholds[GAPS] * median(gaps),
                view.thresholds[LONGEST] * max(gaps),
            )
        if silent <= patience:
            return
        working = self._working_power(view, since)
        if working is None:
            return
        power, before = working
        yield Claim(
            code="log-silent",
            target="log",
            severity="info",
            onset_ts=since,
            summary=msg("The log has not grown for {silent} although the GPU works", silent=duration(silent)),
            cause=msg("The writer holds its output back in blocks, or the file lies on a slow network mount")
            if grown is not None
            else msg("It has not grown since we look at it: it may be the log of another run"),
            remedy=msg(
                "Start the trainer with PYTHONUNBUFFERED=1; check that {source} is this run's log",
                source=source,
            ),
            evidence={
                "silent_seconds": round(silent, 1),
                "usual_gap_seconds": round(median(gaps), 2) if gaps else None,
                "power_watts": round(power, 1),
                "power_before_watts": None if before is None else round(before, 1),
            },
            raise_after_seconds=5.0,
            clear_after_seconds=5.0,
        )

    def _working_power(self, view: View, silent_since_ts: float) -> tuple[float, float | None] | None:
        """Mean power of the job's GPUs now and before the silence, where it says that they work."""
        now = view.now_ts
        best: tuple[float, float | None] | None = None
        for index in view.job.gpu_indices:
            recent = view.seconds.means(index, now - 30.0, now)
            earlier = view.seconds.means(index, silent_since_ts - 120.0, silent_since_ts)
            if recent is None or recent.power_watts is None or (recent.busy_percent or 0.0) < 20.0:
                return None
            before = earlier.power_watts if earlier is not None else None
            if before is not None:
                if recent.power_watts < view.thresholds[POWER_SHARE] * before:
                    return None
            else:
                gpu = view.history.gpu(index)
                limit = gpu.info.power_limit_watts if gpu is not None else None
                if limit is None or recent.power_watts < 0.4 * limit:
                    return None
            if best is None or recent.power_watts > best[0]:
                best = (recent.power_watts, before)
        return best
