"""A log read after the fact: all its records at once, with times where the trainer wrote none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path

import msgspec

from yolomon.messages import UserError, msg
from yolomon.model import TrainRecord
from yolomon.trainlog.log import Log
from yolomon.trainlog.settings_files import settings_beside

SECONDS_A_RECORD = 1.0  # where neither a time nor a duration was written
ELAPSED_NAMES = ("time", "elapsed")


class LogError(UserError):
    """A path that holds no log that is known. `message` says why, for the user."""


def read_log(path: str, told: Callable[[float], object] | None = None) -> list[TrainRecord]:
    """All records of a log, in order, on one time axis that ends when the file was last written.

    Records that carry a time of their own keep it. Others get one from the durations that the log tells
    (seconds an epoch, a step, or since the start), and a second each where it tells none.

    Args:
        path: a regular file.
        told: is told the percentage that is read, after each piece.

    Raises:
        LogError: missing, unreadable, no regular file, or of no known format.
    """
    try:
        written_ts = os.stat(path).st_mtime  # noqa: PTH116 - the path may hold odd bytes
    except OSError as error:
        raise LogError(msg("{path}: {why}", path=path, why=error.strerror or str(error))) from error
    if not os.path.isfile(path):  # noqa: PTH113
        raise LogError(msg("{path} is no regular file", path=path))
    log = Log(path)
    records: list[TrainRecord] = []
    try:
        while True:
            before = log.follower.offset
            records += log.look(written_ts)
            if told is not None and log.follower.size:
                told(100 * log.follower.offset / log.follower.size)
            if log.follower.offset == before:
                break
        records += log.finish(written_ts)
    finally:
        log.close()
    if log.format is None:
        raise LogError(msg("{path} is no log that yolomon knows", path=path))
    run = settings_beside(log_path := Path(path))
    if run is not None and records:
        first = records[0]
        records.insert(
            0, msgspec.structs.replace(first, kind="message", run=run, numbers={}, text=log_path.name)
        )
    return timed(records, written_ts)


def timed(records: Sequence[TrainRecord], end_ts: float) -> list[TrainRecord]:
    """The records with times: their own, or from durations, shifted so that the last is at `end_ts`."""
    if all(record.own_ts is not None for record in records):
        return [msgspec.structs.replace(record, backlog=False) for record in records]
    places, now, elapsed, step = [], 0.0, None, None
    for record in records:
        written = next((record.numbers[name] for name in ELAPSED_NAMES if name in record.numbers), None)
        if written is not None and isfinite(written) and (elapsed is None or written > elapsed):
            now += written - (elapsed or 0.0)
            elapsed = written
        elif written is not None and isfinite(written) and elapsed is not None and written < elapsed:
            now += written  # a resumed run counts from its own start
            elapsed = written
        else:
            now += _duration(record, step)
        step = record.step if record.step is not None else step
        places.append(now)
    start = end_ts - now
    return [
        msgspec.structs.replace(record, ts=start + place, backlog=False)
        for record, place in zip(records, places, strict=True)
    ]


def _duration(record: TrainRecord, step: int | None) -> float:
    roles = record.roles
    if record.kind == "epoch" and roles.epoch_seconds is not None and roles.epoch_seconds > 0:
        return roles.epoch_seconds
    if record.kind == "batch" and roles.step_seconds is not None and 0 < roles.step_seconds < 1e5:
        steps = record.step - step if record.step is not None and step is not None else 1
        return roles.step_seconds * max(1, steps)
    return SECONDS_A_RECORD if record.kind in ("batch", "epoch") else 0.0
