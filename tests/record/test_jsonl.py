"""The recorder: what flows comes back, whatever happens to the disk or the program."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yolomon.model import Finding, GpuInfo, GpuSample, Header, HostInfo, Item, Telemetry, TrainRecord
from yolomon.record import jsonl
from yolomon.record.jsonl import Recorder, RecorderError
from yolomon.sources.replay import read_all
from yolomon.telemetry import decode

HEADER = Header(ts=1.0, gpus=(GpuInfo(index=0, uuid="GPU-0", name="X"),))
SAMPLES = [Telemetry(ts=float(n), gpus=(GpuSample(index=0, power_watts=n / 10),)) for n in range(2, 50)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_what_is_recorded_comes_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    items: list[Item] = [HEADER, *SAMPLES, TrainRecord(ts=60.0, kind="batch", numbers={"loss": float("inf")})]
    with Recorder(path) as recorder:
        for item in items:
            recorder.add(item)
    assert list(read_all(path)) == items
    assert recorder.written == len(items)
    assert recorder.lost == 0
    assert recorder.warning is None


def test_first_line_is_a_header_whatever_came_first(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.jsonl") as recorder:
        recorder.add(SAMPLES[0])
    first = decode((tmp_path / "a.jsonl").read_bytes().splitlines()[0])
    assert first == Header(ts=2.0)


def test_the_recording_does_not_begin_in_the_logs_past(tmp_path: Path) -> None:
    began = time.time()
    with Recorder(tmp_path / "a.jsonl") as recorder:
        recorder.add(TrainRecord(ts=5.0, kind="batch", backlog=True))
    header = decode((tmp_path / "a.jsonl").read_bytes().splitlines()[0])
    assert isinstance(header, Header)
    assert began <= header.ts <= time.time()


def test_an_unchanged_header_is_written_once_a_changed_one_again(tmp_path: Path) -> None:
    changed = Header(ts=9.0, gpus=(GpuInfo(index=0, uuid="GPU-9", name="X"),))
    host = Header(ts=2.0, host=HostInfo(cores=4))
    with Recorder(tmp_path / "a.jsonl") as recorder:
        for item in (HEADER, host, HEADER, host, changed):
            recorder.add(item)
    assert list(read_all(tmp_path / "a.jsonl")) == [HEADER, host, changed]


def test_findings_are_in_the_file(tmp_path: Path) -> None:
    finding = Finding(code="stall", severity="warning", target="run", onset_ts=1.0, raised_ts=2.0)
    with Recorder(tmp_path / "a.jsonl") as recorder:
        recorder.add(HEADER)
        recorder.add(finding)
    assert decode((tmp_path / "a.jsonl").read_bytes().splitlines()[1]) == finding


def test_a_second_at_most_is_unwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    recorder = Recorder(path)
    recorder.add(HEADER)
    until = time.monotonic() + 5
    while not path.stat().st_size and time.monotonic() < until:
        time.sleep(0.02)
    assert path.read_bytes().endswith(b"\n")
    recorder.close()


def test_content_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("precious\n")
    with pytest.raises(RecorderError, match="exists already"):
        Recorder(path)
    assert path.read_text() == "precious\n"
    Recorder(path, "append").close()
    assert path.read_text() == "precious\n"
    with Recorder(path, "overwrite") as recorder:
        recorder.add(HEADER)
    assert list(read_all(path)) == [HEADER]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "a.jsonl", tmp_path):
        with pytest.raises(RecorderError):
            Recorder(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_full_disk_leaves_whole_lines_and_one_warning(tmp_path: Path, name: str) -> None:
    """A limit on the file's size stops the write in the middle of a line, as a full disk does."""
    path = tmp_path / name
    script = f"""
import resource, signal, sys
from yolomon.model import Telemetry, GpuSample, Header
from yolomon.record.jsonl import Recorder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({400 if name.endswith("gz") else 4000}, resource.RLIM_INFINITY))
told = []
recorder = Recorder({str(path)!r}, on_warning=told.append)
import time
def wait(done):
    until = time.monotonic() + 10
    while not done() and time.monotonic() < until: time.sleep(0.02)
recorder.add(Header(ts=0.0))
if not {name.endswith("gz")}:
    wait(lambda: recorder.written == 1)
for n in range(500):
    recorder.add(Telemetry(ts=float(n), gpus=(GpuSample(index=0, power_watts=(n * 7919 % 1000) / 7),)))
if not {name.endswith("gz")}:
    wait(lambda: told)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    wait(lambda: recorder.written == 501)
recorder.close()
print(len(told), str(recorder.warning), recorder.written, recorder.lost)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    count, *_, written, lost = done.stdout.split()
    assert count == "1"
    assert "cannot be written" in done.stdout
    if name.endswith("gz"):
        assert (written, lost) == ("0", "501")
        assert path.stat().st_size == 0  # no torn member
    else:
        assert (written, lost) == ("501", "0")  # there was room again: nothing is missing
        assert len([item for item in read_all(path) if isinstance(item, Telemetry)]) == 500


def test_the_queue_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "QUEUE_LIMIT", 10)
    monkeypatch.setattr(jsonl, "FLUSH_SECONDS", 30.0)
    recorder = Recorder(tmp_path / "a.jsonl")
    for sample in SAMPLES:
        recorder.add(sample)
    assert recorder.lost == len(SAMPLES) - 10
    recorder.close()
    assert recorder.written == 11  # and a header


def test_gzip_members_are_whole_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    for part in range(2):
        with Recorder(path, "append") as recorder:
            recorder.add(SAMPLES[part])
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 4
