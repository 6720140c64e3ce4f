"""The pages beside the overview: their keys, and what they say, at several sizes and in both languages."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui.recordings import START, StoredFeed, batch, gpu_sample, header, run, sample
from tests.tui.rich_recording import EVIL, rich_feed
from yolomon.messages import english, msg, translator
from yolomon.settings import Settings
from yolomon.trainlog.discover import Candidate
from yolomon.tui import pages
from yolomon.tui.app import MonitorApp
from yolomon.tui.canvas import width_of
from yolomon.tui.keys import own_bindings
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.screens.curves import CurvesPage
from yolomon.tui.screens.explain import ExplainPage
from yolomon.tui.screens.page import Page
from yolomon.tui.screens.pick_log import PickLogPage

SIZES = [(140, 40), (80, 24), (60, 15), (40, 10)]
PAGE_OF_KEY = {"2": "gpu", "3": "processes", "4": "curves", "5": "features", "6": "findings", "7": "help"}


@asynccontextmanager
async def screen(
    feed: StoredFeed | None = None,
    size: tuple[int, int] = (140, 40),
    *,
    language: str = "en",
    graph: str = "blocks",
    keep: Any = None,
) -> AsyncIterator[tuple[MonitorApp, Pilot[int]]]:
    """The app over a recording; time does not draw, keys do."""
    settings = Settings(theme="dark", graph=graph, window_seconds=120.0)  # type: ignore[arg-type]
    app = MonitorApp(feed or rich_feed(), settings, translator(language), timed=False, keep=keep)
    async with app.run_test(size=size) as pilot:
        app.redraw()
        await pilot.pause()
        yield app, pilot


def lines_of(app: MonitorApp) -> list[str]:
    """The body's lines as text."""
    page = app.screen
    assert isinstance(page, BodyPage)
    return ["".join(text for text, _ in line) for line in page.body.lines]


def text_of(app: MonitorApp) -> str:
    """The whole body as text."""
    return "\n".join(lines_of(app))


def footer_of(app: MonitorApp) -> str:
    """The last line of the screen."""
    page: Any = app.screen
    return "".join(text for text, _ in page.foot.lines[0])


async def press(app: MonitorApp, pilot: Pilot[int], *keys: str) -> None:
    """Press keys and let the page draw."""
    await pilot.press(*keys)
    await pilot.pause()
    app.redraw()
    await pilot.pause()


# ---------------------------------------------------------------- all pages


async def test_numbers_and_tab_switch_pages_and_escape_leads_home() -> None:
    async with screen() as (app, pilot):
        for key, name in PAGE_OF_KEY.items():
            await press(app, pilot, key)
            assert isinstance(app.screen, Page)
            assert name == app.screen.PAGE
        await press(app, pilot, "escape")
        assert app.screen.PAGE == "overview"
        seen = []
        for _ in pages.PAGES:
            await press(app, pilot, "tab")
            seen.append(app.screen.PAGE)
        assert seen == [*PAGE_OF_KEY.values(), "overview"]
        await press(app, pilot, "shift+tab")
        assert app.screen.PAGE == "help"
        await press(app, pilot, "question_mark")
        assert app.screen.PAGE == "overview"
        assert len(app.screen_stack) == 1


@pytest.mark.parametrize(
    ("size", "language", "graph"),
    [(size, "en", "blocks") for size in SIZES]
    + [(size, *kind) for size in SIZES[1::2] for kind in (("zh_CN", "blocks"), ("en", "ascii"))],
)
async def test_no_line_is_wider_than_the_screen_and_no_control_character_is_drawn(
    size: tuple[int, int], language: str, graph: str
) -> None:
    async with screen(size=size, language=language, graph=graph) as (app, pilot):
        for key in PAGE_OF_KEY:
            await press(app, pilot, key)
            page = app.screen
            assert isinstance(page, BodyPage)
            assert page.body.lines
            for line in page.body.lines:
                text = "".join(piece for piece, _ in line)
                assert width_of(line) <= size[0], (page.PAGE, text)
                assert not any(unicodedata.category(c) == "Cc" for c in text), (page.PAGE, text)
                if graph == "ascii" and page.PAGE not in ("processes", "features"):
                    assert not any(0x2500 <= ord(c) <= 0x28FF for c in text), (page.PAGE, text)
            assert width_of(page.foot.lines[0]) <= size[0]


@pytest.mark.parametrize("key", PAGE_OF_KEY)
async def test_a_page_without_any_data_says_so(key: str) -> None:
    async with screen(StoredFeed([]), (60, 15)) as (app, pilot):
        await press(app, pilot, key)
        assert any(len(line.strip()) > 8 for line in lines_of(app))


async def test_nothing_is_repainted_when_nothing_changed() -> None:
    async with screen() as (app, pilot):
        for key in PAGE_OF_KEY:
            await press(app, pilot, key)
            page = app.screen
            assert isinstance(page, BodyPage)
            before = list(page.body.lines)
            app.redraw()
            assert page.body.lines == before


# ---------------------------------------------------------------- findings and their explanation


async def test_a_finding_is_silenced_and_said_again() -> None:
    feed = rich_feed()
    async with screen(feed) as (app, pilot):
        await press(app, pilot, "6")
        assert "findings: 1 now" in text_of(app)
        await press(app, pilot, "s")
        assert feed.engine.findings() == []
        assert feed.all_findings()[0].silenced  # what a recorder gets
        assert "Silenced: slow rank (gpu1)" in footer_of(app)
        assert "1 silenced" in text_of(app)
        await press(app, pilot, "s")
        assert [finding.code for finding in feed.engine.findings()] == ["load-imbalance"]
        assert feed.engine.silenced == ()
        assert "Said again" in footer_of(app)


async def test_the_filter_narrows_the_findings() -> None:
    async with screen() as (app, pilot):
        await press(app, pilot, "6", "slash", *"gpu7")
        assert "/gpu7" in footer_of(app)
        assert "No finding holds these words." in text_of(app)
        await press(app, pilot, "backspace", "1", "enter")
        assert "slow rank" in text_of(app)
        assert "/gpu1" in footer_of(app)
        await press(app, pilot, "escape")
        assert app.filter == ""
        assert app.screen.PAGE == "findings"  # type: ignore[attr-defined]


async def test_enter_explains_with_the_numbers_of_the_case() -> None:
    async with screen(size=(140, 90)) as (app, pilot):
        await press(app, pilot, "enter")
        assert isinstance(app.screen, ExplainPage)
        text = text_of(app)
        assert "GPU 1 holds the others back: it works 24 % of the time" in text
        assert "step time before" in text
        assert "0.155 s" in text
        assert "time at work" in text  # busy_percent
        assert "the process of rank 1 is not visible" in text
        assert "sync-wait" not in text and "gpu-lost" not in text
        assert "A GPU is gone" in text
        assert "utilization" in text  # its graph
        assert "┃" in text  # the onset
        assert "What to try, in this order" in text
        await press(app, pilot, "escape")
        assert app.screen.PAGE == "overview"  # type: ignore[attr-defined]


async def test_on_a_small_screen_words_are_whole_and_help_is_named() -> None:
    feed = rich_feed()
    async with screen(feed, size=(40, 10)) as (app, pilot):
        for key in PAGE_OF_KEY:
            await press(app, pilot, key)
            assert "? help" in footer_of(app), app.screen
        await press(app, pilot, "3")
        table = [line for line in lines_of(app) if "rank" in line or "worker" in line]
        assert table and not any("…" in line for line in table)
        await press(app, pilot, "5")
        assert [word in text_of(app) for word in ("dead", "explodes", "NaN or Inf")] == [True] * 3
        await press(app, pilot, "4")
        names = next(line for line in lines_of(app) if "cls" in line and "[" not in line)
        assert "loss" in names and "box" in names  # the curves' names before their values


async def test_the_palette_begins_at_the_top() -> None:
    async with screen(size=(40, 10)) as (app, pilot):
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        assert not app.screen.query_one("SearchIcon").display
        assert app.screen.query_one("CommandList").region.y <= 2
        assert app.screen.query_one("CommandList").region.height >= 7


# ---------------------------------------------------------------- one GPU


async def test_every_graph_of_a_gpu_has_the_onset_and_a_click_reads_a_moment() -> None:
    async with screen(size=(100, 40)) as (app, pilot):
        await press(app, pilot, "2")
        graphs = [
            line
            for line in lines_of(app)
            if line.startswith((" utilization", " SM act", " PCIe sent", " PCIe rec", " power "))
        ]
        assert len(graphs) == 5
        places = {line.index("┃") for line in graphs}
        assert len(places) == 1  # one moment
        assert "0-100 %" not in text_of(app)
        y = next(i for i, line in enumerate(lines_of(app)) if line.startswith(" PCIe sent"))
        await pilot.click("#body", offset=(places.pop(), y))
        assert app.view.cursor_ts == pytest.approx(START + 60, abs=3)
        assert "│" in lines_of(app)[y]
        below = next(i for i, line in enumerate(lines_of(app)) if line.startswith(" clocks"))
        await pilot.click("#body", offset=(40, below))
        assert app.view.cursor_ts is None


async def test_the_pale_part_of_a_graph_is_named_beside_it() -> None:
    items = [sample(1, s + half, (gpu_sample(0, s + half, utilization_percent=80 if s % 2 > half else 20),))
             for s in range(1, 120) for half in (0.0, 0.5)]  # fmt: skip
    async with screen(StoredFeed([header(1), *items]), size=(100, 50)) as (app, pilot):
        await press(app, pilot, "2")
        at = next(i for i, line in enumerate(lines_of(app)) if line.startswith(" utilization"))
        assert lines_of(app)[at + 1].startswith(" peak ▄")
        assert lines_of(app)[at + 1].split()[2:4] == ["80", "%"]


async def test_the_worst_off_gpu_comes_first_and_arrows_choose_another() -> None:
    async with screen() as (app, pilot):
        await press(app, pilot, "2")
        assert lines_of(app)[0].startswith(" GPU 1 of 2")
        await press(app, pilot, "down")
        text = text_of(app)
        assert lines_of(app)[0].startswith(" GPU 0 of 2")
        for words in (
            "least and most utilization",
            "31-98 %",
            "SM activity",
            "62 %",
            "586 MB/s",
            "at the power limit",
            "/ 700 W",
            "gen 5 x16",
        ):
            assert words in text, words
        strangers = [line for line in lines_of(app) if " 777 " in line]
        assert len(strangers) == 1
        assert "others" in strangers[0]


# ---------------------------------------------------------------- processes


async def test_processes_are_a_tree_and_strangers_are_apart() -> None:
    async with screen() as (app, pilot):
        await press(app, pilot, "3")
        first_words = [line.lstrip("> ").partition(" ")[0] for line in lines_of(app)]
        pids = [int(word) for word in first_words if word.isdigit()]
        assert pids == [1100, 1143, 1200, 1201, 1202, 1144, 1210, 1211, 1212, 777]
        text = text_of(app)
        assert "48 MB/s" in text
        assert "[red]train.py[/red]" in text  # no markup
        assert EVIL not in text
        assert "7.0 G " in text  # PSS, not the 9 G that are resident
        await press(app, pilot, "P")
        assert lines_of(app)[2].lstrip("> ").startswith(("1143", "1144"))
        await press(app, pilot, "slash", *"jupyter", "enter")
        assert "processes: 1" in text_of(app)


# ---------------------------------------------------------------- curves


def run_with_nan() -> StoredFeed:
    items = run(1, 200)
    items.append(batch(201, 9, 9, loss=float("nan"), losses={"train/box_loss": float("nan")}))
    return StoredFeed(items)


async def test_curves_are_chosen_zoomed_and_marked() -> None:
    async with screen(run_with_nan()) as (app, pilot):
        await press(app, pilot, "4")
        page = app.screen
        assert isinstance(page, CurvesPage)
        assert "1 NaN" in text_of(app)
        assert "✖" in text_of(app)
        assert "best" in text_of(app)
        assert "[x] mAP50-95" in text_of(app)
        await press(app, pilot, "plus")
        assert page.part is not None
        newest = page.part[1]
        await press(app, pilot, "left")
        assert page.part is not None
        assert page.part[1] < newest
        await press(app, pilot, "0", "l", "m")
        assert page.part is None
        assert "log scale · smoothed 0.6" in text_of(app)
        await press(app, pilot, "space")
        assert "[ ]" in lines_of(app)[1]
        await press(app, pilot, "slash", *"learning", "enter")
        assert "learning rate" in text_of(app)
        assert "mAP50-95 " not in "".join(line[:34] for line in lines_of(app))


def write_results(folder: Path) -> Path:
    folder.mkdir(parents=True)
    rows = ["epoch,time,train/box_loss,metrics/mAP50(B),metrics/mAP50-95(B),lr/pg0"]
    rows += [f"{n},{n * 9},{2 / n},{1 - 0.5 / n},{0.9 - 0.5 / n},0.001" for n in range(1, 31)]
    log = folder / "results.csv"
    log.write_text("\n".join(rows) + "\n")
    return log


async def test_an_earlier_run_of_the_folder_is_drawn_beside_this_one(tmp_path: Path) -> None:
    from yolomon.model import LogStatus

    write_results(tmp_path / "train")
    log = write_results(tmp_path / "train-2")
    items = [*run(1, 100), LogStatus(ts=START + 100, source=str(log), state="following")]
    async with screen(StoredFeed(items)) as (app, pilot):
        await press(app, pilot, "4", "v")
        page = app.screen
        assert isinstance(page, CurvesPage)
        for _ in range(200):
            await pilot.pause(0.02)
            app.redraw()
            if page.earlier.curves:
                break
        app.redraw()
        assert "dotted: train" in text_of(app)
        assert page.earlier.curves["map50_95"].x[-1] == 30
        await press(app, pilot, "v")  # there is no other one
        assert page.earlier.chosen is None


# ---------------------------------------------------------------- features


async def test_dead_and_exploding_layers_are_told_apart() -> None:
    async with screen() as (app, pilot):
        await press(app, pilot, "5")
        rows = {line.lstrip("> ").split()[0]: line.strip() for line in lines_of(app) if line.strip()}
        assert rows["backbone.4"].endswith("dead")
        assert rows["neck.13"].endswith("explodes")
        assert rows["head.cv2.0"].endswith("NaN or Inf")
        assert "头部.cv3" in rows
        await press(app, pilot, "right")
        assert "absmax over the run" in text_of(app)


async def test_without_features_it_is_told_how_to_get_them() -> None:
    async with screen(StoredFeed([header(1), sample(1, 1)]), (80, 24)) as (app, pilot):
        await press(app, pilot, "5")
        assert "yolomon.attach(model, features=True)" in text_of(app)
        assert "yolomon run --features" in text_of(app)


# ---------------------------------------------------------------- help, commands, theme, logs


def all_kinds() -> list[type]:
    from importlib import import_module

    kinds = [getattr(import_module(page.module), page.class_name) for page in pages.PAGES]
    return [MonitorApp, *kinds, ExplainPage, PickLogPage]


async def test_help_tells_every_key_of_every_page() -> None:
    async with screen(size=(100, 300)) as (app, pilot):
        await press(app, pilot, "7")
        text = " ".join(text_of(app).split())
        for kind in all_kinds()[:-2]:
            for binding in own_bindings(kind):
                assert " ".join(binding.tooltip.split()) in text, binding
        assert "share of time in which at least one kernel ran" in text


def test_every_key_is_described_and_has_its_chinese() -> None:
    chinese = translator("zh_CN")
    for kind in all_kinds():
        for binding in own_bindings(kind):
            for words in (binding.tooltip, binding.description):
                translated = chinese(words)
                assert translated != words or words in ("GPU",), words
        assert all(binding.tooltip for binding in kind.__dict__.get("BINDINGS", ())), kind


async def test_the_palette_runs_the_action_of_a_key() -> None:
    async with screen() as (app, pilot):
        await press(app, pilot, "ctrl+p")
        await pilot.pause(0.2)
        await pilot.press(*"findings")
        await pilot.pause(0.6)
        await pilot.press("enter")
        await pilot.pause(0.3)
        assert isinstance(app.screen, Page)
        assert app.screen.PAGE == "findings"


async def test_theme_and_window_are_told_to_be_kept() -> None:
    told: list[dict[str, Any]] = []
    async with screen(keep=lambda **choice: told.append(choice)) as (app, pilot):
        await press(app, pilot, "t")
        assert "Theme: light" in footer_of(app)
        await press(app, pilot, "plus")
        assert told == [
            {"theme": "light"},
            {"window_seconds": 300.0},  # a theme that nobody chose is not kept
        ]
        assert app.theme == "light"
        assert "Window: 5 min" in footer_of(app)


def candidate(path: str, *, growing: bool = False) -> Candidate:
    return Candidate(path, msg("written to just now"), "Ultralytics results.csv", 0.0, growing, (path,))


async def test_a_log_is_picked_from_those_found() -> None:
    feed = rich_feed()
    feed.found = [candidate("/runs/a/results.csv", growing=True), candidate("/runs/b/\x1b[31mresults.csv")]
    async with screen(feed) as (app, pilot):
        await press(app, pilot, "c")
        assert "\x1b" not in text_of(app)
        assert "grows now" in text_of(app)
        await press(app, pilot, "down", "enter")
        assert feed.attached == (Path(feed.found[1].path),)
        assert app.screen.PAGE == "overview"  # type: ignore[attr-defined]


async def test_a_path_is_typed_in(tmp_path: Path) -> None:
    log = write_results(tmp_path / "train-9")
    feed = rich_feed()
    async with screen(feed) as (app, pilot):
        await press(app, pilot, "c", "o", *"/nowhere/x.csv", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "There is no log at /nowhere/x.csv." in footer_of(app)
        await pilot.press("o")
        for key in str(log.parent):
            app.type_key("x", key)
        await press(app, pilot, "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert feed.attached == (log,)


async def test_records_are_filtered_on_the_overview() -> None:
    async with screen() as (app, pilot):
        await press(app, pilot, "slash", *"features", "enter")
        page: Any = app.screen
        text = "\n".join("".join(text for text, _ in line) for line in page.trainer.lines)
        assert "features measured" in text
        assert " box " not in text.split("features measured")[-1]
    assert english("Theme: {name}", name="x") == "Theme: x"
