"""The findings, worst first: what, since when, the numbers, what to do."""

from __future__ import annotations

import re

from yolomon.model import Finding
from yolomon.tui.canvas import Canvas, Line, fill, width_of
from yolomon.tui.short_names import brief
from yolomon.tui.signals import silent_gpus
from yolomon.tui.view import Frame
from yolomon.tui.widgets.box import bottom_edge, inside, top_edge
from yolomon.tui.words import cells_of, clock_time, duration, fit_words, pad, plain, wrap


class FindingsPanel(Canvas):
    """The overview's lower part."""

    def draw(self, frame: Frame, width: int, height: int) -> None:
        """Draw this moment."""
        self.show(findings_lines(frame, width, height))


def sign_of(frame: Frame, finding: Finding) -> tuple[str, str]:
    """Sign and ink of a severity."""
    glyphs = frame.glyphs
    if finding.severity == "critical":
        return glyphs.critical, "crit"
    return (glyphs.warning, "warn") if finding.severity == "warning" else (glyphs.info, "info")


def findings_lines(frame: Frame, width: int, height: int) -> list[Line]:
    """A frame where what to do still fits into it whole, else a rule above, else the words alone."""
    if height < 1:
        return []
    findings = frame.findings_at()
    glyphs, title = frame.glyphs, frame.tr("findings")
    more = frame.tr("{n} more: press 6", n=len(findings) - 1) if len(findings) > 1 else ""
    if height >= 4 and _least_rows(frame, findings, width - 2) <= height - 2:
        lines = [top_edge(glyphs, width, title, more, "dim")]
        lines += [inside(glyphs, width, line) for line in _body(frame, findings, width - 2, height - 2)]
        return [*lines, bottom_edge(glyphs, width)]
    if height >= 3 and _least_rows(frame, findings, width) <= height - 1:
        rule: Line = [(glyphs.horizontal + " ", "frame"), (title, "title"), (" ", "frame")]
        tail = f" {more} " if more else ""
        rest = width - width_of(rule) - cells_of(tail) - 1
        rule += [(glyphs.horizontal * max(0, rest), "frame"), (tail, "dim"), (glyphs.horizontal, "frame")]
        return [rule, *(fill(line, width) for line in _body(frame, findings, width, height - 1))]
    if height == 1:
        return [fill(one_line(frame, findings, width, len(findings) - 1, alone=True), width)]
    return [fill(line, width) for line in _body(frame, findings, width, height, len(findings) - 1)]


def wanted_rows(frame: Frame, width: int, height: int) -> int:
    """The rows in which the worst finding is told whole on a screen of that size; 0 when there is none."""
    findings = frame.findings_at()
    if not findings:
        return 0
    if height < 28:
        return _least_rows(frame, findings, width) + (1 if height >= 20 else 0)  # with a rule
    cause = wrap(plain(frame.tr(findings[0].cause)), _room(width - 2))
    first = wrap(plain(frame.tr(findings[0].summary)), _room(width - 2))[:1]
    below = sum(map(cells_of, first)) + cells_of(_since_only(frame, findings[0])) + 8 > width
    return _least_rows(frame, findings, width - 2) + len(cause) + 2 + below


def _room(width: int) -> int:
    """Cells of the sentences, behind the sign."""
    return width - 5


def _least_rows(frame: Frame, findings: list[Finding], width: int) -> int:
    """The rows of what is wrong and what to do, both whole."""
    if not findings:
        return len(wrap(calm(frame)[0], width - 6))
    say = wrap(plain(frame.tr(findings[0].summary)), _room(width))
    return len(say) + len(wrap(plain(frame.tr(findings[0].remedy)), _room(width) - 2))


def calm(frame: Frame) -> tuple[str, str]:
    """What is said when nothing is wrong."""
    tr, history = frame.tr, frame.history
    if history.first_ts is None:
        return tr("Waiting for the first readings."), "dim"
    if frame.unread:
        return tr("Nothing was read at this moment: whether all was well is not known."), "dim"
    for status in history.statuses.values():
        if not status.ok and status.cause is not None:
            remedy = "" if status.remedy is None else f" {frame.glyphs.arrow} {tr(status.remedy)}"
            return tr(status.cause) + remedy, "warn"
    silent = silent_gpus(frame)
    if len(silent) == 1:
        return tr("GPU {gpu} gives no answer. What is shown of it is old.", gpu=silent[0].info.index), "warn"
    if len(silent) < min(5, len(history.gpus)) and silent:
        numbers = ", ".join(str(index) for index in sorted(gpu.info.index for gpu in silent))
        return tr("GPUs {which} give no answer. What is shown of them is old.", which=numbers), "warn"
    if silent:
        return tr(
            "{n} of {of} GPUs give no answer. What is shown of them is old.",
            n=len(silent), of=len(history.gpus),
        ), "warn"  # fmt: skip
    if history.train.ended is not None:
        return tr("The run ended. Nothing was wrong at its end."), "ok"
    if history.train.count == 0:
        return tr("No training log yet. It is attached when one appears; press c to pick one."), "dim"
    return tr("Nothing is wrong."), "ok"


def _calm_sign(frame: Frame, ink: str) -> str:
    signs = {"ok": frame.glyphs.ok, "warn": frame.glyphs.warning}
    return f"{signs[ink]} " if ink in signs else ""


_SENTENCE = re.compile(r"(?<=[.;!?])\s+|(?<=[\u3002\uff1b])")  # and the Chinese full stop and semicolon


def first_sentences(text: str, room: int, ellipsis: str) -> str:
    """As many whole sentences as there is room for; where not even one fits it is cut between words."""
    kept = text
    while cells_of(kept) > room:
        ends = [match.start() for match in _SENTENCE.finditer(kept) if 0 < match.start() < len(kept)]
        if not ends:
            return fit_words(text, room, ellipsis)
        kept = kept[: ends[-1]]
    return kept.rstrip(" ;\uff1b")


def since(frame: Frame, finding: Finding) -> str:
    """As "since 14:02:11 (1 min 9 s)"."""
    at = frame.at_ts
    return frame.tr(
        "since {time} ({age})",
        time=clock_time(finding.onset_ts),
        age=duration(frame.tr, max(0.0, at - finding.onset_ts)),
    )


def _since_only(frame: Frame, finding: Finding) -> str:
    return frame.tr("since {time}", time=clock_time(finding.onset_ts))


def one_line(
    frame: Frame, findings: list[Finding], width: int, more: int = 0, *, alone: bool = False
) -> Line:
    """The worst finding in one line, and how to reach the `more` others; `alone`: it says the key, too."""
    if not findings:
        text, ink = calm(frame)
        sign = _calm_sign(frame, ink)
        room = width - cells_of(sign) - 1
        return [(f" {sign}{first_sentences(text, room, frame.glyphs.ellipsis)}", ink)]
    sign, ink = sign_of(frame, findings[0])
    tail = f" {_others(frame, more)}" if more > 0 else ""
    room = width - cells_of(sign) - 2 - cells_of(tail) - (1 if tail else 0)
    said = brief(frame.tr, findings[0], room, frame.glyphs.ellipsis)
    hint = f" {frame.tr('Enter: why')}" if alone and not tail else ""  # what to do has no room here
    if hint and cells_of(said) + cells_of(hint) + 1 <= room:
        tail, room = hint, room - cells_of(hint) - 1
    return [(f" {sign} ", ink), (pad(said, room) if tail else said, "title"), (tail, "info")]


def _others(frame: Frame, more: int) -> str:
    """How to reach the other findings where there is little room."""
    return frame.tr("+{n}: press 6", n=more)


def _body(frame: Frame, findings: list[Finding], width: int, rows: int, more: int = 0) -> list[Line]:
    """The worst finding in full where it fits, the others a line each."""
    if not findings:
        text, ink = calm(frame)
        sign = _calm_sign(frame, ink)
        lines: list[Line] = []
        for place, piece in enumerate(wrap(text, width - 6)[:rows]):
            lines.append(
                [(f" {sign}" if place == 0 else "   ", ink), (piece, ink if ink != "ok" else "text")]
            )
        return [*lines, *([[]] * (rows - len(lines)))]
    lines = finding_lines(frame, findings[0], width, rows, more, others=len(findings) - 1)
    for finding in findings[1:]:
        if len(lines) >= rows:
            break
        lines.append(one_line(frame, [finding], width))
    return [*lines, *([[]] * (rows - len(lines)))][:rows]


def finding_lines(
    frame: Frame, finding: Finding, width: int, rows: int, more: int = 0, others: int = 0
) -> list[Line]:
    """What and since when; why; what to do. What to do stays whole before the others do.

    With few rows the why goes first, then the sentence becomes a few words. `more` others have no other place
    to be told of than the first line. Since when and the key stand beside the sentences, or below them where
    that takes no row from the `others`.
    """
    tr, glyphs = frame.tr, frame.glyphs
    sign, ink = sign_of(frame, finding)
    room = _room(width)
    when = _others(frame, more) if more > 0 else since(frame, finding)
    beside = cells_of(when) + 1 if more > 0 else 0  # the room behind the sentences ends two cells before
    say = wrap(plain(tr(finding.summary)), room)
    if cells_of(say[0] if say else "") > room - beside:  # only the first line has something beside it
        sentence = plain(tr(finding.summary))
        first = wrap(sentence, room - beside)[:1]
        say = [*first, *wrap(sentence[len("".join(first)) :].lstrip(), room)]
    remedy = wrap(plain(tr(finding.remedy)), room - 2)
    if len(say) + len(remedy) > rows:
        say = [brief(tr, finding, room - beside, glyphs.ellipsis)]
    cause = _shortened(wrap(plain(tr(finding.cause)), room), rows - len(say) - len(remedy), glyphs.ellipsis)
    hint = tr("Enter: why")
    if len(remedy) > max(1, rows - len(say)):  # what is cut off is behind that key
        remedy = _shortened(remedy, max(1, rows - len(say)), glyphs.ellipsis)
        remedy[-1] = fit_words(remedy[-1], room - 2 - cells_of(hint), glyphs.ellipsis)
    lines: list[Line] = []
    for place, piece in enumerate(say):
        lines.append([(f" {sign} " if place == 0 else "   ", ink), (piece, "title")])
    first_width = width_of(lines[0]) if lines else 0
    if not beside and cells_of(when) + first_width + 3 > width:
        when = _since_only(frame, finding)  # how long is the lesser half of it
    below: Line = []
    if not beside and lines and cells_of(when) + first_width + 3 > width:
        below = [("   ", "text"), (since(frame, finding), "dim")]
    elif lines and cells_of(when) + first_width + 3 <= width:
        gap = " " * (width - first_width - cells_of(when) - 2)
        lines[0] = [*lines[0], (gap, "text"), (when, "info" if beside else "dim")]
    lines += [[("   ", "text"), (piece, "text")] for piece in cause]
    for place, piece in enumerate(remedy):
        arrow = f"   {glyphs.arrow} " if place == 0 else "     "
        lines.append([(arrow, "info"), (piece, "info")])
    if lines and rows >= 2:
        last = width_of(lines[-1])
        if not below and last + cells_of(hint) + 3 > width:
            below = [("   ", "text")]
        if below and len(lines) + max(others, more) < rows and width_of(below) + 2 <= width:
            lines.append(below)
            last = width_of(below)
        if last + cells_of(hint) + 3 <= width and len(lines) <= rows:
            lines[-1] = [*lines[-1], (" " * (width - last - cells_of(hint) - 2), "text"), (hint, "dim")]
    return lines[:rows]


def _shortened(lines: list[str], rows: int, ellipsis: str) -> list[str]:
    """At most so many lines; the last one ends in an ellipsis, on which its own words yield."""
    if rows <= 0:
        return []
    if len(lines) <= rows:
        return lines
    width = max(cells_of(line) for line in lines)
    return [*lines[: rows - 1], fit_words(f"{lines[rows - 1]} {lines[rows]}", width, ellipsis)]
