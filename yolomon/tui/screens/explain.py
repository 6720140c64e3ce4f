"""Why a finding is said: numbers, graphs, what it means, the rule, what could fool it, what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.diagnosis.catalog import CATALOG, Section, sections
from yolomon.messages import Message, msg
from yolomon.model import Finding
from yolomon.tui.canvas import Line
from yolomon.tui.choices import key_of
from yolomon.tui.evidence_words import evidence_words
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.screens.findings import story
from yolomon.tui.view import Frame
from yolomon.tui.widgets.onset_graphs import onset_lines
from yolomon.tui.widgets.text_lines import heading, pairs, paragraph
from yolomon.tui.words import plain

# The finding itself shows its severity, its target and its graphs.
_SAID_ABOVE = frozenset({"Severity and target", "Signals", "Hidden while one of these explains it"})


class ExplainPage(BodyPage):
    """The explanation of one finding; Escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.clear", "Back", id="close", show=False, tooltip="Back to where you came from"),
        Binding(
            "s", "silence_this", "Silence", id="silence_this", tooltip="Say no more of this, or say it again"
        ),
    ]
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("up,down", msg("scroll")),
        ("s", msg("silence")),
        ("Esc", msg("back")),
        ("6", msg("findings")),
        ("?", msg("help")),
    )

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The finding as it stands now, its evidence, then the catalog's sections."""
        key = key_of(self.finding)
        for finding in self.monitor.feed.all_findings():
            if key_of(finding) == key:
                self.finding = finding
        return explanation(frame, self.finding, width, self.monitor.settings.thresholds)

    def action_silence_this(self) -> None:
        """Silence it, or say it again."""
        self.monitor.toggle_silence(self.finding)


def explanation(
    frame: Frame, finding: Finding, width: int, thresholds: Mapping[str, float] | None = None
) -> list[Line]:
    """All of it, as lines; what was measured comes before what is generally true."""
    tr = frame.tr
    lines = story(frame, finding, width, 1000)
    graphs = onset_lines(frame, finding, width)
    if graphs:
        lines += [[], heading(frame, tr("Around the onset"), width), *graphs]
    if finding.evidence:
        lines += [[], heading(frame, tr("Evidence"), width)]
        lines += pairs(evidence(frame, finding), width)
    if finding.unseen:
        lines += [[], heading(frame, tr("What could not be seen"), width)]
        for unseen in finding.unseen:
            lines += paragraph(tr(unseen), width, "dim", first=f"   {frame.glyphs.info} ")
    if finding.related:
        lines += [[], heading(frame, tr("It explains, and hides"), width)]
        lines += title_lines(frame, finding.related, width)
    if finding.code in CATALOG:
        told = [s for s in sections(finding.code, thresholds) if s.heading.template not in _SAID_ABOVE]
        first = [told[0], *(section for section in told if section.ordered)]  # what to do before the details
        for section in [*first, *(section for section in told if section not in first)]:
            lines += section_lines(frame, section, width)
        others = CATALOG[finding.code].explained_by
        if others:
            lines += [[], heading(frame, tr("Related"), width)]
            lines += title_lines(frame, others, width)
    name = tr("In the settings and for `yolomon explain` it is called {code}.", code=finding.code)
    return [*lines, [], *paragraph(name, width, "dim")]


def title_lines(frame: Frame, codes: Sequence[str], width: int) -> list[Line]:
    """Other findings by their titles, as "The GPU waits for data", a line each."""
    lines: list[Line] = []
    for code in codes:
        entry = CATALOG.get(code)
        title = plain(code).replace("-", " ") if entry is None else frame.tr(entry.title)
        lines += paragraph(title, width, first=f"   {frame.glyphs.info} ")
    return lines


def evidence(frame: Frame, finding: Finding) -> list[tuple[str, str, str]]:
    """What was measured, with names and units for people; a number that is missing is a dash."""
    return [
        (*evidence_words(frame.tr, name, value), "text" if isinstance(value, str) else "number")
        for name, value in finding.evidence.items()
    ]


def section_lines(frame: Frame, section: Section, width: int) -> list[Line]:
    """One section of the catalog."""
    lines: list[Line] = [[], heading(frame, frame.tr(section.heading), width)]
    for place, sentence in enumerate(section.lines, 1):
        first = f"   {place}. " if section.ordered else f"   {frame.glyphs.info} "
        if len(section.lines) == 1 and not section.ordered:
            first = "   "
        lines += paragraph(frame.tr(sentence), width, "text", first=first)
    return lines
