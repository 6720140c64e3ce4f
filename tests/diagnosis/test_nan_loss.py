"""nan-loss: at the first one, with the step and the age of the last good checkpoint."""

from __future__ import annotations

from math import inf, nan

import pytest

from tests.diagnosis.scene import START, Scene
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import Roles, TrainRecord


@pytest.mark.parametrize("value", [nan, inf])
def test_it_is_said_within_three_seconds(value: float) -> None:
    scene = Scene(1).start().train(30)
    began = scene.now
    scene.loss = value
    found = [f for f in scene.train(10).findings() if f.code == "nan-loss"]
    assert [(f.target, f.severity) for f in found] == [("run", "critical")]
    assert found[0].raised_ts - began < 3
    assert found[0].evidence["checkpoint_epoch"] == 1


def test_a_rollback_is_told_and_finite_losses_clear_it() -> None:
    scene = Scene(1).start().train(30)
    scene.loss = nan
    scene.train(5)
    scene._event("epoch_end")
    scene.batch = 0
    scene._event("epoch_start")
    scene.loss = 2.0
    during = scene.train(3).findings()
    assert "repeats the epoch" in str(next(f for f in during if f.code == "nan-loss").cause)
    after = next(f for f in scene.train(30).findings() if f.code == "nan-loss")
    assert after.cleared_ts is not None


def test_one_part_alone_is_named() -> None:
    """seg_loss is NaN, box_loss fine (ultralytics#4733)."""
    record = TrainRecord(
        ts=START,
        kind="batch",
        epoch=3,
        step=7,
        roles=Roles(loss=nan, losses={"box_loss": 1.0, "seg_loss": nan}),
    )
    found = diagnose([record, TrainRecord(ts=START + 2, kind="batch")])
    assert str(found[0].summary).startswith("seg_loss is NaN since step 7")


def test_several_parts_are_named_in_the_plural() -> None:
    record = TrainRecord(
        ts=START,
        kind="batch",
        epoch=1,
        step=7,
        roles=Roles(loss=nan, losses={"loss_bbox": nan, "loss_centerness": nan, "loss_cls": 1.0}),
    )
    found = diagnose([record, TrainRecord(ts=START + 2, kind="batch")])
    assert str(found[0].summary).startswith("loss_bbox, loss_centerness are NaN since step 7")


def epochs(validation_nan: bool, bad: set[int]) -> list[TrainRecord]:
    """results.csv: a row an epoch, no steps."""
    return [
        TrainRecord(
            ts=START + 30.0 * epoch,
            kind="epoch",
            epoch=epoch,
            roles=Roles(
                losses={"box_loss": nan if epoch in bad and not validation_nan else 1.0},
                validation_losses={"box_loss": nan if epoch in bad and validation_nan else 1.0},
            ),
        )
        for epoch in range(1, 11)
    ]


def test_an_epoch_table_that_is_finite_again_clears_it() -> None:
    (found,) = diagnose(epochs(validation_nan=False, bad={4}))
    assert found.code == "nan-loss" and found.cleared_ts is not None
    (found,) = diagnose(epochs(validation_nan=False, bad={4, 5, 6, 7, 8, 9, 10}))
    assert found.code == "nan-loss" and found.cleared_ts is None


def test_a_validation_that_alone_is_nan_is_not_called_lost_weights() -> None:
    (found,) = diagnose(epochs(validation_nan=True, bad={4, 5, 6, 7, 8, 9, 10}))
    assert "training losses are finite" in str(found.summary)
    assert "EMA" in str(found.cause)
    assert "half=False" in str(found.remedy)


def test_nan_metrics_and_gradient_norms_are_benign() -> None:
    """AP of classes that are absent; steps that AMP skips."""
    records = [
        TrainRecord(
            ts=START + i, kind="batch", epoch=1, step=i,
            roles=Roles(loss=1.0, losses={"box": 1.0}, map50=nan, gradient_norm=inf),
        )
        for i in range(30)
    ]  # fmt: skip
    assert [f for f in diagnose(records) if f.code == "nan-loss"] == []


def test_an_infinite_validation_loss_in_the_first_epoch_is_benign() -> None:
    first = TrainRecord(ts=START, kind="epoch", epoch=1, roles=Roles(validation_losses={"val/box": inf}))
    later = TrainRecord(ts=START + 9, kind="epoch", epoch=5, roles=Roles(validation_losses={"val/box": inf}))
    end = TrainRecord(ts=START + 20, kind="message")
    assert [f for f in diagnose([first, end]) if f.code == "nan-loss"] == []
    assert [f.code for f in diagnose([first, later, end]) if f.code == "nan-loss"] == ["nan-loss"]
