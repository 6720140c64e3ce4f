"""nan-loss: a loss is NaN or infinite."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, isnan
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord
from yolomon.units import duration

FINITE = declare("nan-loss.finite-steps", 20.0, "steps", "with finite losses before it counts as over")
_NO_AMP = ("GTX 16", "MX450", "T1000", "T600", "T400")
FINITE_EPOCH = 2**31  # steps: an epoch whose mean is finite counts as enough of them


class NanLoss:
    """Any training loss that is not a number or infinite, at the first one.

    Benign and left out: NaN metrics (AP of classes that are absent), gradient norms (AMP skips such steps),
    infinite validation losses in the first epoch, epoch rows of a run whose steps are finite. A trainer that
    loads its last checkpoint and repeats the epoch (Ultralytics since 8.3.213) is told as such.
    """

    codes: ClassVar[tuple[str, ...]] = ("nan-loss",)

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        """Begin anew: another run."""
        self._since_ts: float | None = None
        self._first: TrainRecord | None = None
        self._names: tuple[str, ...] = ()
        self._word = "NaN"
        self._bad = 0
        self._finite = 0
        self._has_steps = False
        self._validation_only = False
        self._good_ts: float | None = None  # the last checkpoint before it
        self._good_epoch: int | None = None
        self._checkpoint: tuple[float, int | None] | None = None
        self._repeats = 0
        self._epoch: int | None = None

    def observe(self, item: Item, view: View) -> None:
        """Look at each record's losses."""
        if not isinstance(item, TrainRecord):
            return
        if item.kind == "start":
            self._reset()
        elif item.kind == "checkpoint":
            if self._since_ts is None:
                self._checkpoint = (item.ts, item.epoch)
        elif item.kind == "epoch_start":
            if self._since_ts is not None and item.epoch is not None and item.epoch == self._epoch:
                self._repeats += 1
            self._epoch = item.epoch
        elif item.kind in ("batch", "epoch", "validation"):
            self._losses(item)

    def _losses(self, record: TrainRecord) -> None:
        roles = record.roles
        losses = dict(roles.losses)
        if roles.loss is not None and not losses:
            losses["loss"] = roles.loss
        bad = {name: value for name, value in losses.items() if not isfinite(value)}
        trains = not bad and bool(losses)
        self._has_steps = self._has_steps or record.kind == "batch"
        for name, value in roles.validation_losses.items():
            early = record.epoch is None or record.epoch <= 1
            if isnan(value) or (not isfinite(value) and not early):
                bad[name] = value
        if bad:
            self._finite = 0
            self._bad += 1
            if self._since_ts is None:
                self._validation_only = trains
                self._since_ts, self._first = record.ts, record
                self._word = "NaN" if any(isnan(v) for v in bad.values()) else "infinite"
                self._names = tuple(sorted(bad)) if len(bad) < len(losses) or len(losses) == 1 else ()
                if self._checkpoint is not None:
                    self._good_ts, self._good_epoch = self._checkpoint
        elif losses and record.kind == "batch":
            self._finite += 1
        elif losses and record.kind == "epoch" and not self._has_steps:
            self._finite = FINITE_EPOCH  # one bad step would make the epoch's mean NaN as well

    def check(self, view: View) -> Iterable[Claim]:
        """One claim, on the run, as long as no stretch of finite losses came."""
        if self._since_ts is None or self._first is None:
            return []
        if self._finite >= view.thresholds[FINITE]:
            self._since_ts, self._first, self._bad, self._repeats = None, None, 0, 0
            self._good_ts = self._good_epoch = None
            return []
        first = self._first
        step = step_of_loss(first)
        place = (
            msg("step {step} of epoch {epoch}", step=step, epoch=first.epoch)
            if step is not None
            else (msg("epoch {epoch}", epoch=first.epoch))
        )
        names = ", ".join(self._names)
        several = msg(
            "{names} are {word} since {place}; the other losses are finite",
            names=names,
            word=self._word,
            place=place,
        )
        summary = (
            msg(
                "the validation loss is {word} since {place}; the training losses are finite",
                word=self._word,
                place=place,
            )
            if self._validation_only
            else several
            if len(self._names) > 1
            else msg(
                "{names} is {word} since {place}; the other losses are finite",
                names=names,
                word=self._word,
                place=place,
            )
            if names and self._names != ("loss",)
            else msg("the loss is {word} since {place}", word=self._word, place=place)
        )
        run = view.history.train.run
        gpus = {g.info.name for g in view.history.by_index()}
        old = any(word in name for word in _NO_AMP for name in gpus)
        cause: Message
        remedy: Message
        if self._repeats:
            cause = msg(
                "the trainer noticed it, loaded its last checkpoint and repeats the epoch "
                "({count} times so far)",
                count=self._repeats,
            )
        elif old and run.amp is not False:
            cause = msg("GPUs of this kind give NaN under mixed precision (AMP)")
        elif self._validation_only:
            cause = msg(
                "validation uses the averaged weights (EMA), in half precision: they took in a NaN, or a "
                "value overflows"
            )
        else:
            cause = msg("training goes on with weights that are lost: nothing after this step can be used")
        if old and run.amp is not False:
            remedy = msg("start again with amp=False")
        elif self._validation_only:
            remedy = msg(
                "validate last.pt with half=False; if that is NaN as well, start again with amp=False"
            )
        elif self._good_ts is not None:
            remedy = msg(
                "stop and resume from the checkpoint of epoch {epoch} ({age} before the first "
                "one), with a lower lr0; "
                "check the labels for boxes without width or height",
                epoch=self._good_epoch,
                age=duration(first.ts - self._good_ts),
            )
        else:
            remedy = msg(
                "stop and start again with a tenth of lr0; check the labels for boxes without width or height"
            )
        return [
            Claim(
                code="nan-loss",
                target="run",
                severity="critical",
                onset_ts=self._since_ts,
                summary=summary,
                cause=cause,
                remedy=remedy,
                evidence={
                    "first_step": step,
                    "first_epoch": first.epoch,
                    "losses": names or "all",
                    "records_with_it": self._bad,
                    "epoch_repeats": self._repeats,
                    "checkpoint_epoch": self._good_epoch,
                    "checkpoint_age_seconds": None
                    if self._good_ts is None
                    else round(first.ts - self._good_ts, 1),
                },
                signals=("loss",),
                explains=(
                    "amp-underflow",
                    "loss-spike",
                    "loss-divergence",
                    "no-progress",
                    "exploding-features",
                    "dead-features",
                ),
                clear_after_seconds=10.0 if self._has_steps else 0.0,
            )
        ]


def step_of_loss(record: TrainRecord) -> int | None:
    """The step whose losses a record tells: yolomon's stream reads them from the GPU a few steps later."""
    told = record.numbers.get("loss_step")
    return int(told) if told is not None and 0 <= told < 2**62 else record.step
