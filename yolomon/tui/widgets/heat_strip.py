"""Very many GPUs or very little room: a few cells each."""

from __future__ import annotations

from yolomon.history import GpuHistory
from yolomon.tui.canvas import Line, Span, fill
from yolomon.tui.layout import heat_cells, strip_cells
from yolomon.tui.signals import Reading, reading
from yolomon.tui.view import Frame
from yolomon.tui.widgets.gpu_card import judgement_of
from yolomon.tui.widgets.gpu_title import Judged
from yolomon.tui.words import pad, pad_left, size

CELL_LIMIT = 20  # wider cells would only pull apart what is to be compared
_MEMORY_CELL = 15
_INDEX, _VALUE, _SIGN, _MEMORY = 3, 4, 1, 6


def sign_of(frame: Frame, now: Reading, judgement: str, ink: str) -> Span:
    """One cell: how busy, or that it waits, is lost, gives no answer."""
    if now.state == "lost":
        return (frame.glyphs.critical, "crit")
    if now.stale or now.util is None:
        return ("?", "warn" if now.stale else "dim")
    ink = ink if judgement else "wait" if now.waits else "work"
    if now.waits:
        return (frame.glyphs.wait, ink)
    levels = frame.glyphs.levels
    return (levels[max(1, round(now.util / 100 * (len(levels) - 1)))], ink)


def strip_lines(frame: Frame, gpus: list[GpuHistory], width: int) -> tuple[list[Line], list[Judged], bool]:
    """Cells "12 100▇", where there is room "12 100▇  39 G": index, utilization in percent, a sign, memory.

    Also the GPUs with a judgement, and whether the sign of waiting is among the signs.
    """
    each = strip_cells(width, len(gpus))
    cell = min(width // each, CELL_LIMIT)
    memory = cell >= _MEMORY_CELL
    gap = " " * (cell - _INDEX - _VALUE - _SIGN - (_MEMORY if memory else 0))
    lines: list[Line] = []
    judged: list[Judged] = []
    waits = False
    for start in range(0, len(gpus), each):
        line: Line = []
        for gpu in gpus[start : start + each]:
            now = reading(frame, gpu)
            judgement, ink = judgement_of(frame, gpu, now)
            if judgement:
                judged.append((gpu, judgement, ink))
            sign = sign_of(frame, now, judgement, ink)
            waits = waits or sign[0] == frame.glyphs.wait
            number = "dim" if now.stale else ink if judgement else "number"
            line += [
                (pad_left(str(gpu.info.index), _INDEX), ink if judgement else "label"),
                (pad_left("n/a" if now.util is None else f"{now.util:.0f}", _VALUE), number),
                sign,
            ]
            if memory:
                used = "n/a" if now.memory is None else size(now.memory)
                line.append((pad_left(used, _MEMORY), "dim" if now.stale else "number"))
            line.append((gap, "text"))
        lines.append(fill(line, width))
    return lines, judged, waits


def heat_lines(frame: Frame, gpus: list[GpuHistory], width: int) -> tuple[list[Line], list[Judged], bool]:
    """Bare signs, a round number a line, with the index of the first before them; the rest as in a strip."""
    each = heat_cells(width)
    lines: list[Line] = []
    judged: list[Judged] = []
    waits = False
    for start in range(0, len(gpus), each):
        line: Line = [(pad(f" {gpus[start].info.index}", 5), "label")]
        for gpu in gpus[start : start + each]:
            now = reading(frame, gpu)
            judgement, ink = judgement_of(frame, gpu, now)
            if judgement:
                judged.append((gpu, judgement, ink))
            sign = sign_of(frame, now, judgement, ink)
            waits = waits or sign[0] == frame.glyphs.wait
            line.append(sign)
        lines.append(fill(line, width))
    return lines, judged, waits
