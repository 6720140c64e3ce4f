"""The top line: what runs, how far it is, when it will be done, and the verdict at the right."""

from __future__ import annotations

from yolomon.model import RunInfo
from yolomon.tui.canvas import Canvas, Line, fill, width_of
from yolomon.tui.signals import silent_gpus
from yolomon.tui.view import Frame
from yolomon.tui.words import cells_of, clock_time, duration, fit_left, number, plain


class TopLine(Canvas):
    """The overview's first line or two."""

    def draw(self, frame: Frame, width: int, height: int) -> None:
        """Draw this moment."""
        self.show(top_lines(frame, width, height))


def top_lines(frame: Frame, width: int, height: int) -> list[Line]:
    """One line, or two where the terminal is narrow and high enough."""
    verdict = verdict_of(frame, width)
    room = width - width_of(verdict) - 1
    left: Line = []
    if frame.demo:
        left.append((frame.tr(" DEMO "), "demo"))
    left.append((" yolomon ", "title"))
    progress = progress_of(frame, width)
    if height >= 2:
        first = _join(left, run_words(frame), room)
        return [_with_end(first, verdict, width), fill(_cut([(" ", "text"), *progress], width), width)]
    if width_of(left) + width_of(progress) > room:
        left = left[:1] if frame.demo else []
    available = room - width_of(left) - width_of(progress)
    middle = run_words(frame)
    if available >= 16:
        left = _join(left, middle, width_of(left) + available - 1)
    gap = room - width_of(left) - width_of(progress)
    if gap < 0:
        progress = _short_progress(frame)
        gap = room - width_of(left) - width_of(progress)
    if gap < 0:
        left, progress = _cut([*left, *progress], room), []
        gap = room - width_of(left)
    return [fill([*left, (" " * max(0, gap), "text"), *progress, (" ", "text"), *verdict], width)]


def _join(left: Line, words: list[tuple[str, str]], room: int) -> Line:
    line = list(left)
    for text, ink in words:
        free = room - width_of(line)
        kept = text
        while kept and cells_of(kept) > free:  # whole words only, and no number without what it counts
            between = next((sign for sign in (" · ", " - ") if sign in kept), " ")
            head, dot, _ = kept.rstrip().rpartition(between)
            kept = head.rstrip(" ·-") if dot else ""
        if kept:
            line.append((kept, ink))
    return line


def _with_end(line: Line, end: Line, width: int) -> Line:
    gap = width - width_of(line) - width_of(end)
    return [*line, (" " * max(0, gap), "text"), *end]


def _cut(line: Line, width: int) -> Line:
    kept: Line = []
    for text, ink in line:
        free = width - width_of(kept)
        if cells_of(text) > free:
            break
        kept.append((text, ink))
    return kept


def run_words(frame: Frame) -> list[tuple[str, str]]:
    """The run's folder and its settings: "runs/detect/train-3  yolo11x 640 b64 · DDP 2"."""
    run = frame.history.train.run
    words: list[tuple[str, str]] = []
    folder = run.save_directory or _log_name(frame)
    if folder:
        words.append((fit_left(plain(folder), 32) + "  ", "number"))
    settings = settings_words(frame, run)
    if settings:
        words.append((settings, "label"))
    return words


def _log_name(frame: Frame) -> str:
    for path in frame.history.train.logs:
        parts = plain(path).replace("\\", "/").split("/")
        return "/".join(parts[-2:])
    return ""


def settings_words(frame: Frame, run: RunInfo) -> str:
    """The run's settings in few words."""
    words = []
    if run.model:
        name = plain(run.model).split("/")[-1]
        words.append(name.removesuffix(".pt").removesuffix(".yaml"))
    if run.image_size:
        words.append(str(run.image_size))
    if run.batch_size and run.batch_size > 0:
        words.append(f"b{run.batch_size:g}")
    text = " ".join(words)
    dot = f" {frame.glyphs.dot} "
    if run.world_size and run.world_size > 1:
        text += f"{dot}DDP {run.world_size}" if text else f"DDP {run.world_size}"
    if run.workers is not None and text:
        text += dot + frame.tr("{n} workers", n=run.workers)
    return text


def progress_of(frame: Frame, width: int) -> Line:
    """Epoch, a bar, percent, time left, the best mAP50-95."""
    train, tr = frame.history.train, frame.tr
    if train.epoch is None:
        return [(tr("no epoch yet"), "dim"), ("  ", "text")] if train.count else []
    line: Line = [(tr("epoch "), "label")]
    if train.total_epochs:
        line.append((f"{min(train.epoch, train.total_epochs)}/{train.total_epochs}", "number"))
        share = progress_share(frame)
        if share is not None:
            line.append((" ", "text"))
            cells = 12 if width >= 130 else 6 if width >= 100 else 0
            if cells:
                line += bar(frame, share, cells)
                line.append((" ", "text"))
            line.append((f"{100 * share:.0f} %", "number"))
    else:
        line.append((str(train.epoch), "number"))
    if train.ended is not None:
        line.append((" " + tr("ended"), "ok"))
    elif frame.eta_seconds is not None:
        line += [("  ", "text"), (tr("ETA "), "label"), (duration(tr, frame.eta_seconds), "number")]
    if train.best_map50_95 is not None and (width >= 150 or width < 90):
        line += [("  ", "text"), (tr("best mAP "), "label"), (number(train.best_map50_95), "number")]
    line.append(("  ", "text"))
    return line


def _short_progress(frame: Frame) -> Line:
    train = frame.history.train
    if train.epoch is None:
        return []
    text = f"{train.epoch}/{train.total_epochs}" if train.total_epochs else str(train.epoch)
    return [(frame.tr("ep "), "label"), (text, "number"), (" ", "text")]


def progress_share(frame: Frame) -> float | None:
    """The part of the epochs that is done, 0 to 1."""
    train = frame.history.train
    if train.epoch is None or not train.total_epochs:
        return None
    done = float(train.epoch)
    if train.batch is not None and train.batches:
        done = train.epoch - 1 + train.batch / train.batches
    return min(1.0, max(0.0, done / train.total_epochs))


def bar(frame: Frame, share: float, cells: int) -> Line:
    """A bar of progress."""
    full = int(share * cells)
    glyphs = frame.glyphs
    end = glyphs.bar_end if full < cells else ""
    return [
        (glyphs.bar * full, "info"),
        (end, "info"),
        (glyphs.bar_rest * (cells - full - len(end)), "frame"),
    ]


def verdict_of(frame: Frame, width: int) -> Line:
    """One word with its sign and colour: the first thing to be read."""
    glyphs, tr = frame.glyphs, frame.tr
    findings = frame.findings_at()
    critical = sum(f.severity == "critical" for f in findings)
    warnings = sum(f.severity == "warning" for f in findings)
    line: Line = []
    if frame.view.cursor_ts is not None:
        step = _step_at(frame) if width >= 70 else None
        at = clock_time(frame.view.cursor_ts)
        words = at if step is None else tr("{time} step {step}", time=at, step=step)
        line += [(f" {words} ", "selected"), (" ", "text")]
    elif frame.view.frozen_ts is not None and frame.view.end_ts is None:
        line += [(tr(" paused "), "selected"), (" ", "text")]
    elif not frame.live:
        line += [(f" {clock_time(frame.end_ts)} ", "selected"), (" ", "text")]
    elif frame.replay_speed is not None and frame.replay_speed != 1 and width >= 60:
        line += [(f"{frame.replay_speed:g}x", "dim"), (" ", "text")]
    if critical:
        words = tr("1 critical") if critical == 1 else tr("{n} critical", n=critical)
        return [*line, (f"{glyphs.critical} {words} ", "crit")]
    if warnings:
        words = tr("1 warning") if warnings == 1 else tr("{n} warnings", n=warnings)
        return [*line, (f"{glyphs.warning} {words} ", "warn")]
    if frame.unread:
        return [*line, (f"{tr('no reading')} ", "dim")]
    silent = silent_gpus(frame)
    if silent:
        of = len(frame.history.gpus)
        words = tr("{n} of {of} GPUs silent", n=len(silent), of=of)
        return [*line, (f"{glyphs.warning} {words} ", "warn")]
    if frame.history.first_ts is None:
        return [*line, (tr("starting") + " ", "dim")]
    machine = frame.history.statuses.get("nvml")
    if machine is not None and not machine.ok and not frame.history.gpus:
        return [*line, (f"{glyphs.warning} {tr('no GPU')} ", "warn")]
    if frame.history.train.ended is not None:
        return [*line, (f"{glyphs.ok} {tr('ended')} ", "ok")]
    if frame.history.train.count == 0:
        return [*line, (f"{glyphs.info} {tr('no trainer')} ", "info")]
    return [*line, (f"{glyphs.ok} {tr('healthy')} ", "ok")]


def _step_at(frame: Frame) -> int | None:
    """The trainer's step at the moment shown, if a batch ended within half a minute before."""
    rank = frame.history.train.ranks.get(0)
    if rank is None:
        return None
    steps = rank.table.window("step", frame.at_ts - 30.0, frame.at_ts)[1]
    return int(steps[-1]) if steps else None
