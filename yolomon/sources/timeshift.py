"""Moves an item along the time axis: each of its absolute times by the same amount."""

from __future__ import annotations

import msgspec

from yolomon.model import Item, LogStatus, Telemetry, TrainRecord


def shifted(item: Item, seconds: float) -> Item:
    """The item `seconds` later. Durations and counters stay as they are."""
    if seconds == 0.0:
        return item
    replace = msgspec.structs.replace
    if isinstance(item, Telemetry):
        gpus = tuple(
            gpu if gpu.state_since_ts is None else replace(gpu, state_since_ts=gpu.state_since_ts + seconds)
            for gpu in item.gpus
        )
        processes = item.processes and tuple(
            process
            if process.started_ts is None
            else replace(process, started_ts=process.started_ts + seconds)
            for process in item.processes
        )
        return replace(item, ts=item.ts + seconds, gpus=gpus, processes=processes)
    if isinstance(item, TrainRecord):
        own = None if item.own_ts is None else item.own_ts + seconds
        return replace(item, ts=item.ts + seconds, own_ts=own)
    if isinstance(item, LogStatus):
        grown = None if item.last_growth_ts is None else item.last_growth_ts + seconds
        return replace(item, ts=item.ts + seconds, last_growth_ts=grown)
    return replace(item, ts=item.ts + seconds)
