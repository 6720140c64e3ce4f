"""Very many GPUs or very little room: a few cells each."""

from __future__ import annotations

from yolomon.history import GpuHistory
from yolomon.tui.canvas import Line, Span, fill
from yolomon.tui.layout import STRIP_CELL, heat_cells
from yolomon.tui.signals import Reading, reading
from yolomon.tui.view import Frame
from yolomon.tui.widgets.gpu_card import judgement_of
from yolomon.tui.words import pad, pad_left


def sign_of(frame: Frame, gpu: GpuHistory, now: Reading) -> Span:
    """One cell: how busy, or that it waits, is lost, gives no answer."""
    judgement, ink = judgement_of(frame, gpu, now)
    if now.state == "lost":
        return (frame.glyphs.critical, "crit")
    if now.stale or now.util is None:
        return ("?", "warn" if now.stale else "dim")
    ink = ink if judgement else "wait" if now.waits else "work"
    if now.waits:
        return (frame.glyphs.wait, ink)
    levels = frame.glyphs.levels
    return (levels[max(1, round(now.util / 100 * (len(levels) - 1)))], ink)


def strip_lines(frame: Frame, gpus: list[GpuHistory], width: int) -> list[Line]:
    """Cells "12 100▇": index, utilization in percent, a sign."""
    each = max(1, width // STRIP_CELL)
    lines: list[Line] = []
    for start in range(0, len(gpus), each):
        line: Line = []
        for gpu in gpus[start : start + each]:
            now = reading(frame, gpu)
            judgement, ink = judgement_of(frame, gpu, now)
            value = "n/a" if now.util is None else f"{now.util:.0f}"
            line += [
                (pad_left(str(gpu.info.index), 2), ink if judgement else "label"),
                (pad_left(value, 4), "dim" if now.stale else "number"),
                sign_of(frame, gpu, now),
                ("  ", "text"),
            ]
        lines.append(fill(line, width))
    return lines


def heat_lines(frame: Frame, gpus: list[GpuHistory], width: int) -> list[Line]:
    """Bare signs, a round number a line, with the index of the first before them."""
    each = heat_cells(width)
    lines: list[Line] = []
    for start in range(0, len(gpus), each):
        line: Line = [(pad(f" {gpus[start].info.index}", 5), "label")]
        line += [sign_of(frame, gpu, reading(frame, gpu)) for gpu in gpus[start : start + each]]
        lines.append(fill(line, width))
    return lines
