"""JsonlLogger: the stream of any training loop."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.streams import events, read_stream
from yolomon.trainer.writer import JsonlLogger


def test_a_step_has_time_rank_process_and_its_numbers(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0, epochs=3)
    before = time.time()
    log(step=7, epoch=2, loss=1.25, images=16, note="warm-up")
    record = read_stream(tmp_path / "run.jsonl")[0]
    assert before - 1 <= record.pop("ts") <= time.time() + 1
    assert record.pop("pid") > 0
    assert record == {
        "rank": 0,
        "event": "batch",
        "epoch": 2,
        "epochs": 3,
        "step": 7,
        "loss": 1.25,
        "images": 16,
        "note": "warm-up",
    }


def test_nan_and_infinity_stay_what_they_are(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
    log(step=1, loss=math.nan, grad_norm=-math.inf)
    text = (tmp_path / "run.jsonl").read_text()
    assert '"loss": NaN' in text
    assert '"grad_norm": -Infinity' in text
    assert math.isnan(json.loads(text)["loss"])


def test_phases_write_their_start_and_end_with_seconds_and_what_was_added(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
    with log.phase("train", epochs=2, model="net"):
        with log.phase("val") as phase:
            phase.add(images=40)
        log.epoch_end(1, {"mAP50": 0.5})
    names = [record["event"] for record in read_stream(tmp_path / "run.jsonl")]
    assert names == ["train_start", "val_start", "val_end", "fit_epoch_end", "train_end"]
    records = read_stream(tmp_path / "run.jsonl")
    assert records[0]["model"] == "net"
    assert records[2]["images"] == 40
    assert records[2]["seconds"] >= 0
    assert records[3]["metrics"] == {"mAP50": 0.5}


def test_an_exception_in_a_phase_is_named_and_goes_on(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
    with pytest.raises(KeyError), log.phase("val"):
        raise KeyError("boxes")
    assert read_stream(tmp_path / "run.jsonl")[1]["error"] == "KeyError: 'boxes'"


def test_waiting_for_the_loader_is_measured_apart_from_the_step(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0)

    class Loader:
        def __len__(self) -> int:
            return 3

        def __iter__(self) -> Iterator[int]:
            for item in range(3):
                time.sleep(0.02)
                yield item

    for step, _ in enumerate(log.batches(Loader()), 1):
        time.sleep(0.005)
        log(step=step, loss=0.1)
    records = read_stream(tmp_path / "run.jsonl")
    assert [(r["batch"], r["batches"]) for r in records] == [(1, 3), (2, 3), (3, 3)]
    for record in records:
        assert record["data_time"] >= 0.02
        assert record["step_time"] >= record["data_time"] + 0.005


def test_steps_that_are_not_logged_are_shared_out_over_the_interval(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
    began = time.perf_counter()
    for step, _ in enumerate(log.batches(range(10)), 1):
        time.sleep(0.004)
        if step % 5 == 0:
            log(step=step)
    seconds = time.perf_counter() - began
    times = [record["step_time"] for record in read_stream(tmp_path / "run.jsonl")]
    assert len(times) == 2
    assert sum(times) * 5 == pytest.approx(seconds, abs=0.01)


def test_each_rank_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    log = JsonlLogger(tmp_path / "yolomon.jsonl")
    log(step=1)
    assert log.path == tmp_path / "yolomon.rank3.jsonl"
    assert read_stream(log.path)[0]["rank"] == 3
    assert not (tmp_path / "yolomon.jsonl").exists()


def test_a_pickled_logger_opens_its_own_file_in_its_own_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = JsonlLogger(tmp_path / "yolomon.jsonl", epochs=9)
    log(step=1)
    sent = pickle.dumps(log)
    monkeypatch.setenv("RANK", "1")
    copy = pickle.loads(sent)
    copy(step=2)
    assert copy.path == tmp_path / "yolomon.rank1.jsonl"
    assert read_stream(copy.path)[0]["epochs"] == 9


class Awkward:
    """A value that cannot be turned into anything."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_value_that_cannot_be_written_does_not_stop_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
    log(step=1, loss=0.5, boxes=[Awkward()])
    log(step=2, loss=0.4)
    records = read_stream(tmp_path / "run.jsonl")
    assert [r["step"] for r in events(records, "batch")] == [2]
    assert "RuntimeError" in events(records, "warning")[0]["text"]
    assert len(caplog.records) == 1


def test_what_was_dropped_is_told_in_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yolomon.trainer.line_file.WAITING_LINES", 2)
    blocked = tmp_path / "run"
    blocked.write_text("")
    log = JsonlLogger(blocked / "yolomon.jsonl", rank=0)
    for step in range(5):
        log(step=step)
    blocked.unlink()
    log.close()
    records = read_stream(blocked / "yolomon.jsonl")
    assert records[0]["event"] == "dropped"
    assert records[0]["lines"] == 3
    assert [r["step"] for r in records[1:]] == [3, 4]
    assert log.dropped == 3


def test_every_line_is_on_disk_when_the_process_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from yolomon.trainer.writer import JsonlLogger\n"
        "log = JsonlLogger(sys.argv[1], rank=0)\n"
        "for step in range(50): log(step=step, loss=1.0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run.jsonl")], timeout=30)
    assert done.returncode == -9
    assert [record["step"] for record in read_stream(tmp_path / "run.jsonl")] == list(range(50))


def test_the_trainer_side_needs_the_standard_library_alone() -> None:
    script = (
        "import sys, yolomon; yolomon.JsonlLogger; yolomon.FeatureMonitor; yolomon.attach\n"
        "from yolomon.trainer import launch, autoattach, lightning, transformers\n"
        "found = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(n for n in found if not n.startswith('_') and n not in ('yolomon', 'sitecustomize')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_there_and_others_are_not() -> None:
    import yolomon

    assert {"attach", "JsonlLogger", "FeatureMonitor", "__version__"} <= set(dir(yolomon))
    assert yolomon.__version__[0].isdigit()
    with pytest.raises(AttributeError):
        yolomon.nothing  # noqa: B018
