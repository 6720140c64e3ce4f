"""Why a finding is said: its numbers, what it means, the rule, what could fool it, what to try."""

from __future__ import annotations

from yolomon.diagnosis.catalog import CATALOG, sections
from yolomon.model import Finding
from yolomon.tui.canvas import Line
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.view import Frame
from yolomon.tui.widgets.findings_panel import finding_lines, since
from yolomon.tui.words import number, plain, wrap


class ExplainPage(BodyPage):
    """The explanation of one finding; Escape leads back."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The finding, its evidence, then the catalog's sections."""
        tr, finding = frame.tr, self.finding
        lines: list[Line] = [[], *finding_lines(frame, finding, width, 12)]
        if lines and len(lines) > 1:  # the hint to press Enter has no place here
            lines[-1] = [span for span in lines[-1] if span[0] != tr("Enter: why")]
        lines += [[], [("   " + since(frame, finding), "dim")]]
        if finding.evidence:
            lines += [[], [(" " + tr("Evidence"), "title")]]
            for name, value in finding.evidence.items():
                text = plain(value) if isinstance(value, str) else number(value, 4)
                lines.append([(f"   {plain(name).replace('_', ' ')}: ", "label"), (text, "number")])
        for unseen in finding.unseen:
            lines += [[("   " + piece, "dim")] for piece in wrap(tr(unseen), width - 6)]
        if finding.code in CATALOG:
            for section in sections(finding.code):
                lines += [[], [(" " + tr(section.heading), "title")]]
                for place, sentence in enumerate(section.lines, 1):
                    head = f"{place}. " if section.ordered else f"{frame.glyphs.info} "
                    if len(section.lines) == 1 and not section.ordered:
                        head = ""
                    for row, piece in enumerate(wrap(tr(sentence), width - 8)):
                        lines.append(
                            [("   " + (head if row == 0 else " " * len(head)), "info"), (piece, "text")]
                        )
        lines += [[], [(" " + tr("Esc: back"), "dim"), (f"   {finding.code}", "dim")]]
        return lines
