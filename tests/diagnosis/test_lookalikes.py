"""Runs that look wrong and are not, and small faults: the real recordings, edited in many ways."""

from __future__ import annotations

from pathlib import Path

from tests.synthetic.labelled import score
from tests.synthetic.lookalikes import lookalikes
from tests.synthetic.small_faults import small_faults

SHORT_SECONDS = 200.0  # the longer ones are the benchmark's


def test_what_looks_wrong_and_is_not(shared: Path) -> None:
    false = [
        f"{run.name}: {text}"
        for run in lookalikes(shared / "traces")
        if run.seconds < SHORT_SECONDS
        for text in score(run).false_alarms
    ]
    assert false == []


def test_small_faults_are_found(shared: Path) -> None:
    wrong = []
    for run in small_faults(shared / "traces"):
        result = score(run)
        wrong += [f"{run.name}: missed {text}" for text in result.missed]
        wrong += [f"{run.name}: false {text}" for text in result.false_alarms]
    assert wrong == []
