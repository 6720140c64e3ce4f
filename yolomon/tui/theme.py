"""Colour themes. Meaning is never in colour alone: every judgement has a sign or a word beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

NAMES = ("dark", "light", "high-contrast", "color-blind", "monochrome", "terminal")

# Inks in this order: dim, label, title, frame, ok, info, warn, crit, work, memory, heat, power, band, wait,
# onset, cursor, data, validation.
_ORDER = (
    "dim", "label", "title", "frame", "ok", "info", "warn", "crit", "work", "memory", "heat", "power", "band",
    "wait", "onset", "cursor", "data", "validation",
)  # fmt: skip
_DARK = (
    "#7a828e", "#8f99a7", "#c8d0da", "#3c444f", "#6cc082", "#8ab4d8", "#e6b450", "#ff6b66", "#5fa3c8",
    "#8a8fd0", "#9aa07a", "#79a88c", "#36566b", "#c08ad0", "#e6b450", "#ffffff", "#d08a5a", "#7f8ea0",
)  # fmt: skip
_LIGHT = (
    "#676f79", "#525a64", "#22282f", "#b8bec6", "#1f7a3a", "#2463a0", "#9a5b00", "#c01c1c", "#2a72a8",
    "#5a5fb0", "#6a6f3a", "#3a7a56", "#a9c4d8", "#8a3fa0", "#9a5b00", "#000000", "#a04f18", "#5a6878",
)  # fmt: skip
_CONTRAST = (
    "#b0b0b0", "#d0d0d0", "#ffffff", "#8a8a8a", "#00ff66", "#66d9ff", "#ffdd00", "#ff6b6b", "#55ccff",
    "#bbaaff", "#dddd88", "#88ffbb", "#447788", "#ff88ff", "#ffdd00", "#ffffff", "#ffaa55", "#aabbcc",
)  # fmt: skip
# Okabe and Ito's palette (jfly.uni-koeln.de/color): distinct under all common kinds of colour blindness.
_BLIND = (
    "#7c828a", "#9ca2aa", "#d0d6dc", "#40464e", "#56b4e9", "#9ac8e8", "#f0e442", "#e69f00", "#4a8fc0",
    "#8d8fbf", "#9a9a86", "#7fa3a0", "#34506a", "#cc79a7", "#f0e442", "#ffffff", "#d55e00", "#7f8ea0",
)  # fmt: skip
_MONO = (
    "#8a8a8a", "#a8a8a8", "#ffffff", "#5a5a5a", "#d8d8d8", "#d8d8d8", "#ffffff", "#ffffff", "#b8b8b8",
    "#b8b8b8", "#b8b8b8", "#b8b8b8", "#606060", "#787878", "#ffffff", "#ffffff", "#b8b8b8", "#8a8a8a",
)  # fmt: skip
_TERMINAL = (
    "ansi_bright_black", "ansi_default", "ansi_default", "ansi_bright_black", "ansi_green", "ansi_cyan",
    "ansi_yellow", "ansi_bright_red", "ansi_blue", "ansi_blue", "ansi_blue", "ansi_blue", "ansi_bright_black",
    "ansi_magenta", "ansi_yellow", "ansi_default", "ansi_red", "ansi_bright_black",
)  # fmt: skip


_BOLD = frozenset({"title", "ok", "warn", "crit", "onset", "cursor", "selected", "demo"})
_SAME = {"number": "title", "hot": "warn", "demo": "warn"}  # inks that have the colour of another


# A sign of the first ink on a ground of the second: where a graph's mean ends and its paler part begins.
_ON = (("work", "band"), ("hot", "band"), ("crit", "band"))


def inks(theme: Theme) -> dict[str, Style]:
    """The text style of every ink under a theme.

    Made here rather than by component classes: with two dozen inks on each of the screen's parts those cost
    a tenth of a second at start.
    """
    background = _rich(theme.background or "ansi_default")
    styles: dict[str, Style] = {}
    for name in (*_ORDER, "text", "number", "hot", "demo", "selected"):
        color = _rich(
            theme.variables[f"ink-{_SAME.get(name, name)}"] if name != "selected" else theme.foreground or ""
        )
        behind = _rich(theme.variables["ink-selected"]) if name == "selected" else background
        styles[name] = Style(
            color=color,
            bgcolor=behind,
            bold=True if name in _BOLD else None,
            reverse=True if name == "demo" or (name == "selected" and theme.ansi) else None,
        )
    for name, ground in _ON:
        styles[f"{name}/{ground}"] = Style(color=styles[name].color, bgcolor=styles[ground].color)
    return styles


def _rich(name: str) -> RichColor:
    return Color.parse(name).rich_color


def _inks(colors: tuple[str, ...], text: str, selected: str) -> dict[str, str]:
    inks = {f"ink-{name}": color for name, color in zip(_ORDER, colors, strict=True)}
    return inks | {"ink-text": text, "ink-selected": selected}


def themes() -> list[Theme]:
    """All our themes, to be registered."""
    return [
        _theme("dark", _DARK, "#c4ccd6", "#101418", "#1d2833"),
        _theme("light", _LIGHT, "#2c333b", "#f7f8f9", "#dce6ef", dark=False),
        _theme("high-contrast", _CONTRAST, "#ffffff", "#000000", "#303030"),
        _theme("color-blind", _BLIND, "#cad2da", "#101418", "#1d2833"),
        _theme("monochrome", _MONO, "#d0d0d0", "#000000", "#303030"),
        Theme(
            name="terminal",
            ansi=True,
            primary="ansi_blue",
            secondary="ansi_cyan",
            warning="ansi_yellow",
            error="ansi_bright_red",
            success="ansi_green",
            accent="ansi_cyan",
            foreground="ansi_default",
            background="ansi_default",
            surface="ansi_default",
            panel="ansi_default",
            boost="ansi_default",
            variables=BUILTIN_THEMES["ansi-dark"].variables
            | _inks(_TERMINAL, "ansi_default", "ansi_default"),
        ),
    ]


def _theme(
    name: str, colors: tuple[str, ...], text: str, background: str, selected: str, *, dark: bool = True
) -> Theme:
    named = dict(zip(_ORDER, colors, strict=True))
    return Theme(
        name=name,
        primary=named["work"],
        secondary=named["info"],
        warning=named["warn"],
        error=named["crit"],
        success=named["ok"],
        accent=named["info"],
        foreground=text,
        background=background,
        surface=background,
        panel=selected,
        dark=dark,
        variables=_inks(colors, text, selected),
    )


def colors(environment: Mapping[str, str] | None = None) -> int:
    """How many colours will be sent: 0, 16, 256 or 2**24, as Textual's own detection (Rich's) has it.

    A terminal that says 256 by another name than "...-256color" can be told with COLORTERM=truecolor.
    """
    environment = os.environ if environment is None else environment
    if environment.get("NO_COLOR") is not None:
        return 0
    forced = {"truecolor": 2**24, "256": 256, "standard": 16}.get(environment.get("TEXTUAL_COLOR_SYSTEM", ""))
    if forced is not None:  # as textual-serve does for a browser
        return forced
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return 2**24
    term = environment.get("TERM", "").strip().lower()
    if term.endswith(("-256color", "-kitty")):
        return 256
    return 0 if _MONOCHROME(term) else 16


# DEC's terminals before the VT340, Wyse's, and the variants of terminfo that leave the colours out.
_MONOCHROME = re.compile(r"vt(52|[12]\d\d|3[02]0)(-.*)?|wy\d+(-.*)?|.+-(m|mono)").fullmatch


def choose(setting: str, environment: Mapping[str, str] | None = None) -> str:
    """The theme that is drawn for the user's setting: one that this terminal can show.

    With fewer than 256 colours the terminal's own colours are used, whatever was chosen (perhaps on another
    terminal): mixing ours down would lose the contrast. The setting itself stays as it is.
    """
    if colors(environment) < 256:
        return "terminal"
    return setting if setting in NAMES else "dark"


def colorless(setting: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal's own foreground and background are all that is sent.

    Under NO_COLOR, on a monochrome terminal, and where greys are wished for but there are none.
    """
    found = colors(environment)
    return found == 0 or (found < 256 and setting == "monochrome")
