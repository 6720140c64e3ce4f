"""A log's clock that is off: seen by when records arrive, and by when the GPUs work."""

from __future__ import annotations

import msgspec
import pytest

from tests.diagnosis.scene import Scene
from yolomon.diagnosis.log_clock import LogClock
from yolomon.diagnosis.run_recording import run_engine
from yolomon.model import Item, Telemetry, TrainRecord


def record(ts: float, **more: object) -> TrainRecord:
    return TrainRecord(ts=ts, own_ts=ts, kind="batch", source="train.jsonl", rank=0, **more)  # type: ignore[arg-type]


def placed(stamps: list[list[float]], interval: float = 1.0) -> float:
    """By how much the last record is moved, after one list of stamps arrived after each reading."""
    clock, moved = LogClock(), 0.0
    for number, arrived in enumerate(stamps):
        clock.read(number * interval)
        for stamp in arrived:
            moved = clock.place(record(stamp)) - stamp
    return moved


@pytest.mark.parametrize("off", [-30.0, -6.0, -3.0, 4.0, 6.0, 60.0])
def test_a_clock_that_is_off(off: float) -> None:
    stamps = [[n + 0.2 + off, n + 0.7 + off] for n in range(20)]
    assert placed(stamps) == pytest.approx(-off, abs=0.35)


@pytest.mark.parametrize("off", [-30.0, -10.0, 10.0, 30.0])
def test_rare_readings_tell_it_as_closely_as_frequent_ones(off: float) -> None:
    stamps = [[5 * n + part / 2 + 0.1 + off for part in range(10)] for n in range(20)]
    assert placed(stamps, interval=5.0) == pytest.approx(-off, abs=0.5)


def test_a_clock_that_is_right() -> None:
    assert placed([[n + 0.2, n + 0.7] for n in range(20)]) == 0.0


def test_a_log_that_is_written_in_blocks_is_late_but_not_off() -> None:
    stamps: list[list[float]] = [[] for _ in range(64)]
    for block in range(8, 64, 8):
        stamps[block] = [block - 8 + at / 2 for at in range(16)]
    assert placed(stamps) == 0.0


def test_a_hole_in_the_readings_moves_nothing() -> None:
    clock = LogClock()
    for number in range(10):
        clock.read(number)
        clock.place(record(number + 0.5))
    assert {clock.place(record(10 + n)) - (10 + n) for n in range(40)} == {0}
    clock.read(50.0)
    assert clock.place(record(50.5)) == 50.5


def test_rare_records_between_rare_readings() -> None:
    assert placed([[10 * n + 9.0] if n % 2 else [] for n in range(20)], interval=10.0) == 0.0


def test_what_was_in_the_log_before_stays_where_it_is() -> None:
    clock = LogClock()
    for number in range(20):
        clock.read(number)
        clock.place(record(number - 8.0))
    assert clock.place(record(3.0, backlog=True)) == 3.0


def shifted(items: list[Item], seconds: float) -> list[Item]:
    """As a recording in which the log's stamps are off, in the order of the stamps."""
    moved = [
        msgspec.structs.replace(i, ts=i.ts + seconds) if isinstance(i, TrainRecord) else i for i in items
    ]
    return sorted(moved, key=lambda item: item.ts)


@pytest.mark.parametrize("seconds", [-5.0, -3.0, 0.0, 3.0, 5.0])
def test_a_recording_whose_log_is_off_has_no_slow_rank(seconds: float) -> None:
    """Read as it is, rank 0's saving would lie within an epoch."""
    scene = Scene(2).start()
    for _ in range(14):
        scene.train(6).turn(validate=1, save=2)
    found = run_engine(shifted(scene.items, seconds)).all_findings()
    assert [f.code for f in found if f.code == "load-imbalance"] == []


@pytest.mark.parametrize("seconds", [-3.0, 0.0, 3.0])
def test_a_slow_rank_is_found_whatever_the_logs_clock(seconds: float) -> None:
    scene = Scene(2)
    scene.gpus[0].busy, scene.gpus[1].busy = 95.0, 30.0
    scene.start()
    for _ in range(8):
        scene.train(6).turn(validate=1, save=2)
    found = run_engine(shifted(scene.items, seconds)).all_findings()
    assert [(f.code, f.target) for f in found if f.code == "load-imbalance"] == [("load-imbalance", "gpu1")]


def test_the_stage_has_readings() -> None:
    assert any(isinstance(item, Telemetry) for item in Scene(2).start().train(3).items)
