"""Show a session on the terminal until the user leaves."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager

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
        with signals_as_before():
            status = app.run(mouse=settings.mouse)
    finally:
        session.stop()
        if keeper is not None:
            keeper.close()
    if isinstance(session, LateFeed) and session.failure is not None:
        raise session.failure
    return status or app.return_code or 0


@contextmanager
def signals_as_before() -> Iterator[None]:
    """Afterwards the signals that the screen takes do what they did before.

    The screen's handlers tell a loop that is over: what comes next (passing a pipe on) could not be ended.
    """
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGTSTP", "SIGCONT", "SIGWINCH", "SIGTTOU", "SIGTTIN")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only there they can be set
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not set by Python
                signal.signal(number, handler)


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
