"""A live session: GPUs of a fake NVML, a log that grows."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.conftest import Machine, Open
from tests.terminal.tmux import START_SECONDS

pytestmark = pytest.mark.tmux


class Log:
    """A trainer's log that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._step = 0

    def write(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def event(self, event: str, **values: Any) -> None:
        self.write(json.dumps({"ts": time.time(), "rank": 0, "event": event, **values}))

    def start(self) -> None:
        self.event("train_start", epochs=3, batches=100, batch_size=16, imgsz=640, model="yolo11n.yaml")
        self.event("epoch_start", epoch=1, epochs=3)

    def batches(self, count: int, **values: Any) -> None:
        for _ in range(count):
            self._step += 1
            numbers = {"train/box_loss": 1.234, "train/cls_loss": 2.345, "lr/pg0": 0.01, "step_time": 0.1}
            self.event("batch", epoch=1, epochs=3, step=self._step, batch=self._step, batches=100,
                       **{**numbers, **values})  # fmt: skip


def test_a_log_that_grows_and_gpus_at_work(yolomon: Open, machine: Machine, tmp_path: Path) -> None:
    log = Log(tmp_path / "runs" / "train" / "yolomon.jsonl")
    log.start()
    log.batches(3)
    pane = yolomon(**machine.environment)
    shown = pane.until(
        lambda text: "1.23" in text and len(re.findall(r"util +\d+ %", text)) == 2, START_SECONDS
    )
    assert "epoch 1/3" in shown and "yolo11n" in shown and "DEMO" not in shown
    log.batches(4, **{"train/box_loss": 0.987})
    shown = pane.until(lambda text: "0.987" in text and "batch 7/100" in text)
    pane.press("q")
    assert pane.until_left() == 0


def test_without_a_log_it_goes_on_and_attaches_when_one_appears(
    yolomon: Open, machine: Machine, tmp_path: Path
) -> None:
    pane = yolomon(**machine.environment)
    pane.until(lambda text: "No training log yet" in text and "util" in text, START_SECONDS)
    log = Log(tmp_path / "runs" / "late" / "yolomon.jsonl")
    log.start()
    log.batches(3)
    pane.until("1.23", 15)


def test_a_named_log_that_is_not_there_yet(yolomon: Open, machine: Machine, tmp_path: Path) -> None:
    pane = yolomon("later.jsonl", **machine.environment)
    pane.until(lambda text: "util" in text and "later.jsonl" in text, START_SECONDS)
    log = Log(tmp_path / "later.jsonl")
    log.start()
    log.batches(3)
    pane.until("1.23", 15)


def test_what_a_log_says_reaches_no_terminal_and_is_no_markup(
    yolomon: Open, machine: Machine, tmp_path: Path
) -> None:
    """Escape sequences and [markup] in names, texts and keys, in a file whose name has both."""
    machine.play("system gpus 1", r'gpu 0 name "Odd \xff\e]0;owned\x07\e[31m[bold red]H999[/]"')
    log = Log(tmp_path / "runs" / "[bold]evil[nope" / "yolomon.jsonl")
    pane = yolomon(**machine.environment)
    raw = tmp_path / "raw"
    pane.record(raw)
    pane.until("util", START_SECONDS)
    log.event("train_start", epochs=3, batches=100, model="\x1b]0;owned\x07[red]evil.yaml[red]")
    log.event("warning", text="\x1b]2;owned\x07\x1b[2J[link=http://x]NaN at[/link][/] \x9b31m\u202e")
    log.batches(2, **{"train/[red]x[/red]_loss": 3.21, "train/\x1b[31my_loss": 6.54})
    log.write('\x1b]0;owned\x07 \x1b[?1049l\x1bc this is [b]no[/b] JSON {"a": ')
    log.batches(2, **{"train/[red]x[/red]_loss": 3.21})
    shown = pane.until("3.21", 15)
    assert "evil.yaml" in shown, "what can be read of it is shown"
    assert "[red]" in shown or "[bold" in shown, "markup is text"
    for key, words in (("2", "clocks"), ("3", "CPU"), ("4", "curves"), ("6", "findings"), ("c", "logs that")):
        pane.press(key)
        pane.until(words)
    pane.press("Escape")
    pane.until("Nothing is wrong")
    pane.press("1")
    pane.until("3.21")
    sent = raw.read_bytes()
    for evil in (b"\x1b]0;", b"\x1b]2;", b"\x1bc", b"\x1b]8;", b"\x9b31m\xe2", b"\xe2\x80\xae"):
        assert evil not in sent, evil
    assert b"\x1b[?1049l" not in sent
    assert pane.ask("pane_title") != "owned"
    pane.press("q")
    assert pane.until_left() == 0


def test_a_gpu_is_lost_in_the_middle(yolomon: Open, machine: Machine, tmp_path: Path) -> None:
    pane = yolomon(**machine.environment)
    pane.until(lambda text: len(re.findall(r"util +\d+ %", text)) == 2, START_SECONDS)
    machine.play("system gpus 2", "gpu 1 lost")
    shown = pane.until(lambda text: "GPU 1" in text and "lost" in text.lower(), 20)
    assert re.search(r"util +\d+ %", shown), "the other GPU goes on"
    pane.press("6")
    pane.until(lambda text: "GPU 1" in text and "lost" in text.lower())


def test_keys_answer_while_a_gpu_hangs(yolomon: Open, machine: Machine, tmp_path: Path) -> None:
    pane = yolomon(**machine.environment)
    pane.until(lambda text: len(re.findall(r"util +\d+ %", text)) == 2, START_SECONDS)
    machine.play("system gpus 2", "gpu 1 hang * 60")
    pane.until("no answer", 15)
    for _ in range(2):
        pane.press("?")
        pane.until("keys on every page", 3)
        pane.press("Escape")
        pane.until("util", 3)
    pane.press("q")
    assert pane.until_left(6) == 0


def test_no_driver_is_one_line_and_the_rest_goes_on(yolomon: Open, machine: Machine, tmp_path: Path) -> None:
    machine.play("system fail nvmlInitWithFlags driver-not-loaded")
    log = Log(tmp_path / "train.jsonl")
    log.start()
    log.batches(3)
    pane = yolomon("train.jsonl", **machine.environment)
    shown = pane.until(lambda text: "driver" in text.lower() and "1.23" in text, START_SECONDS)
    assert "Traceback" not in shown
    assert "CPU" in shown
