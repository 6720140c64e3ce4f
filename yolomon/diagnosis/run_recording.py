"""Diagnosis over a recording: items in time's order through the engine at full speed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.thresholds import Thresholds
from yolomon.diagnosis.timesplit import CATEGORIES, Split, telemetry_split
from yolomon.model import Finding, Item


def diagnose(
    items: Iterable[Item],
    thresholds: Mapping[str, float] | None = None,
    silenced: Iterable[str] = (),
) -> list[Finding]:
    """All findings of a recording, in the order they were raised; those of its end have no `cleared_ts`.

    Args:
        items: in time's order, as `sources.recording.merge_by_time` gives them.
        thresholds: overrides by name.
        silenced: codes, or "code@target", left out.

    Raises:
        KeyError: no threshold has that name.
    """
    return [f for f in run_engine(items, thresholds, silenced).all_findings() if not f.silenced]


def run_engine(
    items: Iterable[Item],
    thresholds: Mapping[str, float] | None = None,
    silenced: Iterable[str] = (),
) -> Engine:
    """The engine after all items, with its history, findings and times."""
    engine = Engine(Thresholds(thresholds), silenced)
    for item in items:
        engine.observe(item)
    engine.finish()
    return engine


class TimesOfRank(msgspec.Struct, frozen=True, kw_only=True):
    """Where one rank's (or, without steps, one GPU's) time went. Seconds by category add up to the whole."""

    rank: int | None
    gpu_index: int | None
    start_ts: float
    elapsed_seconds: float
    seconds: dict[str, float]
    estimated: tuple[str, ...]
    epochs: list[dict[str, float | int | None]] = []


def where_the_time_goes(engine: Engine) -> list[TimesOfRank]:
    """The whole run and each epoch, a rank; a GPU where no step was seen."""
    now = engine.history.now_ts
    out: list[TimesOfRank] = []
    for rank in engine.timesplit.ranks():
        split = engine.timesplit.whole(rank, now)
        if split is not None and split.elapsed_seconds > 0:
            epochs = [_epoch(s) for s in engine.timesplit.epochs(rank)]
            out.append(_times(split, rank, engine.job.gpu_of(rank), epochs))
    if out:
        return out
    for gpu in engine.history.by_index():
        found = telemetry_split(engine.seconds, gpu.info.index, now - 600, now)
        if found is not None:
            out.append(_times(found, None, gpu.info.index, []))
    return out


def _times(
    split: Split, rank: int | None, gpu: int | None, epochs: list[dict[str, float | int | None]]
) -> TimesOfRank:
    return TimesOfRank(
        rank=rank,
        gpu_index=gpu,
        start_ts=split.start_ts,
        elapsed_seconds=round(split.elapsed_seconds, 3),
        seconds={name: round(split.seconds.get(name, 0.0), 3) for name in CATEGORIES},
        estimated=split.estimated,
        epochs=epochs,
    )


def _epoch(split: Split) -> dict[str, float | int | None]:
    return {"epoch": split.epoch, "elapsed_seconds": round(split.elapsed_seconds, 3)} | {
        name: round(seconds, 3) for name, seconds in split.seconds.items()
    }
