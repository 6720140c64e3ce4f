"""sync-wait: how much of the time a rank waits in a collective while another validates or saves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.phases import RankPhases
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import msg
from yolomon.model import Item
from yolomon.units import duration

SHARE = declare("sync-wait.share", 0.15, "share", "of the time of complete epochs spent waiting")
EPOCHS_SEEN = 2
EPOCHS_LOOKED_AT = 5


class SyncWait:
    """From the phases of the ranks: what lies between a rank's last step and its next epoch.

    Needs at least two complete epochs. A rank that validates its own share does not wait meanwhile.
    """

    codes: ClassVar[tuple[str, ...]] = ("sync-wait",)

    def __init__(self) -> None:
        self._looked_ts = float("-inf")
        self._claims: list[Claim] = []

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """One claim a waiting GPU; epochs are slow, so it looks every 5 s."""
        if not 0 <= view.now_ts - self._looked_ts < 5:
            self._looked_ts = view.now_ts
            self._claims = self._look(view)
        return self._claims

    @staticmethod
    def _look(view: View) -> list[Claim]:
        leader = view.phases.leader
        if leader is None or view.job.size < 2 or leader.epochs_done < EPOCHS_SEEN:
            return []
        epochs = _epochs(leader)
        if len(epochs) < EPOCHS_SEEN or epochs[-1] <= epochs[0]:
            return []
        start, end = epochs[0], epochs[-1]
        claims = []
        for member in view.job.members:
            if member.gpu_index is None or member.rank == leader.rank:
                continue
            waited = _waited(view, leader, member.rank, start, end)
            share = waited / (end - start)
            if share < view.thresholds[SHARE]:
                continue
            count = len(epochs) - 1
            claims.append(
                Claim(
                    code="sync-wait",
                    target=f"gpu{member.gpu_index}",
                    severity="info",
                    onset_ts=start,
                    summary=msg(
                        "GPU {gpu} waits {wait} of each {epoch} epoch while rank {leader} validates or saves",
                        gpu=member.gpu_index,
                        wait=duration(waited / count),
                        epoch=duration((end - start) / count),
                        leader=leader.rank,
                    ),
                    cause=msg(
                        "rank {leader} does work alone at the end of each epoch; the others spin "
                        "in a collective",
                        leader=leader.rank,
                    ),
                    remedy=msg(
                        "validate or save less often, or make epochs longer; it costs "
                        "{share:.0f} % of this GPU's time",
                        share=100 * share,
                    ),
                    evidence={
                        "waited_percent_of_time": round(100 * share, 1),
                        "waited_seconds_per_epoch": round(waited / count, 2),
                        "epoch_seconds": round((end - start) / count, 2),
                        "epochs": count,
                        "rank": member.rank,
                    },
                    signals=("utilization_percent", "power_watts"),
                    confidence="high" if member.rank in view.phases.ranks else "medium",
                    clear_after_seconds=60.0,
                )
            )
        return claims


def _epochs(leader: RankPhases) -> list[float]:
    """Where training began in each of the newest epochs, oldest first."""
    starts: list[float] = []
    before = ""
    for interval in leader.intervals[-400:]:
        if interval.phase == "train" and before not in ("warmup", "train"):
            starts.append(interval.start_ts)
        before = interval.phase
    return starts[-EPOCHS_LOOKED_AT - 1 :]


def _waited(view: View, leader: RankPhases, rank: int, start: float, end: float) -> float:
    """Seconds in [start, end] that the rank did nothing while the leader was not training."""
    own = view.phases.ranks.get(rank)
    source = own if own is not None else leader
    waiting = ("epoch-turn", "checkpoint") if own is not None else ("epoch-turn", "checkpoint", "validation")
    return sum(
        min(end, i.end_ts if i.end_ts is not None else end) - max(start, i.start_ts)
        for i in source.between(start, end)
        if i.phase in waiting and i.start_ts < end
    )
