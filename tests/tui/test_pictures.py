"""The overview as a picture in the states that nobody opens by hand: look at the report when one differs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tui.recordings import START, StoredFeed, gpu_sample, run, sample, slow_rank
from yolomon.messages import english, translator
from yolomon.settings import Settings
from yolomon.tui.app import MonitorApp

pytestmark = pytest.mark.usefixtures("plotext_loaded")
SETTINGS = Settings(theme="dark", window_seconds=120.0, graph="blocks")


def lost_gpu() -> StoredFeed:
    lost = gpu_sample(1, 121.0, state="lost", utilization_percent=None, memory_used_bytes=None,
                      temperature_celsius=None, power_watts=None)  # fmt: skip
    return StoredFeed([*run(2), sample(2, 121.0, (gpu_sample(0, 121.0), lost))])


STATES: dict[str, tuple[StoredFeed, tuple[int, int], list[str], str, float]] = {
    "empty": (StoredFeed([]), (100, 24), [], "en", 0.0),
    "live": (StoredFeed(run(1)), (140, 40), [], "en", 0.0),
    "finding": (slow_rank(), (140, 40), [], "en", 0.0),
    "finding-chinese": (slow_rank(), (120, 30), [], "zh_CN", 0.0),
    "narrow": (slow_rank(), (40, 10), [], "en", 0.0),
    "eighty": (slow_rank(), (80, 24), [], "en", 0.0),
    "paused": (StoredFeed(run(2)), (80, 24), ["p"], "en", 0.0),
    "stale": (StoredFeed(run(2)), (120, 30), [], "en", 12.0),
    "lost-gpu": (lost_gpu(), (120, 30), [], "en", 0.0),
    "many": (StoredFeed(run(64, 40)), (140, 40), [], "en", 0.0),
}


@pytest.mark.parametrize("state", STATES)
def test_looks(snap_compare: Any, state: str) -> None:
    feed, size, keys, language, later = STATES[state]
    now = max(feed.clock(), START) + later
    tr = english if language == "en" else translator(language)
    app = MonitorApp(feed, SETTINGS, tr, timed=False, clock=lambda: now)

    async def settled(pilot: Any) -> None:
        await pilot.pause()
        app.redraw()
        await pilot.pause()

    assert snap_compare(app, press=keys, terminal_size=size, run_before=settled)
