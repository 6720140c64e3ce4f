"""The run as its logs tell it."""

from __future__ import annotations

from math import nan

from yolomon.history import History
from yolomon.model import Roles, RunInfo, TrainRecord


def batch(step: int, *, rank: int = 0, loss: float = 1.0, backlog: bool = False) -> TrainRecord:
    return TrainRecord(
        ts=1000.0 + step,
        kind="batch",
        rank=rank,
        epoch=1 + (step - 1) // 10,
        epochs=3,
        batch=1 + (step - 1) % 10,
        batches=10,
        step=step,
        roles=Roles(loss=loss, losses={"train/box_loss": loss / 2}, step_seconds=0.1),
        backlog=backlog,
    )


def test_where_the_run_is() -> None:
    history = History()
    for step in range(1, 16):
        history.add(batch(step))
    train = history.train
    assert (train.epoch, train.total_epochs, train.step, train.batch, train.batches) == (2, 3, 15, 5, 10)
    assert train.curves["loss"].points()[0][-1] == 1.5
    assert train.curves["train/box_loss"].bounds == (0.5, 0.5)


def test_ranks_are_kept_apart_and_only_the_first_draws_the_curves() -> None:
    history = History()
    history.add(batch(1, rank=0, loss=1.0))
    history.add(batch(1, rank=1, loss=9.0))
    assert set(history.train.ranks) == {0, 1}
    assert history.train.curves["loss"].bounds == (1.0, 1.0)
    assert history.train.ranks[1].table.latest("loss") == (1001.0, 9.0)


def test_the_best_map_and_its_epoch_and_nan_is_no_best() -> None:
    history = History()
    for epoch, value in ((1, 0.2), (2, 0.5), (3, nan), (4, 0.4)):
        history.add(TrainRecord(ts=float(epoch), kind="epoch", epoch=epoch, roles=Roles(map50_95=value)))
    assert (history.train.best_map50_95, history.train.best_epoch) == (0.5, 2)


def test_an_epoch_log_alone_draws_its_losses_too() -> None:
    history = History()
    for epoch in (1, 2):
        roles = Roles(
            loss=3.0 / epoch, losses={"train/box_loss": 1.0 / epoch}, validation_losses={"val/box_loss": 2.0}
        )
        history.add(TrainRecord(ts=float(epoch), kind="epoch", epoch=epoch, roles=roles))
    curves = history.train.curves
    assert curves["loss"].points() == ([1.0, 2.0], [3.0, 1.5])
    assert curves["train/box_loss"].points()[1] == [1.0, 0.5]
    assert len(curves["val/box_loss"]) == 2


def test_settings_told_later_win_and_leave_the_rest() -> None:
    history = History()
    history.add(TrainRecord(ts=1.0, kind="start", run=RunInfo(model="yolo11n", workers=0)))
    history.add(TrainRecord(ts=2.0, kind="start", run=RunInfo(workers=8)))
    assert (history.train.run.model, history.train.run.workers) == ("yolo11n", 8)


def test_an_end_is_undone_by_a_new_start() -> None:
    history = History()
    history.add(TrainRecord(ts=1.0, kind="end"))
    assert history.train.ended is not None
    history.add(TrainRecord(ts=2.0, kind="start"))
    assert history.train.ended is None


def test_feature_statistics_by_layer() -> None:
    history = History()
    for step in (100, 200):
        record = TrainRecord(
            ts=float(step), kind="features", step=step, features={"model.9": {"std": step / 100}}
        )
        history.add(record)
    assert history.train.features["model.9"] == {"std": 2.0}
    assert history.train.feature_curves["model.9"]["std"].points() == ([100.0, 200.0], [1.0, 2.0])


def test_records_from_before_we_attached_do_not_move_the_clock() -> None:
    history = History()
    history.add(batch(500, backlog=True))
    assert history.now_ts == 0.0
    assert history.train.step == 500
    assert history.train.ranks[0].table.latest("loss") is None
