"""All GPUs, at the detail that the layout chose."""

from __future__ import annotations

from textual.events import Click

from yolomon.history import GpuHistory
from yolomon.tui.canvas import Canvas, Line, fill
from yolomon.tui.layout import Plan
from yolomon.tui.screens.page import Page
from yolomon.tui.view import Frame
from yolomon.tui.widgets.box import bottom_edge, inside, top_edge
from yolomon.tui.widgets.gpu_card import card_bottom, card_lines, graph_cells, graph_start
from yolomon.tui.widgets.gpu_rows import (
    pair_graph,
    pair_lines,
    row_graph,
    row_line,
)
from yolomon.tui.widgets.gpu_title import shows_waits, title_line, wait_legend
from yolomon.tui.widgets.heat_strip import heat_lines, strip_lines
from yolomon.tui.words import wrap


class GpuPanel(Canvas):
    """The overview's GPUs."""

    _looked: tuple[Frame, Plan] | None = None

    def draw(self, frame: Frame, plan: Plan) -> None:
        """Draw this moment."""
        if plan.gpus is not None:
            self._looked = (frame, plan)
            self.show(gpu_lines(frame, plan, plan.gpus.width, plan.gpus.height))

    def on_click(self, event: Click) -> None:
        """Put the cursor on the moment that was clicked; beside the graphs put it away."""
        if self._looked is not None and isinstance(self.screen, Page):
            self.screen.monitor.look_at(moment_at(*self._looked, event.x))


def moment_at(frame: Frame, plan: Plan, x: int) -> float | None:
    """The time under a cell of the graphs; None where no graph is."""
    if plan.gpus is None or plan.mode not in ("cards", "pairs", "rows") or not frame.history.gpus:
        return None
    width = plan.gpus.width
    each = width // plan.gpu_columns
    column = min(x // each, plan.gpu_columns - 1)
    own = each + (width % plan.gpu_columns if column == plan.gpu_columns - 1 else 0)
    first, count = {
        "cards": lambda: (graph_start(frame), graph_cells(frame, own)),
        "pairs": lambda: pair_graph(frame, own),
        "rows": lambda: row_graph(own),
    }[plan.mode]()
    place = x - column * each - first
    axis = frame.axis(count) if count > 0 else None
    if axis is None or not 0 <= place < count:
        return None
    return min(axis.start_of(place, count) + axis.seconds_per_column / 2, frame.end_ts)


def gpu_lines(frame: Frame, plan: Plan, width: int, height: int) -> list[Line]:
    """The lines of all GPUs."""
    gpus = frame.history.by_index()
    if not gpus or plan.mode == "none":
        return no_gpu_lines(frame, width, height)
    if plan.mode in ("strip", "heat"):
        strip = plan.mode == "strip"
        lines, judged, waits = (strip_lines if strip else heat_lines)(frame, gpus, width)
        if plan.heading:
            unit = frame.tr("util") + (" %" if strip else "")
            lines.insert(0, title_line(frame, gpus, width, unit=unit, waits=waits, judged=judged))
        return lines
    columns = plan.gpu_columns
    deep = -(-len(gpus) // columns)
    column_width = width // columns
    blocks = [
        _column(frame, plan, gpus[start : start + deep], column_width + (width % columns if last else 0))
        for start, last in ((c * deep, c == columns - 1) for c in range(columns))
    ]
    tallest = max(len(block) for block, _ in blocks)
    lines = (
        [title_line(frame, gpus, width, waits=any(shows_waits(block) for block, _ in blocks))]
        if plan.heading
        else []
    )
    for y in range(tallest):
        line: Line = []
        for block, block_width in blocks:
            line += block[y] if y < len(block) else [(" " * block_width, "text")]
        lines.append(line)
    return lines


def _column(frame: Frame, plan: Plan, gpus: list[GpuHistory], width: int) -> tuple[list[Line], int]:
    lines: list[Line] = []
    if plan.mode == "cards":
        for gpu in gpus:
            lines += card_lines(frame, gpu, width, plan.graph_heights)
        if gpus:
            lines.append(card_bottom(frame, width, wait_legend(frame) if shows_waits(lines) else ""))
    elif plan.mode == "pairs":
        for gpu in gpus:
            lines += pair_lines(frame, gpu, width)
        if gpus:
            lines.insert(0, title_line(frame, gpus, width, waits=shows_waits(lines)))
    else:
        lines = [row_line(frame, gpu, width) for gpu in gpus]
    return lines, width


def no_gpu_lines(frame: Frame, width: int, height: int) -> list[Line]:
    """Why there is no GPU, and what to do, as the source of GPUs says it."""
    status = frame.history.statuses.get("nvml")
    if status is not None and not status.ok and status.cause is not None:
        sentences = [(frame.tr(status.cause), "warn")]
        if status.remedy is not None:
            sentences.append((f"{frame.glyphs.arrow} {frame.tr(status.remedy)}", "text"))
    elif frame.history.first_ts is None:
        sentences = [(frame.tr("Waiting for the first reading"), "dim")]
    else:
        sentences = [(frame.tr("No GPU seen. Host and trainer are shown."), "text")]
    words: list[Line] = []
    for sentence, ink in sentences:
        words += [[(" " + line, ink)] for line in wrap(sentence, width - 4)]
    if len(words) > height - 2:  # the words before their frame
        words = [[(" " + line, ink)] for sentence, ink in sentences for line in wrap(sentence, width - 2)]
        return [fill(line, width) for line in words[:height]]
    glyphs = frame.glyphs
    lines = [top_edge(glyphs, width, frame.tr("GPUs"))]
    lines += [inside(glyphs, width, line) for line in [*words, *([[]] * height)][: height - 2]]
    lines.append(bottom_edge(glyphs, width))
    return lines
