"""A run with what is really wrong in it, and how its diagnosis is scored."""

from __future__ import annotations

import msgspec

from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import Finding, Item


class Truth(msgspec.Struct, frozen=True):
    """What a watcher should say, from when on, and within how many seconds."""

    code: str
    target: str
    onset_ts: float
    deadline_seconds: float


class Labelled(msgspec.Struct):
    """Items in time's order, the truths in them, and what may be said as well."""

    name: str
    items: list[Item]
    truths: list[Truth] = []
    allowed: frozenset[str] = frozenset()

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.items[-1].ts - self.items[0].ts


class Score(msgspec.Struct):
    """How one run was diagnosed."""

    name: str
    seconds: float
    found: list[str] = []
    missed: list[str] = []
    false_alarms: list[str] = []
    delays: list[float] = []


def score(run: Labelled) -> Score:
    """Diagnose the run; a truth counts when it is raised from a second before its onset to its deadline.

    A warning or critical finding whose code is neither a truth's nor allowed is a false alarm.
    """
    findings = diagnose(iter(run.items))
    out = Score(run.name, run.seconds)
    for truth in run.truths:
        hits = [f for f in findings if _meets(f, truth)]
        if hits:
            out.found.append(f"{truth.code}@{truth.target}")
            out.delays.append(min(f.raised_ts for f in hits) - truth.onset_ts)
        else:
            out.missed.append(f"{truth.code}@{truth.target}")
    expected = {truth.code for truth in run.truths} | run.allowed
    start = run.items[0].ts
    out.false_alarms = [
        f"{f.code}@{f.target} ({f.severity}) at +{f.raised_ts - start:.0f} s: {f.summary}"
        for f in findings
        if f.severity != "info" and f.code not in expected
    ]
    return out


def _meets(finding: Finding, truth: Truth) -> bool:
    return (
        finding.code == truth.code
        and finding.target == truth.target
        and truth.onset_ts - 1 <= finding.raised_ts <= truth.onset_ts + truth.deadline_seconds
    )
