"""No step for long: validations that no log tells of, compilers, suspended machines, notebooks; and hangs."""

from __future__ import annotations

import msgspec
import pytest

from tests.synthetic import edits
from tests.synthetic.labelled import Labelled, score
from tests.synthetic.plan import A100, H200, Gpu, Plan
from tests.synthetic.recorded import changed, replaced
from tests.synthetic.scripted import Script, Tells
from tests.synthetic.simulate import EPOCH_0
from yolomon.model import Item, TrainRecord

STATES = ("mixed", "idle", "compute")


def script(tells: Tells = "events", **more: object) -> Script:
    told = {"name": "silence", "seed": 1, "gpu": H200, "batches": 105, "epochs": 100} | more
    return Script(Plan(**told), tells)  # type: ignore[arg-type]


def judged(run: Labelled) -> tuple[list[str], list[str]]:
    """What was missed, and what was said falsely."""
    result = score(run)
    return result.missed, result.false_alarms


@pytest.mark.parametrize("every", [1, 50])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("ranks", "gpu"), [(1, H200), (2, H200), (2, A100)])
def test_a_validation_that_comes_each_few_epochs_and_is_not_told(
    ranks: int, gpu: Gpu, state: str, every: int
) -> None:
    run = script("steps" if every > 1 else "events", ranks=ranks, gpu=gpu, rank_logs=False).start()
    for epoch in range(5):
        run.begin_epoch().steps(105, every=every).cpu(1.0)
        run.end_epoch(validation=200 if epoch == 3 else 0, state=state, told=False).cpu(0.7, 0.3)
    assert judged(run.label("validation", allowed=("sync-wait",))) == ([], [])


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_validation_in_a_log_of_iterations_without_epochs(ranks: int, state: str) -> None:
    run = script("steps", ranks=ranks, gpu=A100, rank_logs=False).start().begin_epoch()
    for _ in range(2):
        run.steps(400, every=10).cpu(1.0)
        run.rest(150, {0: state, 1: "spin"} if ranks > 1 else {0: state}).cpu(0.7, 0.3)
    label = run.steps(100, every=10).label("iterations", allowed=("sync-wait",))

    def bare(item: Item) -> Item:
        if isinstance(item, TrainRecord) and item.kind == "batch":
            return msgspec.structs.replace(item, batches=None, epoch=None, epochs=None)
        return item

    assert judged(changed(label, "bare", bare)) == ([], [])


def test_a_first_validation_of_a_quarter_of_an_hour_on_the_gpu() -> None:
    """What work draws is remembered although its readings are ten minutes old."""
    run = (
        script(ranks=2, gpu=A100, rank_logs=False)
        .start()
        .epochs(2, validation=890, state="compute", told=False)
    )
    assert judged(run.label("long", allowed=("sync-wait",))) == ([], [])


@pytest.mark.parametrize("cpu", [0.0, 1.0])
@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize(("rank", "gpu"), [(0, H200), (1, H200), (0, A100), (1, A100)])
def test_a_rank_that_stops_within_an_epoch_hangs_whatever_its_cpu_does(
    rank: int, gpu: Gpu, every: int, cpu: float
) -> None:
    run = script("steps", ranks=2, gpu=gpu, batches=1000).start().begin_epoch().steps(300, every=every)
    at = run.now
    run.cpu(cpu).rest(120, {rank: "idle", 1 - rank: "spin"})
    truth = run.truth("collective-hang", f"gpu{rank}", at, 30.0 if every == 1 else 60.0)
    label = run.label("hang", truth, allowed=("load-imbalance",))
    assert judged(label) == ([], [])
    later = msgspec.structs.replace(truth, deadline_seconds=truth.deadline_seconds + 42)
    lost = msgspec.structs.replace(edits.with_hole(label, EPOCH_0 + at + 2, 40), truths=[later])
    assert judged(lost) == ([], [])  # the connection was lost meanwhile


@pytest.mark.parametrize("seconds", [60, 600])
@pytest.mark.parametrize(("ranks", "state"), [(1, "idle"), (2, "idle"), (2, "spin")])
def test_a_compiler_at_work(seconds: int, ranks: int, state: str) -> None:
    run, states = script(ranks=ranks, batches=100).start().begin_epoch(), {1: state}
    run.cpu(6.0).rest(seconds, states).cpu(0.7, 0.3).steps(3)
    run.cpu(5.0).rest(seconds / 3, states).cpu(0.7, 0.3).steps(97).end_epoch()
    run.cpu(4.0).rest(seconds / 2, states).cpu(0.7, 0.3).epochs(2)
    assert judged(run.label("compiler")) == ([], [])


@pytest.mark.parametrize("hours", [-1, 1, 8])
def test_a_machine_that_was_suspended_or_whose_clock_jumped(hours: int) -> None:
    run = script().start().epochs(4)
    at = EPOCH_0 + run.now
    label = run.epochs(2).label("jump")

    def later(item: Item) -> Item:
        if item.ts <= at:
            return item
        if isinstance(item, TrainRecord):
            return replaced(item, ts=item.ts + 3600 * hours, own_ts=(item.own_ts or 0.0) + 3600 * hours)
        return replaced(item, ts=item.ts + 3600 * hours)

    assert judged(changed(label, f"{hours:+d} h", later)) == ([], [])


@pytest.mark.parametrize("hours", [-8, -1, 1, 8])
def test_a_log_that_is_stamped_in_another_time_zone(hours: int) -> None:
    run = script().start().epochs(3).label("zone")
    assert judged(edits.with_log_clock_off(run, 3600.0 * hours)) == ([], [])


@pytest.mark.parametrize("tells", ["events", "steps", "epochs"])
@pytest.mark.parametrize("says_end", [True, False])
def test_a_notebook_lives_on_after_its_last_epoch(tells: Tells, says_end: bool) -> None:
    run = script(tells, batches=60, epochs=4).start().epochs(4)
    if says_end:
        run.say("end")
    label = run.cpu(0.0).rest(400).label("notebook", allowed=("orphan-memory",) if says_end else ())
    assert judged(label) == ([], [])
