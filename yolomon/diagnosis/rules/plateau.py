"""No better result for long: when early stopping will come; metrics that stay zero or repeat exactly."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import ClassVar

from yolomon.diagnosis.forecast import best_epoch, early_stop
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord
from yolomon.units import duration

PATIENCE_SHARE = declare("no-progress.patience-share", 0.7, "share", "of the trainer's patience used up")
WITHOUT = declare("no-progress.epochs", 50.0, "epochs", "without a better result, where no patience is known")
ZERO_MAP = declare("no-progress.zero-map", 0.001, "mAP50", "below which nothing was learnt")
ZERO_EPOCHS = declare(
    "no-progress.zero-epochs", 10.0, "epochs", "of finite loss after which mAP should not be zero"
)
FROZEN_EPOCHS = declare("no-progress.frozen-epochs", 3.0, "epochs", "whose metrics repeat to the last digit")


class Plateau:
    """From the epochs' metrics; looked at when one is new."""

    codes: ClassVar[tuple[str, ...]] = ("no-progress",)

    def __init__(self) -> None:
        self._looked_at = 0
        self._claims: list[Claim] = []

    def observe(self, item: Item, view: View) -> None:
        """Epochs are in the history."""

    def check(self, view: View) -> Iterator[Claim]:
        """At most one claim."""
        train = view.history.train
        if train.ended is not None:
            return
        if len(train.epochs) != self._looked_at:
            self._looked_at = len(train.epochs)
            claim = _zero(view) or _frozen(view) or _plateau(view)
            self._claims = [] if claim is None else [claim]
        yield from self._claims


def _claim(
    onset_ts: float,
    summary: Message,
    cause: Message,
    remedy: Message,
    evidence: dict[str, float | str | None],
) -> Claim:
    return Claim(
        code="no-progress",
        target="run",
        severity="info",
        onset_ts=onset_ts,
        summary=summary,
        cause=cause,
        remedy=remedy,
        evidence=evidence,
        signals=("map50_95",),
    )


def _zero(view: View) -> Claim | None:
    epochs = [e for e in view.history.train.epochs if e.roles.map50 is not None]
    if len(epochs) < view.thresholds[ZERO_EPOCHS] or any(
        (e.roles.map50 or 0.0) >= view.thresholds[ZERO_MAP] for e in epochs
    ):
        return None
    if any(not isfinite(value) for value in epochs[-1].roles.losses.values()):
        return None  # NaN is another finding
    return _claim(
        onset_ts=epochs[0].ts,
        summary=msg("mAP50 is still zero after {epochs} epochs", epochs=len(epochs)),
        cause=msg("The labels do not fit: class ids, boxes that are not normalised, or wrong paths"),
        remedy=msg(
            "Look at train_batch0.jpg and val_batch0_labels.jpg; check names, nc and paths of the data file"
        ),
        evidence={"best_map50": max(e.roles.map50 or 0.0 for e in epochs), "epochs": float(len(epochs))},
    )


def _frozen(view: View) -> Claim | None:
    count = int(view.thresholds[FROZEN_EPOCHS])
    newest = [e for e in view.history.train.epochs if e.roles.map50_95 is not None][-count - 1 :]
    if len(newest) <= count or not newest[-1].roles.map50_95:
        return None
    if len({_metrics(e) for e in newest}) != 1 or len([v for v in _metrics(newest[-1]) if v is not None]) < 2:
        return None
    return _claim(
        onset_ts=newest[0].ts,
        summary=msg(
            "The metrics of the last {epochs} epochs are the same to the last digit", epochs=len(newest)
        ),
        cause=msg("The weights that are validated do not change: NaN in training, or everything is frozen"),
        remedy=msg("Look at the loss; check freeze= and the learning rate"),
        evidence={"map50_95": newest[-1].roles.map50_95, "epochs": float(len(newest))},
    )


def _metrics(record: TrainRecord) -> tuple[float | None, ...]:
    roles = record.roles
    return (roles.map50_95, roles.map50, roles.precision, roles.recall)


def _plateau(view: View) -> Claim | None:
    train = view.history.train
    best = best_epoch(train)
    done = train.epochs[-1].epoch if train.epochs else None
    if best is None or done is None:
        return None
    epoch, score = best
    since = done - epoch
    patience = train.run.patience
    needed = view.thresholds[PATIENCE_SHARE] * patience if patience else view.thresholds[WITHOUT]
    if since < max(needed, 5):
        return None
    stop = early_stop(train)
    onset = next((e.ts for e in train.epochs if e.epoch == epoch), train.epochs[-1].ts)
    evidence: dict[str, float | str | None] = {
        "best_score": round(score, 5),
        "best_epoch": float(epoch),
        "epochs_since": float(since),
        "patience_epochs": None if patience is None else float(patience),
        "stops_at_epoch": None if stop is None else float(stop.epoch),
        "seconds_to_stop": None if stop is None or stop.seconds is None else round(stop.seconds),
    }
    if stop is None:
        summary = msg(
            "No better result for {since} epochs (best {score} at epoch {epoch})",
            since=since,
            score=f"{score:.4f}",
            epoch=epoch,
        )
    else:
        summary = msg(
            "No better result for {since} epochs (best {score} at epoch {epoch}): stops at epoch "
            "{stops}, in {time}",
            since=since,
            score=f"{score:.4f}",
            epoch=epoch,
            stops=stop.epoch,
            time=duration(stop.seconds),
        )
    return _claim(
        onset_ts=onset,
        summary=summary,
        cause=msg("The model has learnt what it can from this data with these settings"),
        remedy=msg(
            "best.pt is saved: stop now or let it run; a larger patience helps only while the loss falls"
        ),
        evidence=evidence,
    )
