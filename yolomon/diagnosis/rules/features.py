"""Feature maps that die or explode, each layer against its own start; the first bad layer is named."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import isfinite
from typing import ClassVar

import msgspec

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.statistics import mann_kendall, median
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, Severity, TrainRecord

DEAD = declare(
    "dead-features.share", 0.5, "share", "of a layer's channels that carry nothing (variance below 1e-6)"
)
DEAD_CRITICAL = declare("dead-features.critical-share", 0.9, "share", "of a layer's channels: critical")
PROBES = declare("dead-features.probes", 3.0, "samples", "in a row")
SPARSITY = declare(
    "dead-features.sparsity", 0.9, "share", "of near-zero values, with 0.2 more than at the start"
)
TINY_STD = declare("dead-features.std", 1e-6, "", "standard deviation at which a layer is dead")
EXPLODES = declare(
    "exploding-features.ratio", 10.0, "times", "the layer's own standard deviation at the start"
)
GRADIENT = declare(
    "exploding-features.gradient-ratio", 100.0, "times", "the gradient norm's own median, for 20 steps"
)
EXPLODING_PROBES = declare("exploding-features.probes", 5.0, "samples", "in a row")
_BASELINE_PROBES = 20
_LEAST_BASELINE = 5
LAYERS_LIMIT = 256


class _Layer(msgspec.Struct):
    """A layer's first samples (its baseline) and its newest."""

    place: int
    first_std: list[float]
    first_sparsity: list[float]
    first_dead: list[float]
    means: deque[float]
    dead_run: int = 0
    exploding_run: int = 0
    sparse_run: int = 0
    dead_since: float = 0.0
    exploding_since: float = 0.0
    sparse_since: float = 0.0
    newest: dict[str, float] = {}
    step: int | None = None


class Features:
    """From records of kind "features", in the order of the layers, and from the gradient norm of steps."""

    codes: ClassVar[tuple[str, ...]] = ("dead-features", "exploding-features")

    def __init__(self) -> None:
        self._segment = 0
        self._reset()

    def _reset(self) -> None:
        self._layers: dict[str, _Layer] = {}
        self._norms: deque[float] = deque(maxlen=256)
        self._norm_level: float | None = None
        self._norm_run = 0
        self._norm_since = 0.0
        self._norm_steps = 0
        self._norm: float | None = None

    def observe(self, item: Item, view: View) -> None:
        """Take a sample of features, or a step's gradient norm."""
        if not isinstance(item, TrainRecord) or (item.rank or 0) != 0:
            return
        if item.kind == "start" or item.segment != self._segment:
            self._segment = item.segment
            self._reset()
        if item.features:
            for name, statistics in item.features.items():
                self._sample(name, statistics, item, view)
        if item.kind == "batch" and item.roles.gradient_norm is not None:
            self._gradient(item.ts, item.roles.gradient_norm, view)

    def _sample(self, name: str, statistics: dict[str, float], record: TrainRecord, view: View) -> None:
        layer = self._layers.get(name)
        if layer is None:
            if len(self._layers) >= LAYERS_LIMIT:
                return
            layer = self._layers[name] = _Layer(len(self._layers), [], [], [], deque(maxlen=60))
        limits, ts = view.thresholds, record.ts
        layer.newest, layer.step = statistics, record.step
        std, sparsity = statistics.get("std"), statistics.get("sparsity")
        dead = statistics.get("dead_channels")
        mean = statistics.get("mean")
        if mean is not None and isfinite(mean):
            layer.means.append(abs(mean))
        collapsed = std is not None and std < limits[TINY_STD]
        is_dead = collapsed or (
            dead is not None
            and dead > limits[DEAD]
            and (len(layer.first_dead) < _LEAST_BASELINE or dead > median(layer.first_dead) + 0.2)
        )
        layer.dead_run, layer.dead_since = _run(layer.dead_run, layer.dead_since, is_dead, ts)
        is_sparse = (
            sparsity is not None
            and sparsity > limits[SPARSITY]
            and len(layer.first_sparsity) >= _LEAST_BASELINE
            and sparsity > median(layer.first_sparsity) + 0.2
        )
        layer.sparse_run, layer.sparse_since = _run(layer.sparse_run, layer.sparse_since, is_sparse, ts)
        bad = (statistics.get("nonfinite") or 0.0) > 0
        explodes = bad or (
            std is not None
            and len(layer.first_std) >= _LEAST_BASELINE
            and std > limits[EXPLODES] * max(median(layer.first_std), 1e-12)
        )
        layer.exploding_run, layer.exploding_since = _run(
            layer.exploding_run, layer.exploding_since, explodes, ts
        )
        for first, value in (
            (layer.first_std, std),
            (layer.first_sparsity, sparsity),
            (layer.first_dead, dead),
        ):
            if value is not None and isfinite(value) and len(first) < _BASELINE_PROBES:
                first.append(value)

    def _gradient(self, ts: float, norm: float, view: View) -> None:
        self._norm = norm
        if not isfinite(norm) or norm <= 0:
            return  # skipped by the AMP scaler, or NaN: another finding
        self._norm_steps += 1
        if self._norm_level is not None and norm > view.thresholds[GRADIENT] * self._norm_level:
            if self._norm_run == 0:
                self._norm_since = ts
            self._norm_run += 1
            return
        self._norm_run = 0
        self._norms.append(norm)
        if self._norm_steps >= 100 and self._norm_steps % 16 == 0:  # the first steps warm up
            self._norm_level = median(self._norms)

    def check(self, view: View) -> Iterator[Claim]:
        """At most one claim of each code."""
        limits = view.thresholds
        layers = sorted(self._layers.items(), key=lambda item: item[1].place)
        dead = [(n, x) for n, x in layers if x.dead_run >= limits[PROBES]]
        sparse = [(n, x) for n, x in layers if x.sparse_run >= limits[PROBES]]
        if dead or sparse:
            yield self._dead(dead, sparse, view)
        exploding = [
            (n, x)
            for n, x in layers
            if x.exploding_run >= limits[EXPLODING_PROBES]
            or (x.exploding_run and (x.newest.get("nonfinite") or 0.0) > 0)
        ]
        if exploding:
            yield self._exploding(exploding)
        elif self._norm_run >= 20 and self._norm_level:
            ratio = (self._norm or 0.0) / self._norm_level
            yield Claim(
                code="exploding-features",
                target="run",
                severity="warning",
                onset_ts=self._norm_since,
                summary=msg("The gradient norm is {ratio} times its level", ratio=f"{ratio:.3g}"),
                cause=msg("A learning rate that is too high, or a loss that blows up"),
                remedy=msg("Clip the gradient norm, lower the learning rate"),
                evidence={
                    "gradient_norm": self._norm,
                    "level": self._norm_level,
                    "steps": float(self._norm_run),
                },
                signals=("gradient_norm",),
                clear_after_seconds=30.0,
            )

    def _dead(self, dead: list[tuple[str, _Layer]], sparse: list[tuple[str, _Layer]], view: View) -> Claim:
        name, layer = (dead or sparse)[0]
        channels = layer.newest.get("dead_channels")
        std = layer.newest.get("std")
        severe = (channels is not None and channels > view.thresholds[DEAD_CRITICAL]) or (
            std is not None and std < view.thresholds[TINY_STD]
        )
        severity: Severity = "critical" if dead and severe else "warning"
        more = len({n for n, _ in (*dead, *sparse)}) - 1
        decay = mann_kendall(list(layer.means)) if len(layer.means) >= 10 else None
        summary: Message
        if dead:
            summary = msg(
                "Layer {layer}: {share} % of its channels are dead",
                layer=name,
                share=f"{100 * (channels or 1.0):.0f}",
            )
        else:
            summary = msg("Layer {layer}: {share} % of its values are near zero", layer=name,
                          share=f"{100 * layer.newest.get('sparsity', 0.0):.0f}")  # fmt: skip
        return Claim(
            code="dead-features",
            target="run",
            severity=severity,
            onset_ts=layer.dead_since if dead else layer.sparse_since,
            summary=summary,
            cause=msg("Its activations collapsed; {more} later layers follow", more=more)
            if more
            else msg(
                "Its activations collapsed: a learning rate that is too high or batch norm on a small batch"
            ),
            remedy=_dead_remedy(view),
            evidence={
                "layer": name,
                "dead_channels_share_percent": None if channels is None else round(100 * channels, 1),
                "sparsity_percent": round(100 * layer.newest.get("sparsity", 0.0), 1),
                "sparsity_at_start_percent": round(100 * median(layer.first_sparsity), 1)
                if layer.first_sparsity
                else None,
                "std": std,
                "std_at_start": median(layer.first_std) if layer.first_std else None,
                "mean_trend_z": None if decay is None else round(decay, 1),
                "step": None if layer.step is None else float(layer.step),
                "layers": float(more + 1),
            },
            signals=("features",),
            clear_after_seconds=60.0,
        )

    def _exploding(self, exploding: list[tuple[str, _Layer]]) -> Claim:
        name, layer = exploding[0]
        bad = layer.newest.get("nonfinite") or 0.0
        std = layer.newest.get("std")
        start = median(layer.first_std) if layer.first_std else None
        return Claim(
            code="exploding-features",
            target="run",
            severity="critical" if bad else "warning",
            onset_ts=layer.exploding_since,
            summary=msg("Layer {layer}: {share} % of its values are NaN or "
            "infinite", layer=name, share=f"{100 * bad:.3g}")
            if bad
            else msg("Layer {layer}: its values spread {ratio} times as far as at the start", layer=name,
                     ratio=f"{(std or 0.0) / max(start or 0.0, 1e-12):.3g}"),
            cause=msg("Values overflow: a learning rate that is too high, AMP, or a layer without "
            "normalisation"),
            remedy=msg("Lower the learning rate, clip gradients; test with amp=False"),
            evidence={
                "layer": name,
                "std": std,
                "std_at_start": start,
                "absmax": layer.newest.get("absmax"),
                "nonfinite_share_percent": round(100 * bad, 4),
                "step": None if layer.step is None else float(layer.step),
            },
            signals=("features",),
            clear_after_seconds=60.0,
        )  # fmt: skip


def _run(count: int, since: float, holds: bool, ts: float) -> tuple[int, float]:
    """One more in a row, or none."""
    if not holds:
        return 0, since
    return count + 1, ts if count == 0 else since


def _dead_remedy(view: View) -> Message:
    run, ranks = view.history.train.run, max(view.job.size, 1)
    if run.batch_size is not None and 0 < run.batch_size / ranks < 8:
        return msg(
            "A batch of {batch} a GPU is small for batch norm: a larger batch or SyncBN; lower lr0",
            batch=f"{run.batch_size / ranks:.0f}",
        )
    return msg("Lower the learning rate and resume from a checkpoint before it began")
