"""The overview as plain text, composed from the pure parts as the screen composes them."""

from __future__ import annotations

from collections.abc import Callable

from tests.tui.recordings import StoredFeed
from yolomon.messages import Translate, english
from yolomon.tui import glyphs as glyph_sets
from yolomon.tui.canvas import Line, width_of
from yolomon.tui.layout import Plan, Rect, plan
from yolomon.tui.plots import ColumnCache
from yolomon.tui.progress import eta_seconds
from yolomon.tui.view import Frame, View
from yolomon.tui.widgets.curves import curve_lines
from yolomon.tui.widgets.findings_panel import findings_lines, wanted_rows
from yolomon.tui.widgets.gpu_panel import gpu_lines
from yolomon.tui.widgets.host_line import host_card, host_lines
from yolomon.tui.widgets.top_line import top_lines
from yolomon.tui.widgets.trainer_panel import trainer_lines


def frame_of(
    feed: StoredFeed,
    *,
    view: View | None = None,
    now_ts: float | None = None,
    tr: Translate = english,
    glyphs: glyph_sets.Glyphs = glyph_sets.UNICODE,
) -> Frame:
    """A frame of what a feed holds."""
    now = feed.clock() if now_ts is None else now_ts
    shown = view or View(window_seconds=120.0)
    return Frame(
        engine=feed.engine,
        findings=feed.findings(),
        now_ts=now,
        view=shown,
        tr=tr,
        glyphs=glyphs,
        columns=ColumnCache(),
        eta_seconds=eta_seconds(feed.engine.history, now),
        demo=feed.demo,
        own_cpu_percent=1.1,
        own_rss_bytes=47 * 2**20,
    )


def parts(frame: Frame, layout: Plan) -> list[tuple[str, Rect, list[Line]]]:
    """Every part of the overview with its place and its lines."""
    made: dict[str, Callable[[Rect], list[Line]]] = {
        "top": lambda r: top_lines(frame, r.width, r.height),
        "gpus": lambda r: gpu_lines(frame, layout, r.width, r.height),
        "host": lambda r: (host_card if layout.host_graphs else host_lines)(frame, r.width, r.height),
        "curves": lambda r: curve_lines(frame, r.width, r.height),
        "trainer": lambda r: trainer_lines(frame, r.width, r.height),
        "findings": lambda r: findings_lines(frame, r.width, r.height),
    }
    return [(name, rect, made[name](rect)) for name, rect in layout.rectangles().items() if name in made]


def text_of(line: Line) -> str:
    """A line without its inks."""
    return "".join(text for text, _ in line)


def picture(frame: Frame, width: int, height: int) -> list[tuple[str, str]]:
    """(part, text) of every line on the overview at that size."""
    layout = plan(width, height, len(frame.history.gpus), wanted_rows(frame, width, height))
    return [(name, text_of(line)) for name, _, lines in parts(frame, layout) for line in lines]


def too_wide(frame: Frame, width: int, height: int) -> list[str]:
    """Lines that do not fit where the plan puts them: they would be cut."""
    layout = plan(width, height, len(frame.history.gpus), wanted_rows(frame, width, height))
    return [
        f"{name} {rect}: {text_of(line)!r}"
        for name, rect, lines in parts(frame, layout)
        for line in lines
        if width_of(line) > rect.width
    ]
