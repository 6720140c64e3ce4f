"""Colours that can be read in the dark, in daylight, and by everybody."""

from __future__ import annotations

import pytest
from textual.theme import Theme

from yolomon.tui.theme import themes

OURS = [theme for theme in themes() if not theme.ansi]  # the terminal's own colours are not ours to choose
WORDS = ("text", "label", "dim", "title", "ok", "info", "warn", "crit", "wait", "data")
GRAPHS = ("work", "memory", "heat", "power", "wait", "onset", "cursor", "validation")


def luminance(color: str) -> float:
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2's contrast ratio."""
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
def test_all_words_have_the_contrast_that_wcag_asks_of_text(theme: Theme) -> None:
    """4.5 of words, what is grey because it is old included; 7 where high contrast is promised."""
    assert theme.background is not None
    least = 7.0 if theme.name == "high-contrast" else 4.5
    poor = {
        ink: round(contrast(theme.variables[f"ink-{ink}"], theme.background), 2)
        for ink in WORDS
        if contrast(theme.variables[f"ink-{ink}"], theme.background) < least
    }
    assert poor == {}


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
def test_graphs_stand_out_from_their_ground(theme: Theme) -> None:
    assert theme.background is not None
    for ink in GRAPHS:
        assert contrast(theme.variables[f"ink-{ink}"], theme.background) >= 3.0, ink


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
def test_what_is_grey_is_paler_than_what_is_not(theme: Theme) -> None:
    assert theme.background is not None
    dim, label, text = (
        contrast(theme.variables[f"ink-{ink}"], theme.background) for ink in ("dim", "label", "text")
    )
    assert dim * 1.15 <= label
    assert label * 1.15 <= text
