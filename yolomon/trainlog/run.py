"""Several logs of one run as one: epochs from results.csv, batches from a console, the rest from our own.

The first log that tells an epoch gives its record; what another one adds to it comes as a second record with
the new
roles alone. Batches (and the events around them) of a rank come from one log, the one that tells most
exactly.
"""

from __future__ import annotations

from math import isclose
from typing import Any

import msgspec

from yolomon.model import Roles, TrainRecord

EPOCHS_KEPT = 4096
SILENT_SECONDS = 60.0  # after which another log may take over a rank's batches
_MERGED = frozenset({"epoch", "validation"})
_FREE = frozenset({"message", "start", "features"})


def exactness(format_name: str) -> int:
    """How exactly a format tells batches; lower is better."""
    if format_name == "yolomon-jsonl":
        return 0
    return 1 if "json" in format_name or format_name in ("tensorboard", "wandb") else 2


class _Told(msgspec.Struct):
    """What is known of one epoch: by whom, in which segment, which roles with which value."""

    source: str
    segment: int
    roles: dict[str, Any]


class _Owner(msgspec.Struct):
    source: str
    rank_of_format: int
    ts: float


class RunMerger:
    """Takes records of all logs of a run, each log's in order; gives those that are news. Not thread-safe."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int], _Owner] = {}
        self._epochs: dict[tuple[int, int], _Told] = {}
        self._shift: dict[str, int] = {}  # a log's segments against the run's

    def accept(self, record: TrainRecord, format_name: str = "") -> TrainRecord | None:
        """The record as the run has it; None where another log has told it."""
        if record.kind in _FREE:
            return self._shifted(record)
        if record.kind in _MERGED and record.epoch is not None:
            return self._epoch(record)
        return self._owned(record, exactness(format_name))

    def tells_batches(self, source: str) -> bool:
        """Whether the batches of rank 0 are taken from this log, or from none yet."""
        owner = self._owners.get(("batch", 0))
        return owner is None or owner.source == source

    def _owned(self, record: TrainRecord, exact: int) -> TrainRecord | None:
        key = (record.kind, record.rank or 0)
        owner = self._owners.get(key)
        if owner is None or owner.source == record.source:
            self._owners[key] = _Owner(record.source, exact, record.ts)
            return self._shifted(record)
        if exact < owner.rank_of_format or record.ts - owner.ts > SILENT_SECONDS:
            self._owners[key] = _Owner(record.source, exact, record.ts)
            return self._shifted(record)
        return None

    def _epoch(self, record: TrainRecord) -> TrainRecord | None:
        assert record.epoch is not None
        key = (record.rank or 0, record.epoch)
        roles = _values(record.roles)
        told = self._epochs.get(key)
        if told is None or told.source == record.source or not _agree(told.roles, roles):
            shifted = self._shifted(record)
            known = {**told.roles, **roles} if told is not None and told.source == record.source else roles
            self._epochs.pop(key, None)
            self._epochs[key] = _Told(record.source, shifted.segment, known)
            if len(self._epochs) > EPOCHS_KEPT:
                del self._epochs[next(iter(self._epochs))]
            return shifted
        self._shift[record.source] = told.segment - record.segment
        news = {name: value for name, value in roles.items() if name not in told.roles}
        told.roles.update(news)
        if not news:
            return None
        return msgspec.structs.replace(record, segment=told.segment, roles=Roles(**news))

    def _shifted(self, record: TrainRecord) -> TrainRecord:
        shift = self._shift.get(record.source, 0)
        return msgspec.structs.replace(record, segment=max(0, record.segment + shift)) if shift else record


def _values(roles: Roles) -> dict[str, Any]:
    values = {name: getattr(roles, name) for name in roles.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None and value != {}}


def _agree(told: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether two records of one epoch tell of the same one: what both have is equal but for rounding."""
    return all(
        isclose(told[name], new[name], rel_tol=0.02, abs_tol=2e-3)
        for name in ("map50", "map50_95", "precision", "recall")
        if name in told and name in new
    )
