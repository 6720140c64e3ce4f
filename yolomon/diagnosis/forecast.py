"""What comes when: the end of the run, early stopping, a limit that is reached."""

from __future__ import annotations

from math import isfinite

import msgspec

from yolomon.diagnosis.phases import Phases, RankPhases
from yolomon.diagnosis.statistics import median, quantile
from yolomon.history import History, TrainHistory
from yolomon.model import TrainRecord

EPOCHS_SEEN = 8  # the newest complete epochs that tell an epoch's length
# Without mosaic a batch needs a quarter of the images to be loaded: a run that waits for its loader becomes
# faster by some part that is not known before; one bound by the GPU stays as it is.
CLOSE_MOSAIC_FASTEST = 0.6


class Eta(msgspec.Struct, frozen=True):
    """Seconds until the run ends, with a range."""

    seconds: float
    low: float
    high: float


class EarlyStop(msgspec.Struct, frozen=True):
    """When patience runs out unless a better result comes. `seconds` from the newest record on."""

    epoch: int
    epochs_left: int
    seconds: float | None


def eta(history: History, phases: Phases) -> Eta | None:
    """Time until the last epoch (and the validation after it) is done; None before it can be told.

    An epoch's length is measured from one epoch's end to the next one's, so that validation, checkpoints and
    epoch turns count; the epochs after close-mosaic are measured apart as soon as there are some.
    """
    train = history.train
    leader = phases.leader
    total = train.total_epochs
    if total is None or train.epoch is None or train.ended is not None:
        return None
    if train.epoch > total:
        return Eta(0.0, 0.0, 0.0)
    step = None if leader is None else leader.typical_gap()
    lengths = epoch_seconds(train)
    closing = train.run.close_mosaic or 0
    first_closed = total - closing + 1 if 0 < closing < total else total + 1
    mixed = [seconds for epoch, seconds in lengths if epoch < first_closed][-EPOCHS_SEEN:]
    closed = [seconds for epoch, seconds in lengths if epoch > first_closed][-EPOCHS_SEEN:]
    done = _epochs_done(train)
    open_epochs = list(range(done + 1, total + 1))
    if not open_epochs:
        return Eta(0.0, 0.0, 0.0)
    usual = mixed or closed
    if not usual:
        return _from_steps(train, leader, step, open_epochs)
    middle = low = high = 0.0
    still_mixed = max(0, min(first_closed, total + 1) - done - 1)
    for count, own, known in (
        (still_mixed, usual, True),
        (len(open_epochs) - still_mixed, closed or usual, bool(closed)),
    ):
        if count > 0:
            middle += count * median(own)
            low += count * quantile(own, 0.25) * (1.0 if known else CLOSE_MOSAIC_FASTEST)
            high += count * quantile(own, 0.75) * (1.02 if known else 1.1)
    elapsed = _elapsed_share(train, history.now_ts, median(usual), step) * median(usual)
    low_elapsed = min(elapsed, low)
    return Eta(max(middle - elapsed, 0.0), max(low - low_elapsed, 0.0), max(high - elapsed, 0.0))


def _from_steps(
    train: TrainHistory, leader: RankPhases | None, step: float | None, open_epochs: list[int]
) -> Eta | None:
    """Before an epoch is complete: steps alone, with room above for validation."""
    if step is None or not train.batches or leader is None:
        return None
    left = train.batches * len(open_epochs) - (train.batch or 0)
    seconds = max(left, 0) * step
    return Eta(seconds, 0.9 * seconds, 2.0 * seconds)


def _elapsed_share(train: TrainHistory, now_ts: float, usual: float, step: float | None) -> float:
    """How much of the open epoch is over, 0 to 1: by its steps where they are told, else by the clock."""
    last = next((r for r in reversed(train.epochs) if not r.backlog), None)
    if train.batch and train.batches and step is not None and train.epoch == _epochs_done(train) + 1:
        stepping = min(step * train.batches / usual, 1.0) if usual > 0 else 1.0
        return stepping * train.batch / train.batches
    if last is None or usual <= 0:
        return 0.0
    return min(max(now_ts - last.ts, 0.0) / usual, 1.0)


def _epochs_done(train: TrainHistory) -> int:
    if train.epochs and train.epochs[-1].epoch is not None:
        return train.epochs[-1].epoch
    return (train.epoch or 1) - 1


def epoch_seconds(train: TrainHistory) -> list[tuple[int, float]]:
    """Length of the newest complete epochs, as (epoch, seconds), validation and saving included.

    From the time between two epoch records; where those times are not real (a log read after the fact), from
    the length that the trainer writes.
    """
    found: list[tuple[int, float]] = []
    before: TrainRecord | None = None
    newest = list(train.epochs)[-64:]
    for record in newest:
        if record.epoch is None:
            continue
        if (
            before is not None
            and before.epoch is not None
            and record.epoch == before.epoch + 1
            and _real_ts(record) is not None
            and _real_ts(before) is not None
        ):
            seconds = (_real_ts(record) or 0.0) - (_real_ts(before) or 0.0)
            if seconds > 0:
                found.append((record.epoch, seconds))
        elif record.roles.epoch_seconds is not None and record.roles.epoch_seconds > 0:
            found.append((record.epoch, record.roles.epoch_seconds))
        before = record
    return found


def _real_ts(record: TrainRecord) -> float | None:
    """When the record was written; None where only the time of reading is known."""
    if record.own_ts is not None:
        return record.own_ts
    return None if record.backlog else record.ts


def best_epoch(train: TrainHistory) -> tuple[int, float] | None:
    """The best epoch and its score: the trainer's fitness where it writes one, else mAP50-95, else mAP50."""
    for name in ("fitness", "map50_95", "map50"):
        scores = [
            (getattr(record.roles, name), record.epoch)
            for record in train.epochs
            if record.epoch is not None and getattr(record.roles, name) is not None
        ]
        scores = [(score, epoch) for score, epoch in scores if isfinite(score)]
        if scores:
            score, epoch = max(scores, key=lambda item: (item[0], -item[1]))
            return epoch, score
    return None


def early_stop(train: TrainHistory) -> EarlyStop | None:
    """When the trainer's patience runs out, if before the last epoch; None without patience or a result."""
    patience, best, total = train.run.patience, best_epoch(train), train.total_epochs
    if not patience or best is None or train.ended is not None:
        return None
    stops_at = best[0] + patience
    left = stops_at - _epochs_done(train)
    if left < 0 or (total is not None and stops_at >= total):
        return None
    lengths = [seconds for _, seconds in epoch_seconds(train)][-EPOCHS_SEEN:]
    return EarlyStop(stops_at, left, left * median(lengths) if lengths else None)


def is_complete(train: TrainHistory) -> bool:
    """Whether the last epoch's row is there, or the one at which the trainer's patience ran out."""
    done = train.epochs[-1].epoch if train.epochs else None
    if done is None:
        return False
    best, patience = best_epoch(train), train.run.patience
    if patience and best is not None and done >= best[0] + patience:
        return True
    return train.total_epochs is not None and done >= train.total_epochs
