"""The training curves of the overview: which points are drawn, and that a picture stays small."""

from __future__ import annotations

import random

from yolomon.history import Curve
from yolomon.tui.widgets.curves import POINTS, SPIKES, drawn_points, newest_run


def curve(*values: float, from_x: float = 0.0, into: Curve | None = None) -> Curve:
    into = into if into is not None else Curve()
    for place, value in enumerate(values):
        into.add(from_x + place, value)
    return into


def test_a_resumed_run_replaces_the_epochs_that_it_repeats() -> None:
    assert newest_run([0, 1, 2, 3, 2, 3, 4]) == [0, 1, 4, 5, 6]
    again = curve(7.0, 6.0, 5.0, from_x=2.0, into=curve(9.0, 8.0, 1.0, 1.0))
    assert drawn_points(again) == ((0.0, 1.0, 2.0, 3.0, 4.0), (9.0, 8.0, 7.0, 6.0, 5.0))


def test_of_several_runs_in_one_log_the_newest_is_drawn() -> None:
    assert newest_run([0, 1, 2, 0, 1, 0, 1, 2]) == [5, 6, 7]


def test_a_log_started_fifty_times_makes_no_line_to_and_fro() -> None:
    many = Curve()
    for _ in range(50):
        curve(*(3.0 / (1 + step) for step in range(60)), into=many)
    xs, ys = drawn_points(many)
    assert list(xs) == sorted(xs) and len(xs) == len(ys) < POINTS


def test_noise_is_no_spike_but_the_greatest_spikes_stay() -> None:
    chance = random.Random(5)
    noisy = curve(*(chance.random() for _ in range(3000)))
    noisy.add(3000.0, 50.0)
    curve(*(chance.random() for _ in range(3000)), from_x=3001.0, into=noisy)
    xs, ys = drawn_points(noisy)
    assert max(ys) == 50.0
    assert len(xs) <= POINTS / 2 + 3 * (SPIKES + 1)
