"""The findings, worst first: what, since when, the numbers, what to do."""

from __future__ import annotations

from yolomon.model import Finding
from yolomon.tui.canvas import Canvas, Line, fill, width_of
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
    """Framed where there are at least four rows, with a rule above at three, bare below that."""
    if height < 1:
        return []
    findings = frame.findings_at()
    if height == 1:
        return [fill(one_line(frame, findings, width), width)]
    if height == 2:
        return _bare(frame, findings, width, 2)
    title = frame.tr("findings")
    more = ""
    if len(findings) > 1:
        more = frame.tr("{n} more: press 6", n=len(findings) - 1)
    glyphs = frame.glyphs
    if height == 3:
        rule: Line = [(glyphs.horizontal + " ", "frame"), (title, "title"), (" ", "frame")]
        tail = f" {more} " if more else ""
        rest = width - width_of(rule) - cells_of(tail) - 1
        rule += [(glyphs.horizontal * max(0, rest), "frame"), (tail, "dim"), (glyphs.horizontal, "frame")]
        return [rule, *_bare(frame, findings, width, 2)]
    lines = [top_edge(glyphs, width, title, more, "dim")]
    lines += [inside(glyphs, width, line) for line in _body(frame, findings, width - 2, height - 2)]
    lines.append(bottom_edge(glyphs, width))
    return lines


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
    if silent:
        return tr(
            "{n} of {of} GPUs give no answer. What is shown of them is old.", n=silent, of=len(history.gpus)
        ), "warn"
    if history.train.ended is not None:
        return tr("The run ended. Nothing was wrong at its end."), "ok"
    if history.train.count == 0:
        return tr("No training log yet. It is attached when one appears; press c to pick one."), "dim"
    return tr("Nothing is wrong."), "ok"


def since(frame: Frame, finding: Finding) -> str:
    """As "since 14:02:11 (1 min 9 s)"."""
    at = frame.at_ts
    return frame.tr(
        "since {time} ({age})",
        time=clock_time(finding.onset_ts),
        age=duration(frame.tr, max(0.0, at - finding.onset_ts)),
    )


def one_line(frame: Frame, findings: list[Finding], width: int) -> Line:
    """The worst finding's first sentence, as much of it as fits."""
    if not findings:
        text, ink = calm(frame)
        sign = f"{frame.glyphs.ok} " if ink == "ok" else ""
        return [(fit_words(f" {sign}{text}", width, frame.glyphs.ellipsis), ink)]
    sign, ink = sign_of(frame, findings[0])
    return [
        (f" {sign} ", ink),
        (fit_words(plain(frame.tr(findings[0].summary)), width - 4, frame.glyphs.ellipsis), "title"),
    ]


def _bare(frame: Frame, findings: list[Finding], width: int, rows: int) -> list[Line]:
    return [fill(line, width) for line in _body(frame, findings, width, rows)]


def _body(frame: Frame, findings: list[Finding], width: int, rows: int) -> list[Line]:
    """The worst finding in full where it fits, the others a line each."""
    if not findings:
        text, ink = calm(frame)
        sign = f"{frame.glyphs.ok} " if ink == "ok" else ""
        lines: list[Line] = []
        for place, piece in enumerate(wrap(text, width - 6)[:rows]):
            lines.append(
                [(f" {sign}" if place == 0 else "   ", ink), (piece, ink if ink != "ok" else "text")]
            )
        return [*lines, *([[]] * (rows - len(lines)))]
    lines = finding_lines(frame, findings[0], width, rows)
    for finding in findings[1:]:
        if len(lines) >= rows:
            break
        lines.append(one_line(frame, [finding], width))
    return [*lines, *([[]] * (rows - len(lines)))][:rows]


def finding_lines(frame: Frame, finding: Finding, width: int, rows: int) -> list[Line]:
    """What and since when; why; what to do. With few rows the why goes first."""
    tr, glyphs = frame.tr, frame.glyphs
    sign, ink = sign_of(frame, finding)
    room = width - 5
    when = since(frame, finding)
    summary = plain(tr(finding.summary))
    say = [(piece, "title") for piece in wrap(summary, room)]
    cause = [(piece, "text") for piece in wrap(plain(tr(finding.cause)), room)]
    remedy = [(piece, "info") for piece in wrap(plain(tr(finding.remedy)), room - 2)]
    if rows <= 2:
        say = [(fit_words(summary, room, glyphs.ellipsis), "title")]
        remedy = [(fit_words(plain(tr(finding.remedy)), room - 2, glyphs.ellipsis), "info")]
        cause = []
    elif len(say) + len(cause) + len(remedy) > rows:
        cause = _shortened(cause, rows - len(say) - len(remedy), glyphs.ellipsis)
        remedy = _shortened(remedy, max(1, rows - len(say) - len(cause)), glyphs.ellipsis)
        say = _shortened(say, max(1, rows - len(cause) - len(remedy)), glyphs.ellipsis)
    lines: list[Line] = []
    for place, (piece, piece_ink) in enumerate(say):
        lines.append([(f" {sign} " if place == 0 else "   ", ink), (piece, piece_ink)])
    first_width = width_of(lines[0]) if lines else 0
    if lines and cells_of(when) + first_width + 3 <= width:
        lines[0] = [*lines[0], (pad("", width - first_width - cells_of(when) - 2), "text"), (when, "dim")]
    lines += [[("   ", "text"), (piece, piece_ink)] for piece, piece_ink in cause]
    for place, (piece, piece_ink) in enumerate(remedy):
        arrow = f"   {glyphs.arrow} " if place == 0 else "     "
        lines.append([(arrow, "info"), (piece, piece_ink)])
    if lines and rows >= 2:
        hint = tr("Enter: why")
        last = width_of(lines[-1])
        if last + cells_of(hint) + 3 <= width and len(lines) <= rows:
            lines[-1] = [*lines[-1], (" " * (width - last - cells_of(hint) - 2), "text"), (hint, "dim")]
    return lines[:rows]


def _shortened(lines: list[tuple[str, str]], rows: int, ellipsis: str) -> list[tuple[str, str]]:
    if rows <= 0:
        return []
    if len(lines) <= rows:
        return lines
    kept = lines[:rows]
    text, ink = kept[-1]
    return [*kept[:-1], (text + ellipsis, ink)]
