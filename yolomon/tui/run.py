"""Show a session on the terminal until the user leaves."""

from __future__ import annotations

from typing import Protocol

from yolomon.messages import Translate
from yolomon.settings import Settings
from yolomon.tui.app import MonitorApp
from yolomon.tui.feed import Feed
from yolomon.tui.kept import Keeper


class Session(Feed, Protocol):
    """A feed that is started and stopped."""

    def start(self) -> None:
        """Begin to read."""
        ...

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End reading, within about that time."""
        ...


def show(session: Session, settings: Settings, translate: Translate, keeper: Keeper | None = None) -> int:
    """Run the screen; the exit status.

    The sources start once the first picture is there: their threads would only delay it.
    """
    keep = None if keeper is None else keeper.keep
    app = MonitorApp(session, settings, translate, begin=session.start, keep=keep)
    try:
        status = app.run(mouse=settings.mouse)
    finally:
        session.stop()
        if keeper is not None:
            keeper.close()
    return status or app.return_code or 0
