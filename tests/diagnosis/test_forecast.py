"""ETA with validation, checkpoints and close-mosaic; early stopping."""

from __future__ import annotations

import pytest

from tests.synthetic.plan import Plan
from tests.synthetic.scenarios import simulate
from tests.synthetic.simulate import EPOCH_0
from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.forecast import early_stop, eta
from yolomon.history import History
from yolomon.model import Item, Roles, RunInfo, TrainRecord

PLAN = Plan(
    name="eta", seed=1, seconds=2000.0, epochs=20, batches=100, step_seconds=0.25,
    validation_seconds=12.0, checkpoint_seconds=3.0,
)  # fmt: skip


def after(plan: Plan, seconds: float) -> tuple[Engine, float]:
    """The engine after so long, and when the run really ended."""
    items = simulate(plan).items
    end = next(i.ts for i in items if isinstance(i, TrainRecord) and i.kind == "end")
    engine = Engine()
    for item in items:
        if item.ts > EPOCH_0 + seconds:
            break
        engine.observe(item)
    return engine, end - engine.history.now_ts


@pytest.mark.parametrize("seconds", [150.0, 300.0, 600.0])
def test_the_eta_counts_validation_and_saving(seconds: float) -> None:
    engine, left = after(PLAN, seconds)
    found = eta(engine.history, engine.phases)
    assert found is not None
    assert found.seconds == pytest.approx(left, rel=0.06)
    assert found.low <= found.seconds <= found.high
    steps_alone = (20 * 100 - (engine.history.train.step or 0)) * 0.25
    assert found.seconds > 1.3 * steps_alone


def test_epochs_without_mosaic_are_measured_apart() -> None:
    plan = Plan(name="mosaic", seed=2, seconds=2000.0, epochs=20, close_mosaic=10, batches=100)
    engine, left = after(plan, 500.0)
    found = eta(engine.history, engine.phases)
    assert (engine.history.train.epoch or 0) > 13
    assert found is not None
    assert found.seconds == pytest.approx(left, rel=0.08)
    early, left = after(plan, 120.0)
    before = eta(early.history, early.phases)
    assert before is not None
    assert before.low <= left <= before.high


def test_before_the_first_epoch_is_done_only_the_range_is_wide() -> None:
    engine, left = after(PLAN, 35.0)
    found = eta(engine.history, engine.phases)
    assert found is not None
    assert found.low <= left <= found.high * 1.1


def test_nothing_is_foretold_without_a_number_of_epochs() -> None:
    assert eta(History(), Engine().phases) is None


def run_of(scores: list[float], patience: int, total: int) -> History:
    history = History()
    items: list[Item] = [TrainRecord(ts=0.0, kind="start", run=RunInfo(epochs=total, patience=patience))]
    for epoch, score in enumerate(scores, 1):
        items.append(
            TrainRecord(ts=60.0 * epoch, kind="epoch", epoch=epoch, epochs=total, roles=Roles(map50_95=score))
        )
    for item in items:
        history.add(item)
    return history


def test_early_stopping_comes_when_patience_is_used_up() -> None:
    found = early_stop(run_of([0.1, 0.2, 0.3, 0.25, 0.25], patience=10, total=100).train)
    assert found is not None
    assert (found.epoch, found.epochs_left) == (13, 8)
    assert found.seconds == pytest.approx(8 * 60)


def test_no_early_stopping_where_the_run_ends_before_or_has_no_patience() -> None:
    assert early_stop(run_of([0.1, 0.2], patience=100, total=50).train) is None
    assert early_stop(run_of([0.1, 0.2], patience=0, total=500).train) is None
