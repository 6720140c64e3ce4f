"""Numbers as people read them."""

from __future__ import annotations

import pytest

from yolomon.units import duration, gibibytes, number, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.1554, "0.16 s"), (9.4, "9.4 s"), (12.3, "12 s"), (69, "1 min 9 s"), (3600, "1 h"),
        (11520, "3 h 12 min"),
        (180000, "2 d 2 h"), (59.7, "60 s"), (None, "n/a"), (float("nan"), "n/a"), (754, "12 min"),
    ],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (8 * 2**20, "8.0 MiB"),
        (140 * 2**30, "140 GiB"),
        (3 * 2**40, "3.0 TiB"),
        (None, "n/a"),
    ],
)
def test_sizes(size_bytes: int | None, text: str) -> None:
    assert size(size_bytes) == text


def test_none_is_never_zero() -> None:
    assert gibibytes(None) == number(None, "W") == "n/a"
    assert number(0.0, "W") == "0 W"
