"""Show a session on the terminal until the user leaves."""

from __future__ import annotations

from collections.abc import Callable

from yolomon.messages import Translate
from yolomon.settings import Settings
from yolomon.tui.app import MonitorApp
from yolomon.tui.kept import Keeper
from yolomon.tui.late_feed import LateFeed, Session


def show(
    session: Session | Callable[[], Session],
    settings: Settings,
    translate: Translate,
    keeper: Keeper | None = None,
    *,
    demo: bool = False,
) -> int:
    """Run the screen; the exit status.

    The sources start once the first picture is there: their threads would only delay it. With a callable the
    session is made only then, in a thread.

    Raises:
        Exception: what making the session raised, once the terminal is given back.
    """
    keep = None if keeper is None else keeper.keep
    if callable(session):
        session = LateFeed(session, demo=demo)
    app = MonitorApp(session, settings, translate, begin=session.start, keep=keep)
    if isinstance(session, LateFeed):
        session.on_failure = lambda: app.call_from_thread(app.exit, 2)
    try:
        status = app.run(mouse=settings.mouse)
    finally:
        session.stop()
        if keeper is not None:
            keeper.close()
    if isinstance(session, LateFeed) and session.failure is not None:
        raise session.failure
    return status or app.return_code or 0
