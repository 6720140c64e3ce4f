"""The words of the time axis below graphs."""

from __future__ import annotations

from yolomon.tui.view import Frame
from yolomon.tui.words import cells_of, clock_time, duration


def axis_words(frame: Frame, first_cell: int, count: int) -> list[tuple[int, str]]:
    """(cell, word): where the window begins, its middle, and "now" or the time it ends at."""
    axis = frame.axis(count)
    span = axis.seconds_per_column * count
    minus, tr = frame.glyphs.minus, frame.tr
    end = tr("now") if frame.live else clock_time(frame.end_ts)
    begin = f"{minus}{duration(tr, span)}"
    words = [(first_cell, begin)]
    if count >= 30:
        words.append((first_cell + count // 2, f"{minus}{duration(tr, span / 2)}"))
    words.append((max(first_cell, first_cell + count - cells_of(end)), end))
    return words
