"""Real faults on a real H200, recorded by yolomon itself: what was wrong is said, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolomon.diagnosis.run_recording import diagnose
from yolomon.sources.recording import read_all

RECORDINGS = Path(__file__).parents[1] / "recordings"
FREEZE_TS, CRASH_TS, LEAK_TS = 1796097162.7, 1796097217.2, 1796097264.2
WORKER_LEAK_TS = 1796097318.0


@pytest.mark.parametrize(
    ("name", "expected", "latest_ts"),
    [
        ("freeze", {("stall", "run")}, FREEZE_TS + 20),
        ("oomcrash", {("trainer-died", "run")}, CRASH_TS + 10),
        ("leak8", {("vram-growth", "gpu0")}, LEAK_TS + 20),
        ("workerleak", {("host-memory-growth", "host")}, WORKER_LEAK_TS + 22),
        ("zombie", {("orphan-memory", "gpu0")}, None),
        ("healthy-n128", set(), None),
        ("healthy-s16", set(), None),
    ],
)
def test_what_was_wrong_is_said_and_nothing_else(
    name: str, expected: set[tuple[str, str]], latest_ts: float | None
) -> None:
    found = [f for f in diagnose(read_all(RECORDINGS / f"h200-{name}.jsonl.gz")) if f.severity != "info"]
    assert {(finding.code, finding.target) for finding in found} == expected
    if latest_ts is not None:
        assert min(finding.raised_ts for finding in found) <= latest_ts


def test_the_crash_is_told_with_its_cause() -> None:
    found = diagnose(read_all(RECORDINGS / "h200-oomcrash.jsonl.gz"))
    died = next(finding for finding in found if finding.code == "trainer-died")
    assert "memory ran out" in str(died.cause)
