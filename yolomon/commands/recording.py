"""`yolomon record`: writes what flows, without a screen, until it is told to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from yolomon import live
from yolomon.commands import chosen
from yolomon.commands.printed import say
from yolomon.messages import Translate
from yolomon.record.jsonl import Recorder, RecorderError
from yolomon.settings import Settings
from yolomon.trainlog import stream

LOOK_SECONDS = 0.25


def record(
    logs: Sequence[str], output: Path, settings: Settings, tr: Translate, *, seconds: float | None
) -> int:
    """Record until `seconds` are over, the piped log ends, Ctrl-C or SIGTERM.

    Returns:
        The exit status; 2: the file cannot be written, or items are missing in it.
    """
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup it goes on
            signal.signal(number, stop)
    try:
        recorder = Recorder(output)
    except RecorderError as error:
        say(f"yolomon: {tr(error.message)}", err=True)
        return 2
    session = live.attach(logs, settings, taps=(recorder,))
    session.start()
    say(tr("recording to {path}; Ctrl-C ends it", path=output), err=True)
    teller = _Teller(session, logs, recorder, tr)
    until = None if seconds is None else time.monotonic() + seconds
    while not stopping.wait(LOOK_SECONDS if until is None else _left(until)):
        session.drain(0.2)
        teller.look()
        if (until is not None and time.monotonic() >= until) or _piped_log_has_ended(session, logs):
            break
    session.stop(1.0)
    while session.drain(0.2) and not stopping.is_set():
        pass
    recorder.close()
    teller.look()
    if recorder.lost:
        say(tr("{count} items found no room and are missing", count=recorder.lost), err=True)
    if list(logs) == ["-"] and not stopping.is_set() and not stream.has_ended():
        _pass_on(tr)
    return 2 if recorder.warning is not None or recorder.lost else 0


class _Teller:
    """Says on stderr, once each, which log is recorded and what goes wrong with the file."""

    def __init__(self, session: live.Session, logs: Sequence[str], recorder: Recorder, tr: Translate) -> None:
        self._session = session
        self._recorder = recorder
        self._tr = tr
        self._log_told = list(logs) == ["-"]
        self._warning_told = False

    def look(self) -> None:
        session = self._session
        if not self._log_told and (session.followed or session.needs_choice):
            self._log_told = session.searched
            if session.searched and session.candidates():
                chosen.tell_found(session, self._tr)
        if not self._warning_told and self._recorder.warning is not None:
            self._warning_told = True
            say(f"yolomon: {self._tr(self._recorder.warning)}", err=True)


def _left(until: float) -> float:
    return max(0.0, min(LOOK_SECONDS, until - time.monotonic()))


def _piped_log_has_ended(session: live.Session, logs: Sequence[str]) -> bool:
    states = [log.state for log in session.history.train.logs.values()]
    return list(logs) == ["-"] and states == ["ended"]


def _pass_on(tr: Translate) -> None:
    """The recording is over, the training that is piped in is not: it would be ended by a closed pipe."""
    say(
        tr(
            "The training goes on; its output is passed on to {where}. Ctrl-C ends it.",
            where=tr("the terminal"),
        ),
        err=True,
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    stream.pass_on()
