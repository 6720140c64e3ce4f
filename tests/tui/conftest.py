"""Pictures look the same on every machine: one time zone, no animation, plotext loaded."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from yolomon.tui.widgets import curves


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """UTC, a terminal of all colours, and no colour wish of the machine's own."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="session")
def plotext_loaded() -> None:
    """The app loads it in a thread; a picture must not depend on when that is done."""
    curves._load()
