"""The phases of each rank, and where its time goes."""

from __future__ import annotations

import pytest

from tests.diagnosis.scene import START, Scene
from yolomon.diagnosis.phases import INTERVALS_LIMIT, Phases
from yolomon.diagnosis.run_recording import run_engine, where_the_time_goes
from yolomon.model import RunInfo, TrainRecord


def of(scene: Scene, rank: int = 0) -> list[str]:
    return [i.phase for i in scene.engine().phases.ranks[rank].intervals]


def test_a_run_with_events() -> None:
    scene = Scene(1).start().train(10).turn(validate=3).train(5).end()
    assert of(scene) == [
        "starting", "warmup", "train",
        "epoch-turn", "validation", "checkpoint", "epoch-turn", "train", "ended",
    ]  # fmt: skip


def test_close_mosaic_is_its_own_phase() -> None:
    scene = Scene(1, run=RunInfo(epochs=12, close_mosaic=11)).start().train(10).turn().train(5)
    assert "close-mosaic" in of(scene)


def test_without_events_the_last_batch_ends_the_epoch() -> None:
    scene = Scene(1).start()
    scene.train(20).train(5)
    bare = [i for i in scene.items if not isinstance(i, TrainRecord) or i.kind == "batch"]
    intervals = run_engine(bare).phases.ranks[0].intervals
    assert [i.phase for i in intervals] == ["warmup", "train", "epoch-turn", "train"]
    assert intervals[2].inferred


def test_the_first_steps_and_the_pause_after_the_last_one_are_no_training() -> None:
    scene = Scene(2).start()
    scene.batches = 10**6
    scene.train(20).wait(20)
    phases = scene.engine().phases
    spans = phases.training_spans(START, scene.now)
    assert len(spans) == 1
    assert spans[0][0] > START + 5 and spans[0][1] < START + 5 + 20 + 1.5


def test_a_thousand_epochs_stay_bounded() -> None:
    phases = Phases()
    ts = START
    for epoch in range(1, 3001):
        for batch in (1, 2, 3):
            ts += 1
            phases.observe(TrainRecord(ts=ts, kind="batch", epoch=epoch, batch=batch, batches=3))
    assert len(phases.ranks[0].intervals) <= INTERVALS_LIMIT


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_times_add_up_to_the_elapsed_time(ranks: int) -> None:
    scene = Scene(ranks).start()
    scene.data_share = [0.25] * ranks
    for _ in range(3):
        scene.train(20)
    for times in where_the_time_goes(scene.engine()):
        assert sum(times.seconds.values()) == pytest.approx(times.elapsed_seconds, abs=0.01)
        assert times.seconds["start-up"] == pytest.approx(5, abs=1)
        assert times.seconds["data-wait"] == pytest.approx(0.25 * 60, rel=0.1)
        assert times.seconds["compute"] == pytest.approx(0.75 * 60, rel=0.1)


def test_a_rank_that_waits_for_the_one_that_saves() -> None:
    scene = Scene(2).start().train(20).train(20)
    first, second = where_the_time_goes(scene.engine())
    assert first.seconds["rank-wait"] == 0
    assert second.seconds["rank-wait"] == pytest.approx(4, abs=0.5)
    assert first.seconds["checkpoint"] == pytest.approx(4, abs=0.5)


def test_waiting_inside_a_step_is_an_estimate_of_the_gpus() -> None:
    scene = Scene(2).start()
    scene.batches = 10**6
    scene.gpus[0].busy, scene.gpus[1].busy = 95.0, 25.0
    first, second = where_the_time_goes(scene.train(100).engine())
    assert first.estimated == ("rank-wait",)
    assert first.seconds["rank-wait"] == pytest.approx(0.7 * 100, rel=0.15)
    assert second.seconds["rank-wait"] == 0


def test_a_stall_is_counted_as_such() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(20).wait(60)
    times = where_the_time_goes(scene.engine())[0]
    assert times.seconds["stalled"] == pytest.approx(60, abs=1)


def test_the_last_minutes_and_each_epoch() -> None:
    scene = Scene(1).start()
    for _ in range(10):
        scene.train(20)
    engine = scene.engine()
    recent = engine.timesplit.recent(0, scene.now, 60)
    assert recent is not None
    assert recent.elapsed_seconds == pytest.approx(60, abs=15)
    assert sum(recent.seconds.values()) == pytest.approx(recent.elapsed_seconds, abs=0.01)
    epochs = engine.timesplit.epochs(0)
    assert [e.epoch for e in epochs][:3] == [1, 2, 3]
    assert all(sum(e.seconds.values()) == pytest.approx(e.elapsed_seconds, abs=0.01) for e in epochs)


def test_without_a_log_the_gpu_tells_busy_from_idle() -> None:
    scene = Scene(1, logging_ranks=[])
    scene.gpus[0].busy = 60.0
    times = where_the_time_goes(scene.wait(60).engine())[0]
    assert times.rank is None and times.gpu_index == 0
    assert times.seconds["compute"] / times.elapsed_seconds == pytest.approx(0.6, abs=0.02)


def test_sync_wait_is_told_after_two_epochs() -> None:
    scene = Scene(2).start()
    scene.batches = 20
    for _ in range(5):
        scene.train(4)
    found = [f for f in scene.findings() if f.code == "sync-wait"]
    assert [(f.target, f.severity) for f in found] == [("gpu1", "info")]
    assert found[0].evidence["waited_seconds_per_epoch"] == pytest.approx(2, abs=0.3)
