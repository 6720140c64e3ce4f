"""The diagnosis against labelled runs, at a size for every change; the benchmark script does all of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.synthetic.labelled import Labelled, score
from tests.synthetic.scenarios import faulty_plans, healthy, simulate
from tests.synthetic.variants import mixed, recorded, variants

EVERY = 3  # of the simulated faults: a third of each kind


def judged(runs: Iterable[Labelled]) -> tuple[int, list[str], list[str]]:
    found, missed, false = 0, [], []
    for run in runs:
        result = score(run)
        found += len(result.found)
        missed += [f"{run.name}: {text}" for text in result.missed]
        false += [f"{run.name}: {text}" for text in result.false_alarms]
    return found, missed, false


def test_simulated_faults_are_found_without_false_alarm() -> None:
    plans = list(faulty_plans(thorough=False))
    first = {plan.fault: plan for plan in reversed(plans)}
    chosen = [*first.values(), *plans[1::EVERY]]
    found, missed, false = judged(simulate(plan) for plan in chosen)
    assert not false
    assert found / (found + len(missed)) >= 0.95, missed


def test_healthy_hours_raise_no_alarm() -> None:
    _, _, false = judged(healthy(1.0, seed=11))
    assert not false


def test_real_recordings_and_their_variations(shared: Path) -> None:
    found, missed, false = judged(
        run for run in variants(shared / "traces", thorough=False) if run.seconds < 150
    )
    assert not false
    assert found / (found + len(missed)) >= 0.95, missed


@pytest.mark.parametrize(
    ("first", "second"),
    [("healthy_x", "starved_n"), ("ddp_healthy", "healthy_x"), ("ddp_straggler", "healthy_x")],
)
def test_another_job_on_the_machine_is_never_compared(shared: Path, first: str, second: str) -> None:
    traces = shared / "traces"
    run = mixed(recorded.load(traces / first), recorded.load(traces / second))
    _, missed, false = judged([run])
    assert not missed
    assert not false
