"""amp-underflow: mixed precision gives no usable gradients, so the weights stand still while steps go on."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from math import isfinite
from statistics import median
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord

SCALE = declare(
    "amp-underflow.scale", 1.0, "", "of the loss: below it small gradients are lost to half precision"
)
FALL = declare(
    "amp-underflow.fall", 64.0, "times", "that the scale fell from its highest, as it does when no step fits"
)
STEPS = declare("amp-underflow.steps", 20.0, "steps", "in a row with a gradient of zero, NaN or infinity")
WARMUP_STEPS = 20  # the scale is looked for at the start: steps are skipped rightly
LEAST_NORM = 1e-3  # a usual gradient below this may be printed as zero
# amp_scale, loss_scale (DeepSpeed, MMEngine, Megatron), grad_scale, scaler/scale, loss-scale
_SCALE_NAME = re.compile(
    r"(?:^|[/_.\- ])(?:amp|loss|grad|gradient)[_\- ]?scal(?:e|er|ing)$|^(?:grad)?scaler?(?:[/_.]scale)?$"
)


class AmpUnderflow:
    """The loss scale falls to nothing, or the gradient is zero or not finite for many steps in a row.

    A gradient scaler halves its scale at each step whose gradients overflow and skips that step. Skips are
    normal in the first steps and now and then; a scale that falls on and on says that no step is taken any
    more. Fooled by: a fixed scale that is small by design (then it never fell), gradient accumulation that
    logs zero between updates (such runs of zeros were there before), a norm that is rounded to zero.
    """

    codes: ClassVar[tuple[str, ...]] = ("amp-underflow",)

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._steps = 0
        self._scale: float | None = None
        self._highest = 0.0
        self._fell_ts: float | None = None  # when it began to fall from its highest
        self._norms: deque[float] = deque(maxlen=64)  # usual ones
        self._bad: tuple[float, int, bool] | None = None  # since when, steps in a row, zero
        self._longest = 0  # run of such steps that ended by itself

    def observe(self, item: Item, view: View) -> None:
        """Take the scale and the gradient norm of each step."""
        if not isinstance(item, TrainRecord) or (item.rank or 0) != 0 or item.backlog:
            return
        if item.kind == "start":
            self._reset()
        elif item.kind == "batch":
            self._steps += 1
            scale = next((v for name, v in item.numbers.items() if _SCALE_NAME.search(name.lower())), None)
            if scale is not None and isfinite(scale) and scale >= 0:
                self._take_scale(item.ts, scale)
            norm = item.roles.gradient_norm
            if norm is not None:
                self._take_norm(item.ts, norm)

    def _take_scale(self, ts: float, scale: float) -> None:
        if self._scale is None or scale >= self._highest:
            self._highest, self._fell_ts = scale, None
        elif scale < self._scale and self._fell_ts is None:
            self._fell_ts = ts
        elif scale > self._scale and scale >= 1:
            self._highest, self._fell_ts = scale, None  # it recovers: counted anew from here
        self._scale = scale

    def _take_norm(self, ts: float, norm: float) -> None:
        if norm == 0.0 or not isfinite(norm):
            since, count, _ = self._bad or (ts, 0, True)
            self._bad = (since, count + 1, norm == 0.0)
            return
        if self._bad is not None:
            self._longest = max(self._longest, self._bad[1])
            self._bad = None
        self._norms.append(norm)

    def check(self, view: View) -> Iterator[Claim]:
        """At most one claim, on the run."""
        if self._steps < WARMUP_STEPS:
            return
        limits = view.thresholds
        scale = self._scale
        if (
            scale is not None
            and self._fell_ts is not None
            and scale < limits[SCALE]
            and self._highest >= limits[FALL] * scale
        ):
            yield _claim(
                self._fell_ts,
                msg(
                    "the loss scale of mixed precision fell from {before} to {now}: steps are skipped",
                    before=f"{self._highest:.4g}",
                    now=f"{scale:.4g}",
                ),
                {"loss_scale": scale, "highest_loss_scale": self._highest},
                view,
            )
            return
        bad = self._bad
        least = max(limits[STEPS], 3.0 * self._longest)
        if bad is None or bad[1] < least or len(self._norms) < 5 or median(self._norms) < LEAST_NORM:
            return
        yield _claim(
            bad[0],
            msg("the gradient is zero for {count} steps: the weights do not move", count=bad[1])
            if bad[2]
            else msg("the gradient is not finite for {count} steps: each is skipped", count=bad[1]),
            {"steps": float(bad[1]), "usual_gradient_norm": round(median(self._norms), 6)},
            view,
        )


def _claim(onset_ts: float, summary: Message, evidence: dict[str, float | str | None], view: View) -> Claim:
    run = view.history.train.run
    remedy = (
        msg("clip gradients and lower lr0; look for a part that overflows or is detached from the loss")
        if run.amp is False
        else msg("resume from the last good checkpoint with bfloat16 or amp=False; a lower lr0 helps, too")
    )
    return Claim(
        code="amp-underflow",
        target="run",
        severity="warning",
        onset_ts=onset_ts,
        summary=summary,
        cause=msg("gradients overflow or vanish in half precision: training goes on without learning"),
        remedy=remedy,
        evidence=evidence,
        signals=("loss",),
        explains=("no-progress",),
        clear_after_seconds=20.0,
    )
