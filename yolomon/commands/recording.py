"""`yolomon record`: writes what flows, without a screen, until it is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import click

from yolomon import live
from yolomon.messages import Translate
from yolomon.record.jsonl import Recorder, RecorderError
from yolomon.settings import Settings


def record(
    logs: Sequence[str], output: Path, settings: Settings, tr: Translate, *, seconds: float | None
) -> int:
    """Record until `seconds` are over, Ctrl-C or SIGTERM. Returns the exit status; 2: cannot write there."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        recorder = Recorder(output)
    except RecorderError as error:
        click.echo(f"yolomon: {tr(error.message)}", err=True)
        return 2
    session = live.attach(logs, settings, taps=(recorder,))
    session.start()
    click.echo(tr("recording to {path}; Ctrl-C ends it", path=output), err=True)
    left = seconds
    while not stopping.wait(0.25 if left is None else max(0.0, min(0.25, left))):
        session.drain(0.2)
        if left is not None:
            left -= 0.25
            if left <= 0:
                break
    session.stop(1.0)
    session.drain(1.0)
    recorder.close()
    if recorder.warning is not None:
        click.echo(f"yolomon: {tr(recorder.warning)}", err=True)
    if recorder.lost:
        click.echo(tr("{count} items found no room and are missing", count=recorder.lost), err=True)
    return 2 if recorder.warning is not None or recorder.lost else 0
