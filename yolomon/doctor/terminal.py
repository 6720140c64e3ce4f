"""The terminal: whether the dashboard can be drawn on it, and how well."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import msgspec

from yolomon.doctor.check import Check
from yolomon.messages import Message, msg

LEAST_COLUMNS, LEAST_ROWS = 40, 10
GOOD_COLUMNS, GOOD_ROWS = 80, 24


class TerminalFacts(msgspec.Struct, frozen=True):
    """What the standard output is; None: it tells no size."""

    is_terminal: bool
    columns: int | None = None
    rows: int | None = None

    @staticmethod
    def of_stdout() -> TerminalFacts:
        """Look at the process's own."""
        try:
            size = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
        except (OSError, ValueError):
            return TerminalFacts(False)
        return TerminalFacts(True, size.columns or None, size.lines or None)


def terminal_checks(environment: Mapping[str, str], facts: TerminalFacts) -> list[Check]:
    """Checks of TERM, size, colours, locale and multiplexer."""
    checks = [_tty(facts), _term(environment), _colors(environment), _locale(environment)]
    if facts.is_terminal:
        checks.insert(1, _size(facts))
    if "TMUX" in environment or "STY" in environment:
        checks.append(_multiplexer(environment))
    return checks


def _tty(facts: TerminalFacts) -> Check:
    if facts.is_terminal:
        return Check("tty", "PASS", msg("The output is a terminal"))
    return Check(
        "tty",
        "WARN",
        msg("The output is no terminal: the dashboard cannot be drawn here"),
        msg("Over SSH use `ssh -t`; for scripts there is `yolomon --once --json`"),
    )


def _size(facts: TerminalFacts) -> Check:
    if facts.columns is None or facts.rows is None:
        return Check(
            "size",
            "WARN",
            msg("The terminal tells no size"),
            msg("Set it: stty cols 120 rows 40"),
        )
    size = f"{facts.columns}x{facts.rows}"
    if facts.columns < LEAST_COLUMNS or facts.rows < LEAST_ROWS:
        return Check(
            "size",
            "WARN",
            msg("The terminal has {size} cells: too few for graphs", size=size),
            msg("80x24 shows all that matters, 40x10 a line for each GPU"),
        )
    if facts.columns < GOOD_COLUMNS or facts.rows < GOOD_ROWS:
        return Check("size", "PASS", msg("The terminal has {size} cells; from 80x24 all is shown", size=size))
    return Check("size", "PASS", msg("The terminal has {size} cells", size=size))


def _term(environment: Mapping[str, str]) -> Check:
    term = environment.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return Check(
            "term",
            "FAIL",
            msg("TERM is {term}: a terminal that cannot move its cursor", term=repr(term)),
            msg("Set it to what the terminal is, e.g. export TERM=xterm-256color"),
        )
    return Check("term", "PASS", msg("TERM is {term}", term=term))


def _colors(environment: Mapping[str, str]) -> Check:
    term = environment.get("TERM", "")
    text: Message
    if environment.get("NO_COLOR"):
        text = msg("NO_COLOR is set: shown without colours")
    elif environment.get("COLORTERM") in ("truecolor", "24bit") or "direct" in term or "kitty" in term:
        text = msg("Full colour")
    elif "256" in term:
        text = msg("256 colours")
    else:
        return Check(
            "colors",
            "PASS",
            msg("16 colours; nothing is told by colour alone"),
            msg("If the terminal can do more: export COLORTERM=truecolor"),
        )
    return Check("colors", "PASS", text)


def _locale(environment: Mapping[str, str]) -> Check:
    name = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if "utf" in name.lower():
        return Check("locale", "PASS", msg("Locale {name}", name=name))
    return Check(
        "locale",
        "WARN",
        msg("The locale {name} is not UTF-8: graphs may be drawn in ASCII", name=repr(name)),
        msg("If the terminal can: export LANG=C.UTF-8, or choose with --graph"),
    )


def _multiplexer(environment: Mapping[str, str]) -> Check:
    kind = "tmux" if "TMUX" in environment else "screen"
    term = environment.get("TERM", "")
    if kind == "tmux" and not term.startswith(("tmux", "screen")):
        return Check(
            "multiplexer",
            "WARN",
            msg("Inside tmux TERM should be tmux-256color; it is {term}", term=term),
            msg("In ~/.tmux.conf: set -g default-terminal tmux-256color"),
        )
    if "256" not in term:
        return Check(
            "multiplexer",
            "WARN",
            msg("Inside {kind} with TERM={term} there are few colours", kind=kind, term=term),
            msg("In ~/.tmux.conf: set -g default-terminal tmux-256color")
            if kind == "tmux"
            else msg("In ~/.screenrc: term screen-256color"),
        )
    return Check("multiplexer", "PASS", msg("Inside {kind}", kind=kind))
