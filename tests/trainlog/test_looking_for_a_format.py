"""A text without a format yet: how often it is looked at, and that a late format is still found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trainlog.following import Watched, line
from yolomon.trainlog import log as log_module
from yolomon.trainlog.formats.registry import recognise
from yolomon.trainlog.log import Log

PREAMBLE = b"installing package %04d of the environment, which tells nothing of a training\n"
CONSOLE = b"""\
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
       1/10      2.41G      1.234      2.345      1.456         20        640: 100%|#| 8/8 [00:02<00:00]
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|#| 4/4 [00:01]
                   all        128        929      0.640      0.537      0.605      0.446
"""


def test_a_long_unknown_text_is_not_looked_at_for_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(head: object) -> object:
        nonlocal looks
        looks += 1
        return recognise(head)  # type: ignore[arg-type]

    monkeypatch.setattr(log_module, "recognise", counted)
    log = Log("console")
    for number in range(2000):
        log.push(PREAMBLE % number, float(number), float(number))
    assert log.format is None
    assert looks < 300


def test_a_format_after_a_long_preamble_is_found_once_the_log_is_quiet(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "train.log")
    watched.append(b"".join(PREAMBLE % number for number in range(2000)))
    assert watched.look() == []
    watched.append(CONSOLE)
    watched.look()
    for _ in range(4):
        watched.look(2.0)
    assert watched.log.format is not None
    assert watched.log.format.name == "ultralytics-console"
    assert watched.records[-1].epoch is not None


def test_an_indented_prefix_is_taken_away() -> None:
    log = Log("console")
    found = log.push(b"    [rank0]: " + line(1) + b"    [rank0]: " + line(2), 0.0, 0.0)
    found += log.finish(1.0)
    assert [record.step for record in found] == [1, 2]
