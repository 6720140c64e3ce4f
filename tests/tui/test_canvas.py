"""Of a line that changed only the cells are sent that changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yolomon.tui.canvas import Line, _spread, differences, width_of

PIECES = st.lists(
    st.tuples(st.text(alphabet="ab ▁█░轮 显", max_size=6), st.sampled_from(["work", "dim"])), max_size=6
)


def changed(old: Line, new: Line, width: int) -> list[tuple[str, str]]:
    """The cells of a screen that showed `old`, after the differences of `new` were sent."""
    blank = [(" ", "")] * width
    cells = [*_spread(old), *blank][:width]
    wanted = [*_spread(new), *blank][:width]
    for first, length in differences(old, new, width):
        cells[first : first + length] = wanted[first : first + length]
    return [cell if cell[0].strip() else (cell[0], "") for cell in cells]


@given(PIECES, PIECES)
def test_what_is_sent_makes_the_old_line_the_new_one(old: Line, new: Line) -> None:
    width = max(width_of(old), width_of(new), 1)
    old = [*old, (" " * (width - width_of(old)), "")]
    new = [*new, (" " * (width - width_of(new)), "")]
    wanted = [cell if cell[0].strip() else (cell[0], "") for cell in _spread(new)]
    inks = [(sign, "") if not sign.strip() else (sign, ink) for sign, ink in changed(old, new, width)]
    assert inks == wanted


def test_a_graph_that_moves_on_sends_its_newest_column_alone() -> None:
    old = [("util 80 % ", "number"), ("▆" * 20, "work"), (" " * 10, "dim"), (" waits", "wait")]
    new = [("util 80 % ", "number"), ("▆" * 21, "work"), (" " * 9, "dim"), (" waits", "wait")]
    assert differences(old, new, 46) == [(30, 1)]


def test_two_graphs_beside_one_another_are_sent_apart() -> None:
    old = [("▆" * 20, "work"), (" " * 20, "dim"), ("▆" * 20, "work"), (" " * 20, "dim")]
    new = [("▆" * 21, "work"), (" " * 19, "dim"), ("▆" * 21, "work"), (" " * 19, "dim")]
    assert differences(old, new, 80) == [(20, 1), (60, 1)]


def test_a_wide_character_is_sent_whole() -> None:
    assert differences([("轮 1", "label")], [("轮 2", "label"), ("", "dim")], 4) == [(3, 1)]
    assert differences([("显存", "label")], [("ab存", "label"), ("", "dim")], 4) == [(0, 2)]
