"""The trainer's part of the history: records, curves of the whole run, a table a rank."""

from __future__ import annotations

from collections import deque

import msgspec

from yolomon.history.curve import Curve
from yolomon.history.table import Table
from yolomon.model import CurveBlock, LogStatus, RunInfo, TrainRecord

RANK_COLUMNS = (
    "step",
    "epoch",
    "step_seconds",
    "data_seconds",
    "images_per_second",
    "loss",
    "gradient_norm",
    "memory_allocated_bytes",
    "memory_reserved_bytes",
    "memory_peak_bytes",
)
CURVES_LIMIT = 256
_CURVE_ROLES = (
    "loss", "learning_rate", "map50", "map50_95", "precision", "recall", "fitness",
    "images_per_second", "step_seconds", "data_seconds", "gradient_norm",
)  # fmt: skip


class RankHistory:
    """One rank of the job: its recent batches, its table over time, its newest event."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.pid: int | None = None
        self.batches: deque[TrainRecord] = deque(maxlen=512)
        self.events: deque[TrainRecord] = deque(maxlen=256)  # everything but batches
        self.table = Table(RANK_COLUMNS, raw_rows=2400)
        self.last: TrainRecord | None = None


class TrainHistory:
    """The run as its logs tell it."""

    def __init__(self) -> None:
        self.run = RunInfo()
        self.logs: dict[str, LogStatus] = {}
        self.records: deque[TrainRecord] = deque(maxlen=500)  # as they came, for the screen
        self.count = 0
        self.ranks: dict[int, RankHistory] = {}
        self.epochs: deque[TrainRecord] = deque(maxlen=5000)  # kind "epoch", rank 0
        self.curves: dict[str, Curve] = {}  # by role, or by the trainer's own name of a loss part
        self.features: dict[str, dict[str, float]] = {}  # newest, by layer
        self.feature_curves: dict[str, dict[str, Curve]] = {}  # layer -> statistic -> over steps
        self.epoch: int | None = None
        self.total_epochs: int | None = None
        self.step: int | None = None
        self.batch: int | None = None
        self.batches: int | None = None
        self.best_map50_95: float | None = None
        self.best_epoch: int | None = None
        self.last_ts: float | None = None  # of the newest record of any rank
        self.ended: TrainRecord | None = None
        self._after: dict[str, Curve] = {}  # live points of curves whose backlog is still being read
        self._backlog_of: dict[str, str] = {}  # curve -> the log that tells its backlog

    def add(self, record: TrainRecord) -> None:
        """Take one record; those of one rank come in order."""
        self.count += 1
        self.records.append(record)
        if record.run is not None:
            self.run = merge_run(self.run, record.run)
        rank = record.rank or 0
        history = self.ranks.get(rank)
        if history is None:
            history = self.ranks[rank] = RankHistory(rank)
        history.pid = record.pid or history.pid
        history.last = record
        if self.last_ts is None or record.ts > self.last_ts:
            self.last_ts = record.ts
        if record.kind == "batch":
            history.batches.append(record)
        else:
            history.events.append(record)
        roles = record.roles
        if record.kind == "batch" and not record.backlog:
            history.table.append(
                record.ts,
                (
                    record.step,
                    record.epoch,
                    roles.step_seconds,
                    roles.data_seconds,
                    roles.images_per_second,
                    roles.loss,
                    roles.gradient_norm,
                    roles.memory_allocated_bytes,
                    roles.memory_reserved_bytes,
                    roles.memory_peak_bytes,
                ),
            )
        if rank == 0:
            self._add_to_run(record)

    def _add_to_run(self, record: TrainRecord) -> None:
        if record.kind == "start":
            self.ended = None
        elif record.kind == "end":
            self.ended = record
        if record.epochs is not None:
            self.total_epochs = record.epochs
        elif self.total_epochs is None:
            self.total_epochs = self.run.epochs
        if record.epoch is not None and record.kind != "features":
            self.epoch = record.epoch
        if record.kind == "batch":
            self.step = record.step if record.step is not None else self.step
            self.batch, self.batches = record.batch, record.batches or self.batches
        elif record.kind == "epoch_start":
            self.batch = None
        if record.kind == "epoch":
            self.epochs.append(record)
        best = record.roles.map50_95
        if record.epoch is None and self.epoch is not None:
            best = None  # the last look at best.pt: a second value of an epoch that is known
        if best is not None and best == best and (self.best_map50_95 is None or best > self.best_map50_95):
            self.best_map50_95, self.best_epoch = best, record.epoch
        if not record.backlog:
            self._add_to_curves(record)
        if record.features is not None:
            self._add_features(record)

    def _add_to_curves(self, record: TrainRecord) -> None:
        x = self.x_of(record)
        if x is None:
            return
        roles = record.roles
        for name in _CURVE_ROLES:
            value = getattr(roles, name)
            if value is not None and not (record.kind == "epoch" and name in ("loss", "step_seconds")):
                self.curve(name).add(x, value)
        for name, value in roles.losses.items():
            if record.kind == "batch" or not self._has_batches:
                self.curve(name).add(x, value)
        for name, value in roles.validation_losses.items():
            self.curve(name).add(x, value)
        if record.kind == "epoch" and not self._has_batches and roles.loss is not None:
            self.curve("loss").add(x, roles.loss)

    def add_block(self, block: CurveBlock) -> None:
        """Take what a log held before we attached; it goes before the live points that came meanwhile."""
        if block.ends:
            for name in [n for n, source in self._backlog_of.items() if source == block.source]:
                later = self._after.pop(name, None)
                if later is not None:
                    self.curves[name].extend(later)
            return
        name = block.name
        if block.live:
            if self._backlog_of.get(name, block.source) == block.source:
                _put(self.curve(name), block)
            return
        if self._backlog_of.setdefault(name, block.source) != block.source:
            return  # another log of the run tells the same curve
        if name not in self.curves and len(self.curves) >= CURVES_LIMIT:
            return
        if name not in self._after:
            self._after[name] = self.curves.get(name, Curve())
            self.curves[name] = Curve()
        _put(self.curves[name], block)

    @property
    def _has_batches(self) -> bool:
        rank = self.ranks.get(0)
        return rank is not None and bool(rank.batches)

    def curve(self, name: str) -> Curve:
        """The curve of that name, made where it is missing; past the limit a throw-away one."""
        found = self._after.get(name)
        if found is None:
            found = self.curves.get(name)
        if found is None:
            found = Curve()
            if len(self.curves) < CURVES_LIMIT:
                self.curves[name] = found
        return found

    @staticmethod
    def x_of(record: TrainRecord) -> float | None:
        """The place on the curves' axis: epochs done (2.5: half of the third), or the step without epochs."""
        if record.epoch is not None:
            if record.kind == "batch" and record.batch is not None and record.batches:
                return record.epoch - 1 + record.batch / record.batches
            return float(record.epoch)
        return None if record.step is None else float(record.step)

    def _add_features(self, record: TrainRecord) -> None:
        step = record.step if record.step is not None else self.step
        for layer, statistics in (record.features or {}).items():
            if layer not in self.features and len(self.features) >= CURVES_LIMIT:
                continue
            self.features[layer] = statistics
            curves = self.feature_curves.setdefault(layer, {})
            for name, value in statistics.items():
                if step is not None and (name in curves or len(curves) < 12):
                    curves.setdefault(name, Curve(256)).add(step, value)


def _put(curve: Curve, block: CurveBlock) -> None:
    if block.count:
        curve.add_block(block.x_first, block.x_last, block.minimum, block.maximum, block.last, block.count)
    if block.non_finite:
        curve.add_non_finite(block.x_last, block.non_finite)


def merge_run(old: RunInfo, new: RunInfo) -> RunInfo:
    """Settings told later win; what they leave open stays."""
    told = {name: getattr(new, name) for name in new.__struct_fields__ if getattr(new, name) is not None}
    return msgspec.structs.replace(old, **told)
