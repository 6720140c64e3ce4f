"""Numbers are short and whole; foreign text is harmless; double-width words take their cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from yolomon.messages import english
from yolomon.tui import words


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (41_233_022_976, "38 G"),
        (1.4 * 2**30, "1.4 G"),
        (2**40, "1.0 T"),
    ],
)
def test_sizes(count: float | None, text: str) -> None:
    assert words.size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0014, "0.0014"), (1.2345, "1.23"), (0.612, "0.612"), (123.4, "123"), (float("nan"), "NaN"),
     (float("inf"), "∞"), (1e9, "1e9"), (0, "0"), (None, "–")],
)  # fmt: skip
def test_metrics(value: float | None, text: str) -> None:
    assert words.number(value) == text


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_metric_is_long(value: float) -> None:
    assert len(words.number(value)) <= len("-2.1e-295")


def test_durations() -> None:
    assert words.duration(english, 69) == "1 min 9 s"
    assert words.duration(english, 11520) == "3 h 12 min"
    assert words.duration(english, 200_000) == "2 d 7 h"
    assert words.duration(english, None) == "–"


@given(st.text())
def test_foreign_text_cannot_move_the_cursor(text: str) -> None:
    shown = words.plain(text)
    assert "\x1b" not in shown and "\n" not in shown and "\x9b" not in shown and "\u202e" not in shown


@given(st.text(), st.integers(0, 40))
def test_fitted_text_fits(text: str, width: int) -> None:
    shown = words.plain(text)
    assert cell_len(words.fit(shown, width)) <= width
    assert cell_len(words.fit_left(shown, width)) <= max(width, 1)


@given(st.text(), st.integers(2, 40))
def test_wrapped_text_fits(text: str, width: int) -> None:
    assert all(cell_len(line) <= width for line in words.wrap(words.plain(text), width))


@given(st.text())
def test_cells_are_counted_as_rich_does(text: str) -> None:
    shown = words.plain(text)
    assert words.cells_of(shown) == cell_len(shown)


def test_no_number_is_cut_by_an_ellipsis() -> None:
    assert words.fit_words("GPU 1 works 24 % of the time", 14) == "GPU 1 works …"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("it waits 40 % of the time", 12, ["it waits", "40 % of the", "time"]),
        ("since 08:01:00 (1 min)", 17, ["since 08:01:00", "(1 min)"]),
        ("the loss is NaN since epoch 6, batch 2", 36, ["the loss is NaN since epoch 6,", "batch 2"]),
        ("py-spy dump --pid 1144", 17, ["py-spy dump", "--pid 1144"]),
        ("held back by GPU 1", 16, ["held back by", "GPU 1"]),
        ("8 min", 4, ["8", "min"]),
    ],
)
def test_a_line_never_ends_within_a_number_and_its_unit(text: str, width: int, lines: list[str]) -> None:
    assert words.wrap(text, width) == lines
