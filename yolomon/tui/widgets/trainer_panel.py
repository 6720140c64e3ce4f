"""The trainer in words and numbers: losses, rate, speed, its records as they come, where the time goes."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from statistics import median
from typing import Any

from yolomon.model import TrainRecord
from yolomon.tui.canvas import Canvas, Line, fill, width_of
from yolomon.tui.view import Frame
from yolomon.tui.widgets.box import bottom_edge, inside, top_edge
from yolomon.tui.widgets.curves import short
from yolomon.tui.widgets.records import record_line
from yolomon.tui.widgets.time_split import split_lines
from yolomon.tui.words import duration, number, seconds, wrap

RECENT = 32
SPLIT_SECONDS = 3.0


class TrainerPanel(Canvas):
    """Numbers, records and time."""

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - Widget's own
        super().__init__(**arguments)
        self._split: tuple[tuple[object, ...], list[Line]] = ((), [])

    def draw(self, frame: Frame, width: int, height: int) -> None:
        """Draw this moment."""
        self.show(trainer_lines(frame, width, height, self._split_lines))

    def _split_lines(self, frame: Frame, width: int, rows: int) -> list[Line]:
        """The shares of five minutes, which hardly change from one picture to the next: renewed every 3 s."""
        moment = int(frame.at_ts / SPLIT_SECONDS) if frame.live else frame.at_ts
        key = (moment, width, rows, frame.glyphs.style, frame.engine.timesplit.ranks())
        if key != self._split[0] or not self._split[1]:
            self._split = (key, split_lines(frame, width, rows))
        return self._split[1]


def trainer_lines(
    frame: Frame,
    width: int,
    height: int,
    split_of: Callable[[Frame, int, int], list[Line]] = split_lines,
) -> list[Line]:
    """All that fits, the numbers first."""
    framed = height >= 5
    inner = width - 2 if framed else width
    room = height - 2 if framed else height
    numbers = number_lines(frame, inner, room)
    if not framed:
        lines = numbers[:room]
        lines += newest(frame, inner, room - len(lines))
        return [fill(line, width) for line in lines]
    glyphs = frame.glyphs
    lines = [top_edge(glyphs, width, frame.tr("trainer"), *log_state(frame))]
    split: list[Line] = []
    if room >= 6:
        split = split_of(frame, inner, min(8, max(1, (room - 3) // 2)))
    rule = 1 if split else 0
    body = numbers[: max(1, room - len(split) - rule)]
    body += newest(frame, inner, room - len(body) - len(split) - rule)
    body += [[]] * (room - len(body) - len(split) - rule)
    lines += [inside(glyphs, width, line) for line in body]
    if split:
        lines.append(top_edge(glyphs, width, frame.tr("where the time goes, last 5 min"), joined=True))
        lines += [inside(glyphs, width, line) for line in split]
    lines.append(bottom_edge(glyphs, width))
    return lines


def log_state(frame: Frame) -> tuple[str, str]:
    """What the frame says about the log: broken lines, a log that is gone, progress of reading."""
    tr = frame.tr
    logs = list(frame.history.train.logs.values())
    for log in logs:
        if log.state in ("gone", "unreadable"):
            return tr("log is gone") if log.state == "gone" else tr("log cannot be read"), "warn"
        if log.state == "reading" and log.progress_percent is not None and log.progress_percent < 100:
            return tr("reading the log: {percent} %", percent=f"{log.progress_percent:.0f}"), "info"
    broken = sum(log.broken_lines for log in logs)
    if broken:
        return (tr("1 broken line") if broken == 1 else tr("{n} broken lines", n=broken)), "dim"
    return "", "dim"


def number_lines(frame: Frame, width: int, rows: int) -> list[Line]:
    """Losses and rate in the first line, speed in the second; without a log what of its lack fits whole."""
    train, tr = frame.history.train, frame.tr
    if train.count == 0:
        logs = list(train.logs)
        if logs:
            text = tr("Waiting for the first record of the log.")
        else:
            text = tr("No training log yet; press c to pick one.")
            text += "\n" + tr(
                "One is looked for under runs/, work_dirs/ and output/ of the folder that yolomon was "
                "started in, and in what the processes on the GPUs have open."
            )
            text += "\n" + tr("Or name it: yolomon PATH, a log or a run's folder.")
        lines: list[Line] = []
        for part in text.split("\n"):
            told: list[Line] = [[(" " + piece, "dim")] for piece in wrap(part, width - 2)]
            if not lines or len(lines) + len(told) <= rows:
                lines += told
        return lines
    return [line for line in (_loss_line(frame, width), _speed_line(frame, width)) if width_of(line) > 1]


def _loss_line(frame: Frame, width: int) -> Line:
    train, tr = frame.history.train, frame.tr
    record = record_at(frame)
    pieces: list[Line] = []
    if record is not None:
        roles = record.roles
        if roles.loss is not None:
            bad = roles.loss != roles.loss or abs(roles.loss) == float("inf")
            pieces.append([(tr("loss "), "label"), (number(roles.loss), "crit" if bad else "number")])
        for name, value in roles.losses.items():
            bad = value != value or abs(value) == float("inf")
            pieces.append([(short(name) + " ", "label"), (number(value), "crit" if bad else "number")])
        if roles.learning_rate is not None:
            pieces.append([(tr("lr "), "label"), (number(roles.learning_rate), "number")])
    for name, label in (("map50_95", "mAP50-95 "), ("map50", "mAP50 ")):
        curve = train.curves.get(name)
        if curve is not None and len(curve):
            pieces.append([(label, "label"), (number(curve.last[-1]), "number")])
    if train.best_map50_95 is not None and train.best_epoch is not None:
        best = tr(
            "(best {value} in epoch {epoch})", value=number(train.best_map50_95), epoch=train.best_epoch
        )
        pieces.append([(best, "dim")])
    return _joined(pieces, width)


def _speed_line(frame: Frame, width: int) -> Line:
    tr, train = frame.tr, frame.history.train
    rank = train.ranks.get(0) or (next(iter(train.ranks.values())) if train.ranks else None)
    if rank is None:
        return []
    at = frame.at_ts
    recent = [record for record in list(rank.batches)[-8 * RECENT :] if record.ts <= at][-RECENT:]
    pieces: list[Line] = []
    steps = [r.roles.step_seconds for r in recent if r.roles.step_seconds is not None]
    if steps:
        pieces.append([(tr("step "), "label"), (seconds(median(steps)), "number")])
    data = [r.roles.data_seconds for r in recent if r.roles.data_seconds is not None]
    if data:
        pieces.append([(tr("data "), "label"), (seconds(median(data)), "number")])
    speed = images_per_second(frame, recent)
    if speed is not None:
        pieces.append([(f"{speed:.0f}", "number"), (tr(" img/s"), "label")])
    elif not steps and len(train.epochs) >= 2:
        took = train.epochs[-1].ts - train.epochs[-2].ts
        pieces.append([(tr("epoch takes "), "label"), (duration(tr, took), "number")])
    if train.batch is not None:
        of = f"/{train.batches}" if train.batches else ""
        pieces.append([(tr("batch "), "label"), (f"{train.batch}{of}", "number")])
    if train.last_ts is not None:
        age = frame.now_ts - train.last_ts
        if age > 5 and train.ended is None and frame.live:
            pieces.append(
                [(tr("last record {time} ago", time=duration(tr, age)), "dim" if age < 60 else "warn")]
            )
    return _joined(pieces, width)


def images_per_second(frame: Frame, recent: list[TrainRecord]) -> float | None:
    """Of the whole job: the images of the recent steps over their time, else the trainer's own number."""
    if not recent:
        return None
    told = recent[-1].roles.images_per_second
    steps = [(r.roles.images, r.roles.step_seconds) for r in recent]
    images = sum(i for i, s in steps if i is not None and s)
    took = sum(s for i, s in steps if i is not None and s)
    if not images or not took:
        return told
    ranks = max(1, len(frame.history.train.ranks), frame.history.train.run.world_size or 1)
    return ranks * images / took


def record_at(frame: Frame) -> TrainRecord | None:
    """The newest record with a loss, up to the moment shown."""
    train, at = frame.history.train, frame.at_ts
    live = frame.live and frame.view.cursor_ts is None
    for records in ([train.ranks[0].batches] if 0 in train.ranks else []) + [train.epochs]:
        for record in reversed(records):
            if (live or record.ts <= at) and (record.roles.loss is not None or record.roles.losses):
                return record
    return None


def newest(frame: Frame, width: int, rows: int) -> list[Line]:
    """The last records, the newest at the bottom."""
    if rows <= 0:
        return []
    if frame.filter:
        return _filtered(frame, width, rows)
    train = frame.history.train
    newest_only = frame.live and frame.view.cursor_ts is None
    chosen: list[TrainRecord] = []
    for record in reversed(train.records):
        if (newest_only or record.ts <= frame.at_ts) and not (0 in train.ranks and repeats(record)):
            chosen.append(record)
            if len(chosen) == rows:
                break
    return [record_line(frame, record, width) for record in reversed(chosen)]


def repeats(record: TrainRecord) -> bool:
    """Whether another rank only says what rank 0 says too: no message, no loss that is NaN or infinite."""
    if not record.rank or record.kind == "message":
        return False
    losses = [record.roles.loss, *record.roles.losses.values()]
    return all(loss is None or isfinite(loss) for loss in losses)


def _filtered(frame: Frame, width: int, rows: int) -> list[Line]:
    """The last records whose line holds the typed words."""
    words = frame.filter.lower().split()
    lines: list[Line] = []
    for record in reversed(frame.history.train.records):
        if record.ts > frame.at_ts and not frame.live:
            continue
        line = record_line(frame, record, width)
        text = "".join(text for text, _ in line).lower()
        if all(word in text for word in words):
            lines.append(line)
            if len(lines) >= rows:
                break
    return lines[::-1]


def _joined(pieces: list[Line], width: int) -> Line:
    line: Line = [(" ", "text")]
    for piece in pieces:
        if width_of(line) + width_of(piece) + 2 > width:
            break
        line += [*piece, ("  ", "text")]
    return line
