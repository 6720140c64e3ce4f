"""The trainer's records as they come, one line each."""

from __future__ import annotations

from yolomon.model import TrainRecord
from yolomon.tui.canvas import Line
from yolomon.tui.view import Frame
from yolomon.tui.widgets.curves import short
from yolomon.tui.words import cells_of, clock_time, fit, number, plain, seconds


def record_line(frame: Frame, record: TrainRecord, width: int) -> Line:
    """As "14:03:20 e 12 b 17/24 box 0.612 cls 0.648 dfl 1.229 0.491 s"."""
    tr, roles = frame.tr, record.roles
    line: Line = [(" " + ("--:--:--" if record.backlog else clock_time(record.ts)) + " ", "dim")]
    if record.kind == "message":
        return [*line, (fit(plain(record.text), width - 11, frame.glyphs.ellipsis), "text")]
    words: list[str] = []
    if record.rank:
        words.append(tr("rank {rank}", rank=record.rank))
    if record.kind == "batch":
        if record.batch is not None:
            words.append(f"{tr('batch')} {record.batch}" + (f"/{record.batches}" if record.batches else ""))
        elif record.step is not None:
            words.append(f"{tr('step')} {record.step}")
        if roles.losses:
            words += [f"{short(name)} {number(value)}" for name, value in roles.losses.items()]
        elif roles.loss is not None:
            words.append(f"{tr('loss')} {number(roles.loss)}")
        if roles.step_seconds is not None:
            words.append(seconds(roles.step_seconds))
    else:
        words.append(kind_words(frame, record))
        if roles.map50_95 is not None:
            words.append(f"mAP50-95 {number(roles.map50_95)}")
        if roles.map50 is not None:
            words.append(f"mAP50 {number(roles.map50)}")
        if roles.loss is not None and record.kind in ("epoch", "epoch_end"):
            words.append(f"{tr('loss')} {number(roles.loss)}")
    bad = any(value != value or abs(value) == float("inf") for value in roles.losses.values())
    text = ""
    for word in words:  # a word that does not fit is left out whole: no number is cut
        if cells_of(text) + cells_of(word) + 1 > width - 11:
            break
        text += word + " "
    ink = "crit" if bad else "number" if record.kind in ("epoch", "validation") else "label"
    return [*line, (text, ink)]


def kind_words(frame: Frame, record: TrainRecord) -> str:
    """What happened, in words."""
    tr = frame.tr
    epoch = "" if record.epoch is None else str(record.epoch)
    return {
        "start": tr("training starts"),
        "epoch_start": tr("epoch {epoch} starts", epoch=epoch),
        "epoch_end": tr("epoch {epoch} trained", epoch=epoch),
        "val_start": tr("validation starts"),
        "val_end": tr("validation done"),
        "validation": tr("validation"),
        "epoch": tr("epoch {epoch} done", epoch=epoch),
        "checkpoint": tr("checkpoint saved"),
        "features": tr("features measured"),
        "stopping": tr("stopping early"),
        "end": tr("training ended"),
    }.get(record.kind, record.kind)
