"""Keys, and the few bytes that a change costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import ColorSystem
from textual.filter import NoColor

from tests.tui.recordings import START, StoredFeed, batch, gpu_sample, run, sample, slow_rank
from yolomon.messages import english
from yolomon.settings import Settings
from yolomon.tui import theme
from yolomon.tui.app import MonitorApp
from yolomon.tui.compositor import DirectUpdate, SparingCompositor, transition, written
from yolomon.tui.screens.overview import Overview

SETTINGS = Settings(theme="dark", window_seconds=120.0, graph="blocks")


def app_of(feed: StoredFeed, settings: Settings = SETTINGS) -> MonitorApp:
    return MonitorApp(feed, settings, english, timed=False)


def overview(app: MonitorApp) -> Overview:
    assert isinstance(app.screen, Overview)
    return app.screen


def texts(app: MonitorApp) -> str:
    """Everything on the overview."""
    page = overview(app)
    parts = (page.top, page.gpus, page.host, page.trainer, page.findings_panel)
    return "\n".join("".join(text for text, _ in line) for part in parts for line in part.lines)


async def test_an_update_sends_only_what_changed() -> None:
    """One more second of eight GPUs is a few hundred cells, not a screen of 5600."""
    feed = StoredFeed(run(8))
    app = app_of(feed)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.pause()
        compositor = app.screen._compositor
        assert isinstance(compositor, SparingCompositor)
        feed.later = [sample(8, 121.0), batch(121.1, 6, 2)]
        feed.drain()
        overview(app).draw(app.frame())
        for canvas in overview(app).query("Canvas"):
            compositor.update_widgets({canvas})
        update = compositor.render_partial_update()
        assert isinstance(update, DirectUpdate)
        sent = written(update.pieces, ColorSystem.TRUECOLOR)
        assert 200 < len(sent.encode()) < 4000
        assert "\x1b[2J" not in sent


def test_a_style_is_sent_as_what_differs() -> None:
    assert transition(("", "31", "40"), ("", "32", "40")) == "\x1b[32m"
    assert transition(("", "31", "40"), ("", "31", "40")) == ""
    assert transition(("1", "31", "40"), ("", "31", "40")) == "\x1b[0;31;40m"


async def test_window_keys() -> None:
    app = app_of(StoredFeed(run(1)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("plus")
        assert app.view.window_seconds == 300.0
        await pilot.press("minus", "minus")
        assert app.view.window_seconds == 60.0


async def test_a_shorter_window_is_shorter_than_what_is_shown() -> None:
    app = app_of(StoredFeed(run(1)), Settings(theme="dark", window_seconds=3600.0))
    async with app.run_test(size=(100, 30)) as pilot:
        assert app.frame().window_seconds == 120.0  # all that was read
        await pilot.press("minus")
        assert app.frame().window_seconds == 60.0


async def test_scrubbing_goes_back_while_data_goes_on() -> None:
    feed = StoredFeed(run(1))
    app = app_of(feed)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("left_square_bracket")
        assert app.view.end_ts == pytest.approx(START + 120.1 - 30, abs=1)
        feed.later = [sample(1, 125.0, (gpu_sample(0, 125.0, utilization_percent=3),))]
        feed.drain()
        app.redraw()
        await pilot.pause()
        assert "  3 %" not in texts(app)
        await pilot.press("end")
        assert app.view.end_ts is None
        app.redraw()
        assert "  3 %" in texts(app)


async def test_the_cursor_reads_the_numbers_of_its_moment() -> None:
    feed = slow_rank()
    app = app_of(feed)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.redraw()
        assert "24 %" in texts(app)
        for _ in range(40):  # of 60 steps over the window: before the onset
            await pilot.press("left")
        app.redraw()
        assert app.view.cursor_ts is not None and app.view.cursor_ts < START + 60
        assert " 24 %" not in "\n".join(
            "".join(text for text, _ in line) for line in overview(app).gpus.lines if "util" in str(line)
        )


async def test_a_cursor_where_nothing_was_read_judges_nothing() -> None:
    app = app_of(StoredFeed(run(1)))
    async with app.run_test(size=(100, 30)) as pilot:
        for at, known in ((START - 30, False), (START + 60, True), (START + 300, False)):
            app.look_at(at)
            await pilot.pause()
            assert ("healthy" in texts(app)) == known == ("Nothing is wrong." in texts(app))
            assert ("no reading" in texts(app)) != known
            assert ("whether all was well is not known" in texts(app)) != known


async def test_pause_freezes_the_view() -> None:
    app = app_of(StoredFeed(run(1)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("p")
        app.redraw()
        assert "paused" in texts(app)
        await pilot.press("p")
        app.redraw()
        assert "paused" not in texts(app)


async def test_enter_explains_and_escape_leads_back() -> None:
    app = app_of(slow_rank())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert not isinstance(app.screen, Overview)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, Overview)


async def test_a_gpu_without_answer_says_so_and_since_when() -> None:
    feed = StoredFeed(run(2))
    app = MonitorApp(feed, SETTINGS, english, timed=False, clock=lambda: START + 132.0)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.redraw()
        assert "no answer for 12 s" in texts(app)


async def test_a_lost_gpu_says_so_while_the_other_goes_on() -> None:
    feed = StoredFeed(run(2))
    lost = gpu_sample(1, 121.0, state="lost", utilization_percent=None, memory_used_bytes=None,
                      temperature_celsius=None, power_watts=None)  # fmt: skip
    feed.later = [sample(2, 121.0, (gpu_sample(0, 121.0), lost))]
    feed.drain()
    app = app_of(feed)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.redraw()
        assert texts(app).count("lost") == 1


async def test_markup_and_escapes_in_a_log_are_text() -> None:
    items = run(1, 30)
    feed = StoredFeed([*items, batch(31.0, 2, 8, losses={"[red]x\x1b[31m": 1.0})])
    app = app_of(feed)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.redraw()
        assert "[red]" in texts(app) and "\x1b" not in texts(app)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (10, 3), (300, 4)])
async def test_tiny_terminals_do_no_harm(size: tuple[int, int]) -> None:
    app = app_of(slow_rank())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        app.redraw()
        assert "1 warning" in texts(app)


async def test_demo_is_said_all_the_time() -> None:
    app = app_of(StoredFeed(run(1), demo=True))
    async with app.run_test(size=(60, 15)) as pilot:
        await pilot.pause()
        app.redraw()
        assert "DEMO" in texts(app)


def test_the_style_sheet_lies_beside_the_app() -> None:
    assert Path(MonitorApp.CSS_PATH).is_file()  # type: ignore[arg-type]


@pytest.mark.parametrize("term", ["xterm", "screen", "linux", "vt100"])
async def test_a_terminal_of_sixteen_colours_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("COLORTERM", raising=False)
    app = app_of(slow_rank(), Settings(theme="auto", window_seconds=120.0))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.press("ctrl+p")  # Textual's own widgets too are drawn with our theme
        await pilot.pause()
        assert app.theme == "terminal"


def _terminal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


async def test_a_theme_of_another_terminal_waits_for_one_that_can_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[dict[str, object]] = []
    _terminal(monkeypatch, TERM="screen")
    settings = Settings(theme="light", window_seconds=120.0)
    app = MonitorApp(StoredFeed(run(1)), settings, english, timed=False, keep=lambda **c: told.append(c))
    async with app.run_test(size=(100, 30)) as pilot:
        assert app.theme == "terminal"
        await pilot.press("plus", "t")
        assert app.theme == "terminal"
        assert "16 colours here" in "".join(text for text, _ in overview(app).foot.lines[0])
    assert told == [{"window_seconds": 300.0}]  # light is still what was chosen
    _terminal(monkeypatch, TERM="xterm-256color")
    assert app_of(StoredFeed(run(1)), settings).theme == "light"


@pytest.mark.parametrize(
    ("setting", "term", "no_color"),
    [
        ("auto", "vt220", True),
        ("dark", "xterm-mono", True),
        ("dark", "linux", False),
        ("monochrome", "linux", True),
    ],
)
def test_a_terminal_without_colours_gets_none(
    monkeypatch: pytest.MonkeyPatch, setting: str, term: str, no_color: bool
) -> None:
    _terminal(monkeypatch, TERM=term)
    app = app_of(StoredFeed(run(1)), Settings(theme=setting))  # type: ignore[arg-type]
    assert any(isinstance(used, NoColor) for used in app._filters) == no_color
    assert app.theme == "terminal"


@pytest.mark.parametrize(
    ("environment", "colors"),
    [
        ({"TERM": "xterm-256color"}, 256),
        ({"TERM": "tmux-256color", "NO_COLOR": ""}, 0),
        ({"TERM": "xterm-kitty"}, 256),
        ({"TERM": "screen"}, 16),
        ({"TERM": "screen", "COLORTERM": "truecolor"}, 2**24),
        ({"TERM": "vt100"}, 0),
        ({"TEXTUAL_COLOR_SYSTEM": "truecolor"}, 2**24),
    ],
)
def test_colours_are_counted_as_textual_sends_them(environment: dict[str, str], colors: int) -> None:
    assert theme.colors(environment) == colors


async def test_a_click_on_a_graph_reads_its_moment() -> None:
    app = app_of(slow_rank())
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.pause()
        await pilot.click("#gpus", offset=(20, 2))
        assert app.view.cursor_ts is not None and app.view.cursor_ts < START + 60
        await pilot.click("#gpus", offset=(2, 2))
        assert app.view.cursor_ts is None


async def test_a_longer_window_than_the_run_says_so() -> None:
    app = app_of(StoredFeed(run(1)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("plus")
        assert "Window: 5 min; so far 2 min are filled" in "".join(
            text for text, _ in overview(app).foot.lines[0]
        )
