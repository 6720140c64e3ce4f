"""How runs end: with a word or without one, by a clock that is ahead, by preemption, in a notebook."""

from __future__ import annotations

import pytest

from tests.synthetic import edits
from tests.synthetic.labelled import Labelled, score
from tests.synthetic.plan import H200, Plan
from tests.synthetic.scripted import Script, Tells
from yolomon.diagnosis.run_recording import diagnose

LOGS: tuple[Tells, ...] = ("events", "steps", "epochs")


def script(tells: Tells, **more: object) -> Script:
    told = {"name": "end", "seed": 1, "gpu": H200, "batches": 60, "epochs": 100} | more
    return Script(Plan(**told), tells)  # type: ignore[arg-type]


def judged(run: Labelled) -> tuple[list[str], list[str]]:
    """What was missed, and what was said falsely."""
    result = score(run)
    return result.missed, result.false_alarms


@pytest.mark.parametrize("seconds", [-10.0, -5.0, 5.0, 8.0, 10.0, 12.0])
@pytest.mark.parametrize("tells", ["events", "steps"])
def test_an_end_by_a_clock_that_is_off_is_an_end(tells: Tells, seconds: float) -> None:
    run = script(tells).start().epochs(4).rest(1).say("end").rest(1).gone().rest(40).label("end")
    assert judged(edits.with_log_stamps_off(run, seconds)) == ([], [])


@pytest.mark.parametrize("processes", [True, False])
@pytest.mark.parametrize("tells", LOGS)
@pytest.mark.parametrize("grace", [0.0, 20.0])
def test_a_preemption_is_a_death(tells: Tells, processes: bool, grace: float) -> None:
    run = script(tells, processes=processes).start().epochs(3).begin_epoch().steps(30).rest(grace)
    at = run.now
    label = (
        run.gone().rest(60).label("preempted", run.truth("trainer-died", "run", at, 30), allowed=("stall",))
    )
    assert judged(label) == ([], [])


@pytest.mark.parametrize("processes", [True, False])
@pytest.mark.parametrize("tells", LOGS)
@pytest.mark.parametrize("patience", [100, 3])
def test_a_run_whose_last_epoch_is_complete_needs_no_word_of_its_end(
    tells: Tells, processes: bool, patience: int
) -> None:
    """results.csv has no end, and not every console says one; early stopping ends before the last epoch."""
    run = script(tells, processes=processes, epochs=6 if patience == 100 else 100).start(patience=patience)
    for number in range(6):
        run.begin_epoch().steps(60).end_epoch(map50=0.5 if number >= 2 else 0.1 * number)
    label = run.rest(8, {0: "mixed"}).gone().rest(60).label("complete")
    assert judged(label) == ([], [])
    assert "trainer-ended" in [f.code for f in diagnose(label.items)]


@pytest.mark.parametrize("tells", ["events", "steps"])
def test_a_death_in_validation_is_told(tells: Tells) -> None:
    """yolor#199: the validation's batch is twice as large, and memory ran out in it."""
    run = script(tells).start().epochs(3).begin_epoch().steps(60).say("epoch_end").say("val_start")
    run.rest(3, {0: "compute"})
    at = run.now
    label = run.gone().rest(60).label("died", run.truth("trainer-died", "run", at, 20))
    assert judged(label) == ([], [])
