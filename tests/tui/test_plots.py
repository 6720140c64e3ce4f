"""Graphs: fixed scales, holes that are holes, spikes that stay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yolomon.history import Bucket, Table
from yolomon.tui import theme
from yolomon.tui.glyphs import ASCII, UNICODE
from yolomon.tui.plots import (
    ColumnCache,
    Style,
    TimeAxis,
    axis_for,
    braille_rows,
    many_rows,
    mark,
    one_row,
    runs,
    waiting,
)
from yolomon.tui.widgets.curves import nice_ticks

PERCENT = Style(scale=100.0, ink=lambda _: "work")
MEAN = Style(scale=100.0, measure="mean", ink=lambda _: "work")


def flat(*values: float | None) -> list[Bucket | None]:
    return [None if value is None else Bucket(value, value, value) for value in values]


def signs(row: list[tuple[str, str]]) -> str:
    return "".join(sign for sign, _ in row)


def test_the_scale_is_fixed_not_the_data_s_own() -> None:
    assert signs(one_row(flat(10, 10, 11), PERCENT, UNICODE)) == "▁▁▁"
    assert signs(one_row(flat(50, 50, 100), PERCENT, UNICODE)) == "▄▄█"


def test_a_hole_is_blank_and_zero_is_not() -> None:
    assert signs(one_row(flat(0, None, 100), PERCENT, UNICODE)) == "▁ █"
    assert signs(one_row(flat(0, None, 100), PERCENT, ASCII)) == "_ #"


def test_values_beyond_the_scale_stay_in_the_row() -> None:
    assert signs(one_row(flat(-5, 250), PERCENT, UNICODE)) == "▁█"


def test_without_a_limit_nothing_is_invented() -> None:
    assert signs(one_row(flat(40), Style(scale=None, ink=lambda _: "work"), UNICODE)) == " "


def test_a_short_spike_in_a_mean_leaves_a_mark() -> None:
    spike = Bucket(0.0, 1.0, 100.0)
    assert signs(one_row([*flat(0), spike], MEAN, UNICODE)) == "▁▂"


def test_more_rows_show_mean_solid_and_maximum_pale() -> None:
    top, bottom = many_rows([Bucket(0.0, 50.0, 100.0)], MEAN, UNICODE, 2)
    assert top == [("█", "band")] and bottom == [("█", "work")]


def test_between_mean_and_maximum_is_no_gap() -> None:
    (top,), (bottom,) = many_rows([Bucket(0.0, 30.0, 100.0)], MEAN, UNICODE, 2)
    assert top == ("█", "band") and bottom == ("▅", "work/band")
    assert many_rows([Bucket(0.0, 30.0, 30.0)], MEAN, UNICODE, 2)[1] == [("▅", "work")]
    assert many_rows([Bucket(0.0, 30.0, 100.0)], MEAN, ASCII, 2)[1] == [("=", "work")]  # fills no cell
    for known in theme.themes():
        style = theme.inks(known)["work/band"]
        assert (
            style.color == theme.inks(known)["work"].color
            and style.bgcolor == theme.inks(known)["band"].color
        )


def test_waiting_is_busy_without_memory_traffic_at_low_power() -> None:
    busy, memory, watts = flat(100, 100, 100, None), flat(0, 40, 0, 0), flat(121, 560, 560, 121)
    assert waiting(busy, memory, watts, 700.0) == [True, False, False, False]
    assert waiting(busy, memory, watts, None) == [False] * 4


def test_a_wait_has_its_own_sign() -> None:
    row = one_row(flat(100, 100), PERCENT, UNICODE, [True, False])
    assert row == [("░", "wait"), ("█", "work")]


def test_the_newest_column_is_a_piece_of_its_own() -> None:
    row = one_row(flat(50, 50, 50), PERCENT, UNICODE)
    assert runs(row) == [("▄▄", "work"), ("▄", "work")]


def test_columns_are_aligned_to_the_clock() -> None:
    axis = axis_for(60, 12, 1003.0)
    assert axis.seconds_per_column == 5 and axis.start_of(11, 12) == 1000.0
    assert axis.place(1000.0, 12) == 11 and axis.place(940.0, 12) is None
    assert axis_for(60, 12, 1004.9).last == axis.last and axis_for(60, 12, 1005.0).last == axis.last + 1


def test_between_two_turns_only_the_newest_column_changes() -> None:
    table, cache = Table(["x"]), ColumnCache()
    for second in range(100, 121):
        table.append(float(second), [float(second)])
        columns = list(cache.get((), table, "x", TimeAxis(float(second), 5.0), 4))
        fresh = ColumnCache().get((), table, "x", TimeAxis(float(second), 5.0), 4)
        assert columns == fresh


def test_in_braille_there_is_no_gap_either() -> None:
    top, bottom = braille_rows([Bucket(0.0, 20.0, 100.0)] * 2, MEAN, UNICODE, 2)
    assert top == [("⣿", "band")] and bottom == [("⣿", "work")]  # the mean fills two of the lower four dots
    assert braille_rows([Bucket(0.0, 10.0, 100.0)] * 2, MEAN, UNICODE, 2)[1] == [("⣿", "band")]


BUCKETS = [Bucket(v / 2, v * 0.8, v) for v in (0.0, 10.0, 45.0, 80.0, 100.0)]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_a_graph_that_moves_is_drawn_as_if_anew(steps: list[tuple[int, int, bool]]) -> None:
    cache, columns, waits = ColumnCache(), flat(None, None, None, *range(0, 90, 10)), [False] * 12
    for by, bucket, wait in steps:  # buckets that move on with their graph stay the same objects
        columns = [*columns[by:], *([BUCKETS[bucket]] * by)]
        waits = [*waits[by:], *([wait] * by)]
        assert cache.rows(("a",), columns, MEAN, UNICODE, 2, waits) == many_rows(
            columns, MEAN, UNICODE, 2, waits
        )
        waits = [wait, *waits[1:]]
        assert cache.rows(("a",), columns, MEAN, UNICODE, 2, waits) == many_rows(
            columns, MEAN, UNICODE, 2, waits
        )


def test_a_mark_outside_is_no_mark() -> None:
    row = one_row(flat(1, 2), PERCENT, UNICODE)
    mark(row, None, "┃", "onset")
    mark(row, 7, "┃", "onset")
    assert "┃" not in signs(row)
    mark(row, 1, "┃", "onset")
    assert row[1] == ("┃", "onset")


def test_ticks_are_round_numbers() -> None:
    assert nice_ticks(0.13, 4.6, 5) == [1, 2, 3, 4]
    assert nice_ticks(0, 36, 4) == [0, 10, 20, 30]
    assert nice_ticks(2, 2, 3) == [2]
    assert nice_ticks(0.22, 4.6, 2) == [2, 4]  # one number alone would say nothing of the scale


def drawn(times: list[float], seconds: float, count: int, end: float) -> str:
    table = Table(["x"])
    for ts in times:
        table.append(ts, [50.0])
    axis = TimeAxis(end, seconds)
    return "".join(" " if c is None else "#" for c in ColumnCache().get((), table, "x", axis, count))


def test_columns_shorter_than_the_time_between_readings_are_no_comb() -> None:
    every_second = [float(second) for second in range(1000, 1060)]
    assert drawn(every_second, 0.4, 120, 1059.3) == "#" * 120
    assert drawn(every_second, 0.75, 60, 1059.3) == "#" * 60
    every_five = [float(second) for second in range(1000, 1060, 5)]
    picture = drawn(every_five, 1.0, 50, 1055.0)  # what was read before its left edge is not looked for
    assert picture.lstrip() == "#" * 46


def test_a_hole_is_a_hole_in_short_columns_too() -> None:
    """A reading holds until the next is due, and not into what is yet to come."""
    times = [*map(float, range(1000, 1020)), *map(float, range(1030, 1041))]
    picture = drawn(times, 0.5, 80, 1040.0)
    assert 18 <= picture.count(" ") - (80 - len(picture.lstrip())) <= 20
    ahead = Table(["x"])
    for ts in times:
        ahead.append(ts, [50.0])
    columns = ColumnCache().get((), ahead, "x", TimeAxis(1040.2, 0.5, 10), 80)
    newest = TimeAxis(1040.2, 0.5, 10)
    assert newest.last > newest.newest
    assert all(bucket is None for bucket in columns[newest.newest - newest.last + 80 :])


def test_held_columns_are_the_same_read_once_or_second_by_second() -> None:
    cache, table = ColumnCache(), Table(["x"])
    for second in range(1000, 1050):
        table.append(second + 0.13, [float(second % 100)])
        axis = TimeAxis(second + 0.3, 0.4, 4)
        if len(table) > 1:
            assert cache.get((), table, "x", axis, 60) == ColumnCache().get((), table, "x", axis, 60)
