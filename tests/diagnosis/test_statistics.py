"""Medians, slopes, trends, the leak test and the CUSUM, by hand-computed values and by simulation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import exp, inf, log, sqrt

import pytest

from yolomon.diagnosis.statistics import (
    Cusum,
    Ewma,
    Trend,
    leak_test,
    lower_envelope,
    mann_kendall,
    maxima_by,
    median,
    pool_medians,
    quantile,
    robust_z,
    spread,
    theil_sen,
    thin,
    time_to_limit,
)

MB, GB = 1e6, 1e9


def test_median_and_quantile() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == 2.5
    assert quantile([10, 20, 30, 40, 50], 0.25) == 20
    assert quantile([10, 20], 0.5) == 15
    with pytest.raises(ValueError, match="median"):
        median([])


def test_spread_is_the_mad_scaled_to_a_normal_distribution_and_has_a_floor() -> None:
    # median 2, deviations 1, 1, 0, 0, 2, 4, 7 -> their median is 1
    assert spread([1, 1, 2, 2, 4, 6, 9]) == pytest.approx(1.4826)
    assert spread([5, 5, 5, 5], floor=0.5) == 0.5


def test_robust_z() -> None:
    assert robust_z(6, [1, 1, 2, 2, 4, 6, 9]) == pytest.approx(4 / 1.4826)
    assert robust_z(5, [5, 5, 5]) == 0
    assert robust_z(6, [5, 5, 5]) == inf
    assert robust_z(6, [5, 5, 5], floor=0.5) == 2


def test_mann_kendall_without_ties() -> None:
    # 5 rising values: S = 10, Var = 5*4*15/18 = 16.67, z = 9 / 4.082
    assert mann_kendall([1, 2, 3, 4, 5]) == pytest.approx(9 / sqrt(300 / 18))
    assert mann_kendall([5, 4, 3, 2, 1]) == pytest.approx(-9 / sqrt(300 / 18))
    assert mann_kendall([1, 1, 1, 1]) == 0


def test_mann_kendall_corrects_for_ties() -> None:
    # S: 1,2,2,3 -> pairs up 5, ties 1; Var = (4*3*13 - 2*1*9)/18 = 138/18
    assert mann_kendall([1, 2, 2, 3]) == pytest.approx(4 / sqrt(138 / 18))


def test_theil_sen_ignores_an_outlier() -> None:
    slope = theil_sen([0, 1, 2, 3, 4], [0, 2, 4, 100, 8])
    assert slope is not None
    assert slope.value == pytest.approx(2)
    assert slope.level == pytest.approx(8)
    assert slope.low <= 2 <= slope.high


def test_sens_interval_by_hand() -> None:
    # n = 5, Var(S) = 16.67, C = 1.96 * 4.082 = 8.0; ranks (10 - 8)/2 = 1 and 9 + 1 of 10 slopes.
    values = [1.0, 2.0, 4.0, 7.0, 11.0]
    slopes = sorted((values[j] - values[i]) / (j - i) for i in range(5) for j in range(i + 1, 5))
    slope = theil_sen([0, 1, 2, 3, 4], values)
    assert slope is not None
    assert (slope.low, slope.high) == (slopes[0], slopes[9])


def test_theil_sen_needs_three_points() -> None:
    assert theil_sen([0, 1], [0, 1]) is None


def test_pooling() -> None:
    times = [0.0, 1.0, 2.0, 10.0, 11.0, 25.0]
    assert pool_medians(times, [1, 5, 3, 7, 9, 2], 10) == ([1.0, 10.5, 25.0], [3, 8, 2])
    assert lower_envelope(times, [1, 5, 3, 7, 9, 2], 10) == ([1.0, 10.5, 25.0], [1, 7, 2])
    assert maxima_by([1, 1, 2, 2, 3], [4.0, 6.0, 5.0, 1.0, 2.0]) == [6.0, 5.0, 2.0]


def test_thin_keeps_the_mean() -> None:
    times, values = thin(list(range(1000)), list(range(1000)), 240)
    assert len(times) == len(values) == 240
    assert sum(values) / 240 == pytest.approx(499.5, abs=2)


# ---------------------------------------------------------------- the leak test


def test_per_epoch_memory_that_settles_is_no_leak() -> None:
    """yolov7#1354: 7.49 GB, then 5.66 to 5.93 for 19 epochs."""
    peaks = [7.49, 5.66, 5.9, 5.9, 5.93, *[5.9] * 15]
    trend = leak_test(range(20), [p * GB for p in peaks], capacity=12 * GB)
    assert trend.why_not == "no-trend"


def test_one_step_at_an_epoch_border_is_no_leak() -> None:
    """Video memory steps up at the first validation and stays (yolov5#500: 6145 to 6483 MiB)."""
    values = [6145 * MB + i % 3 * MB for i in range(20)] + [6483 * MB + i % 3 * MB for i in range(40)]
    assert not leak_test(range(60), values, capacity=11 * GB).grows


def test_a_staircase_of_two_steps_is_no_leak() -> None:
    values = [5955.0] * 20 + [6421.0] * 20 + [7541.0] * 20
    trend = leak_test(range(60), [v * MB for v in values], capacity=12 * GB)
    assert trend.z > 7
    assert trend.why_not == "one-step"


def test_a_tiny_drift_is_no_leak() -> None:
    """A trainer's resident memory from 375 to 380 MB in 1.9 h: z above 12, of no consequence."""
    trend = leak_test(range(114), [375 * MB + i * 5 * MB / 114 for i in range(114)], capacity=64 * GB)
    assert trend.z > 12
    assert trend.why_not == "too-small"


def test_a_gigabyte_an_epoch_is_a_leak_with_a_forecast() -> None:
    """MultimediaTechLab/YOLO#59: 20 GB and 10 GB more each epoch."""
    random_ = random.Random(3)
    values = [20 * GB + 10 * GB * i + random_.gauss(0, 0.3) * GB for i in range(8)]
    trend = leak_test(range(8), values, capacity=400 * GB)
    assert trend.grows
    forecast = time_to_limit(trend, values[-1], 170 * GB)
    assert forecast is not None
    assert forecast.earliest <= forecast.time <= forecast.latest
    assert forecast.time == pytest.approx(8, abs=0.5)


def test_growth_with_instances_per_image_fits_for_hundreds_of_epochs() -> None:
    """ultralytics#730: 2.8 GB at epoch 2 to 3.92 GB at epoch 58, 24 GB card."""
    random_ = random.Random(4)
    values = [2.8 * GB + 1.12 * GB * i / 56 + random_.gauss(0, 0.01) * GB for i in range(57)]
    trend = leak_test(range(57), values, capacity=24 * GB)
    assert trend.grows
    forecast = time_to_limit(trend, values[-1], 24 * GB)
    assert forecast is not None
    assert 900 < forecast.time < 1100
    assert time_to_limit(trend, values[-1], 24 * GB, horizon=500) is None


def test_no_forecast_without_a_significant_trend() -> None:
    assert time_to_limit(Trend("no-trend"), 1, 2) is None


Series = Callable[[random.Random], Iterator[float]]


def multi_scale_peaks(rng: random.Random) -> Iterator[float]:
    """The high-water mark of an allocator that serves a new random image size each step."""
    peak = 0.0
    while True:
        peak = max(peak, 20 * GB + abs(rng.gauss(0, 2)) * GB)
        yield peak


def multi_scale_medians(rng: random.Random) -> Iterator[float]:
    while True:
        yield 20 * GB + rng.uniform(-3, 3) * GB


def decaying_warm_up(rng: random.Random) -> Iterator[float]:
    tau, rise, noise = rng.uniform(1, 6), rng.uniform(0.2, 3) * GB, rng.choice([1, 20, 40]) * MB
    minute = 0
    while True:
        yield 10 * GB + rise * (1 - exp(-minute / tau)) + rng.gauss(0, noise)
        minute += 1


def random_walk(rng: random.Random) -> Iterator[float]:
    level = 10 * GB
    while True:
        level += rng.gauss(0, 10 * MB)
        yield level


def one_step(rng: random.Random) -> Iterator[float]:
    at, rise = rng.randint(5, 80), rng.uniform(0.3, 4) * GB
    minute = 0
    while True:
        yield 10 * GB + (rise if minute >= at else 0) + rng.gauss(0, 40 * MB)
        minute += 1


def true_leak(rng: random.Random) -> Iterator[float]:
    level = 10 * GB
    while True:
        yield level + rng.gauss(0, 40 * MB)
        level += 60 * MB


def minutes_until_told(series: Iterator[float], minutes: int = 90) -> int | None:
    """As the rule runs: one more one-minute bucket each minute, the last hour is looked at."""
    values: list[float] = []
    for minute, value in zip(range(1, minutes + 1), series, strict=False):
        values.append(value)
        recent = values[-60:]
        if len(values) % 2 == 0 and leak_test(range(0, 60 * len(recent), 60), recent, capacity=64 * GB).grows:
            return minute
    return None


@pytest.mark.parametrize(
    "series", [multi_scale_peaks, multi_scale_medians, decaying_warm_up, random_walk, one_step]
)
def test_what_only_looks_like_a_leak_stays_silent(series: Series) -> None:
    told = [minutes_until_told(series(random.Random(seed))) for seed in range(25)]
    assert [minute for minute in told if minute is not None] == []


def test_every_true_leak_of_60_mb_a_minute_is_found_within_a_quarter_of_an_hour() -> None:
    told = [minutes_until_told(true_leak(random.Random(seed)), 30) for seed in range(40)]
    assert None not in told
    found = sorted(minute for minute in told if minute is not None)
    assert found[len(found) // 2] <= 11
    assert found[-1] <= 16


# ---------------------------------------------------------------- change of level


def steps_until_alarm(change: float, seed: int, steps: int = 400) -> int | None:
    rng = random.Random(seed)
    cusum = Cusum()
    for step in range(250 + steps):
        slow = change if step >= 250 else 1.0
        if cusum.add(float(step), 0.3 * slow * exp(rng.gauss(0, 0.03))):
            return step - 250
    return None


def test_cusum_tells_a_slower_step_soon_and_nothing_before() -> None:
    for change, most in ((1.1, 80), (1.2, 25), (1.5, 12)):
        delays = [steps_until_alarm(change, seed) for seed in range(20)]
        assert all(delay is not None and 0 <= delay <= most for delay in delays), (change, delays)


def test_cusum_forgives_outliers_and_verifies() -> None:
    rng = random.Random(5)
    cusum = Cusum()
    for step in range(2000):
        outlier = 12 if rng.random() < 0.02 else 1
        assert not cusum.add(float(step), 0.3 * exp(rng.gauss(0, 0.03)) * outlier)
    assert cusum.ratio == pytest.approx(1, abs=0.03)
    assert cusum.baseline == pytest.approx(0.3, rel=0.03)


def test_cusum_knows_when_it_began_and_can_be_reset() -> None:
    cusum = Cusum(baseline_count=10)
    for step in range(30):
        cusum.add(float(step), 1.0)
    for step in range(30, 60):
        cusum.add(float(step), 1.5)
    assert cusum.alarm
    assert cusum.since_ts == 30
    assert cusum.ratio == pytest.approx(1.5)
    cusum.reset()
    assert not cusum.alarm
    assert cusum.baseline is None


def test_ewma_counts_the_first_value_in_full() -> None:
    mean = Ewma(9)  # alpha 0.2
    assert mean.value is None
    assert mean.add(10) == pytest.approx(10)
    assert mean.add(20) == pytest.approx((0.8 * 0.2 * 10 + 0.2 * 20) / (0.8 * 0.2 + 0.2))
    assert log(mean.value or 0) > log(10)
