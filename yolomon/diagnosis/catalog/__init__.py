"""Every code that a rule can raise: what it means, the rule, what could fool it, what to try.

`yolomon explain CODE` and the screen's Enter show the same sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

import msgspec

from yolomon.diagnosis.catalog import hardware, memory, progress, training, work
from yolomon.diagnosis.catalog.entry import Entry
from yolomon.diagnosis.thresholds import DECLARED, Threshold
from yolomon.messages import Message, Translate, english, msg

__all__ = ["CATALOG", "Entry", "Section", "explain", "sections", "thresholds_of"]

CATALOG: dict[str, Entry] = {
    entry.code: entry for family in (progress, work, memory, hardware, training) for entry in family.ENTRIES
}


class Section(msgspec.Struct, frozen=True):
    """A heading and its lines; `ordered` lines are to be numbered, others are bullets (one: plain text)."""

    heading: Message
    lines: tuple[Message, ...]
    ordered: bool = False


def thresholds_of(code: str) -> list[Threshold]:
    """The thresholds that the rules declared for this code, in their order."""
    return [threshold for name, threshold in DECLARED.items() if name.startswith(code + ".")]


def sections(code: str, values: Mapping[str, float] | None = None) -> list[Section]:
    """The explanation of a code as sections.

    Args:
        code: of the catalog.
        values: thresholds in force, by name, where they differ from the defaults.

    Raises:
        KeyError: no such code.
    """
    entry = CATALOG[code]
    numbers = tuple(
        msg(
            "{name} = {value} {unit}: {about}",
            name=threshold.name,
            value=f"{(values or {}).get(threshold.name, threshold.default):g}",
            unit=Message(threshold.unit),
            about=Message(threshold.about),
        )
        for threshold in thresholds_of(code)
    )
    found = [
        Section(msg("What it means"), (entry.meaning,)),
        Section(msg("Severity and target"), (
            msg("{severities}; about: {target}", severities=", ".join(entry.severities), target=entry.target),
        )),
        Section(msg("Signals"), (msg("{names}", names=", ".join(entry.signals)),)),
        Section(msg("The rule"), (entry.rule,)),
        Section(msg("Its thresholds (settings file, [thresholds])"), numbers),
        Section(msg("What could fool it"), entry.fooled_by),
        Section(msg("What to try, in this order"), entry.remedies, ordered=True),
        Section(
            msg("Hidden while one of these explains it"),
            (msg("{names}", names=", ".join(entry.explained_by)),) if entry.explained_by else (),
        ),
    ]  # fmt: skip
    return [section for section in found if section.lines]


def explain(
    code: str, tr: Translate = english, values: Mapping[str, float] | None = None, *, width: int = 96
) -> str:
    """The explanation of a code as plain text.

    Raises:
        KeyError: no such code.
    """
    out = [f"{code}: {tr(CATALOG[code].title)}"]
    for section in sections(code, values):
        out += ["", tr(section.heading)]
        for number, line in enumerate(section.lines, 1):
            mark = f"{number}. " if section.ordered else "- " if len(section.lines) > 1 else ""
            out.append(
                fill(
                    tr(line),
                    width,
                    initial_indent="  " + mark,
                    subsequent_indent="  " + " " * len(mark),
                    break_on_hyphens=False,
                )
            )
    return "\n".join(out)
