"""The signs a graph and a frame are made of, for terminals with and without Unicode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import msgspec


class Glyphs(msgspec.Struct, frozen=True, kw_only=True):
    """One set of signs; each is one cell wide."""

    style: Literal["braille", "blocks", "ascii"]
    levels: str  # from an empty cell to a full one
    wait: str  # busy without work: unlike any level
    onset: str
    cursor: str
    epoch: str
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    horizontal: str
    vertical: str
    bar: str
    bar_end: str
    bar_rest: str
    shades: tuple[str, str, str, str]  # compute, waits, data, rest
    ok: str
    info: str
    warning: str
    critical: str
    arrow: str
    ellipsis: str
    dot: str
    minus: str
    range: str  # between the first and the last of many
    degree: str
    up: str
    down: str


UNICODE = Glyphs(
    style="blocks",
    levels=" ▁▂▃▄▅▆▇█",
    wait="░",
    onset="┃",
    cursor="│",
    epoch="┊",
    top_left="╭",
    top_right="╮",
    bottom_left="╰",
    bottom_right="╯",
    horizontal="─",
    vertical="│",
    bar="━",
    bar_end="╸",
    bar_rest="─",
    shades=("█", "░", "▓", "▒"),
    ok="✔",
    info="•",
    warning="⚠",
    critical="✖",
    arrow="→",
    ellipsis="…",
    dot="·",
    minus="−",
    range="–",
    degree="°",
    up="↑",
    down="↓",
)
BRAILLE = msgspec.structs.replace(UNICODE, style="braille")
ASCII = Glyphs(
    style="ascii",
    levels=" _.-:=+*#",
    wait="~",
    onset="|",
    cursor="!",
    epoch=":",
    top_left="+",
    top_right="+",
    bottom_left="+",
    bottom_right="+",
    horizontal="-",
    vertical="|",
    bar="=",
    bar_end=">",
    bar_rest="-",
    shades=("#", "~", "d", "v"),
    ok="ok",
    info="i",
    warning="!",
    critical="X",
    arrow="->",
    ellipsis="~",
    dot="-",
    minus="-",
    range="-",
    degree="",
    up="^",
    down="v",
)


def choose(setting: str, environment: Mapping[str, str] | None = None) -> Glyphs:
    """The set for the user's setting ("auto" looks at the locale and TERM).

    The Linux console and a locale without UTF-8 get ASCII.
    """
    if setting == "ascii":
        return ASCII
    if setting == "braille":
        return BRAILLE
    if setting == "blocks":
        return UNICODE
    environment = os.environ if environment is None else environment
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if environment.get("TERM") in ("linux", "vt100", "vt220", "ansi"):
        return ASCII
    if locale and "utf" not in locale.lower() and locale.split(".")[0] not in ("C", "POSIX", ""):
        return ASCII
    if locale in ("C", "POSIX"):
        return ASCII
    return UNICODE
