"""load-imbalance: GPUs of ONE job that do unequal work, or one that makes the others wait."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.log_clock import shift_by_power
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.memory_imbalance import memory_imbalance
from yolomon.diagnosis.rules.straggler_evidence import (
    data_shares,
    onset_of,
    seconds_of,
    slow_throughout,
    steps_around,
)
from yolomon.diagnosis.seconds import Means
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import msg
from yolomon.model import Item
from yolomon.units import duration

POINTS = declare(
    "load-imbalance.busy-points",
    20.0,
    "points",
    "busy time of a GPU below that of all its peers; healthy ranks differ by up to 10",
)
POINTS_COARSE = declare(
    "load-imbalance.utilization-points",
    25.0,
    "points",
    "the same where only NVML's utilization is there (60 s means of healthy ranks differ by up to 15)",
)
RATIO = declare(
    "load-imbalance.busy-ratio",
    0.75,
    "share",
    "busy time of the slow GPU over its peers' at most this (NVRx calls a rank below 0.75 a straggler)",
)
SECONDS = declare(
    "load-imbalance.seconds", 8.0, "s", "training time looked at with GPM or the driver's samples"
)
DATA_POINTS = declare("load-imbalance.data-points", 0.2, "share", "data time of one rank above the others'")
ONSET_SECONDS = (
    120.0  # after the first look for an onset, a second one: nine minutes of all GPUs are gone through
)
SHIFT_EVERY_SECONDS = 10.0
SHIFT_ACTIVE_SECONDS = 60.0  # while it is told already
EVIDENCE_EVERY_SECONDS = 5.0
WAITS = ("busy_percent", "sm_active_percent", "utilization_percent")


class LoadImbalance:
    """Compares the GPUs of one job while all its ranks train.

    In a collective the rank that waits spins: its GPU shows a kernel all the time, with hardly any work.
    So the GPU that is busy LESS is the one the others wait for. Power and tensor activity do not tell: all do
    the same number of steps. Validation, checkpoint and epoch turn are left out: there the ranks differ
    rightly. Fooled by: GPUs of different models, other users' jobs, ranks that log nothing.
    """

    codes: ClassVar[tuple[str, ...]] = ("load-imbalance",)

    def __init__(self) -> None:
        self._active: set[str] = set()
        self._clocks: tuple[float, Claim | None] = (float("-inf"), None)  # when looked at, what was seen
        self._onset_twice = False
        self._shift = (float("-inf"), 0.0)  # when looked for, seconds that the log's clock is off
        self._evidence: tuple[int, float, tuple[float | None, float | None], dict[int, float]] = (
            -1, float("-inf"), (None, None), {},
        )  # fmt: skip
        self._onset = (-1, float("-inf"), 0.0)  # of which GPU, when looked for, what was found

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """At most one claim about time and one about memory."""
        claims = []
        if len(view.job.gpu_indices) > 1 and (view.phases.known or not view.history.train.ranks):
            claim = self._straggler(view)
            if claim is None:
                self._onset, self._onset_twice = (-1, float("-inf"), 0.0), False
                if not 0 <= view.now_ts - self._clocks[0] < 5:
                    self._clocks = (view.now_ts, self._slower_clock(view))
                claim = self._clocks[1]
            if claim is not None:
                claims.append(claim)
        claims += memory_imbalance(view)
        self._active = {claim.target for claim in claims}
        return claims

    def _log_shift(self, view: View) -> float:
        """How far the log's clock is off, looked for now and then while something is to be told."""
        every = SHIFT_ACTIVE_SECONDS if self._active else SHIFT_EVERY_SECONDS
        if not 0 <= view.now_ts - self._shift[0] < every:
            known = view.phases.known
            shift = shift_by_power(view.seconds, view.phases, view.job, view.now_ts) if known else 0.0
            self._shift = (view.now_ts, shift)
        return self._shift[1]

    def _straggler(self, view: View) -> Claim | None:
        suspect, shift = self._suspect(view), 0.0
        if suspect is not None:
            shift = self._log_shift(view)
            if shift:  # the log's pauses lie where the GPUs work: compared by the machine's clock
                suspect = self._suspect(view, shift)
        if suspect is None:
            return None
        slow, means, busy, least = suspect
        peers_busy = median(value for index, value in busy.items() if index != slow)
        if f"gpu{slow}" not in self._active and not slow_throughout(
            view, slow, least, seconds_of(means), shift
        ):
            return None  # seconds at the edges of epochs, by a log whose clock is a little off
        return self._say_straggler(view, slow, means, busy, peers_busy)

    def _suspect(
        self, view: View, shift: float = 0.0
    ) -> tuple[int, dict[int, Means], dict[int, float], float] | None:
        """The GPU that is busy less than its peers, all GPUs' means and busy times, and the points asked."""
        means: dict[int, Means] = {}
        for index in view.job.gpu_indices:
            seconds = view.thresholds[SECONDS]
            found = view.seconds.training_means(index, view.phases, view.now_ts, seconds, shift=shift)
            if found is not None and found.busy_by == "utilization":  # aliased: look longer
                found = view.seconds.training_means(index, view.phases, view.now_ts, 2 * seconds, shift=shift)
                if found is not None and found.seconds < 2 * seconds:
                    return None
            if found is None or found.busy_percent is None or found.seconds < seconds:
                return None
            if view.now_ts - found.last_ts > 30:
                return None  # no training for long: what was is no news
            means[index] = found
        if not view.phases.known and min(m.seconds for m in means.values()) < 8:
            return None
        busy = {index: m.busy_percent or 0.0 for index, m in means.items()}
        slow = min(busy, key=lambda index: (busy[index], index))
        peers = [value for index, value in busy.items() if index != slow]
        coarse = any(m.busy_by == "utilization" for m in means.values())
        least = view.thresholds[POINTS_COARSE if coarse else POINTS]
        ratio = view.thresholds[RATIO]
        target = f"gpu{slow}"
        if target in self._active:  # clears at a lower level than it raises
            least, ratio = least * 0.6, min(0.9, ratio + 0.1)
        if min(peers) - busy[slow] < least or busy[slow] > ratio * median(peers):
            return None
        if median(peers) < 35:
            return None  # nobody spins: they all wait for something else
        return slow, means, busy, least

    def _say_straggler(
        self, view: View, slow: int, means: dict[int, Means], busy: dict[int, float], peers_busy: float
    ) -> Claim:
        rank = view.job.rank_of(slow)
        leader = view.phases.leader
        again = view.now_ts - self._onset[1] >= ONSET_SECONDS and not self._onset_twice
        if self._onset[0] != slow or again:
            self._onset_twice = again
            self._onset = (slow, view.now_ts, onset_of(view, slow))
        onset = self._onset[2]
        steps, data = self._evidence_of(view, slow, rank, onset)
        step, before = steps
        waiting = peers_busy - busy[slow]
        peers_sm = [m.sm_active_percent for i, m in means.items() if i != slow and m.sm_active_percent]
        own_sm = means[slow].sm_active_percent
        evidence: dict[str, float | str | None] = {
            "rank": rank,
            "busy_percent": round(busy[slow], 1),
            "peers_busy_percent": round(peers_busy, 1),
            "peers_waiting_percent_of_time": round(waiting, 1),
            "sm_active_percent": None if own_sm is None else round(own_sm, 1),
            "peers_sm_active_percent": round(median(peers_sm), 1) if peers_sm else None,
            "step_seconds": None if step is None else round(step, 3),
            "step_seconds_before": None if before is None else round(before, 3),
            "window_seconds": round(means[slow].seconds, 1),
        }
        if step is not None and before is not None and before < 0.9 * step:
            summary = msg(
                "GPU {gpu} holds the others back: steps take {step}, {before} before",
                gpu=slow,
                step=duration(step),
                before=duration(before),
            )
        else:
            summary = msg(
                "GPU {gpu} holds the others back: it works {busy:.0f} % of the time, they wait "
                "for it {waiting:.0f} %",
                gpu=slow,
                busy=busy[slow],
                waiting=waiting,
            )
        own_data = data.get(rank) if rank is not None else None
        others = [share for r, share in data.items() if r != rank]
        unseen = list(view.job.unseen)
        if len(view.phases.ranks) < view.job.size:
            unseen.append(msg("not all ranks write a log: the GPUs alone were compared"))
        if own_data is not None and others and own_data - median(others) >= view.thresholds[DATA_POINTS]:
            evidence["data_share_percent"] = round(100 * own_data, 1)
            cause = msg(
                "rank {rank} waits for its input {share:.0f} % of each step, the others {others:.0f} %",
                rank=rank,
                share=100 * own_data,
                others=100 * median(others),
            )
            remedy = msg(
                "look at what rank {rank}'s loader does more: its shard of the data, its CPU cores, its disk",
                rank=rank,
            )
        else:
            cause = msg(
                "rank {rank} does something outside the GPU in every step, and the others wait "
                "for it in the collective",
                rank="?" if rank is None else rank,
            )
            pid = None if rank is None else view.job.pid_of(rank)
            remedy = (
                msg(
                    "see what it does: py-spy dump --pid {pid}; look for callbacks, logging or "
                    "data work on one rank",
                    pid=pid,
                )
                if pid is not None
                else msg("look for callbacks, logging or data work that one rank does more than the others")
            )
        names = {gpu.info.name for gpu in view.history.by_index() if gpu.info.index in busy}
        if len(names) > 1:
            evidence["gpu_models"] = ", ".join(sorted(names))
            unseen.append(msg("the GPUs are of different models"))
        confidence = "high"
        if means[slow].busy_by == "utilization" or not view.job.certain or leader is None or len(names) > 1:
            confidence = "medium"
        return Claim(
            code="load-imbalance",
            target=f"gpu{slow}",
            severity="warning",
            onset_ts=onset,
            summary=summary,
            cause=cause,
            remedy=remedy,
            evidence=evidence,
            signals=WAITS,
            explains=("gpu-underused", "bursty-load", "slowdown", "sync-wait@*", "gpu-underused@*"),
            confidence=confidence,
            unseen=tuple(unseen),
            raise_after_seconds=1.0 if view.phases.known else 60.0,
            clear_after_seconds=20.0,
        )

    def _evidence_of(
        self, view: View, slow: int, rank: int | None, onset_ts: float
    ) -> tuple[tuple[float | None, float | None], dict[int, float]]:
        """Steps now and before, and shares of waiting for data: gone through anew every few seconds."""
        known, looked, steps, data = self._evidence
        if known != slow or not 0 <= view.now_ts - looked < EVIDENCE_EVERY_SECONDS:
            steps, data = steps_around(view, rank, onset_ts), data_shares(view)
            self._evidence = (slow, view.now_ts, steps, data)
        return steps, data

    def _slower_clock(self, view: View) -> Claim | None:
        """A GPU that computes slower (hot, capped): all are busy, it alone works all the time."""
        means: dict[int, Means] = {}
        for index in view.job.gpu_indices:
            found = view.seconds.training_means(index, view.phases, view.now_ts, 20.0)
            if found is None or found.seconds < 20 or view.now_ts - found.last_ts > 30:
                return None
            if found.sm_active_percent is None or found.sm_clock_mhz is None:
                return None
            means[index] = found
        if len({g.info.name for g in view.history.by_index() if g.info.index in means}) > 1:
            return None
        slow = max(means, key=lambda i: (means[i].sm_active_percent or 0.0, -i))
        own = means[slow]
        peers = [m for i, m in means.items() if i != slow]
        sm = median(m.sm_active_percent or 0.0 for m in peers)
        clock = median(m.sm_clock_mhz or 0.0 for m in peers)
        own_sm, own_clock = own.sm_active_percent or 0.0, own.sm_clock_mhz or 0.0
        if sm <= 0 or own_sm < 1.15 * sm or own_clock > 0.9 * clock:
            return None
        return Claim(
            code="load-imbalance",
            target=f"gpu{slow}",
            severity="warning",
            onset_ts=own.first_ts,
            summary=msg(
                "GPU {gpu} holds the others back: its clock is {own:.0f} MHz, theirs {peers:.0f} MHz",
                gpu=slow,
                own=own_clock,
                peers=clock,
            ),
            cause=msg("it computes more slowly than its peers, which wait for it in the collective"),
            remedy=msg(
                "compare temperature, power limit and clock limit: nvidia-smi -q -i {gpu} -d "
                "PERFORMANCE,POWER",
                gpu=slow,
            ),
            evidence={
                "sm_clock_mhz": round(own_clock),
                "peers_sm_clock_mhz": round(clock),
                "sm_active_percent": round(own_sm, 1),
                "peers_sm_active_percent": round(sm, 1),
                "window_seconds": round(own.seconds, 1),
            },
            signals=("sm_clock_mhz", "sm_active_percent"),
            confidence="medium",
            raise_after_seconds=10.0,
            clear_after_seconds=30.0,
        )
