"""What a rule is: it looks at the history and claims what is wrong now; the engine does the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

import msgspec

from yolomon.diagnosis.job import Job
from yolomon.diagnosis.phases import Phases
from yolomon.diagnosis.seconds import Seconds
from yolomon.diagnosis.thresholds import Thresholds
from yolomon.history import History
from yolomon.messages import Message
from yolomon.model import Item, Severity


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that holds now.

    The engine raises a `Finding` once it held for `raise_after_seconds` of the samples' own time, keeps it
    while it is claimed, and clears it when it was not claimed for `clear_after_seconds`. Claims
    are matched over time by (code, target). `onset_ts` is when the condition began, by the data.
    """

    code: str
    target: str
    severity: Severity
    onset_ts: float
    summary: Message
    cause: Message
    remedy: Message
    evidence: dict[str, float | str | None] = msgspec.field(default_factory=dict)
    signals: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()  # codes hidden while this one stands (same target, or any for "run");
    # "code@*" hides that code whatever its target
    confidence: str = "high"
    unseen: tuple[Message, ...] = ()
    raise_after_seconds: float = 0.0
    clear_after_seconds: float = 10.0


class View(msgspec.Struct):
    """All that a rule may look at. `now_ts` is the newest sample's time, never a wall clock."""

    now_ts: float
    history: History
    job: Job
    phases: Phases
    thresholds: Thresholds
    seconds: Seconds = msgspec.field(default_factory=Seconds)  # per-second means of each GPU
    watched_since_ts: float = float("-inf")  # readings came without a long gap since then


class Rule(Protocol):
    """One family of causes. Holds only what it cannot get from the history, bounded."""

    codes: ClassVar[tuple[str, ...]]

    def observe(self, item: Item, view: View) -> None:
        """Look at one new item (already in the history)."""
        ...

    def check(self, view: View) -> Iterable[Claim]:
        """What is wrong now. Called about once a second of the samples' time; must be cheap."""
        ...
