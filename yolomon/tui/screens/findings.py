"""All findings: what is wrong now, worst first, and what was, with the times of each."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.messages import Message, msg
from yolomon.model import Finding
from yolomon.tui.canvas import Line, width_of
from yolomon.tui.choices import key_of
from yolomon.tui.screens.list_page import ListPage
from yolomon.tui.short_names import short_name, target_words
from yolomon.tui.view import Frame
from yolomon.tui.widgets.findings_panel import calm, sign_of
from yolomon.tui.widgets.onset_graphs import onset_lines
from yolomon.tui.widgets.text_lines import heading, paragraph
from yolomon.tui.words import cells_of, clock_time, duration, fit, pad, plain, wrap

_WEIGHT = {"critical": 0, "warning": 1, "info": 2}


class FindingsPage(ListPage):
    """A line a finding; below it the chosen one in full."""

    PAGE: ClassVar[str] = "findings"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Why", id="open", tooltip="Explain the chosen finding"),
        Binding(
            "s", "silence_chosen", "Silence", id="silence_chosen",
            tooltip="Say no more of the chosen finding, or say it again",
        ),
    ]  # fmt: skip
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("up,down", msg("choose")),
        ("Enter", msg("why")),
        ("s", msg("silence")),
        ("/", msg("filter")),
        ("Esc", msg("overview")),
        ("?", msg("help")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Finding] = []

    def rows(self, frame: Frame, width: int) -> list[Line]:
        """What stands first, then what is over, the newest first."""
        self._shown = ordered(frame, self.monitor.feed.all_findings())
        chosen = self.monitor.choices.finding
        keys = [key_of(finding) for finding in self._shown]
        if chosen in keys:
            self.chosen = keys.index(chosen)
        return [finding_row(frame, finding, width - 3) for finding in self._shown]

    def head(self, frame: Frame, width: int) -> list[Line]:
        """How many there are."""
        tr = frame.tr
        standing = sum(f.cleared_ts is None and not f.silenced for f in self._shown)
        silenced = sum(f.cleared_ts is None and f.silenced for f in self._shown)
        over = sum(f.cleared_ts is not None for f in self._shown)
        if not self._shown:
            text, ink = (tr("No finding holds these words."), "dim") if frame.filter else calm(frame)
            return [heading(frame, tr("findings"), width), *paragraph(text, width, ink)]
        words = [tr("{n} now", n=standing)]
        words += [tr("{n} silenced", n=silenced)] if silenced else []
        words += [tr("{n} over", n=over)] if over else []
        return [heading(frame, f"{tr('findings')}: {', '.join(words)}", width)]

    def detail(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The chosen finding's sentences and times."""
        if not self._shown or height < 2:
            return []
        finding = self._shown[self.chosen]
        lines = story(frame, finding, width, height)
        graphs = onset_lines(frame, finding, width)
        if graphs and len(lines) + len(graphs) + 2 <= height:
            lines += [[], heading(frame, frame.tr("Around the onset"), width), *graphs]
        return lines

    def choice_changed(self) -> None:
        """Remember which finding it is, not which line."""
        if self._shown:
            self.monitor.choices.finding = key_of(self._shown[min(self.chosen, len(self._shown) - 1)])

    def action_open(self) -> None:
        """Explain the chosen one."""
        if self._shown:
            self.monitor.explain(self._shown[self.chosen])

    def action_silence_chosen(self) -> None:
        """Silence the chosen one, or say it again."""
        if self._shown:
            finding = self._shown[self.chosen]
            self.monitor.choices.finding = key_of(finding)
            self.monitor.toggle_silence(finding)


def ordered(frame: Frame, findings: list[Finding]) -> list[Finding]:
    """What stands by weight and onset, what is silenced after it, then what is over, newest first.

    The filter looks at code, target and sentences in the user's language.
    """
    words = frame.filter.lower().split()
    kept = []
    for finding in findings:
        text = " ".join(
            (finding.code, finding.target, short_name(frame.tr, finding), frame.tr(finding.summary))
        ).lower()
        if all(word in text for word in words):
            kept.append(finding)
    standing = [f for f in kept if f.cleared_ts is None]
    standing.sort(key=lambda f: (f.silenced, _WEIGHT[f.severity], f.onset_ts))
    over = sorted(
        (f for f in kept if f.cleared_ts is not None), key=lambda f: f.cleared_ts or 0.0, reverse=True
    )
    return standing + over


def state_words(frame: Frame, finding: Finding) -> str:
    """As "for 1 min 9 s", "over after 40 s", "silenced"."""
    tr = frame.tr
    if finding.cleared_ts is not None:
        took = duration(tr, max(0.0, finding.cleared_ts - finding.onset_ts))
        return tr("over after {time}", time=took)
    lasts = duration(tr, max(0.0, frame.now_ts - finding.onset_ts))
    return tr("silenced, for {time}", time=lasts) if finding.silenced else tr("for {time}", time=lasts)


def age_words(frame: Frame, finding: Finding) -> str:
    """How long it lasts, or lasted, alone."""
    until = frame.now_ts if finding.cleared_ts is None else finding.cleared_ts
    return duration(frame.tr, max(0.0, until - finding.onset_ts))


def finding_row(frame: Frame, finding: Finding, width: int) -> Line:
    """Sign, since when, where, its name, how it stands."""
    sign, ink = sign_of(frame, finding)
    if finding.cleared_ts is not None or finding.silenced:
        ink = "dim"
    if finding.cleared_ts is not None:
        sign = frame.glyphs.ok
    name_ink = "title" if ink != "dim" else "dim"
    line: Line = [(pad(sign, 3), ink)]
    if width >= 50:
        line.append((clock_time(finding.onset_ts) + "  ", "dim"))
    line.append((pad(target_words(frame.tr, finding.target), 7), "label" if ink != "dim" else "dim"))
    state = state_words(frame, finding) if width >= 44 else age_words(frame, finding)
    room = width - width_of(line) - cells_of(state) - 2
    name = fit(short_name(frame.tr, finding), max(6, room), frame.glyphs.ellipsis)
    summary = plain(frame.tr(finding.summary))
    if room >= 24 + cells_of(summary):  # else it is told below
        shown = pad(short_name(frame.tr, finding), 24)
        line += [(shown, name_ink), (pad(summary, room - 24), "text" if ink != "dim" else "dim")]
    else:
        line.append((pad(name, max(6, room)), name_ink))
    line += [("  ", "text"), (state, "dim" if ink == "dim" else "number")]
    return line


def story(frame: Frame, finding: Finding, width: int, height: int) -> list[Line]:
    """The finding in full: what, why, what to do, and its times; the times go first where room is short."""
    tr = frame.tr
    sign, ink = sign_of(frame, finding)
    say = paragraph(tr(finding.summary), width, "title", first=f" {pad(sign, 2)}")
    say[0] = [(say[0][0][0], ink), say[0][1]] if say else []
    cause = paragraph(tr(finding.cause), width)
    remedy = paragraph(tr(finding.remedy), width, "info", first=f"   {frame.glyphs.arrow} ")
    times = [[("   " + piece, "dim")] for piece in wrap(times_of(frame, finding), width - 4)]
    rule = [heading(frame, f"{short_name(tr, finding)} ({target_words(tr, finding.target)})", width)]
    for lines in (
        [*rule, *say, *cause, *remedy, *times],
        [*rule, *say, *cause, *remedy],
        [*rule, *say, *remedy],
    ):
        if len(lines) <= height:
            return lines
    return [*rule, *say, *remedy][:height]


def times_of(frame: Frame, finding: Finding) -> str:
    """When it began, when it was said, when it was over."""
    tr = frame.tr
    parts = [
        tr("began {time}", time=clock_time(finding.onset_ts)),
        tr("said {time}", time=clock_time(finding.raised_ts)),
    ]
    if finding.cleared_ts is not None:
        parts.append(tr("over {time}", time=clock_time(finding.cleared_ts)))
    if finding.silenced:
        parts.append(tr("silenced: s says it again"))
    certain = {"medium": tr("fairly certain"), "low": tr("not certain")}.get(finding.confidence)
    if certain:
        parts.append(certain)
    return f" {frame.glyphs.dot} ".join(parts)
