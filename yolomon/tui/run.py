"""Show a session on the terminal until the user leaves."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping

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
    trust_the_window(os.environ)
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


def trust_the_window(environment: MutableMapping[str, str], descriptor: int = 1) -> None:
    """Forget exported COLUMNS and LINES where the terminal itself tells its size.

    Textual takes them over the window's real size, and never hears of a resize then. A browser's driver and
    a terminal that tells no size need them.
    """
    if "TEXTUAL_DRIVER" in environment:
        return
    try:
        told = os.get_terminal_size(descriptor)
    except OSError:
        return
    if told.columns and told.lines:
        environment.pop("COLUMNS", None)
        environment.pop("LINES", None)
