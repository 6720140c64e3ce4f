"""Where the time goes, in a bar and in words: the bar gives way, so that no share is left untold."""

from __future__ import annotations

import pytest

from tests.tui.picture import frame_of, text_of
from tests.tui.recordings import StoredFeed, run
from yolomon.diagnosis.timesplit import Split
from yolomon.messages import english, translator
from yolomon.tui.canvas import width_of
from yolomon.tui.widgets.time_split import split_line

SPLIT = Split(0.0, 100.0, {"compute": 60.0, "rank-wait": 29.0, "validation": 7.0})


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("width", [70, 90, 140])
def test_every_share_is_told(width: int, language: str) -> None:
    tr = english if language == "en" else translator(language)
    line = split_line(frame_of(StoredFeed(run(1)), tr=tr), "GPU 1", SPLIT, width)
    assert width_of(line) <= width
    for share in ("60 %", "29 %", "7 %"):
        assert share in text_of(line)
    assert "█" in text_of(line) and "░" in text_of(line)
