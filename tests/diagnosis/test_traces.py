"""The labelled recordings of real runs: every truth before its deadline, no false alarm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolomon.diagnosis.run_recording import run_engine, where_the_time_goes
from yolomon.model import Item
from yolomon.sources.recording import RecordingReader, merge_by_time
from yolomon.trainlog.after import read_log

NAMES = (
    "ddp_hang", "ddp_healthy", "ddp_straggler", "healthy_long", "healthy_x", "multiscale_x", "nan_x",
    "one_of_two", "starved_n", "vramleak_x",
)  # fmt: skip


def items_of(folder: Path) -> Iterator[Item]:
    logs = [read_log(str(path)) for path in sorted(folder.glob("train*.jsonl"))]
    return merge_by_time(RecordingReader(folder / "gpu.jsonl"), *logs)


@pytest.mark.parametrize("name", NAMES)
def test_labelled_run(shared: Path, name: str) -> None:
    folder = shared / "traces" / name
    label = json.loads((folder / "label.json").read_text())
    engine = run_engine(items_of(folder))
    said = engine.all_findings()
    for truth in label["truth"]:
        begin, end = truth["onset_ts"] - 1, truth["onset_ts"] + truth["deadline_s"]
        assert any(
            f.code == truth["finding"] and f.target == truth["target"] and begin <= f.raised_ts <= end
            for f in said
        ), f"missed {truth}"
    expected = {t["finding"] for t in label["truth"]} | set(label["allowed"])
    assert [(f.code, f.target) for f in said if f.severity != "info" and f.code not in expected] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_times_add_up(shared: Path, name: str) -> None:
    for times in where_the_time_goes(run_engine(items_of(shared / "traces" / name))):
        assert sum(times.seconds.values()) == pytest.approx(times.elapsed_seconds, abs=0.05)
