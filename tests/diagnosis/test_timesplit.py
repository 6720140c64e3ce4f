"""Where the time goes, and when that cannot be told."""

from __future__ import annotations

from yolomon.diagnosis.phases import Phases
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
