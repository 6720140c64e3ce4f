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
TURN_WORKS = declare(
    "stall.working-turn-seconds",
    900.0,
    "s",
    "between epochs, or in the first steps, while the lowest rank works on its GPU or the CPU: a validation "
    "that comes each few epochs, mAP on the CPU, a compiler",
)
TURN_TIMES = declare("stall.turns", 5.0, "times", "the longest epoch turn of the run so far")
ASLEEP = declare(
    "stall.asleep-seconds",
    20.0,
    "s",
    "the same within a validation, or at an epoch's start, in which nothing works: no GPU of the job and no "
    "process of the lowest rank, or every GPU spins in a collective",
)
ASLEEP_CPU = declare("stall.asleep-cpu-percent", 5.0, "%", "of a core: a process below this does no work")
START = declare(
    "stall.start-seconds",
    1800.0,
    "s",
    "before the first step: caching 368k images took 16 min 27 s (ultralytics#22307)",
)

COVERED = 0.6  # of the time looked at that readings must span
IDLE_MOST = 2.0  # % utilization
WORKS_SECONDS = 20.0  # looked at
WORKS_LOAD = 10.0  # % utilization of a GPU that validates; one that stopped has none
WORKS_CPU = 50.0  # % of a core
SPIN_LEAST = 90.0
SPIN_POWER = 0.65  # of its own while training
TENSOR_MOST = 3.0  # % activity of a GPU that only spins
EFFECTS = (
    "data-starvation@*",
    "gpu-underused@*",
    "bursty-load@*",
    "load-imbalance@*",
    "slowdown",
    "sync-wait@*",
    "no-progress",
)  # codes that a run which stands still explains
TRAINING_SECONDS = 8.0
RECENT_SECONDS = 120.0


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
    if last is not None:
        # Where nobody looked (a suspended machine, a lost connection) is no silence; nor are steps that came
        # just now with old stamps (a clock of another time zone).
        last = max(last, min(phases.heard_ts or last, view.now_ts), view.watched_since_ts)
    if last is None:
        since = leader.current.start_ts if leader.last_record_ts is None else leader.last_record_ts
        since = max(since, min(phases.heard_ts or since, view.now_ts), view.watched_since_ts)
        return Silence(since, view.now_ts - since, thresholds[START], current, None)
    typical = leader.typical_gap()
    in_epoch = all(r.current is not None and r.current.phase in TRAINING for r in phases.ranks.values())
    untold = leader.may_turn_untold
    if in_epoch and untold is None:
        untold = leader_works(view, last)
    if in_epoch and not untold:
        patience = phases.patience_seconds(thresholds[FLOOR], thresholds[STEPS], thresholds[GAPS])
        if patience is None or leader.batches < 10:
            patience = max(60.0, patience or 0.0)  # no usual step is known yet
            if patience < view.now_ts - last and leader_works(view, last):
                patience = max(patience, thresholds[TURN_WORKS])  # the first steps compile kernels
        return Silence(last, view.now_ts - last, patience, current, typical)
    longest = max((r.longest_turn or 0.0 for r in phases.ranks.values()), default=0.0)
    limit = (
        max(thresholds[TURN_FLOOR], thresholds[TURN_TIMES] * longest) if longest else thresholds[TURN_FIRST]
    )
    newest = max((r.last_record_ts or last for r in phases.ranks.values()), default=last)
    since = max(last, newest)
    if limit < view.now_ts - since and leader_works(view, since):
        limit = max(limit, thresholds[TURN_WORKS])
    asleep = thresholds[ASLEEP]
    if asleep < view.now_ts - since <= limit and nothing_works(view, view.now_ts - asleep):
        limit = asleep
    return Silence(since, view.now_ts - since, limit, current, typical)


def nothing_works(view: View, since_ts: float) -> bool:
    """Whether a validation or an epoch's start stands still: no GPU of the job worked, nor the lowest rank.

    The lowest rank validates; and an epoch that was begun loads its first batch with the CPU or the disk.
    A validation works on the GPU, or on the CPU (non-maximum suppression, mAP, plots, loading), in the rank
    or in a process that it started. Where all GPUs spin, all ranks wait in collectives that do not match
    (ultralytics#24536). False where the processes or the GPUs cannot be seen, or one waits for a disk.
    """
    leader = view.phases.leader
    if leader is None or leader.current is None:
        return False
    if leader.current.phase != "validation" and not leader.begins_epoch:
        return False  # between them a run saves, perhaps to a slow disk
    loads: dict[int, tuple[float, float, float]] = {}  # least and most utilization, most tensor activity
    for index in view.job.gpu_indices:
        rows = view.seconds.rows(index, since_ts, view.now_ts)
        busy = [row.utilization_percent for row in rows if row.utilization_percent is not None]
        if (
            not rows
            or len(busy) < len(rows)
            or rows[-1].end_ts - rows[0].start_ts < COVERED * (view.now_ts - since_ts)
        ):
            return False
        tensor = max((row.tensor_active_percent or 0.0 for row in rows), default=0.0)
        loads[index] = (min(busy), max(busy), tensor)
    own = view.job.gpu_of(leader.rank)
    if own not in loads or any(IDLE_MOST < low < SPIN_LEAST for low, _, _ in loads.values()):
        return False
    if any(tensor > TENSOR_MOST for _, _, tensor in loads.values()):
        return False
    if len(loads) > 1 and all(low >= SPIN_LEAST for low, _, _ in loads.values()):
        return all(_draws_little(view, index, since_ts) for index in loads)
    return loads[own][1] <= IDLE_MOST and _sleeps(view, leader.rank, since_ts)


def leader_works(view: View, silent_since_ts: float) -> bool:
    """Whether the lowest rank is at work outside of steps: its GPU computes, or its processes do.

    A GPU that spins in a collective does no work, and a rank that waits in one needs a core for that.
    """
    leader = view.phases.leader
    index = None if leader is None else view.job.gpu_of(leader.rank)
    if leader is None or index is None:
        return False
    since = max(silent_since_ts + 2.0, view.now_ts - WORKS_SECONDS)
    means = view.seconds.means(index, since, view.now_ts)
    load = None if means is None else means.utilization_percent
    if means is None or load is None:
        return False
    if load >= SPIN_LEAST:
        if means.tensor_active_percent is not None:
            return means.tensor_active_percent > TENSOR_MOST
        own = view.seconds.working_watts(index)
        return own is not None and means.power_watts is not None and means.power_watts > SPIN_POWER * own
    if load >= WORKS_LOAD:
        return True
    pid = view.job.pid_of(leader.rank)
    if pid is None:
        return False
    cpu = [c for one in _tree(view, pid) if (c := job_cpu_percent(view, one, since)) is not None]
    return sum(cpu) >= WORKS_CPU


def _draws_little(view: View, index: int, since_ts: float) -> bool:
    """Whether a GPU at 100 % has the power of one that only spins."""
    means = view.seconds.means(index, since_ts, view.now_ts)
    view.seconds.training_means(index, view.phases, view.now_ts, 20.0, within_seconds=600.0)
    own = view.seconds.working_watts(index)
    if means is None or means.power_watts is None or own is None:
        return False
    return means.power_watts <= SPIN_POWER * own


def _sleeps(view: View, rank: int, since_ts: float) -> bool:
    """Whether the rank's process and all that it started did nothing since then."""
    pid = view.job.pid_of(rank)
    table = view.history.processes.by_pid
    if pid is None or pid not in table:
        return False
    for one in _tree(view, pid):
        if table[one].sample.status == "disk-sleep":
            return False
        cpu = job_cpu_percent(view, one, since_ts)
        if cpu is None and one == pid:
            return False
        if cpu is not None and cpu >= view.thresholds[ASLEEP_CPU]:
            return False
    return True


def _tree(view: View, pid: int) -> set[int]:
    """A process and all that it started, as far as they are seen."""
    table = view.history.processes.by_pid
    tree, grown = {pid}, True
    while grown:
        more = {p for p, known in table.items() if known.sample.parent_pid in tree} - tree
        tree |= more
        grown = bool(more)
    return tree & table.keys()


def job_cpu_percent(view: View, pid: int, since_ts: float) -> float | None:
    """Mean CPU of a process since then, percent of one core; None where it is not seen."""
    process = view.history.processes.by_pid.get(pid)
    if process is None:
        return None
    values = [p.cpu_percent for p in process.points if p.ts >= since_ts and p.cpu_percent is not None]
    return sum(values) / len(values) if values else None


def trains(view: View) -> bool:
    """Whether a job is seen that makes steps and has for some seconds."""
    first = min((r.first_batch_ts for r in view.phases.ranks.values() if r.first_batch_ts), default=None)
    last = view.phases.last_batch_ts()
    if first is None or last is None or view.phases.current == "ended":
        return False
    return view.now_ts - first >= TRAINING_SECONDS and view.now_ts - last < RECENT_SECONDS
