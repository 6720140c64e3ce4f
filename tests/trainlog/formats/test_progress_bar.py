"""Frames of progress bars."""

from __future__ import annotations

import pytest

from yolomon.trainlog.formats.progress_bar import frame, whole_words


@pytest.mark.parametrize(
    ("text", "done", "total", "steps_per_second", "elapsed_seconds"),
    [
        ("a: 20% ━━────────── 1/5 2.0it/s 0.2s<2.0s", 1, 5, 2.0, 0.2),
        ("a: 0% ──────────── 0/224  10.1s", 0, 224, None, 10.1),
        ("a: 100% ━━━━━━━━━━━━ 5/5 16.2it/s 1:02:03", 5, 5, 16.2, 3723.0),
        ("a: 25% ━━━───────── 1/4 4.0s/it 1.5s<1:60", 1, 4, 0.25, 1.5),
        ("a: 13% ━╸────────── 498/3584 1.5Kit/s 0.3s<2.9s", 498, 3584, 1500.0, 0.3),
        ("a:  29%|██▉       | 4/14 [00:01<00:04,  2.50it/s]", 4, 14, 2.5, 1.0),
        ("  0%|          | 0/14 [00:00<?, ?it/s]", 0, 14, None, 0.0),
        ("a:  29%|##9       | 4/14 [00:01<00:04,  2.50s/it, loss=2.1]", 4, 14, 0.4, 1.0),
        ("a: 100% 5/5 16.2it/s 0.3s", 5, 5, 16.2, 0.3),
    ],
)
def test_frames(
    text: str, done: int, total: int, steps_per_second: float | None, elapsed_seconds: float | None
) -> None:
    found = frame(text)
    assert found is not None
    assert (found.done, found.total) == (done, total)
    assert found.steps_per_second == steps_per_second
    assert found.elapsed_seconds == elapsed_seconds


@pytest.mark.parametrize("text", ["12% of all images", "no bar at all", "a: 20% ━━…", "loss 5/5"])
def test_no_frames(text: str) -> None:
    assert frame(text) is None


def test_a_word_cut_by_the_terminal_is_dropped() -> None:
    assert whole_words("1/3  2.5G  1.177  0.9…  9") == ["1/3", "2.5G", "1.177"]


def test_a_total_at_the_very_end_may_have_been_cut() -> None:
    cut = frame("x: 100%|██████████| 1126/11")
    assert cut is not None
    assert (cut.done, cut.total) == (1126, 1126)
    assert frame("x:  50%|█████     | 563/11") is None
    whole = frame("x:  50%|█████     | 563/1126")
    assert whole is not None
    assert whole.total == 1126
