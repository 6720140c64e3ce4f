"""GPUs with little room: two lines each, one line each."""

from __future__ import annotations

from yolomon.history import GpuHistory
from yolomon.tui import plots
from yolomon.tui.canvas import Line, fill
from yolomon.tui.signals import Reading, graph, heat_ink, memory_ink, reading
from yolomon.tui.view import Frame
from yolomon.tui.widgets.gpu_card import judgement_of, judgement_words, no_utilization
from yolomon.tui.widgets.gpu_title import wait_legend
from yolomon.tui.words import cells_of, fit_words, pad, pad_left, size

_PAIR_INDEX, _PAIR_NUMBER, _ROW_HEAD = 3, 7, 9


def _pair_tail(width: int) -> int:
    return 20 if width >= 72 else 17 if width >= 58 else 14 if width >= 44 else 11


def _pair_label(frame: Frame) -> int:
    """Cells of the graphs' names, which are of other lengths in other languages."""
    return max(cells_of(frame.tr("util")), cells_of(frame.tr("mem"))) + 1


def pair_graph(frame: Frame, width: int) -> tuple[int, int]:
    """First cell and number of cells of the graphs of two lines."""
    first = _PAIR_INDEX + _pair_label(frame) + _PAIR_NUMBER
    return first, max(1, width - first - _pair_tail(width) - 2)


def row_graph(width: int) -> tuple[int, int]:
    """First cell and number of cells of the graph of one line."""
    return _ROW_HEAD, max(0, width - sum(_row_rooms(width)) - 3)


def _row_rooms(width: int) -> tuple[int, int, int]:
    """Cells of a row for: index, numbers; the power; the judgement in words. 0: no room for it."""
    used = _ROW_HEAD + 11
    watts = 6 if width - used >= 15 else 0
    used += watts
    words = min(20, width - used - 12) + 1 if width - used >= 26 else 0
    return _ROW_HEAD + 11, watts, words


def pair_lines(frame: Frame, gpu: GpuHistory, width: int) -> list[Line]:
    """Two lines: utilization and memory as graphs, temperature and power as numbers."""
    now = reading(frame, gpu)
    judgement, judgement_ink = judgement_of(frame, gpu, now)
    tail, number, labels = _pair_tail(width), _PAIR_NUMBER, _pair_label(frame)
    count = pair_graph(frame, width)[1]
    old = "dim" if now.stale else "number"
    index = pad_left(str(gpu.info.index), 2)
    mark = judgement_ink if judgement else "title"
    word = judgement_words(frame, gpu, now, judgement, tail)
    first: Line = [
        (f"{index} ", mark),
        (pad(frame.tr("util"), labels), "label"),
        (pad_left(_percent(now.util), number - 1), old),
        (" ", "text"),
        *plots.runs(graph(frame, gpu, "util", count)[0]),
        (" ", "text"),
    ]
    second: Line = [
        (" " * _PAIR_INDEX, "text"),
        (pad(frame.tr("mem"), labels), "label"),
        (pad_left(_size(now.memory), number - 1), "dim" if now.stale else _memory_number_ink(now)),
        (" ", "text"),
        *plots.runs(graph(frame, gpu, "memory", count)[0]),
        (" ", "text"),
    ]
    hot = heat_ink(now.temperature, gpu.info.temperature_slowdown_celsius)
    heat = "dim" if now.stale else hot if hot in ("warn", "crit") else "number"
    degrees = pad_left(_degrees(frame, now), 6)
    watts = pad_left(_watts(now), 7)
    if tail >= 14:
        if judgement:
            first.append((pad(word, tail), judgement_ink))
        elif now.waits:
            first.append((pad(wait_legend(frame), tail), "wait"))
        else:
            first.append((pad(no_utilization(gpu, now), tail), "dim"))
        second += [(degrees, heat), (watts, old)]
    else:
        second.append((pad_left(_degrees(frame, now), 8), heat))
        if judgement:
            first.append((pad(word, tail), judgement_ink))
        else:
            first.append((pad_left(_watts(now), 8), old))
    return [fill(first, width), fill(second, width)]


def row_line(frame: Frame, gpu: GpuHistory, width: int) -> Line:
    """One line: utilization with its graph, memory, temperature, power, a sign when something is wrong."""
    now = reading(frame, gpu)
    judgement, judgement_ink = judgement_of(frame, gpu, now)
    old = "dim" if now.stale else "number"
    head: Line = [
        (pad_left(str(gpu.info.index), 2), judgement_ink if judgement else "title"),
        (pad_left(_percent(now.util), 6), old),
        (" ", "text"),
    ]
    hot = heat_ink(now.temperature, gpu.info.temperature_slowdown_celsius)
    tail: Line = [
        (pad_left(_size(now.memory), 6), "dim" if now.stale else _memory_number_ink(now)),
        (
            pad_left(_degrees(frame, now).replace(" ", ""), 5),
            "dim" if now.stale else hot if hot != "heat" else "number",
        ),
    ]
    _, watts_room, word_room = _row_rooms(width)
    if watts_room:
        tail.append((pad_left(_watts(now), 6), old))
    word_room = max(0, word_room - 1)
    count = row_graph(width)[1]
    body = plots.runs(graph(frame, gpu, "util", count)[0]) if count else []
    if word_room:
        text = judgement_words(frame, gpu, now, judgement, word_room)
        text = text or (wait_legend(frame) if now.waits else no_utilization(gpu, now))
        end: Line = [
            (" ", "text"),
            (
                pad(fit_words(text, word_room, frame.glyphs.ellipsis), word_room),
                judgement_ink if judgement else "wait" if now.waits else "dim",
            ),
        ]
    else:
        end = [(" " + (judgement[:1] if judgement else " "), judgement_ink)]
    return fill([*head, *body, *tail, *end], width)


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0f} %"


def _size(value: float | None) -> str:
    return "n/a" if value is None else size(value)


def _degrees(frame: Frame, now: Reading) -> str:
    return "n/a" if now.temperature is None else f"{now.temperature:.0f} {frame.glyphs.degree}C"


def _watts(now: Reading) -> str:
    return "n/a" if now.power is None else f"{now.power:.0f} W"


def _memory_number_ink(now: Reading) -> str:
    ink = memory_ink(now.memory, now.memory_total)
    return ink if ink in ("warn", "crit") else "number"
