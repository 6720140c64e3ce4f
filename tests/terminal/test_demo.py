"""The demo, its pages and its keys, in one session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.tmux import START_SECONDS, YOLOMON, Pane, Tmux

pytestmark = pytest.mark.tmux
PAGES = {
    "2": "clocks",
    "3": "processes",
    "4": "training curves",
    "5": "features",
    "6": "findings",
    "7": "keys",
}


@pytest.fixture(scope="module")
def demo(
    tmux: Tmux, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pane]:
    """A demo at a pace at which the straggling rank comes within seconds."""
    pane = tmux.open(
        [*YOLOMON, "demo", "--speed", "16"], folder=tmp_path_factory.mktemp("demo"), environment=surroundings
    )
    pane.until("DEMO", START_SECONDS)
    pane.until(lambda text: "GPU 0" in text and "GPU 1" in text)
    yield pane
    pane.close()


@pytest.fixture
def overview(demo: Pane) -> Pane:
    """The demo on its first page."""
    demo.press("1")
    demo.until(is_overview)
    return demo


def is_overview(text: str) -> bool:
    return "DEMO" in text and "╭ trainer" in text and "╭ findings" in text


def test_both_gpus_show_their_numbers(overview: Pane) -> None:
    shown = overview.until(lambda text: len(re.findall(r"util +\d+ %", text)) == 2)
    assert len(re.findall(r"memory +\d+(\.\d)? G", shown)) == 2
    assert len(re.findall(r"temp +\d+ °C", shown)) == 2
    assert len(re.findall(r"power +\d+ W", shown)) == 2
    assert "DEMO" in shown.splitlines()[0]


def test_the_straggler_is_found_and_explained(overview: Pane) -> None:
    shown = overview.until("GPU 1 holds the others back", 40)
    assert re.search(r"steps take 0\.\d+ s, 0\.\d+ s before", shown)
    assert "slow rank" in shown and "py-spy" in shown
    assert "┃" in shown, "its onset is marked on the graphs"
    overview.press("Enter")
    explained = overview.until("What it means")
    assert "holds the others back" in explained and "Evidence" in explained and "DEMO" in explained
    overview.press("Escape")
    overview.until(is_overview)


def test_each_page_has_a_key_and_a_second_press_leads_back(overview: Pane) -> None:
    for key, words in PAGES.items():
        overview.press(key)
        shown = overview.until(lambda text, words=words: words in text.lower() and not is_overview(text))
        assert "DEMO" in shown, f"page {key} does not say that it is a demo"
        overview.press(key)
        overview.until(is_overview)


def test_tab_goes_through_the_pages_and_back(overview: Pane) -> None:
    first = overview.screen().splitlines()[1]
    overview.press("Tab")
    overview.until(lambda text: not is_overview(text) and text.splitlines()[1] != first)
    overview.press("BTab")
    overview.until(is_overview)
    overview.press("BTab")
    overview.until(lambda text: "keys" in text.lower() and not is_overview(text))
    overview.press("Tab")
    overview.until(is_overview)


def test_help_lists_the_keys(overview: Pane) -> None:
    overview.press("?")
    told = ("keys on every page", "Tab ", "Enter ", "Leave yolomon; the training goes on", "Freeze the view")
    overview.until(lambda text: all(words in text for words in told))
    overview.press("Escape")
    overview.until(is_overview)


def test_plus_and_minus_change_the_window(overview: Pane) -> None:
    overview.until("−5 min")
    overview.press("+")
    overview.until("Window: 10 min")
    overview.until(lambda text: any(f"−{minutes} min" in text for minutes in (6, 7, 10)))  # the run fills it
    overview.press("-")
    overview.until("Window: 5 min")
    overview.until("−5 min")


def test_a_pause_holds_the_picture(overview: Pane) -> None:
    overview.press("p")
    shown = overview.until(lambda text: "paused" in text.lower())
    overview.press("p")
    overview.until(lambda text: "paused" not in text.lower())
    assert "DEMO" in shown


def test_what_is_typed_quickly_after_a_slash_is_text_and_no_command(overview: Pane) -> None:
    overview.press("6")
    overview.until(lambda text: "findings" in text and not is_overview(text))
    overview.press("/", "z", "c", "2", "q")
    overview.until("/zc2q")
    overview.press("Enter")
    overview.until(lambda text: "/zc2q" in text and "choose" in text and "No finding holds" in text)
    overview.press("Escape")
    overview.until(lambda text: "zc2q" not in text and "choose" in text)


def test_the_log_picker_opens_and_closes(overview: Pane) -> None:
    overview.press("c")
    overview.until(lambda text: not is_overview(text))
    overview.press("Escape")
    overview.until(is_overview)


def test_legacy_mouse_reports_do_no_harm(overview: Pane, tmp_path: Path) -> None:
    """Bytes that are no UTF-8, as they come after a reattach (Textualize/textual#6668)."""
    overview.send(b"\x1b[M#\xa8\xa8" * 20 + b"\xff\xfe\xc3", tmp_path / "bytes")
    overview.press("?")
    overview.until("keys on every page")
    overview.press("Escape")
    overview.until(is_overview)
