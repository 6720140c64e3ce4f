"""What is looked at: the window of time, its end, the cursor. Pure state, no widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from yolomon.history import History
from yolomon.messages import Translate
from yolomon.model import Finding
from yolomon.tui.glyphs import Glyphs
from yolomon.tui.plots import ColumnCache, TimeAxis, axis_for

if TYPE_CHECKING:
    from yolomon.diagnosis.engine import Engine

WINDOWS = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10800.0, 21600.0, 43200.0, 86400.0)
SCRUB_SHARE = 0.25  # of the window, a step
UNREAD_SECONDS = 10.0  # without a reading for so long a moment has none
# What is shown of a run that is younger than the window: each is at most a third longer than the one before,
# so that after two minutes no more than a quarter of a graph is empty. No shorter one is shown: its
# graphs would move more often than every few seconds, and every move is sent to the terminal.
GROWTH = tuple(
    60.0 * minutes
    for minutes in (
        2, 2.5, 3, 4, 5, 6, 7.5, 10, 12.5, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180,
        240, 300, 360, 450, 600, 720, 900, 1200, 1440,
    )
)  # fmt: skip


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices. `end_ts` None: the newest data; `cursor_ts` None: no cursor."""

    window_seconds: float = 300.0  # 0: the whole run
    end_ts: float | None = None
    cursor_ts: float | None = None
    frozen_ts: float | None = None  # paused here

    def wider(self) -> View:
        """The next longer window; after the longest the whole run."""
        if self.window_seconds == 0:
            return self
        longer = [w for w in WINDOWS if w > self.window_seconds]
        return msgspec.structs.replace(self, window_seconds=longer[0] if longer else 0.0)

    def narrower(self, shown_seconds: float) -> View:
        """The next window that is shorter than what is shown: a young run may not fill the chosen one."""
        shorter = [w for w in WINDOWS if w < shown_seconds]
        return msgspec.structs.replace(self, window_seconds=shorter[-1] if shorter else WINDOWS[0])

    def end(self, now_ts: float) -> float:
        """The right edge of the graphs."""
        if self.end_ts is not None:
            return self.end_ts
        return now_ts if self.frozen_ts is None else self.frozen_ts

    def scrubbed(self, steps: float, now_ts: float, first_ts: float | None, window: float) -> View:
        """Moved by `steps` quarters of the window; at the newest data it follows again."""
        target = self.end(now_ts) + steps * SCRUB_SHARE * window
        if target >= now_ts:
            return msgspec.structs.replace(self, end_ts=None, frozen_ts=None)
        if first_ts is not None:
            target = max(target, min(first_ts + SCRUB_SHARE * window, now_ts))
        return msgspec.structs.replace(self, end_ts=target)


class Frame(msgspec.Struct, kw_only=True):
    """All that a widget draws from, for one moment. Made anew for each drawing; nothing in it is changed."""

    engine: Engine
    findings: list[Finding]
    now_ts: float
    view: View
    tr: Translate
    glyphs: Glyphs
    columns: ColumnCache
    interval_seconds: float = 1.0
    eta_seconds: float | None = None
    demo: bool = False
    replay_speed: float | None = None
    own_cpu_percent: float | None = None
    own_rss_bytes: int | None = None
    filter: str = ""
    typing: str | None = None  # what is being typed into the last line
    notice: str = ""  # what was just done, said for a few seconds
    _axes: dict[int, TimeAxis] = msgspec.field(default_factory=dict)  # those asked for so far

    @property
    def history(self) -> History:
        """All that was read."""
        return self.engine.history

    @property
    def end_ts(self) -> float:
        """The right edge of the graphs."""
        return self.view.end(self.now_ts)

    @property
    def live(self) -> bool:
        """Whether the newest data is shown."""
        return self.view.end_ts is None and self.view.frozen_ts is None

    @property
    def at_ts(self) -> float:
        """The moment whose numbers are shown: the cursor's, else the right edge."""
        return self.end_ts if self.view.cursor_ts is None else self.view.cursor_ts

    @property
    def window_seconds(self) -> float:
        """The window's length; that of the whole run where it is asked for.

        A window that is longer than all that was read is shown as far as it is filled, and grows in steps.
        """
        chosen = self.view.window_seconds
        if chosen > 0:
            first = self._first_reading_ts()
            filled = chosen if first is None else self.now_ts - first
            return min(chosen, next((length for length in GROWTH if 1.02 * length >= filled), chosen))
        first = self.history.first_ts
        return max(60.0, self.end_ts - first) if first is not None else 300.0

    def _first_reading_ts(self) -> float | None:
        """When the machine was first read; a log's past has no readings beside it."""
        found = [self.history.host.table.first_ts, *(g.fast.first_ts for g in self.history.gpus.values())]
        return min((ts for ts in found if ts is not None), default=None)

    def axis(self, count: int) -> TimeAxis:
        """The time axis of a graph with that many columns.

        The whole run is put on a grid that grows in steps, so that its columns do not change every second.
        """
        known = self._axes.get(count)
        if known is not None:
            return known
        window = self.window_seconds
        if self.view.window_seconds == 0:
            step = 60.0
            while step < window:
                step *= 1.25
            window = step
        made = self._axes[count] = axis_for(window, count, self.end_ts)
        return made

    @property
    def unread(self) -> bool:
        """Whether nothing of the machine was read around the moment shown: then nothing can be said of it."""
        if self.live and self.view.cursor_ts is None:
            return False
        at, reach = self.at_ts, max(UNREAD_SECONDS, self.window_seconds / 40)
        host, gpus = self.history.host.table, self.history.gpus.values()
        signals = [(host, "cpu_percent"), *((gpu.fast, "utilization_percent") for gpu in gpus)]
        return all(table.pooled(name, at - reach, at + 0.05, 1)[0] is None for table, name in signals)

    def findings_at(self) -> list[Finding]:
        """The findings that stood at the moment shown."""
        if self.live and self.view.cursor_ts is None:
            return self.findings
        at = self.at_ts
        return [f for f in self.findings if f.onset_ts <= at and (f.cleared_ts is None or f.cleared_ts > at)]

    def finding_of(self, target: str) -> Finding | None:
        """The worst finding on one target at the moment shown."""
        for finding in self.findings_at():
            if finding.target == target:
                return finding
        return None
