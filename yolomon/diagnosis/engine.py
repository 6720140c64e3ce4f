"""The engine: keeps the history, asks the rules once a second of the samples' time, and says findings.

It knows no clock but the samples', so a recording gives the same findings at any speed. A claim becomes a
finding once it held for its own time (hysteresis), keeps its onset, is cleared after it was gone for longer,
and may come again after that. A cause hides its effects. A gap in the data resets what was pending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import floor
from typing import Literal

import msgspec

from yolomon.diagnosis.job import Job, find_job
from yolomon.diagnosis.log_clock import LogClock
from yolomon.diagnosis.phases import Phases
from yolomon.diagnosis.rules import all_rules
from yolomon.diagnosis.rules.base import Claim, Rule, View
from yolomon.diagnosis.seconds import Seconds
from yolomon.diagnosis.thresholds import Thresholds
from yolomon.diagnosis.timesplit import TimeSplit
from yolomon.history import History
from yolomon.model import Finding, Item, Severity, Telemetry, TrainRecord

CLEARED_LIMIT = 256
CHANGES_LIMIT = 512
GAP_SECONDS = 15.0  # no item for longer: an SSH drop or a suspended machine, not a state of the job
AFTER_CAUSE_SECONDS = 30.0  # that an effect must outlive its cause before it is told by itself
BACK_SECONDS = 5.0  # the clock was set back
_WEIGHT: dict[Severity, int] = {"critical": 0, "warning": 1, "info": 2}
Key = tuple[str, str]  # code, target


class Change(msgspec.Struct, frozen=True):
    """Something that happened to a finding since `Engine.changes` was last asked."""

    kind: Literal["raised", "escalated", "cleared"]
    finding: Finding


class _State:
    """What is known about one (code, target)."""

    def __init__(self) -> None:
        self.pending_since: float | None = None
        self.claimed_ts = 0.0
        self.clear_after = 10.0
        self.finding: Finding | None = None
        self.explains: tuple[str, ...] = ()
        self.shown = False  # was ever visible, not hidden by its cause
        self.explained_ts: float | None = None  # when a cause last hid it


class Engine:
    """Diagnosis over a stream of items. One owner, one thread.

    Args:
        thresholds: overrides of the defaults.
        silenced: codes, or "code@target", that are not to be said.
        history: where items go; a new one unless given. The engine adds to it.
        rules: all of the registry unless given.
    """

    def __init__(
        self,
        thresholds: Thresholds | None = None,
        silenced: Iterable[str] = (),
        history: History | None = None,
        rules: Sequence[Rule] | None = None,
    ) -> None:
        self.history = history if history is not None else History()
        self.phases = Phases()
        self.seconds = Seconds()
        self.timesplit = TimeSplit(self.phases)
        self.job = Job()
        self._rules: list[Rule] = list(rules) if rules is not None else all_rules()
        self._silenced = set(silenced)
        self._view = View(
            now_ts=0.0,
            history=self.history,
            job=self.job,
            phases=self.phases,
            thresholds=thresholds or Thresholds(),
            seconds=self.seconds,
        )
        self._states: dict[Key, _State] = {}
        self._cleared: deque[Finding] = deque(maxlen=CLEARED_LIMIT)
        self._changes: deque[Change] = deque(maxlen=CHANGES_LIMIT)
        self._second: int | None = None
        self._telemetry_ts: float | None = None
        self._interval = 1.0  # between two readings of telemetry, seconds, at most GAP_SECONDS
        self._apart = 1.0  # the same however long
        self._job_key: tuple[object, ...] = ()
        self._log_clock = LogClock()

    # ------------------------------------------------------------ input

    def observe(self, item: Item) -> None:
        """Take one item: into the history, to the rules; checks whenever a whole second has passed.

        Records of a log whose clock is off are moved to the machine's.
        """
        if isinstance(item, TrainRecord):
            placed_ts = self._log_clock.place(item)
            if placed_ts != item.ts:
                item = msgspec.structs.replace(item, ts=placed_ts)
        elif isinstance(item, Telemetry):
            self._log_clock.read(item.ts)
        if not (isinstance(item, TrainRecord) and item.backlog):
            self._advance(item)
        self.history.add(item)
        if isinstance(item, TrainRecord):
            self.phases.observe(item, self._telemetry_ts)
            self.timesplit.observe(item)
        elif isinstance(item, Telemetry):
            self.seconds.observe(item)
        for rule in self._rules:
            rule.observe(item, self._view)

    def finish(self) -> None:
        """Check once more at the end of a recording, so that its last second counts."""
        if self._second is not None:
            self.check(float(floor(self.history.now_ts) + 1))

    def _advance(self, item: Item) -> None:
        ts = item.ts
        if isinstance(item, Telemetry):
            if self._telemetry_ts is not None and ts > self._telemetry_ts:
                apart = ts - self._telemetry_ts
                if self._is_gap(apart):
                    self._view.watched_since_ts = ts
                self._apart, self._interval = apart, min(apart, GAP_SECONDS)
            elif self._telemetry_ts is None:
                self._view.watched_since_ts = ts
            self._telemetry_ts = ts
        elif self._telemetry_ts is not None:
            ahead = ts - self._telemetry_ts
            if self._interval + 1.0 < ahead < 2 * GAP_SECONDS:
                return  # telemetry is the clock while it flows: a log's time may be another machine's
        second = floor(ts)
        if self._second is None:
            self._second = second
            return
        passed = second - self._second
        if passed < 0:
            if passed < -BACK_SECONDS:
                self._forget_pending(0.0)
                self._second = second
            return
        if passed == 0:
            return
        if passed > GAP_SECONDS:
            self._forget_pending(float(passed))
            if self._telemetry_ts is not None and self._is_gap(passed):
                self._view.watched_since_ts = ts
        self._second = second
        self.check(float(second))

    def _is_gap(self, seconds: float) -> bool:
        """Whether nobody looked for so long, by how often it is read."""
        return seconds > max(GAP_SECONDS, 3 * self._apart)

    def _forget_pending(self, gap_seconds: float) -> None:
        for state in self._states.values():
            if state.finding is None:
                state.pending_since = None
            else:
                state.claimed_ts += gap_seconds  # nobody looked: that is no sign of health

    # ------------------------------------------------------------ judging

    def check(self, now_ts: float) -> None:
        """Ask all rules what is wrong at `now_ts` (a sample's time) and update the findings."""
        view = self._view
        view.now_ts = now_ts
        self._find_job()
        view.job = self.job
        self.timesplit.estimate_waits(self.job, self.seconds, self.phases, now_ts)
        claims: dict[Key, Claim] = {}
        for rule in self._rules:
            for claim in rule.check(view):
                key = (claim.code, claim.target)
                known = claims.get(key)
                if known is None or _WEIGHT[claim.severity] < _WEIGHT[known.severity]:
                    claims[key] = claim
        over = claims.get(("trainer-died", "run")) or claims.get(("trainer-ended", "run"))
        self.timesplit.over_ts = None if over is None else over.onset_ts
        for key, claim in claims.items():
            self._claimed(key, claim, now_ts)
        for key, state in list(self._states.items()):
            if key not in claims:
                self._unclaimed(key, state, now_ts)
        self._hide_effects(now_ts)

    def _find_job(self) -> None:
        history = self.history
        key = (
            history.processes.ts,
            tuple((rank, told.pid) for rank, told in history.train.ranks.items()),
            history.train.run.world_size,
            tuple(gpu.slow_ts for gpu in history.gpus.values()),
        )
        if key != self._job_key:
            self._job_key = key
            self.job = find_job(history)

    def _claimed(self, key: Key, claim: Claim, now_ts: float) -> None:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State()
        if state.pending_since is None:
            state.pending_since = now_ts
        state.claimed_ts = now_ts
        state.clear_after = claim.clear_after_seconds
        before = state.finding
        if before is None and now_ts - state.pending_since < claim.raise_after_seconds:
            return
        state.explains = claim.explains
        onset = claim.onset_ts if before is None else min(claim.onset_ts, before.onset_ts)
        state.finding = Finding(
            code=claim.code,
            severity=claim.severity,
            target=claim.target,
            onset_ts=onset,
            raised_ts=now_ts if before is None else before.raised_ts,
            summary=claim.summary,
            cause=claim.cause,
            remedy=claim.remedy,
            evidence=claim.evidence,
            signals=claim.signals,
            related=tuple(dict.fromkeys(code.split("@")[0] for code in claim.explains)),
            confidence=_confidence(claim.confidence),
            unseen=claim.unseen,
            silenced=self._is_silenced(key),
        )
        if before is not None and _WEIGHT[claim.severity] < _WEIGHT[before.severity] and state.shown:
            self._changes.append(Change("escalated", state.finding))

    def _unclaimed(self, key: Key, state: _State, now_ts: float) -> None:
        if state.finding is None:
            del self._states[key]
        elif now_ts - state.claimed_ts >= state.clear_after:
            cleared = msgspec.structs.replace(state.finding, cleared_ts=now_ts)
            if state.shown:
                self._cleared.append(cleared)
                self._changes.append(Change("cleared", cleared))
            del self._states[key]

    def _hide_effects(self, now_ts: float) -> None:
        """Show what no cause explains; an effect not at once when its cause is gone, as it ends later."""
        causes = [(key, s.explains) for key, s in self._states.items() if s.finding is not None]
        for key, state in self._states.items():
            if state.finding is None or state.shown:
                continue
            if _explained(key, causes):
                state.explained_ts = now_ts
                continue
            if state.explained_ts is not None:
                if now_ts - state.explained_ts < AFTER_CAUSE_SECONDS:
                    continue
                state.finding = msgspec.structs.replace(state.finding, raised_ts=now_ts)
            state.shown = True
            self._changes.append(Change("raised", state.finding))

    # ------------------------------------------------------------ output

    def findings(self, *, silenced: bool = False) -> list[Finding]:
        """What is wrong now, worst first: no effects of another finding, none silenced unless asked for."""
        causes = [(key, s.explains) for key, s in self._states.items() if s.finding is not None]
        found = [
            state.finding
            for key, state in self._states.items()
            if state.finding is not None
            and state.shown
            and (silenced or not state.finding.silenced)
            and not _explained(key, causes)
        ]
        return sorted(found, key=lambda f: (_WEIGHT[f.severity], f.onset_ts, f.code, f.target))

    def all_findings(self) -> list[Finding]:
        """Every finding that was said, also those cleared since, in the order they were raised."""
        found = [*self._cleared, *(s.finding for s in self._states.values() if s.finding and s.shown)]
        return sorted(found, key=lambda f: (f.raised_ts, _WEIGHT[f.severity], f.code, f.target))

    def changes(self) -> list[Change]:
        """What happened since this was last asked, oldest first (at most the newest 512)."""
        told = list(self._changes)
        self._changes.clear()
        return told

    def silence(self, code: str, target: str | None = None, *, on: bool = True) -> None:
        """Say no more of that code (at that target, or anywhere), or say it again."""
        name = code if target is None else f"{code}@{target}"
        if on:
            self._silenced.add(name)
        else:
            self._silenced.discard(name)
        for key, state in self._states.items():
            if state.finding is not None:
                state.finding = msgspec.structs.replace(state.finding, silenced=self._is_silenced(key))

    @property
    def silenced(self) -> tuple[str, ...]:
        """The codes and "code@target" names that are silenced."""
        return tuple(sorted(self._silenced))

    def _is_silenced(self, key: Key) -> bool:
        return key[0] in self._silenced or f"{key[0]}@{key[1]}" in self._silenced


def _explained(key: Key, causes: list[tuple[Key, tuple[str, ...]]]) -> bool:
    code, target = key
    for (cause_code, cause_target), explains in causes:
        if cause_code == code and cause_target == target:
            continue
        if f"{code}@*" in explains:
            return True
        if code in explains and (target == cause_target or "run" in (target, cause_target)):
            return True
    return False


def _confidence(word: str) -> Literal["high", "medium", "low"]:
    if word == "medium":
        return "medium"
    return "low" if word == "low" else "high"
