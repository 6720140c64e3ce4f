"""How long no step came, and whether that is too long for the phase the job is in."""

from __future__ import annotations

import msgspec

from yolomon.diagnosis.phases import TRAINING, Phase
from yolomon.diagnosis.rules.base import View
from yolomon.diagnosis.thresholds import declare

FLOOR = declare("stall.seconds", 10.0, "s", "without a step within an epoch before it can be called a stall")
STEPS = declare(
    "stall.steps", 20.0, "steps", "usual step times without a step before it can be called a stall"
)
GAPS = declare("stall.gaps", 3.0, "times", "the longest gap of the run so far, likewise")
TURN_FLOOR = declare("stall.turn-seconds", 120.0, "s", "between epochs (validation, saving), at least")
TURN_FIRST = declare("stall.first-turn-seconds", 900.0, "s", "the same before any epoch turn was seen")
TURN_TIMES = declare("stall.turns", 5.0, "times", "the longest epoch turn of the run so far")
START = declare(
    "stall.start-seconds",
    1800.0,
    "s",
    "before the first step: caching 368k images took 16 min 27 s (ultralytics#22307)",
)


class Silence(msgspec.Struct, frozen=True):
    """The time since the newest step of any rank."""

    since_ts: float
    seconds: float
    limit_seconds: float
    phase: Phase
    typical_seconds: float | None

    @property
    def overdue(self) -> bool:
        """Whether the next step should have come long ago."""
        return self.seconds > self.limit_seconds


def silence(view: View) -> Silence | None:
    """How long no rank made a step; None where no step is known or the run ended."""
    phases = view.phases
    current = phases.current
    if current is None or current == "ended":
        return None
    leader = phases.leader
    if leader is None or leader.current is None:
        return None
    last = phases.last_batch_ts()
    thresholds = view.thresholds
    if last is None:
        since = leader.current.start_ts if leader.last_record_ts is None else leader.last_record_ts
        return Silence(since, view.now_ts - since, thresholds[START], current, None)
    typical = leader.typical_gap()
    in_epoch = all(r.current is not None and r.current.phase in TRAINING for r in phases.ranks.values())
    if in_epoch:
        patience = phases.patience_seconds(thresholds[FLOOR], thresholds[STEPS], thresholds[GAPS])
        if patience is None or leader.batches < 10:
            patience = max(60.0, patience or 0.0)  # no usual step is known yet
        return Silence(last, view.now_ts - last, patience, current, typical)
    longest = max((r.longest_turn or 0.0 for r in phases.ranks.values()), default=0.0)
    limit = (
        max(thresholds[TURN_FLOOR], thresholds[TURN_TIMES] * longest) if longest else thresholds[TURN_FIRST]
    )
    newest = max((r.last_record_ts or last for r in phases.ranks.values()), default=last)
    since = max(last, newest)
    return Silence(since, view.now_ts - since, limit, current, typical)


def job_cpu_percent(view: View, pid: int, since_ts: float) -> float | None:
    """Mean CPU of a process since then, percent of one core; None where it is not seen."""
    process = view.history.processes.by_pid.get(pid)
    if process is None:
        return None
    values = [p.cpu_percent for p in process.points if p.ts >= since_ts and p.cpu_percent is not None]
    return sum(values) / len(values) if values else None
