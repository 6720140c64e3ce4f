"""Sessions: which log is followed, when the user is asked, and what a change of log keeps."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from yolomon import live
from yolomon.log_finder import LogFinder
from yolomon.messages import UserError
from yolomon.model import GpuInfo, GpuSample, Header, Telemetry
from yolomon.record import demo_path
from yolomon.settings import Settings


def write_run(folder: Path, *, epochs: int, steps: int = 3, age_seconds: float = 0.0) -> Path:
    folder.mkdir(parents=True)
    path = folder / "yolomon.jsonl"
    now = time.time() - age_seconds
    records = [
        {"ts": now + step, "rank": 0, "event": "batch", "epoch": 1, "epochs": epochs, "batch": step,
         "batches": 9, "step": step, "step_time": 0.1, "data_time": 0.0, "train/box_loss": 1.5}
        for step in range(1, steps + 1)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.utime(path, (now, now))
    return path


def drained_until(session: live.Session, done: Callable[[], bool], seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        session.drain(0.1)
        if done():
            return True
        time.sleep(0.01)
    return False


def session_in(folder: Path) -> live.Session:
    return live.Session([], settings=Settings(), finder=LogFinder(folder, search_seconds=0.1))


def test_the_one_growing_log_is_found_and_followed(tmp_path: Path) -> None:
    write_run(tmp_path / "runs/detect/old", epochs=7, age_seconds=90_000)
    path = write_run(tmp_path / "runs/detect/train", epochs=12)
    session = session_in(tmp_path)
    session.start()
    try:
        assert drained_until(session, lambda: session.history.train.total_epochs == 12)
        assert [p.resolve() for p in session.followed] == [path.resolve()]
        assert not session.needs_choice
    finally:
        session.stop()


def test_a_log_that_appears_later_is_attached(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    session.start()
    try:
        assert not drained_until(session, lambda: bool(session.followed), 0.3)
        write_run(tmp_path / "runs/detect/train", epochs=4)
        assert drained_until(session, lambda: session.history.train.total_epochs == 4)
    finally:
        session.stop()


def test_where_two_logs_grow_the_user_is_asked_and_may_change(tmp_path: Path) -> None:
    first = write_run(tmp_path / "runs/detect/a", epochs=5)
    second = write_run(tmp_path / "runs/detect/b", epochs=9)
    session = session_in(tmp_path)
    session.start()
    session.emit(Header(ts=1.0, gpus=(GpuInfo(index=0, uuid="GPU-a", name="H200"),)))
    session.emit(Telemetry(ts=time.time(), gpus=(GpuSample(index=0, power_watts=300.0),)))
    try:
        assert drained_until(session, lambda: session.needs_choice)
        offered = {Path(candidate.path).resolve() for candidate in session.candidates()}
        assert offered == {first.resolve(), second.resolve()}
        session.attach([first])
        assert drained_until(session, lambda: session.history.train.total_epochs == 5)
        assert not session.needs_choice
        session.attach([second])
        assert drained_until(session, lambda: session.history.train.total_epochs == 9)
        gpu = session.history.gpu(0)
        assert gpu is not None  # the machine's history goes on
        assert gpu.fast.latest("power_watts") is not None
        assert set(session.history.train.logs) == {str(second)}
    finally:
        session.stop()


def test_a_folder_stands_for_the_logs_of_its_run(tmp_path: Path) -> None:
    path = write_run(tmp_path / "train", epochs=5)
    other = path.with_name("yolomon.rank1.jsonl")
    other.write_text(path.read_text().replace('"rank": 0', '"rank": 1'))
    assert sorted(live.files_named([str(path.parent)])) == sorted([path, other])
    assert live.files_named(["missing.jsonl"]) == [Path("missing.jsonl")]


def test_the_demo_says_so_and_plays(tmp_path: Path) -> None:
    session = live.demo(1000.0, Settings())
    assert session.demo
    session.start()
    try:
        assert drained_until(
            session, lambda: len(session.history.gpus) == 2 and session.history.train.epoch is not None
        )
    finally:
        session.stop()


def test_what_cannot_be_replayed_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello\n")
    for bad in (str(text), str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(UserError, match=str(tmp_path)):
            live.replay(bad, (), 1.0, Settings())
    with pytest.raises(UserError, match="none"):
        live.replay(str(demo_path()), (str(tmp_path / "none"),), 1.0, Settings())


def test_an_unknown_threshold_is_refused() -> None:
    with pytest.raises(UserError, match="no-such"):
        live.engine(Settings(thresholds={"no-such.thing": 1.0}))


def test_stopping_is_quick_whatever_runs(tmp_path: Path) -> None:
    session = live.attach([str(tmp_path / "none.jsonl")], Settings())
    session.start()
    start = time.monotonic()
    session.stop(1.0)
    assert time.monotonic() - start < 2.0
