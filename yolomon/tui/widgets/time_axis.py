"""The words of the time axis below graphs."""

from __future__ import annotations

from yolomon.tui.view import Frame
from yolomon.tui.words import cells_of, clock_time, duration

EPOCH_CELLS = 5  # epochs that are closer are not marked


def axis_words(frame: Frame, first_cell: int, count: int) -> list[tuple[int, str]]:
    """(cell, word): where the window begins, "now" or its end's time; where they fit epochs, its middle."""
    axis = frame.axis(count)
    span = axis.seconds_per_column * count
    minus, tr = frame.glyphs.minus, frame.tr
    end = tr("now") if frame.live else clock_time(frame.end_ts)
    begin = f"{minus}{duration(tr, span)}"
    words = [(first_cell, begin), (max(first_cell, first_cell + count - cells_of(end)), end)]
    further = [
        (first_cell + place, f"{frame.glyphs.epoch}{tr('ep ')}{number}")
        for number, place in epoch_places(frame, count)
    ]
    if count >= 30:
        further.append((first_cell + count // 2, f"{minus}{duration(tr, span / 2)}"))
    for at, word in further:
        if all(at > x + cells_of(w) + 1 or at + cells_of(word) + 1 < x for x, w in words):
            words.append((at, word))
    return sorted(words)


def epoch_places(frame: Frame, count: int) -> list[tuple[int, int]]:
    """(epoch, column) of the epochs that began in the window; none where they are too close together."""
    axis = frame.axis(count)
    found: list[tuple[int, int]] = []
    for record in reversed(frame.history.train.epochs):
        place = axis.place(record.ts, count)
        if record.backlog or record.epoch is None or (place is None and record.ts < axis.start_of(0, count)):
            break
        if place is not None:
            if found and found[-1][1] - place < EPOCH_CELLS:
                return []
            found.append((record.epoch + 1, place))
    return found
