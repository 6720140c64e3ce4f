"""A curve of a whole run keeps its extremes, its breaks and its NaN in bounded memory."""

from __future__ import annotations

from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st

from yolomon.history import Curve


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=3000))
def test_no_extreme_is_lost(values: list[float]) -> None:
    curve = Curve(capacity=64)
    for x, y in enumerate(values):
        curve.add(x, y)
    assert curve.bounds == (min(values), max(values))
    assert len(curve) < 64
    assert curve.points()[1][-1] == values[-1]


def test_nan_and_infinity_are_places_not_numbers() -> None:
    curve = Curve()
    for x, y in enumerate([1.0, nan, 2.0, inf]):
        curve.add(x, y)
    assert curve.non_finite == [1, 3]
    assert curve.bounds == (1.0, 2.0)


def test_a_step_back_breaks_the_line() -> None:
    curve = Curve(capacity=8)
    for x in [*range(20), *range(10, 30)]:
        curve.add(x, x)
    assert curve.breaks == [10]
    assert curve.bounds == (0, 29)
    assert len(curve) < 8


def test_a_block_is_worth_its_points() -> None:
    single, block = Curve(capacity=16), Curve(capacity=16)
    for x in range(100):
        single.add(x, x % 7)
    for x in range(0, 100, 10):
        ys = [v % 7 for v in range(x, x + 10)]
        block.add_block(x, x + 9, min(ys), max(ys), ys[-1], 10)
    assert single.bounds == block.bounds
    assert block.points()[1][-1] == single.points()[1][-1]


def test_an_empty_curve_has_no_bounds() -> None:
    assert Curve().bounds is None
