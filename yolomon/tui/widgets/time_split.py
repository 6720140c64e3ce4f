"""Where each rank's time went in the last minutes, as a bar and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yolomon.tui.canvas import Line, width_of
from yolomon.tui.view import Frame
from yolomon.tui.words import pad

if TYPE_CHECKING:
    from yolomon.diagnosis.timesplit import Split

SPAN_SECONDS = 300.0
# category -> (which shade, ink)
_LOOK = {
    "compute": (0, "work"),
    "rank-wait": (1, "wait"),
    "data-wait": (2, "data"),
    "validation": (3, "validation"),
    "checkpoint": (3, "dim"),
    "start-up": (3, "dim"),
    "stalled": (2, "crit"),
    "idle": (3, "dim"),
}


def _word(frame: Frame, category: str) -> str:
    tr = frame.tr
    return {
        "compute": tr("compute"),
        "rank-wait": tr("waits for ranks"),
        "data-wait": tr("waits for data"),
        "validation": tr("validation"),
        "checkpoint": tr("saving"),
        "start-up": tr("start-up"),
        "stalled": tr("stalled"),
        "idle": tr("idle"),
    }.get(category, category)


def split_line(frame: Frame, label: str, split: Split, width: int) -> Line:
    """A bar and its words: "GPU 0 ████░░░ waits for ranks 66 %  compute 32 %"."""
    elapsed = split.elapsed_seconds
    shares = {name: 100 * seconds / elapsed for name, seconds in split.seconds.items()} if elapsed > 0 else {}
    line: Line = [(" " + pad(label, 6) + " ", "label")]
    words = _words(frame, split, shares)
    # The bar gives way to the words, down to a few cells; what is not told is still drawn.
    cells = max(0, min(40, (width - 8) // 4, max(4, width - 9 - sum(width_of(word) for word in words))))
    used = 0
    for name, (shade, ink) in _LOOK.items():
        length = min(round(shares.get(name, 0.0) / 100 * cells), cells - used)
        if length > 0:
            line.append((frame.glyphs.shades[shade] * length, ink))
            used += length
    line.append((" " * (cells - used + 1), "text"))
    for word in words:
        if width_of(line) + width_of(word) - 2 > width:
            break
        line += word
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if width_of(line) > width else line


def _words(frame: Frame, split: Split, shares: dict[str, float]) -> list[Line]:
    """Each share of a percent and more in words, the greatest first."""
    words: list[Line] = []
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        if share < 1:
            break
        ink = _LOOK[name][1] if name in _LOOK else "dim"
        about = "~" if name in split.estimated else ""
        words.append(
            [
                (f"{_word(frame, name)} ", ink if ink != "dim" else "label"),
                (f"{about}{share:.0f} %  ", "number"),
            ]
        )
    return words


def split_lines(frame: Frame, width: int, rows: int) -> list[Line]:
    """A line a rank."""
    timesplit = frame.engine.timesplit
    ranks = timesplit.ranks()
    lines: list[Line] = []
    for rank in ranks:
        split = timesplit.recent(rank, frame.at_ts if frame.live else frame.now_ts, SPAN_SECONDS)
        if split is None or split.elapsed_seconds <= 1:
            continue
        gpu = frame.engine.job.gpu_of(rank)
        if gpu is not None:
            label = f"GPU {gpu}"
        else:
            label = frame.tr("rank {rank}", rank=rank) if len(ranks) > 1 else frame.tr("run")
        lines.append(split_line(frame, label, split, width))
        if len(lines) >= rows:
            break
    return lines
