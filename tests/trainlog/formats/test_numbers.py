"""Numbers and durations as trainers spell them."""

from __future__ import annotations

import math

import pytest

from yolomon.trainlog.formats.numbers import duration, number, sane_map


@pytest.mark.parametrize("cell", ["nan", "NaN", "-nan", "-nan(ind)", " nan "])
def test_nan_is_a_value(cell: str) -> None:
    found = number(cell)
    assert found is not None
    assert math.isnan(found)


@pytest.mark.parametrize("cell", ["", "NA", "None", "[1, 2]", "1.2.3"])
def test_what_is_no_number_is_missing(cell: str) -> None:
    assert number(cell) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10.2s", 10.2),
        ("1:01", 61.0),
        ("1:02:03", 3723.0),
        ("1 day, 2:03:04", 93784.0),
        ("12 days, 10:35:16", 1074916.0),
        ("1:60", 120.0),
        ("?", None),
        ("", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds


def test_minus_one_is_no_map() -> None:
    assert sane_map(-1.0) is None
    assert sane_map(math.nan) is None
    assert sane_map(0.0) == 0.0
