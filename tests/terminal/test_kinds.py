"""Terminals of other kinds, without colour, without UTF-8, in another language."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.terminal.conftest import Open
from tests.terminal.tmux import START_SECONDS, YOLOMON, Pane

pytestmark = pytest.mark.tmux
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")


def with_numbers(pane: Pane) -> str:
    return pane.until(lambda text: len(re.findall(r"util +\d+ %", text)) == 2, START_SECONDS)


def test_colour_where_nothing_speaks_against_it(yolomon: Open) -> None:
    pane = yolomon("demo")
    with_numbers(pane)
    assert COLOUR.search(pane.screen(colours=True))


def test_no_color_means_no_colour_at_all(yolomon: Open) -> None:
    pane = yolomon("demo", NO_COLOR="1")
    with_numbers(pane)
    assert not COLOUR.search(pane.screen(colours=True))


def test_inside_screen(yolomon: Open) -> None:
    pane = yolomon("demo", TERM="screen", COLORTERM="")
    shown = with_numbers(pane)
    assert "DEMO" in shown
    pane.press("q")
    assert pane.until_left() == 0


def test_a_terminal_that_cannot_place_text_is_told(yolomon: Open) -> None:
    pane = yolomon("demo", TERM="dumb")
    assert pane.until_left(START_SECONDS) != 0
    shown = pane.screen()
    assert "TERM" in shown and "dumb" in shown and "yolomon --once" in shown.replace("\n", "")
    assert "Traceback" not in shown


def test_without_utf8_all_is_ascii(yolomon: Open) -> None:
    pane = yolomon("demo", LANG="C", LC_ALL="C")
    shown = with_numbers(pane)
    assert shown.isascii()
    assert "GPU 0" in shown and "+-" in shown


def test_chinese(yolomon: Open) -> None:
    pane = yolomon("demo", "--speed", "20", LANG="zh_CN.UTF-8")
    shown = pane.until(lambda text: "训练" in text and "GPU 1" in text, START_SECONDS)
    shown = pane.until("演示" if "演示" in shown else "DEMO")
    frame = [line for line in shown.splitlines() if line.startswith("╭")]
    assert frame, "the frames stand"
    pane.press("?")
    pane.until(lambda text: "退出" in text or "离开" in text)


def test_a_pipe_instead_of_a_terminal_is_told(surroundings: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*YOLOMON, "demo"], env=surroundings, cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "needs a terminal" in done.stderr and "yolomon --once" in done.stderr
    assert done.stdout == ""
