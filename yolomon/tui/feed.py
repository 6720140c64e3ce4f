"""What the screen needs of the monitor behind it, as a protocol: any source of items can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from yolomon.model import Finding

if TYPE_CHECKING:
    from yolomon.diagnosis.engine import Engine
    from yolomon.trainlog.discover import Candidate


class Playback(Protocol):
    """How the playing of a recording stands; both may be set."""

    speed: float
    paused: bool


class Feed(Protocol):
    """The monitor as the screen sees it. All calls come from the screen's thread and return at once."""

    @property
    def engine(self) -> Engine:
        """The diagnosis, with the history, the job and where its time went."""
        ...

    @property
    def demo(self) -> bool:
        """Whether this is the demo: said on the screen all the time."""
        ...

    @property
    def replay(self) -> Playback | None:
        """The replay behind the feed, if there is one."""
        ...

    def drain(self, budget_seconds: float = 0.02) -> bool:
        """Move what the sources read into the history; True if there was anything."""
        ...

    def clock(self) -> float:
        """Now, on the samples' own time axis."""
        ...

    def findings(self) -> list[Finding]:
        """What is wrong now, worst first, without what is silenced."""
        ...

    def all_findings(self) -> list[Finding]:
        """Everything that was ever said, also what is over."""
        ...

    @property
    def needs_choice(self) -> bool:
        """Several logs fit equally well: the user should pick."""
        ...

    def candidates(self) -> Sequence[Candidate]:
        """Logs to pick from, best first; none in a replay."""
        ...

    def attach(self, paths: Sequence[Path]) -> None:
        """Follow these logs of one run instead of those before."""
        ...

    def silence(self, code: str, target: str) -> object:
        """Do not show this finding any more."""
        ...

    def own_cost(self) -> tuple[float, int]:
        """CPU share of one core in percent, and resident bytes, of yolomon itself."""
        ...
