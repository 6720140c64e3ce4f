"""Long logs that are no JSON: their newest records come first, the curves of the rest after them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from yolomon.history import History
from yolomon.model import Item
from yolomon.trainlog import long_log, text_backlog
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.registry import recognise
from yolomon.trainlog.long_log import fill_curves
from yolomon.trainlog.source import LogSource
from yolomon.trainlog.text_backlog import TextReader, thinned

ROWS = 60_000


def test_a_long_table_shows_its_end_first_and_loses_no_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_log, "LONG_BYTES", 1 << 19)
    path = tmp_path / "log.csv"
    spike = 777
    path.write_text(
        "step,train_loss\n"
        + "".join(f"{step:07d},{99.0 if step == spike else 1.5}\n" for step in range(ROWS))
    )
    assert path.stat().st_size > long_log.LONG_BYTES
    items: list[Item] = []
    source = LogSource([path], fill_delay_seconds=0.1)
    source.start(items.append)
    history, taken, first_step = History(), 0, None
    end = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.05)
        while taken < len(items):
            history.add(items[taken])
            taken += 1
            if first_step is None:
                first_step = history.train.step
        if any(getattr(item, "ends", False) for item in items[-5000:]):
            break
    source.stop()
    assert first_step is not None
    assert first_step > ROWS * 0.5  # the end of the log came first
    assert history.train.step == ROWS - 1
    curve = history.train.curves["loss"]
    assert max(curve.high) == 99.0
    assert curve.x[-1] == ROWS - 1
    assert not curve.breaks


def test_of_many_redraws_an_epoch_keeps_its_first_and_its_end() -> None:
    epoch = b"\r".join(b"frame %d" % number for number in range(100))
    rows = b"title\n" + epoch + b"\r\nall 5 0.9\n" + epoch[:20]
    left = thinned(rows, 10)
    assert left.startswith(b"title\nframe 0\r") and left.endswith(
        b"frame 99\r\nall 5 0.9\nframe 0\rframe 1\rfram"
    )
    assert left.count(b"\r") <= 14
    assert thinned(rows, 1000) is rows


def test_a_long_console_of_redraws_keeps_what_each_epoch_came_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_backlog, "FRAMES_WANTED", 300)
    text = "Ultralytics 8.3.40 Python-3.11 torch-2.5.1 CUDA:0\n"
    for epoch in range(1, 41):
        text += "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        text += "".join(
            f"\r     {epoch:3d}/40      2.5G     {5 / epoch:.4f}     1.0     1.0         12        640:"
            f" {done:3d}%|###| {done}/100 [00:10<00:10, 10.0it/s]"
            for done in range(1, 101)
        )
    path = tmp_path / "console.log"
    path.write_text(text + "\n", newline="")
    console = recognise(Head(path.name, tmp_path.name, text.encode()[:65536]))
    assert console is not None
    reader = TextReader(str(path), console, path.stat().st_size)
    box = [b for b in fill_curves(reader, [], 0.0, lambda: False) if b.name == "box_loss"]
    assert sum(block.count for block in box) < 1500  # of 4000
    assert max(block.maximum for block in box) == pytest.approx(5.0)
    assert min(block.minimum for block in box) == pytest.approx(5 / 40)
    assert box[-1].x_last == pytest.approx(40.0)
