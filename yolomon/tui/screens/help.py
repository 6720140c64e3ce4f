"""All keys, from the bindings themselves; what signs, colours and numbers mean; where settings lie."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import ClassVar

from yolomon.messages import Message, msg
from yolomon.settings import config_file
from yolomon.tui import pages
from yolomon.tui.canvas import Line
from yolomon.tui.kept import state_file
from yolomon.tui.keys import key_words, own_bindings
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.view import Frame
from yolomon.tui.widgets.text_lines import heading, paragraph
from yolomon.tui.words import cells_of, pad, plain, wrap

# What a number means, in the words of NVML's documentation (nvmlUtilization_t) and of GPM's metrics.
_NUMBERS: tuple[tuple[Message, Message], ...] = (
    (
        msg("utilization"),
        msg(
            "NVML: the share of time in which at least one kernel ran. It does not say how much of the GPU "
            "was used: 100 % can be one small kernel, or a rank that waits for the others in a collective."
        ),
    ),
    (
        msg("memory activity"),
        msg("NVML: the share of time in which memory was read or written (bandwidth), not how full it is."),
    ),
    (
        msg("SM activity"),
        msg(
            "GPM, Hopper and later: the share of the GPU's multiprocessors that had work. This is real work."
        ),
    ),
    (
        msg("waits"),
        msg("Busy at little power and with idle memory: the GPU waits for other ranks. Drawn unlike work."),
    ),
    (
        msg("power"),
        msg("Against the limit in force. Far below it at full utilization: the GPU is not working hard."),
    ),
    (
        msg("torch reserved"),
        msg(
            "What torch's allocator holds; allocated is in use inside it. The rest of the device's memory is "
            "the CUDA context, libraries and other processes."
        ),
    ),
    (
        msg("memory of processes"),
        msg("PSS counts shared pages by share; with * it is RSS, which counts them in every process."),
    ),
)


class HelpPage(BodyPage):
    """One text; the arrow keys scroll."""

    PAGE: ClassVar[str] = "help"

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Keys first: they are what one looks for."""
        return help_lines(frame, width, type(self.monitor))


def key_groups(app: type) -> Iterator[tuple[Message, list[tuple[str, str]]]]:
    """Title and (keys, tooltip) of the application and of each page, from their bindings."""
    yield msg("keys on every page"), [(b.key, b.tooltip) for b in own_bindings(app)]
    seen = {b.key for b in own_bindings(app)}
    common = [(b.key, b.tooltip) for b in own_bindings(BodyPage) if b.key not in seen]
    yield msg("keys on every page but the overview"), common
    known = {tooltip for _, tooltip in common}
    for page in pages.available():
        kind = getattr(import_module(page.module), page.class_name)
        own = [(b.key, b.tooltip) for b in own_bindings(kind) if b.tooltip not in known]
        if own:
            yield page.title, own


def help_lines(frame: Frame, width: int, app: type) -> list[Line]:
    """The whole text."""
    tr = frame.tr
    lines: list[Line] = []
    ascii_only = frame.glyphs.style == "ascii"
    for title, keys in key_groups(app):
        lines += [heading(frame, tr(title), width)]
        entries = [(key_words(key, ascii_only=ascii_only), tr(about)) for key, about in keys]
        lines += key_table(entries, width)
        lines.append([])
    lines += [heading(frame, tr("signs and colours"), width), *sign_lines(frame, width), []]
    lines.append(heading(frame, tr("what the numbers mean"), width))
    for name, about in _NUMBERS:
        lines.append([("   " + tr(name), "title")])
        lines += paragraph(tr(about), width, first="     ")
    lines += [[], heading(frame, tr("settings"), width)]
    lines += paragraph(tr("settings file: {path}", path=plain(str(config_file()))), width)
    lines += paragraph(tr("theme and window are kept in: {path}", path=plain(str(state_file()))), width)
    lines += paragraph(
        tr(
            "`yolomon config` shows every setting and where it comes from; "
            "`yolomon doctor` checks this machine."
        ),
        width,
    )
    return lines


def key_table(entries: list[tuple[str, str]], width: int) -> list[Line]:
    """Keys and what they do, in two columns where there is room."""
    names = max((cells_of(key) for key, _ in entries), default=0)
    columns = 2 if width >= 110 else 1
    each = (width - 2) // columns
    count = -(-len(entries) // columns)
    lines: list[Line] = []
    for row in range(count):
        blocks: list[list[Line]] = []
        for key, about in entries[row::count]:
            pieces = wrap(about, each - names - 6)
            blocks.append(
                [
                    [
                        (f"   {pad(key if place == 0 else '', names)}  ", "info"),
                        (pad(piece, each - names - 5), "text"),
                    ]
                    for place, piece in enumerate(pieces)
                ]
            )
        for place in range(max(len(block) for block in blocks)):
            line: Line = []
            for block in blocks:
                line += block[place] if place < len(block) else [(" " * each, "text")]
            lines.append(line)
    return lines


def sign_lines(frame: Frame, width: int) -> list[Line]:
    """Each sign in its colour, and what it means."""
    tr, glyphs = frame.tr, frame.glyphs
    entries: list[tuple[str, str, str]] = [
        (glyphs.critical, "crit", tr("critical: training fails or is about to; act now")),
        (glyphs.warning, "warn", tr("warning: time or memory is lost")),
        (glyphs.info, "info", tr("worth knowing")),
        (glyphs.ok, "ok", tr("all is well, or over")),
        (glyphs.levels[-1] * 3, "work", tr("work, on a fixed scale: full height is 100 %, or the limit")),
        (glyphs.wait * 3, "wait", tr("busy, but waiting for other ranks")),
        (glyphs.levels[4] * 3, "band", tr("up to the greatest value in that stretch of time")),
        ("   ", "dim", tr("a gap: nothing was read then")),
        (glyphs.onset, "onset", tr("here a finding began")),
        (glyphs.cursor, "cursor", tr("the cursor: all numbers are of that moment")),
        (glyphs.epoch, "frame", tr("an epoch")),
        ("+", "ok", tr("the best value so far")),
        (MISSING_SIGN, "dim", tr("not available; never 0")),
    ]
    lines: list[Line] = []
    for sign, ink, about in entries:
        for place, piece in enumerate(wrap(about, width - 9)):
            lines.append([("   " + pad(sign if place == 0 else "", 5), ink), (piece, "text")])
    return lines


MISSING_SIGN = "–"
