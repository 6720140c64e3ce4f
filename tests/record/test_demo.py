"""The demo's recording: real, whole, and honest about what it is."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from yolomon.diagnosis.engine import Engine
from yolomon.model import Header, Item, Telemetry, TrainRecord
from yolomon.record import demo_path, make_demo
from yolomon.record.stitching import Counters
from yolomon.sources.replay import read_all


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(read_all(demo_path()))


def telemetry(items: list[Item]) -> list[Telemetry]:
    return [item for item in items if isinstance(item, Telemetry)]


def records(items: list[Item], rank: int) -> list[TrainRecord]:
    return [item for item in items if isinstance(item, TrainRecord) and item.rank == rank]


def test_it_is_small_and_lasts_five_to_six_minutes(items: list[Item]) -> None:
    assert demo_path().stat().st_size < 400_000
    assert 300 <= items[-1].ts - items[0].ts <= 360


def test_it_says_that_it_is_stitched_together(items: list[Item]) -> None:
    header = items[0]
    assert isinstance(header, Header) and header.host is not None
    assert "stitched" in (header.host.hostname or "")
    assert any(isinstance(item, TrainRecord) and "stitched" in item.text for item in items[:3])


def test_time_is_continuous_at_one_reading_a_second(items: list[Item]) -> None:
    times = [item.ts for item in items]
    assert times == sorted(times)
    readings = [item.ts for item in telemetry(items)]
    gaps = [b - a for a, b in itertools.pairwise(readings)]
    assert min(gaps) > 0.4 and max(gaps) < 2.1
    assert sum(gaps) / len(gaps) == pytest.approx(1.0, abs=0.05)


def test_both_ranks_count_on_without_a_break(items: list[Item]) -> None:
    for rank in (0, 1):
        steps = [item.step for item in records(items, rank) if item.kind == "batch"]
        assert steps == list(range(1, len(steps) + 1))
        epochs = [item.epoch for item in records(items, rank) if item.epoch is not None]
        assert epochs == sorted(epochs)
        assert epochs[-1] == 39
    assert {item.segment for item in records(items, 0)} == {0}


def test_the_curves_are_those_of_a_whole_run(items: list[Item]) -> None:
    scores = [item.roles.map50_95 for item in records(items, 0) if item.roles.map50_95 is not None]
    assert len(scores) == 39
    assert scores[0] < 0.05 and scores[-1] > 0.9
    losses = [item.roles.loss for item in records(items, 0) if item.roles.loss is not None]
    assert losses[-1] < losses[0] / 5


def test_memory_goes_on_at_the_seams_and_grows_at_the_end_alone(items: list[Item]) -> None:
    readings = telemetry(items)
    start = items[0].ts
    for index in (0, 1):
        used = [(t.ts - start, t.gpus[index].memory_used_bytes or 0) for t in readings]
        settled = [size for at, size in used if 30 < at < 235]
        assert max(settled) - min(settled) < 1e9
    leak = [t.gpus[0].memory_used_bytes or 0 for t in readings if t.ts - start > 245]
    assert leak == sorted(leak)
    assert leak[-1] > 120e9
    peer = [t.gpus[1].memory_used_bytes or 0 for t in readings if t.ts - start > 245]
    assert max(peer) - min(peer) < 1e9


def test_counters_of_processes_never_fall(items: list[Item]) -> None:
    seen: dict[int, float] = {}
    for item in telemetry(items):
        for process in item.processes or ():
            assert process.cpu_seconds is not None
            assert process.cpu_seconds >= seen.get(process.pid, 0.0)
            seen[process.pid] = process.cpu_seconds


def test_the_diagnosis_says_what_the_demo_is_made_to_show(items: list[Item]) -> None:
    engine = Engine()
    for item in items:
        engine.observe(item)
    loud = [f for f in engine.all_findings() if f.severity in ("warning", "critical")]
    said = {f"{f.code}@{f.target}": f.raised_ts - items[0].ts for f in loud}
    assert set(said) == {"load-imbalance@gpu1", "vram-growth@gpu0", "oom-risk@gpu0"}
    straggles, leaks = 169.0, 240.0  # seconds after the start at which the pieces begin
    assert straggles < said["load-imbalance@gpu1"] < straggles + 25
    assert leaks < said["vram-growth@gpu0"] < leaks + 20
    assert leaks < said["oom-risk@gpu0"]


def test_counters_go_on_over_a_seam() -> None:
    counters = Counters()
    assert [counters.go_on("a", raw) for raw in (10.0, 12.0)] == [10.0, 12.0]
    counters.seam()
    assert [counters.go_on("a", raw) for raw in (500.0, 503.0, 1.0)] == [12.0, 15.0, 15.0]


def test_the_script_makes_the_same_recording_again(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.jsonl.gz"
    assert make_demo.main([str(shared / "traces"), str(out)]) == 0
    assert list(read_all(out)) == list(read_all(demo_path()))
