"""Long logs that are no JSON: their newest records come first, the curves of the rest after them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from yolomon.history import History
from yolomon.model import Item
from yolomon.trainlog import long_log
from yolomon.trainlog.source import LogSource

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
