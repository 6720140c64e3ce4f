"""Where the time goes, and when that cannot be told."""

from __future__ import annotations

import pytest

from tests.diagnosis.scene import Scene
from yolomon.diagnosis.phases import Phases
from yolomon.diagnosis.run_recording import run_engine, where_the_time_goes
from yolomon.diagnosis.timesplit import TimeSplit
from yolomon.model import TrainRecord


def test_epoch_rows_alone_give_no_split() -> None:
    """results.csv has a row an epoch and nothing else: that is not "all the time saving checkpoints"."""
    phases = Phases()
    split = TimeSplit(phases)
    for epoch in range(1, 6):
        record = TrainRecord(ts=1000.0 + 60 * epoch, kind="epoch", epoch=epoch, epochs=10)
        phases.observe(record)
        split.observe(record)
    assert split.ranks() == []
    assert split.whole(0, 1400.0) is None
    assert split.recent(0, 1400.0, 120.0) is None
    assert split.epochs(0) == []
    step = TrainRecord(ts=1370.0, kind="batch", epoch=6, step=1)
    phases.observe(step)
    split.observe(step)
    assert split.ranks() == [0]


@pytest.mark.parametrize("properly", [True, False])
def test_the_time_after_the_run_is_not_counted(properly: bool) -> None:
    """A watcher that stays for minutes after the end or the death does not fill the bar with waiting."""
    scene = Scene().start().train(60)
    if properly:
        scene.end()
    over_ts = scene.now
    scene.dead.add(scene.pid(0))
    scene.gpus[0].rest()
    scene.wait(300)
    engine = run_engine(scene.items)
    (times,) = where_the_time_goes(engine)
    spent = sum(times.seconds.values())
    assert spent == pytest.approx(times.elapsed_seconds, abs=0.01)
    assert spent < over_ts - scene.items[0].ts + 3
    assert times.start_ts < scene.items[0].ts + 10
    assert times.seconds["checkpoint"] < 10
    assert times.seconds["stalled"] == 0
    recent = engine.timesplit.recent(0, engine.history.now_ts, 120.0)
    assert recent is not None and recent.seconds["compute"] > 30
