"""The chart of a curve: what is drawn where."""

from __future__ import annotations

from math import nan

import pytest

from yolomon.history import Curve
from yolomon.tui.curve_chart import Drawn, Look, best_of, chart_lines, smoothed
from yolomon.tui.glyphs import ASCII, UNICODE
from yolomon.tui.raster import Raster


def curve(values: list[float]) -> Curve:
    made = Curve()
    for x, y in enumerate(values):
        made.add(float(x), y)
    return made


def text(drawn: list[Drawn], look: Look, *, ascii_only: bool = False, height: int = 9) -> list[str]:
    lines = chart_lines(drawn, look, ASCII if ascii_only else UNICODE, 40, height, "epoch")
    return ["".join(piece for piece, _ in line) for line in lines]


def test_a_falling_curve_begins_at_the_top_and_ends_at_the_bottom() -> None:
    rows = text([Drawn(curve([4.0, 3, 2, 1, 0]), "work")], Look(0, 4, epochs=False), ascii_only=True)
    places = [row[9:].find("*") for row in rows[:-1]]
    assert places == sorted(places)
    assert places[0] == 0
    assert rows[-1].lstrip().startswith("epoch")


def test_nan_is_marked_where_it_was_and_the_best_point_too() -> None:
    made = curve([5.0, 1.0, nan, 4.0, 4.0])
    rows = text([Drawn(made, "work", "min")], Look(0, 4, epochs=False))
    assert UNICODE.critical in rows[0]
    assert "+" in rows[-2]
    assert best_of(made, "min") == (1.0, 1.0)
    assert best_of(made, "") is None


def test_a_logarithm_shows_powers_and_leaves_out_what_is_not_positive() -> None:
    rows = text(
        [Drawn(curve([1000.0, 10, 0, 0.1]), "work")], Look(0, 3, logarithmic=True, epochs=False), height=14
    )
    labels = [row[:8].strip() for row in rows if row[:8].strip()]
    assert "1000" in labels
    assert "1" in labels or "0.1" in labels


def test_a_curve_that_is_zero_so_far_has_a_scale_for_people() -> None:
    shown = "\n".join(text([Drawn(curve([0.0] * 3), "work")], Look(0.0, 2.0), height=12))
    assert "e-" not in shown and " 0│" in shown and " 1│" in shown


def test_a_window_without_a_point_draws_nothing() -> None:
    assert text([Drawn(curve([1.0, 2.0]), "work")], Look(50, 60)) == []


@pytest.mark.parametrize("strength", [0.0, 0.6, 0.9])
def test_smoothing_keeps_a_constant_and_begins_at_the_first_point(strength: float) -> None:
    assert smoothed([3.0, 3.0, 3.0], strength) == pytest.approx([3.0, 3.0, 3.0])
    assert smoothed([8.0, 0.0], strength)[0] == pytest.approx(8.0)


def test_dots_outside_the_raster_are_no_error() -> None:
    raster = Raster(2, 1)
    raster.dot(-1, 0, "work")
    raster.dot(99, 99, "work")
    raster.line(-5, -5, 9, 9, "work")
    assert len("".join(piece for piece, _ in raster.lines()[0])) == 2
