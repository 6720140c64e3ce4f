"""How long the run still takes, from what its epochs took so far."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from yolomon.history import History

RECENT_EPOCHS = 8


def eta_seconds(history: History, now_ts: float) -> float | None:
    """Seconds to the end of the last epoch; None while nothing tells.

    The trainer's own estimate is taken where it gives one; else the median length of recent epochs (with
    validation and checkpoint), and before the first epoch is over the pace of its batches.
    """
    train = history.train
    if train.epoch is None or not train.total_epochs or train.ended is not None:
        return None
    last = train.records[-1] if train.records else None
    if last is not None and last.roles.eta_seconds is not None:
        return last.roles.eta_seconds
    left = float(train.total_epochs - train.epoch)
    done = [record.ts for record in train.epochs if not record.backlog][-RECENT_EPOCHS - 1 :]
    lengths = [after - before for before, after in pairwise(done) if after > before]
    if lengths:
        since = max(0.0, now_ts - done[-1]) if train.epochs[-1].epoch != train.epoch else 0.0
        epoch_now = max(0.0, median(lengths) - since) if train.epochs[-1].epoch != train.epoch else 0.0
        return left * median(lengths) + epoch_now
    rank = history.train.ranks.get(0)
    steps = (
        [
            record.roles.step_seconds
            for record in list(rank.batches)[-64:]
            if record.roles.step_seconds is not None
        ]
        if rank is not None
        else []
    )
    if not steps or not train.batches or train.batch is None:
        return None
    return median(steps) * ((train.batches - train.batch) + left * train.batches)
