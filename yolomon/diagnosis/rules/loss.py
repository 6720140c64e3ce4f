"""Losses that jump, run away or blow up; and a validation loss that explodes alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import exp, isfinite, log
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.statistics import Ewma, median, spread
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, Severity, TrainRecord

SPIKE_Z = declare(
    "loss-spike.z", 6.0, "sigma", "of the loss's logarithm above the median of the last 128 steps"
)
SPIKE_RATIO = declare("loss-spike.ratio", 2.0, "times", "the median that a spike reaches at least")
SPIKES = declare("loss-spike.count", 3.0, "spikes", "within 200 steps that make a warning of it")
LASTING = declare("loss-spike.lasting-ratio", 10.0, "times", "the median, for 20 steps, is a warning")
WARMUP_STEPS = declare(
    "loss-spike.warm-up", 100.0, "steps", "at the start and after a change that are left out"
)
RATIO = declare("loss-divergence.ratio", 1.5, "times", "the best smoothed loss (over 50 steps)")
STEPS = declare("loss-divergence.steps", 500.0, "steps", "for which the smoothed loss stays above")
FAR_RATIO = declare(
    "loss-divergence.far-ratio",
    5.0,
    "times",
    "the best smoothed loss: so far above it fewer steps are enough",
)
FAR_STEPS = declare(
    "loss-divergence.far-steps", 60.0, "steps", "for which the smoothed loss stays so far above"
)
BLOW_UP = declare("loss-divergence.blow-up", 1e4, "times", "the median of the last steps: critical at once")
EPOCHS = declare("loss-divergence.epochs", 10.0, "epochs", "the same where only epochs are told")
VALIDATION = declare(
    "loss-divergence.validation-ratio",
    100.0,
    "times",
    "the least validation loss, for two epochs, while training is flat",
)
_WINDOW = 128
_SPIKE_SPAN = 200
_SHOWN_SECONDS = 300.0
_FLOOR = 0.01  # spread of the logarithm: less is a running mean, not noise


class Loss:
    """Steps of rank 0 and epochs. NaN and infinity are another rule's."""

    codes: ClassVar[tuple[str, ...]] = ("loss-spike", "loss-divergence")

    def __init__(self) -> None:
        self._segment = 0
        self._epochs: deque[tuple[float, float | None, float | None]] = deque(maxlen=512)
        self._restart()

    def _restart(self) -> None:
        self._steps = 0
        self._logs: deque[float] = deque(maxlen=_WINDOW)
        self._level: tuple[float, float] | None = None
        self._spikes: deque[tuple[int, float, float]] = deque(maxlen=64)  # step count, ts, ratio
        self._high_run = 0
        self._lasting_since: float | None = None
        self._run_since = 0.0
        self._smooth = Ewma(50)
        self._best = float("inf")
        self._above = 0
        self._far = 0  # steps so far above
        self._above_since = 0.0
        self._blown: tuple[float, float] | None = None  # ts, ratio
        self._last_loss: float | None = None

    def observe(self, item: Item, view: View) -> None:
        """Take a step or an epoch of rank 0."""
        if not isinstance(item, TrainRecord) or (item.rank or 0) != 0:
            return
        if item.segment != self._segment or item.kind == "start":
            self._segment = item.segment
            self._restart()
            self._epochs.clear()
        if item.kind == "epoch_start" and _closes_mosaic(item, view):
            self._restart()  # another level by design
        elif item.kind == "batch" and item.roles.loss is not None and isfinite(item.roles.loss):
            self._step(item.ts, item.roles.loss, view)
        elif item.kind == "epoch":
            self._epochs.append(
                (item.ts, _total(item.roles.losses, item.roles.loss), _total(item.roles.validation_losses))
            )

    def _step(self, ts: float, loss: float, view: View) -> None:
        self._last_loss = loss
        if loss <= 0:
            return
        limits = view.thresholds
        self._steps += 1
        x = log(loss)
        if self._steps <= limits[WARMUP_STEPS]:
            self._logs.append(x)
            return
        if self._level is None or self._steps % 8 == 0:  # the level moves slowly: not at every step
            self._level = (median(self._logs), spread(list(self._logs), _FLOOR))
        center, sigma = self._level
        ratio = exp(min(x - center, 700.0))
        if ratio >= limits[BLOW_UP]:
            self._blown = self._blown or (ts, ratio)
        elif ratio < 10:
            self._blown = None
        spiked = (x - center) / sigma > limits[SPIKE_Z] and ratio >= limits[SPIKE_RATIO]
        if spiked:
            self._spikes.append((self._steps, ts, ratio))
        if ratio >= limits[LASTING]:
            if self._high_run == 0:
                self._run_since = ts
            self._high_run += 1
            if self._high_run >= 20 and self._lasting_since is None:
                self._lasting_since = self._run_since
        else:
            self._high_run, self._lasting_since = 0, None
        if not spiked:
            # A single spike must not poison the level (a NaN in the window of OLMo-core's rule did for 129
            # steps); a lasting one is told as such.
            self._logs.append(x)
        smooth = self._smooth.add(min(x, center + 10.0))
        if self._smooth.count < 50:
            return
        self._best = min(self._best, smooth)
        if smooth > self._best + log(limits[RATIO]):
            if self._above == 0:
                self._above_since = ts
            self._above += 1
        else:
            self._above = 0
        self._far = self._far + 1 if smooth > self._best + log(limits[FAR_RATIO]) else 0

    def check(self, view: View) -> Iterator[Claim]:
        """Divergence first: it explains spikes."""
        diverging = self._diverging(view) or self._validation(view) or self._epochs_diverge(view)
        if diverging is not None:
            yield diverging
        now, limits = view.now_ts, view.thresholds
        recent = [s for s in self._spikes if self._steps - s[0] <= _SPIKE_SPAN]
        shown = [s for s in recent if now - s[1] <= _SHOWN_SECONDS]
        if not shown:
            return
        lasting = self._lasting_since is not None
        several = len(recent) >= limits[SPIKES] and not _neighbours(recent)
        severity: Severity = "warning" if lasting or several else "info"
        _, ts, ratio = max(recent, key=lambda s: s[2])
        yield Claim(
            code="loss-spike",
            target="run",
            severity=severity,
            onset_ts=recent[0][1],
            summary=msg("The loss jumped to {ratio} times its level", ratio=f"{ratio:.3g}")
            if len(recent) == 1
            else msg("The loss jumped {count} times in {span} steps, up to {ratio} times its level",
                     count=len(recent), span=_SPIKE_SPAN, ratio=f"{ratio:.3g}"),
            cause=msg("A batch of hard or broken images, a learning rate that is too high, or AMP overflow"),
            remedy=_remedy(view),
            evidence={
                "largest_ratio": round(ratio, 2),
                "largest_at_ts": ts,
                "spikes": float(len(recent)),
                "level_loss": None if self._level is None else round(exp(self._level[0]), 5),
                "lasting": "yes" if lasting else "no",
            },
            signals=("loss",),
            clear_after_seconds=5.0,
        )  # fmt: skip

    def _diverging(self, view: View) -> Claim | None:
        limits = view.thresholds
        if self._blown is not None and self._level is not None:
            ts, ratio = self._blown
            return _divergence(
                "critical", ts,
                msg("The loss blew up to {ratio} times its level", ratio=f"{ratio:.3g}"),
                msg("The weights are on their way to infinity; NaN is next"), view,
                {"ratio": ratio, "level_loss": exp(self._level[0]), "loss": self._last_loss},
            )  # fmt: skip
        if self._above < limits[STEPS] and self._far < limits[FAR_STEPS]:
            return None
        ratio = exp((self._smooth.value or 0.0) - self._best)
        return _divergence(
            "warning", self._above_since,
            msg("The loss is {ratio} times its best level for {steps} "
            "steps", ratio=f"{ratio:.2f}", steps=self._above),
            msg("It does not come back by itself: the learning rate is too high, or the data changed"), view,
            {"ratio": round(ratio, 3), "steps_above": float(self._above), "best_loss": exp(self._best),
             "for_seconds": view.now_ts - self._above_since},
        )  # fmt: skip

    def _validation(self, view: View) -> Claim | None:
        """A validation loss that explodes while training is flat: statistics of BN or EMA are broken."""
        told = [(e, t, v) for e, t, v in self._epochs if v is not None and isfinite(v) and v > 0]
        if len(told) < 3:
            return None
        least = min(v for _, _, v in told if v is not None)
        limit = view.thresholds[VALIDATION] * least
        newest = told[-2:]
        if any(v is None or v <= limit for _, _, v in newest):
            return None
        trained = [t for _, t, _ in told if t is not None and isfinite(t) and t > 0]
        if trained and trained[-1] > 2 * min(trained):
            return None  # training itself diverges: told as such
        value = newest[-1][2]
        return _divergence(
            "warning", newest[0][0],
            msg("The validation loss exploded to {ratio} times its least while training is flat",
                ratio=f"{(value or 0.0) / least:.3g}"),
            msg("Batch norm or EMA statistics are broken: training sees others than validation"), view,
            {"validation_loss": value, "least_validation_loss": least},
        )  # fmt: skip

    def _epochs_diverge(self, view: View) -> Claim | None:
        """Where a log tells epochs alone."""
        if self._steps:
            return None
        told = [(e, t) for e, t, _ in self._epochs if t is not None and isfinite(t) and t > 0]
        count = int(view.thresholds[EPOCHS])
        if len(told) < count + 3:
            return None
        best = min(t for _, t in told)
        if any(t <= view.thresholds[RATIO] * best for _, t in told[-count:]):
            return None
        return _divergence(
            "warning", told[-count][0],
            msg("The loss is {ratio} times its best level for {epochs} "
            "epochs", ratio=f"{told[-1][1] / best:.2f}", epochs=count),
            msg("It does not come back by itself: the learning rate is too high, or the data changed"), view,
            {"ratio": round(told[-1][1] / best, 3), "best_loss": best},
        )  # fmt: skip


def _divergence(
    severity: Severity,
    onset_ts: float,
    summary: Message,
    cause: Message,
    view: View,
    evidence: dict[str, float | str | None],
) -> Claim:
    return Claim(
        code="loss-divergence",
        target="run",
        severity=severity,
        onset_ts=onset_ts,
        summary=summary,
        cause=cause,
        remedy=_remedy(view),
        evidence=evidence,
        signals=("loss",),
        explains=("loss-spike", "no-progress"),
        clear_after_seconds=30.0,
    )


def _remedy(view: View) -> Message:
    rate = next(
        (r.roles.learning_rate for r in reversed(view.history.train.records) if r.roles.learning_rate), None
    )
    best = view.history.train.best_epoch
    if rate is not None and best is not None:
        return msg(
            "Resume from best.pt (epoch {epoch}) with a lower learning rate (now {rate})",
            epoch=best,
            rate=f"{rate:.2g}",
        )
    return msg("Lower the learning rate, clip gradients, look at the images of that step")


def _closes_mosaic(record: TrainRecord, view: View) -> bool:
    closing = view.history.train.run.close_mosaic
    total = record.epochs or view.history.train.total_epochs
    return bool(closing and total and record.epoch == total - closing + 1)


def _neighbours(spikes: list[tuple[int, float, float]]) -> bool:
    """Whether all are one jump: steps that follow one another."""
    return spikes[-1][0] - spikes[0][0] < len(spikes)


def _total(parts: dict[str, float], whole: float | None = None) -> float | None:
    if whole is not None:
        return whole
    return sum(parts.values()) if parts else None
