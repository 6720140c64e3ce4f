"""One GPU as a card: four graphs, the number first, the graph second, the judgement last."""

from __future__ import annotations

from yolomon.history import GpuHistory
from yolomon.tui.canvas import Line
from yolomon.tui.short_names import short_name, shortest_name
from yolomon.tui.signals import COLUMN_OF, Reading, concerns, graph_pieces, heat_ink, memory_ink, reading
from yolomon.tui.view import Frame
from yolomon.tui.widgets.box import bottom_edge, top_edge
from yolomon.tui.widgets.gpu_title import model_of
from yolomon.tui.widgets.time_axis import axis_words
from yolomon.tui.words import cells_of, duration, fit, fit_words, pad, pad_left, size

VALUE_CELLS = 7
JUDGEMENT_CELLS = 6


def title_of(frame: Frame, gpu: GpuHistory, room: int) -> str:
    """As "GPU 0 · rank 0 · NVIDIA H200", shorter where room is short."""
    words = [f"GPU {gpu.info.index}"]
    rank = frame.engine.job.rank_of(gpu.info.index)
    if frame.engine.job.size < 2:
        rank = None
    if rank is not None:
        words.append(frame.tr("rank {rank}", rank=rank))
    name = model_of(gpu)
    if name and room >= 30:
        words.append(fit(name, max(6, room - 16), frame.glyphs.ellipsis))
    return f" {frame.glyphs.dot} ".join(words)


def judgement_of(frame: Frame, gpu: GpuHistory, now: Reading) -> tuple[str, str]:
    """The sign and words on the card's frame, and their ink; empty when all is well."""
    if now.state == "lost":
        return f"{frame.glyphs.critical} {frame.tr('lost')}", "crit"
    if now.stale:
        return f"{frame.glyphs.warning} {no_answer(frame, now)}", "warn"
    finding = frame.finding_of(f"gpu{gpu.info.index}")
    if finding is None:
        return "", "ok"
    sign = {"critical": frame.glyphs.critical, "warning": frame.glyphs.warning}.get(
        finding.severity, frame.glyphs.info
    )
    ink = {"critical": "crit", "warning": "warn"}.get(finding.severity, "info")
    return f"{sign} {short_name(frame.tr, finding)}", ink


def no_answer(frame: Frame, now: Reading) -> str:
    """As "no answer for 12 s", or that there never was one."""
    age = now.age_seconds
    if age is None or age < 0:
        return frame.tr("no answer yet")
    return frame.tr("no answer for {time}", time=duration(frame.tr, age))


def judgement_words(frame: Frame, gpu: GpuHistory, now: Reading, judgement: str, room: int) -> str:
    """A judgement in that room: in fewer or shorter words before any of them is cut or left out."""
    if cells_of(judgement) <= room:
        return judgement
    sign, tr = judgement.partition(" ")[0], frame.tr
    shorter: list[str] = []
    if now.state != "lost" and now.stale:
        age = now.age_seconds
        if age is not None and age >= 0:
            shorter.append(tr("silent {time}", time=duration(tr, age)))
        shorter.append(tr("silent"))
    elif now.state != "lost":
        finding = frame.finding_of(f"gpu{gpu.info.index}")
        shorter = [] if finding is None else [shortest_name(tr, finding)]
    for words in shorter:
        if cells_of(sign) + 1 + cells_of(words) <= room:
            return f"{sign} {words}"
    return fit_words(judgement, room, frame.glyphs.ellipsis) if room >= 12 else fit(sign, room)


def card_lines(frame: Frame, gpu: GpuHistory, width: int, heights: tuple[int, int, int, int]) -> list[Line]:
    """The card without its lower edge: the upper edge and the graphs' rows."""
    now = reading(frame, gpu)
    judgement, ink = judgement_of(frame, gpu, now)
    lines = [top_edge(frame.glyphs, width, title_of(frame, gpu, width - 24), judgement, ink)]
    side = (frame.glyphs.vertical, "frame")
    label_cells = label_width(frame)
    count = graph_cells(frame, width)
    for name, height in zip(COLUMN_OF, heights, strict=True):
        rows = graph_pieces(frame, gpu, name, count, height)
        peak = peak_percent(frame, gpu, count) if name == "util" and height > 1 and not now.stale else None
        label, value, verdict, value_ink, verdict_ink = words(frame, gpu, now, name)
        for place, row in enumerate(rows):
            head: Line = (
                [
                    (" " + pad(label, label_cells), "label"),
                    (pad_left(value, VALUE_CELLS), value_ink),
                    (" ", "text"),
                ]
                if place == 0
                else [
                    (" " + pad(frame.tr("peak"), label_cells - 1), "label"),
                    (frame.glyphs.levels[4], "band"),  # the sign of what it explains
                    (pad_left(f"{peak:.0f} %", VALUE_CELLS), "dim"),
                    (" ", "text"),
                ]
                if place == 1 and peak is not None
                else [(" " * (label_cells + VALUE_CELLS + 2), "text")]
            )
            tail = pad_left(verdict, JUDGEMENT_CELLS) if place == 0 else " " * JUDGEMENT_CELLS
            body: Line = [*head, *row, (" ", "text"), (tail, verdict_ink), (" ", "text")]
            lines.append([side, *body, side])  # its cells add up to the width: nothing to fill
    return lines


def peak_percent(frame: Frame, gpu: GpuHistory, count: int) -> float | None:
    """The greatest utilization in the newest column: what its pale part reaches up to."""
    axis = frame.axis(count)
    columns = frame.columns.get((gpu.info.uuid,), gpu.fast, COLUMN_OF["util"], axis, count)
    bucket = columns[max(0, count - 1 - axis.last + axis.newest)]
    return None if bucket is None else bucket.maximum


def card_bottom(frame: Frame, width: int, legend: str = "") -> Line:
    """The lower edge with the time axis, and before it what a sign in the graphs means."""
    words = axis_words(frame, graph_start(frame), graph_cells(frame, width))
    return bottom_edge(frame.glyphs, width, [(2, legend), *words] if legend else words)


def graph_start(frame: Frame) -> int:
    """The first cell of a card's graphs."""
    return label_width(frame) + VALUE_CELLS + 3


def label_width(frame: Frame) -> int:
    """Cells of the widest label."""
    return 6


def graph_cells(frame: Frame, width: int) -> int:
    """How many columns a card's graphs have."""
    return max(1, width - 2 - label_width(frame) - VALUE_CELLS - JUDGEMENT_CELLS - 4)


def words(frame: Frame, gpu: GpuHistory, now: Reading, name: str) -> tuple[str, str, str, str, str]:
    """Label, value, judgement and the inks of the last two, for one signal."""
    tr = frame.tr
    old = "dim" if now.stale else None
    if name == "util":
        verdict, verdict_ink = (tr("waits"), "wait") if now.waits else (no_utilization(gpu, now), "dim")
        value = "n/a" if now.util is None else f"{now.util:.0f} %"
        return tr("util"), value, verdict, old or "number", verdict_ink
    if name == "memory":
        share = now.memory_percent
        ink = memory_ink(now.memory, now.memory_total)
        emphasis = ink if ink in ("warn", "crit") else None
        verdict = "" if share is None else f"{share:.0f} %"
        return (
            tr("memory"),
            _or_na(size(now.memory)),
            verdict,
            old or emphasis or "number",
            old or emphasis or "dim",
        )
    if name == "temperature":
        limit = gpu.info.temperature_slowdown_celsius
        ink = heat_ink(now.temperature, limit)
        hot = ink if ink in ("warn", "crit") else None
        value = "n/a" if now.temperature is None else f"{now.temperature:.0f} {frame.glyphs.degree}C"
        return tr("temp"), value, tr("hot") if hot else "", old or hot or "number", hot or "dim"
    share = now.power_percent
    value = "n/a" if now.power is None else f"{now.power:.0f} W"
    return tr("power"), value, "" if share is None else f"{share:.0f} %", old or "number", "dim"


def no_utilization(gpu: GpuHistory, now: Reading) -> str:
    """Why there is none: NVML tells no utilization of a GPU in MIG mode (nvmlDeviceGetUtilizationRates)."""
    return "MIG" if now.util is None and gpu.info.mig_enabled else ""


def _or_na(text: str) -> str:
    return "n/a" if text == "–" else text


def marked(frame: Frame, gpu: GpuHistory, column: str) -> bool:
    """Whether a finding on this GPU is about that signal."""
    finding = frame.finding_of(f"gpu{gpu.info.index}")
    return finding is not None and concerns(finding, column)
