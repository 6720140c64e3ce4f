"""Pages that were left leave nothing behind."""

from __future__ import annotations

import gc

from textual._styles_cache import StylesCache
from textual.widget import Widget

from tests.tui.recordings import StoredFeed
from yolomon.messages import english
from yolomon.settings import Settings
from yolomon.tui.app import MonitorApp


async def test_leaving_a_page_frees_what_it_drew() -> None:
    app = MonitorApp(StoredFeed([]), Settings(), english, timed=False)
    async with app.run_test(size=(100, 30)) as pilot:
        for key in ("6", "7", "1") * 4:
            await pilot.press(key)
            await pilot.pause()
        gc.collect()
        drawn = [o for o in gc.get_objects() if isinstance(o, StylesCache)]
        shown = [w for w in gc.get_objects() if isinstance(w, Widget) and w._styles_cache in drawn]
        assert len(drawn) <= len(shown)
