"""A recording played back: order, pace, loops, and files in a bad state."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from yolomon.model import (
    CurveBlock,
    Finding,
    GpuInfo,
    GpuSample,
    Header,
    Item,
    ProcessSample,
    SourceStatus,
    Telemetry,
    TrainRecord,
)
from yolomon.sources.replay import RecordingError, ReplayClock, ReplaySource, read_all
from yolomon.sources.timeshift import shifted
from yolomon.telemetry import encode

START = 1_000_000.0


def lines(count: int = 5, step: float = 1.0) -> list[bytes]:
    header = Header(ts=START, gpus=(GpuInfo(index=0, uuid="GPU-0", name="X"),))
    samples = [
        Telemetry(ts=START + n * step, gpus=(GpuSample(index=0, utilization_percent=float(n)),))
        for n in range(count)
    ]
    return [encode(item) for item in (header, *samples)]


def recording(path: Path, content: list[bytes] | None = None) -> Path:
    data = b"".join(line + b"\n" for line in (lines() if content is None else content))
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_reads_plain_and_gzip(tmp_path: Path, name: str) -> None:
    items = list(read_all(recording(tmp_path / name)))
    assert [item.ts - START for item in items] == [0, 0, 1, 2, 3, 4]
    assert isinstance(items[0], Header)


def test_logs_are_merged_by_time(tmp_path: Path) -> None:
    first = [TrainRecord(ts=START + t, kind="batch", rank=0) for t in (0.5, 2.5)]
    second = [TrainRecord(ts=START + t, kind="batch", rank=1) for t in (0.7, 9.0)]
    items = list(read_all(recording(tmp_path / "a.jsonl"), first, second))
    assert [round(item.ts - START, 1) for item in items] == [0, 0, 0.5, 0.7, 1, 2, 2.5, 3, 4, 9]


def test_broken_lines_are_counted_and_nothing_after_them_is_lost(tmp_path: Path) -> None:
    content = lines()
    content[2:2] = [b"{broken", b'"a string"', b'{"type":"sample","ts":"x"}', b"\xff\xfe", b""]
    items = list(read_all(recording(tmp_path / "a.jsonl", content)))
    status = items[-1]
    assert isinstance(status, SourceStatus)
    assert (status.ok, status.reason, status.errors) == (False, "broken-lines", 4)
    assert len([item for item in items if isinstance(item, Telemetry)]) == 5


def test_unknown_types_and_findings_are_passed_over(tmp_path: Path) -> None:
    finding = Finding(code="stall", severity="warning", target="run", onset_ts=1, raised_ts=2)
    content = [*lines(), encode(finding), b'{"type":"from-the-future","ts":5}']
    assert all(not isinstance(item, Finding) for item in read_all(recording(tmp_path / "a.jsonl", content)))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_recording_cut_by_a_crash_plays_to_its_last_whole_line(tmp_path: Path, name: str) -> None:
    path = recording(tmp_path / name, lines(2000))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    items = list(read_all(path))
    assert 500 < len(items) < 2000
    status = items[-1]
    assert isinstance(status, SourceStatus)
    assert (status.reason, status.errors) == ("cut", 0)


def test_a_last_line_without_newline_counts_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines(3)))
    assert [type(item) for item in read_all(path)] == [Header, Telemetry, Telemetry, Telemetry]


def test_files_that_are_no_recording(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "log.jsonl").write_text('{"epoch": 1, "loss": 0.5}\n' * 3)
    for name, words in {
        "missing": "No such file",
        ".": "is a folder",
        "empty": "is empty",
        "binary": "not a recording",
        "log.jsonl": "not a recording",
    }.items():
        with pytest.raises(RecordingError, match=words):
            list(read_all(tmp_path / name))


def test_plays_at_the_recorded_pace_times_speed(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.jsonl", lines(5, step=1.0))
    arrived: list[tuple[float, Item]] = []
    source = ReplaySource(path, speed=20.0)
    began = time.monotonic()
    source.start(lambda item: arrived.append((time.monotonic() - began, item)))
    assert wait_for(lambda: source.ended)
    source.stop()
    samples = [(at, item) for at, item in arrived if isinstance(item, Telemetry)]
    assert len(samples) == 5
    for at, item in samples:
        assert at >= (item.ts - START) / 20.0 - 0.02  # never early
    assert source.position_percent == 100.0
    end = arrived[-1][1]
    assert isinstance(end, SourceStatus) and end.reason == "ended"
    now = source.clock()
    assert now == pytest.approx(START + 4, abs=1.0)
    time.sleep(0.1)
    assert source.clock() == now  # the recording's time stands still at its end


def test_pause_and_go_on(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.jsonl", lines(100, step=1.0))
    items: list[Item] = []
    source = ReplaySource(path, speed=0.0)
    source.start(items.append)
    assert wait_for(lambda: len(items) == 2)  # the header and the first sample: time has not moved
    time.sleep(0.1)
    assert len(items) == 2
    source.speed = 100.0
    assert wait_for(lambda: len(items) > 10)
    source.paused = True
    time.sleep(0.1)
    count, now = len(items), source.clock()
    time.sleep(0.1)
    assert (len(items), source.clock()) == (count, now)
    source.skip_to(START + 98)
    assert wait_for(lambda: len(items) >= 100)
    assert not source.ended
    source.stop()


def test_skip_at_the_start(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.jsonl", lines(100, step=1.0))
    items: list[Item] = []
    source = ReplaySource(path, speed=0.0, skip_seconds=50)
    source.start(items.append)
    assert wait_for(lambda: len(items) == 52)
    source.stop()
    assert items[-1].ts == START + 50


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_position_goes_by_the_recordings_time(tmp_path: Path, name: str) -> None:
    path = recording(tmp_path / name, lines(101, step=1.0))
    items: list[Item] = []
    source = ReplaySource(path, speed=0.0, skip_seconds=25)
    source.start(items.append)
    assert wait_for(lambda: len(items) == 27)
    source.stop()
    assert source.position_percent == pytest.approx(25.0, abs=1.1)


def test_loops_with_rising_time(tmp_path: Path) -> None:
    record = encode(TrainRecord(ts=START + 2, kind="batch", epoch=1, own_ts=START + 2))
    path = recording(tmp_path / "a.jsonl", [*lines(3), record])
    items: list[Item] = []
    source = ReplaySource(path, speed=1000.0, loop=True, rebase_to=5_000_000.0)
    source.start(items.append)
    assert wait_for(lambda: len([item for item in items if isinstance(item, TrainRecord)]) >= 3)
    source.stop()
    times = [item.ts for item in items]
    assert times[0] == 5_000_000.0
    assert times == sorted(times)
    records = [item for item in items if isinstance(item, TrainRecord)]
    assert [item.segment for item in records[:3]] == [0, 1, 2]
    assert all(item.own_ts == item.ts for item in records)
    assert not source.ended


def test_what_was_in_the_log_before_is_played_at_once(tmp_path: Path) -> None:
    """It is hours older than the recording; the first reading comes without that wait."""
    old = TrainRecord(ts=START - 7200, kind="batch", epoch=1, backlog=True)
    block = CurveBlock(ts=START - 7000, source="a", name="loss", count=3)
    path = recording(tmp_path / "a.jsonl", [encode(old), encode(block), *lines(3)])
    items: list[Item] = []
    source = ReplaySource(path, speed=0.0)
    source.start(items.append)
    assert wait_for(lambda: len(items) == 4)
    source.stop()
    assert items[:2] == [old, block]
    assert source.clock() == START


def test_a_file_that_cannot_be_played_is_a_status_not_a_crash(tmp_path: Path) -> None:
    items: list[Item] = []
    source = ReplaySource(tmp_path / "missing")
    source.start(items.append)
    assert wait_for(lambda: source.ended)
    (status,) = items
    assert isinstance(status, SourceStatus)
    assert (status.ok, status.reason) == (False, "unreadable")
    assert "No such file" in str(status.cause)


def test_stop_ends_the_thread_at_once(tmp_path: Path) -> None:
    source = ReplaySource(recording(tmp_path / "a.jsonl", lines(5, step=1000.0)))
    source.start(lambda _item: None)
    began = time.monotonic()
    source.stop()
    assert time.monotonic() - began < 0.5
    assert not [thread for thread in threading.enumerate() if thread.name == "yolomon-replay"]


def test_clock_never_falls_and_change_of_speed_does_not_jump() -> None:
    now = [0.0]
    clock = ReplayClock(2.0, lambda: now[0])
    assert clock() == 0.0
    clock.advance_to(100.0)
    now[0] = 5.0
    assert clock() == 110.0
    clock.set(speed=10.0)
    assert clock() == 110.0
    now[0] = 6.0
    assert clock() == 120.0
    clock.advance_to(50.0)
    assert clock() == 120.0
    clock.set(paused=True)
    now[0] = 60.0
    assert clock() == 120.0
    clock.set(paused=False)
    clock.end_at(125.0)
    now[0] = 90.0
    assert clock() == 125.0


def test_shift_moves_all_absolute_times() -> None:
    telemetry = Telemetry(
        ts=10.0,
        gpus=(GpuSample(index=0, state="lost", state_since_ts=8.0),),
        processes=(ProcessSample(pid=1, started_ts=3.0, cpu_seconds=7.0),),
    )
    moved = shifted(telemetry, 100.0)
    assert isinstance(moved, Telemetry) and moved.processes is not None
    assert (moved.ts, moved.gpus[0].state_since_ts, moved.processes[0].started_ts) == (110.0, 108.0, 103.0)
    assert moved.processes[0].cpu_seconds == 7.0


@pytest.mark.parametrize("speed", [float("nan"), float("inf"), -1.0, 1e12])
def test_a_speed_that_is_none_is_refused_and_the_time_stays_a_time(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        ReplayClock(speed)
    clock = ReplayClock(2.0, lambda: 5.0)
    clock.advance_to(100.0)
    with pytest.raises(ValueError, match="speed"):
        clock.set(speed=speed, paused=True)
    assert (clock.speed, clock.paused, clock()) == (2.0, False, 100.0)


@pytest.mark.parametrize("ts", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_is_none_is_refused(ts: float, tmp_path: Path) -> None:
    clock = ReplayClock()
    with pytest.raises(ValueError, match="no time"):
        clock.advance_to(ts)
    assert clock() == 0.0
    for times in ({"skip_seconds": ts}, {"rebase_to": ts}):
        with pytest.raises(ValueError, match="no time"):
            ReplaySource(tmp_path / "none.jsonl", **times)
