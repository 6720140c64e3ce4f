"""The real screen over a small recording, for tests that start it on a terminal of their own."""

from __future__ import annotations

import sys
import time

from tests.tui.recordings import StoredFeed, run
from yolomon.messages import translator
from yolomon.settings import Settings
from yolomon.tui.app import MonitorApp


class Boom(MonitorApp):
    """An app that fails once it runs."""

    def on_ready(self) -> None:
        """Fail."""
        raise RuntimeError("made to fail")


class Aging(StoredFeed):
    """A feed whose clock goes on: ages grow, so that the screen keeps writing."""

    def __init__(self) -> None:
        super().__init__(run(1, 30))
        self._began = time.monotonic()

    def clock(self) -> float:
        """The newest item's time and what passed since."""
        return super().clock() + time.monotonic() - self._began


if __name__ == "__main__":
    kind = Boom if sys.argv[1:] == ["fail"] else MonitorApp
    app = kind(Aging(), Settings(), translator("en"))
    sys.exit(app.run() or app.return_code)
