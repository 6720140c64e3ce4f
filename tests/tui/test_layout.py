"""The overview at every size and number of GPUs: nothing overlaps, nothing is cut, nothing is left empty."""

from __future__ import annotations

import re
from functools import lru_cache
from math import nan

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.picture import frame_of, parts, picture, text_of, too_wide
from tests.tui.recordings import (
    SLOW_RANK,
    START,
    Always,
    StoredFeed,
    batch,
    gpu_sample,
    run,
    sample,
    slow_rank,
)
from tests.tui.states import STATES
from yolomon.messages import english, msg, translator
from yolomon.model import Header
from yolomon.tui import glyphs
from yolomon.tui.layout import STRIP_CELL, Plan, Rect, grow, heat_cells, plan, strip_cells
from yolomon.tui.short_names import SHORT, SHORTEST
from yolomon.tui.signals import graph, reading
from yolomon.tui.view import Frame, View
from yolomon.tui.widgets.findings_panel import wanted_rows
from yolomon.tui.widgets.footer_line import footer_line
from yolomon.tui.widgets.gpu_card import judgement_of, judgement_words
from yolomon.tui.widgets.gpu_panel import moment_at
from yolomon.tui.widgets.gpu_title import which
from yolomon.tui.widgets.time_axis import axis_words
from yolomon.tui.words import cells_of

SIZES = [(240, 70), (140, 40), (120, 30), (100, 24), (80, 24), (60, 15), (40, 10), (50, 60), (200, 12)]
GPUS = [0, 1, 2, 4, 8, 16, 64]
MATRIX = [(w, h, n) for w, h in SIZES for n in GPUS]

# Codes of findings that name a GPU.
ABOUT_A_GPU = frozenset(SHORTEST) | {
    "gpu-underused",
    "load-imbalance",
    "gpu-idle",
    "stall",
    "gpu-lost",
    "slowdown",
}


@lru_cache
def feed_of(gpus: int) -> StoredFeed:
    return slow_rank(gpus) if gpus > 1 else StoredFeed(run(gpus))


def overlap(a: Rect, b: Rect) -> bool:
    return a.x < b.right and b.x < a.right and a.y < b.bottom and b.y < a.bottom


def check_places(layout: Plan, width: int, height: int) -> None:
    places = list(layout.rectangles().items())
    for name, rect in places:
        assert rect.width >= 1 and rect.height >= 1, (name, rect)
        assert rect.x >= 0 and rect.right <= width and rect.y >= 0 and rect.bottom <= height, (name, rect)
    for i, (name, rect) in enumerate(places):
        for other, place in places[i + 1 :]:
            assert not overlap(rect, place), (name, rect, other, place)


@pytest.mark.parametrize(("width", "height", "gpus"), MATRIX)
def test_parts_lie_on_the_screen_and_never_over_one_another(width: int, height: int, gpus: int) -> None:
    check_places(plan(width, height, gpus), width, height)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 300), st.integers(0, 100), st.integers(0, 72))
def test_any_size_has_a_plan(width: int, height: int, gpus: int) -> None:
    check_places(plan(width, height, gpus), width, height)


@pytest.mark.parametrize(("width", "height", "gpus"), MATRIX)
def test_no_third_of_the_screen_is_empty(width: int, height: int, gpus: int) -> None:
    layout = plan(width, height, gpus)
    covered = sum(rect.width * rect.height for rect in layout.rectangles().values())
    assert covered >= width * height * 0.85


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("style", ["blocks", "ascii"])
@pytest.mark.parametrize(("width", "height", "gpus"), MATRIX)
def test_no_line_is_wider_than_its_place(
    width: int, height: int, gpus: int, style: str, language: str
) -> None:
    frame = frame_of(feed_of(gpus), tr=translator(language), glyphs=glyphs.choose(style))
    assert too_wide(frame, width, height) == []


@pytest.mark.parametrize(("width", "height", "gpus"), MATRIX)
def test_every_number_is_whole(width: int, height: int, gpus: int) -> None:
    """An ellipsis never stands in a number, and each GPU's numbers are there in full."""
    frame = frame_of(feed_of(gpus))
    layout = plan(width, height, gpus)
    for name, line in picture(frame, width, height):
        assert not re.search(r"\d…|…\d", line), (name, line)
    shown = "\n".join(line for name, line in picture(frame, width, height) if name == "gpus")
    for gpu in frame.history.by_index():
        sample = gpu.sample
        assert sample is not None
        if layout.mode in ("cards", "pairs", "rows"):
            assert re.search(rf"\b{sample.utilization_percent} %", shown)
            assert re.search(rf"\b{(sample.memory_used_bytes or 0) / 2**30:.0f} G\b", shown)
            assert re.search(rf"\b{sample.temperature_celsius:.0f} ?°C", shown)
        elif layout.mode == "strip":
            assert re.search(rf"\b{gpu.info.index} +{sample.utilization_percent}\D", shown)


@pytest.mark.parametrize(("width", "height", "gpus"), [m for m in MATRIX if m[2] > 1])
def test_the_verdict_and_the_finding_are_always_there(width: int, height: int, gpus: int) -> None:
    lines = picture(frame_of(feed_of(gpus)), width, height)
    assert any(name == "top" and "1 warning" in line for name, line in lines)
    assert any(
        name == "findings" and ("GPU 1 holds" in line or "GPU 1: slow rank" in line) for name, line in lines
    )


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (2, 1), (1, 9), (5, 3), (9, 20), (3, 60)])
def test_tiny_terminals_draw_something_or_nothing(size: tuple[int, int]) -> None:
    frame = frame_of(feed_of(2))
    for _, rect, lines in parts(frame, plan(*size, 2)):
        assert len(lines) <= max(rect.height, 1) or size[0] < 10
        assert all(isinstance(text_of(line), str) for line in lines)


def test_the_four_sizes_of_the_sketch() -> None:
    assert plan(140, 40, 2).mode == "cards"
    assert plan(80, 24, 2).mode == "pairs"
    assert plan(40, 10, 8).mode == "rows"
    assert plan(40, 10, 64).mode == "heat"


def test_taller_cards_favour_utilization() -> None:
    assert grow(4) == (1, 1, 1, 1)
    util, memory, temperature, power = grow(12)
    assert util + memory + temperature + power == 12 and util >= power >= memory >= temperature


def test_bare_signs_come_in_round_numbers() -> None:
    assert heat_cells(80) == 64 and heat_cells(40) == 32


def test_the_mark_of_the_onset_runs_through_every_graph_it_concerns() -> None:
    frame = frame_of(feed_of(2), view=View(window_seconds=120.0))
    columns = set()
    for name, line in picture(frame, 140, 40):
        if name == "gpus" and "┃" in line:
            columns.add(line.index("┃"))
    assert len(columns) == 1  # one moment, one column, on both cards


def test_waiting_is_drawn_unlike_work() -> None:
    frame = frame_of(feed_of(2))
    gpu0 = next(line for name, line in picture(frame, 80, 24) if name == "gpus" and "100 %" in line)
    assert "░" in gpu0.split("┃")[1] and "░" not in gpu0.split("┃")[0]
    assert english("waits") in gpu0


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("style", ["blocks", "braille", "ascii"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_in_every_state_every_number_is_whole(width: int, height: int, style: str, state: str) -> None:
    frame = frame_in(state, style)
    assert too_wide(frame, width, height) == []
    for name, line in picture(frame, width, height):
        assert not re.search(r"\d…|…\d", line), (name, line)


@lru_cache
def frame_in(state: str, style: str) -> Frame:
    make, later, _ = STATES[state]
    feed = make()
    return frame_of(feed, now_ts=max(feed.clock(), START) + later, glyphs=glyphs.choose(style))


@pytest.mark.parametrize("seconds", [115, 151, 200, 280])
def test_a_young_run_fills_three_quarters_of_its_graphs(seconds: int) -> None:
    frame = frame_of(StoredFeed(run(1, seconds)), view=View(window_seconds=300.0))
    row = graph(frame, frame.history.by_index()[0], "memory", 60)[0]
    assert sum(sign == " " for sign, _ in row) <= 17


@pytest.mark.parametrize(
    ("seconds", "begin"), [(20, "−2 min"), (58, "−2 min"), (85, "−2 min"), (110, "−2 min")]
)
def test_the_axis_of_a_young_run_tells_the_window_that_is_shown(seconds: int, begin: str) -> None:
    frame = frame_of(StoredFeed(run(1, seconds)), view=View(window_seconds=300.0))
    assert (10, begin) in axis_words(frame, 10, 60)


def test_a_window_that_is_filled_is_the_chosen_one() -> None:
    assert frame_of(StoredFeed(run(1, 130)), view=View(window_seconds=120.0)).window_seconds == 120.0


def test_another_rank_is_shown_only_where_it_says_something_else() -> None:
    items = run(2, 30)
    same, odd = batch(29.5, 2, 6), batch(30.5, 2, 7, losses={"train/box_loss": nan})
    items += [msgspec.structs.replace(record, rank=1) for record in (same, odd)]
    shown = [line for name, line in picture(frame_of(StoredFeed(items)), 140, 40) if name == "trainer"]
    assert ["NaN" in line for line in shown if "rank 1" in line] == [True]


def test_epochs_are_marked_behind_the_graphs_and_named_on_the_axis() -> None:
    lines = [line for name, line in picture(frame_in("epochs", "blocks"), 140, 40) if name == "gpus"]
    named = next(line for line in lines if "┊ep " in line)
    column = named.index("┊")
    assert sum(line[column] == "┊" for line in lines if "memory" in line) == 1


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 10)])
def test_a_click_on_a_graph_is_a_moment(size: tuple[int, int]) -> None:
    frame = frame_of(feed_of(2))
    layout = plan(*size, 2, wanted_rows(frame, *size))
    line = next(line for name, line in picture(frame, *size) if name == "gpus" and "┃" in line)
    at = moment_at(frame, layout, line.index("┃"))
    assert at == pytest.approx(START + 60, abs=2 * 120 / (line.count("┃") + 8))
    assert moment_at(frame, layout, 2) is None


STRAGGLER = msgspec.structs.replace(
    SLOW_RANK,
    summary=msg(
        "GPU {gpu} holds the others back: it works {busy:.0f} % of the time, "
        "they wait for it {waiting:.0f} %",
        gpu=1, busy=24.0, waiting=66.0,
    ),
    remedy=msg(
        "see what it does: py-spy dump --pid {pid}; look for callbacks, logging or data work on one rank",
        pid=1144,
    ),
)  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("size", [(100, 24), (80, 24), (60, 15), (40, 10), (50, 60), (200, 12), (140, 40)])
def test_what_to_do_is_told_whole(size: tuple[int, int], language: str) -> None:
    tr = translator(language)
    frame = frame_of(StoredFeed(run(2), [Always(STRAGGLER, START + 61)]), tr=tr)
    shown = picture(frame, *size)
    told = "".join(
        line.strip("│ ").removesuffix(tr("Enter: why")) for name, line in shown if name == "findings"
    )
    assert tr(STRAGGLER.remedy).replace(" ", "") in told.replace(" ", "").replace("│", "")
    assert any(name == "trainer" for name, _ in shown)
    assert sum("%" in line for name, line in shown if name == "gpus") >= 2  # both GPUs


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (40, 10), (200, 12), (140, 40)])
def test_the_worst_comes_first_and_it_is_said_how_to_reach_the_others(size: tuple[int, int]) -> None:
    lines = [line for name, line in picture(frame_in("many-findings", "blocks"), *size) if name == "findings"]
    worst = next(place for place, line in enumerate(lines) if "✖" in line)
    assert all("⚠" not in line for line in lines[:worst])
    assert any("press 6" in line and "3" in line for line in lines)


@pytest.mark.parametrize(("state", "waits"), [("slow-rank", True), ("healthy", False)])
@pytest.mark.parametrize("size", [(140, 40), (100, 24), (80, 24), (60, 15), (50, 60)])
def test_the_sign_of_waiting_is_explained_where_it_is_seen(
    size: tuple[int, int], state: str, *, waits: bool
) -> None:
    gpus = [line for name, line in picture(frame_in(state, "blocks"), *size) if name == "gpus"]
    assert any("░" in line and "┃" in line for line in gpus) == waits
    assert any("░ only waits" in line for line in gpus) == waits


def test_two_lines_a_gpu_name_their_graphs() -> None:
    gpus = [line for name, line in picture(frame_in("healthy", "blocks"), 80, 24) if name == "gpus"]
    assert [line[3:7].strip() for line in gpus[1:]] == ["util", "mem", "util", "mem"]


def overview_of(feed: StoredFeed, width: int, height: int) -> list[str]:
    return [line for name, line in picture(frame_of(feed), width, height) if name == "gpus"]


@pytest.mark.parametrize("gpus", [16, 64])
@pytest.mark.parametrize("size", [(120, 30), (100, 24), (80, 24), (60, 15), (40, 10), (50, 60), (200, 12)])
def test_few_cells_a_gpu_are_explained_above_them(size: tuple[int, int], gpus: int) -> None:
    """What the signs mean, and where GPUs have no room for words which of them is the worst."""
    lines = overview_of(feed_of(gpus), *size)
    layout = plan(*size, gpus, wanted_rows(frame_of(feed_of(gpus)), *size))
    assert "░ only waits" in lines[0] or (layout.mode == "rows" and not layout.heading)
    if layout.mode in ("strip", "heat"):
        assert f"GPUs 0–{gpus - 1}" in lines[0]
        assert "⚠ GPU 1" in lines[0]


@pytest.mark.parametrize("gpus", [5, 16, 64])
@pytest.mark.parametrize("size", [(100, 24), (80, 24), (60, 15), (40, 10), (200, 12)])
def test_the_heading_stays_whatever_the_findings_need(size: tuple[int, int], gpus: int) -> None:
    """Else the signs would lose their meaning just when there is something to say."""
    calm = plan(*size, gpus)
    for rows in range(8):
        found = plan(*size, gpus, rows)
        if calm.mode in ("strip", "heat"):
            assert (found.mode, found.heading) == (calm.mode, calm.heading)


@pytest.mark.parametrize("width", [40, 56, 84, 100, 240])
@pytest.mark.parametrize("gpus", [16, 48, 63, 64, 72])
def test_the_lines_of_a_strip_are_about_equally_long(gpus: int, width: int) -> None:
    each = strip_cells(width, gpus)
    lines = -(-gpus // each)
    assert lines == -(-gpus // (width // STRIP_CELL))
    assert each * lines - gpus < lines  # no line is short of more than one cell in the mean


def test_a_lost_gpu_among_many_is_named_before_a_silent_one() -> None:
    gpus = [gpu_sample(i, 121.0, state={12: "no-answer", 37: "lost"}.get(i, "ok")) for i in range(64)]
    lines = overview_of(StoredFeed([*run(64), sample(64, 121, tuple(gpus))]), 80, 24)
    assert "✖ GPU 37: lost" in lines[0]


def test_gpus_in_one_heading_are_told_by_their_numbers() -> None:
    titles = overview_of(feed_of(16), 120, 30)[0]
    assert re.findall(r"GPUs \d+–\d+ · H200", titles) == [
        "GPUs 0–5 · H200",
        "GPUs 6–11 · H200",
        "GPUs 12–15 · H200",
    ]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([3], "GPU 3"), ([2, 3, 4], "GPUs 2–4"), ([0, 2, 5], "GPUs 0, 2, 5"), ([0, 2, 4, 6, 8], "5 GPUs")],
)
def test_which_gpus_a_heading_is_about(numbers: list[int], words: str) -> None:
    gpus = frame_of(feed_of(16)).history.by_index()
    assert which(frame_of(feed_of(16)), [gpus[number] for number in numbers]) == words


@pytest.mark.parametrize("size", SIZES)
def test_how_long_a_gpu_gives_no_answer_is_whole_or_left_out(size: tuple[int, int]) -> None:
    frame = frame_of(StoredFeed(run(2)), now_ts=START + 120 + 125)
    for name, line in picture(frame, *size):
        assert "no …" not in line, (name, line)
        assert "for …" not in line, (name, line)
        assert not re.search(r"(silent|for) \d+ …", line), (name, line)


@pytest.mark.parametrize("state", ["no-gpu", "no-log", "hung-gpu", "lost-gpu", "stale", "starting"])
def test_on_the_smallest_screen_sentences_end(state: str) -> None:
    """What is said while there is no finding is cut between sentences; what to do is not lost."""
    lines = picture(frame_in(state, "blocks"), 40, 10)
    said = [line.strip() for name, line in lines if name == "findings"]
    if state == "no-gpu":  # its sentence is longer than the line, and told whole above
        told = " ".join(line.strip() for name, line in lines if name == "gpus")
        assert "was not found. → Install the NVIDIA driver; in a container" in told
        assert "--gpus all." in told
        return
    assert said[0].endswith(".")
    trainer = [line.strip() for name, line in lines if name == "trainer" and line.strip()]
    assert all(not line.endswith((",", "and", "the folder")) for line in trainer[-1:])


def test_silent_gpus_are_named_while_they_are_few() -> None:
    said = [line for name, line in picture(frame_in("hung-gpu", "blocks"), 80, 24) if name == "findings"]
    assert any("⚠ GPU 1 gives no answer. What is shown of it is old." in line for line in said)


def test_since_when_is_told_where_the_time_since_then_has_no_room() -> None:
    said = [line for name, line in picture(frame_of(feed_of(2)), 80, 24) if name == "findings"]
    assert any(line.rstrip().endswith("since 08:01:00") for line in said)


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 10)])
def test_a_partitioned_gpu_says_why_it_has_no_utilization(size: tuple[int, int]) -> None:
    items = run(2)
    head = items[0]
    assert isinstance(head, Header)
    gpus = tuple(msgspec.structs.replace(gpu, mig_enabled=True) for gpu in head.gpus)
    items[0] = msgspec.structs.replace(head, gpus=gpus)
    bare = [gpu_sample(i, 121.0, utilization_percent=None, memory_utilization_percent=None) for i in (0, 1)]
    lines = overview_of(StoredFeed([*items[:2], sample(2, 121, tuple(bare))]), *size)
    assert any("n/a" in line for line in lines)
    assert any("MIG" in line for line in lines)


@pytest.mark.parametrize(("width", "height"), [(w, h) for w, h in SIZES if h >= 12])
def test_without_gpus_no_row_on_the_left_is_left_over(width: int, height: int) -> None:
    layout = plan(width, height, 0)
    assert layout.gpus is not None
    assert layout.host is not None
    shown = parts(frame_of(feed_of(0)), layout)
    frame_lines = next(lines for name, _, lines in shown if name == "gpus")
    assert len(frame_lines) == layout.gpus.height
    if layout.trainer is not None and layout.trainer.x:
        assert layout.host.bottom >= layout.trainer.bottom or layout.host.width == width


def test_it_is_said_how_typing_ends() -> None:
    frame = msgspec.structs.replace(frame_of(feed_of(2)), typing="/dfl")
    assert text_of(footer_line(frame, 80)).rstrip().endswith("Enter: done  Esc: cancel")
    assert text_of(footer_line(frame, 20)).startswith(" /dfl_")


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("code", sorted(SHORT))
def test_beside_one_another_gpus_have_room_for_what_each_finding_is_called(code: str, language: str) -> None:
    """Eleven cells with the sign: the least that two lines a GPU have for it."""
    claim = msgspec.structs.replace(SLOW_RANK, code=code)
    rule = type("R", (Always,), {"codes": (code,)})(claim, START + 61)
    frame = frame_of(StoredFeed(run(4), [rule]), tr=translator(language))
    gpu = frame.history.by_index()[1]
    now = reading(frame, gpu)
    judgement, _ = judgement_of(frame, gpu, now)
    if code in ABOUT_A_GPU:
        words = judgement_words(frame, gpu, now, judgement, 11)
        assert words.startswith("⚠ "), words
        assert "…" not in words
        assert cells_of(words) <= 11
    for room in range(1, 30):
        assert cells_of(judgement_words(frame, gpu, now, judgement, room)) <= room


def test_beside_how_to_reach_the_others_a_sentence_still_ends() -> None:
    """Only the first line is shorter for it: on the smallest screen the sentence is told whole."""
    other = msgspec.structs.replace(SLOW_RANK, code="disk-low", target="host", severity="info")
    rules = [type("R", (Always,), {"codes": (c.code,)})(c, START + 61) for c in (SLOW_RANK, other)]
    frame = frame_of(StoredFeed(run(4), rules))
    lines = [line.rstrip() for name, line in picture(frame, 40, 10) if name == "findings"]
    assert lines[0].startswith(" ⚠ GPU 1 holds the others") and lines[0].endswith("+1: press 6")
    assert lines[1] == "   back: it works 24 % of the time"
    assert any("py-spy dump" in line for line in lines)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("gpus", [2, 8])
@pytest.mark.parametrize("size", [(50, 60), (40, 10), (80, 24), (140, 40)])
def test_the_key_that_explains_is_told_where_words_are_cut(
    size: tuple[int, int], gpus: int, language: str
) -> None:
    tr = translator(language)
    feed = StoredFeed(run(gpus), [Always(STRAGGLER, START + 61)])
    shown = [line for name, line in picture(frame_of(feed, tr=tr), *size) if name == "findings"]
    whole = tr(STRAGGLER.remedy).replace(" ", "") in "".join(line.strip("│ ") for line in shown).replace(
        " ", ""
    )
    assert whole or any(tr("Enter: why") in line for line in shown)
    if size[1] == 60:  # room enough for all of it
        assert tr("Enter: why") in "".join(shown)
        assert "08:01:00" in "".join(shown)


@pytest.mark.parametrize("width", [30, 40, 50, 60])
def test_a_narrow_footer_keeps_the_help_and_the_way_out(width: int) -> None:
    told = text_of(footer_line(frame_of(feed_of(1)), width))
    assert "? help" in told
    assert "q quit" in told
