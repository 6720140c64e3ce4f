"""Rows over time in bounded memory: nothing in a window is hidden, holes stay holes."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from yolomon.history import Bucket, Table

VALUE = st.one_of(st.none(), st.integers(0, 1000).map(float))


def filled(values: list[float | None], *, start: float = 0.0, raw_rows: int = 1800) -> Table:
    table = Table(["used_bytes"], raw_rows=raw_rows)
    for second, value in enumerate(values):
        table.append(start + second, [value])
    return table


@given(st.lists(VALUE, min_size=1, max_size=400), st.integers(1, 40))
def test_pooling_keeps_every_extreme_of_the_raw_rows(values: list[float | None], count: int) -> None:
    table = filled(values)
    buckets = [b for b in table.pooled("used_bytes", 0, len(values), count) if b is not None]
    there = [v for v in values if v is not None]
    assert min((b.minimum for b in buckets), default=inf) == min(there, default=inf)
    assert max((b.maximum for b in buckets), default=-inf) == max(there, default=-inf)


@given(st.integers(600, 20_000), st.integers(0, 10_000))
def test_a_spike_is_seen_however_old_it_is(length: int, place: int) -> None:
    place = min(place, length - 1)
    table = filled([1.0] * place + [999.0] + [1.0] * (length - place - 1), raw_rows=300)
    buckets = table.pooled("used_bytes", 0, length, 50)
    assert max(b.maximum for b in buckets if b is not None) == 999.0


def test_a_hole_stays_a_hole() -> None:
    table = filled([5.0] * 10 + [None] * 10 + [7.0] * 10)
    assert table.pooled("used_bytes", 0, 30, 3) == [Bucket(5, 5, 5), None, Bucket(7, 7, 7)]
    assert table.rows(9, 10, "used_bytes") == [(9.0, 5.0), (10.0, None)]
    assert table.window("used_bytes", 8, 21) == ([8.0, 9.0, 20.0, 21.0], [5.0, 5.0, 7.0, 7.0])


def test_the_newest_available_value_and_its_time() -> None:
    assert filled([1.0, 2.0, None]).latest("used_bytes") == (1.0, 2.0)
    assert filled([None]).latest("used_bytes") is None


def test_a_row_that_is_not_newer_is_dropped() -> None:
    table = filled([1.0, 2.0])
    table.append(1.0, [9.0])
    table.append(0.5, [9.0])
    assert table.latest("used_bytes") == (1.0, 2.0)


def test_a_run_of_months_is_there_from_its_first_minute_in_bounded_memory() -> None:
    table = Table(["used_bytes"], raw_rows=100, medium_rows=50, coarse_rows=40)
    for place in range(40_000):  # a row every 3 minutes: 83 days
        table.append(place * 180.0, [float(place)])
    assert len(table) <= 125
    assert table.first_ts == 0.0
    assert table.held_rows <= 125 + 57 + 41
    buckets = table.pooled("used_bytes", 0, 40_000 * 180.0, 20)
    assert all(bucket is not None for bucket in buckets)
    means = [bucket.mean for bucket in buckets if bucket is not None]
    assert means == sorted(means)


def test_joining_pairs_hides_no_extreme_and_fills_no_hole() -> None:
    table = Table(["used_bytes"], raw_rows=10, medium_rows=10, coarse_rows=64)
    for place in range(4000):
        value = None if 1000 <= place < 1400 else 99.0 if place == 700 else 0.5 if place == 2100 else 5.0
        table.append(place * 60.0, [value])
    buckets = table.pooled("used_bytes", 0, 4000 * 60.0, 10)
    there = [bucket for bucket in buckets if bucket is not None]
    assert max(bucket.maximum for bucket in there) == 99.0
    assert min(bucket.minimum for bucket in there) == 0.5
    assert buckets[1] is not None and buckets[1].maximum == 99.0
    many = table.pooled("used_bytes", 1160 * 60.0, 1270 * 60.0, 2)
    assert many == [None, None]


def test_a_column_takes_no_memory_before_its_first_value_and_has_holes_there() -> None:
    table = Table(["used_bytes", "fan_percent"], raw_rows=50)
    for second in range(200):
        table.append(float(second), [1.0, None if second < 150 else 7.0])
    assert table.window("fan_percent", 140, 152) == ([150.0, 151.0, 152.0], [7.0, 7.0, 7.0])
    assert table.latest("fan_percent") == (199.0, 7.0)
    buckets = table.pooled("fan_percent", 0, 200, 4)
    assert buckets[:3] == [None, None, None]
    assert buckets[3] == Bucket(7, 7, 7)
    unknown = Table(["used_bytes"])
    unknown.append(1.0, [None])
    assert unknown.latest("used_bytes") is None
    assert unknown.rows(0, 2, "used_bytes") == [(1.0, None)]
    assert unknown.pooled("used_bytes", 0, 2, 1) == [None]


def test_old_rows_are_pooled_next_to_raw_ones_without_a_seam() -> None:
    table = filled([float(i) for i in range(3000)], raw_rows=400)
    buckets = table.pooled("used_bytes", 0, 3000, 30)
    assert all(b is not None for b in buckets)
    means = [b.mean for b in buckets if b is not None]
    assert means == sorted(means)
