"""`yolomon diagnose`: what was wrong, after the fact, as a report or as JSON lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from yolomon.commands import chosen
from yolomon.commands.printed import say
from yolomon.commands.progress import Progress
from yolomon.commands.reading import finding_json
from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.run_recording import TimesOfRank, run_engine, where_the_time_goes
from yolomon.live import is_folder
from yolomon.messages import Message, Translate, UserError, msg
from yolomon.model import Finding, Item
from yolomon.settings import Settings
from yolomon.sources.recording import RecordingError, RecordingReader, merge_by_time
from yolomon.trainlog.after import LogError, read_log
from yolomon.units import clock, duration

READ, FOUND, UNREADABLE = 0, 1, 2
_ORDER = {"critical": 0, "warning": 1, "info": 2}
_MARKS = {"critical": "✖", "warning": "⚠", "info": "•"}
RECORDING_NAMES = ("gpu.jsonl", "yolomon.telemetry.jsonl", "telemetry.jsonl")


def diagnose(
    what: str | None,
    telemetry: str | None,
    logs: Sequence[str],
    settings: Settings,
    tr: Translate,
    *,
    as_json: bool,
) -> int:
    """Run the diagnosis and print what it found.

    Args:
        what: a recording, a run's folder, or a log; found out by looking.
        telemetry: a recording of the devices.
        logs: the trainer's logs, one for each rank.
        settings: thresholds and silenced codes.
        tr: the reader's language.
        as_json: one JSON object a line instead of the report.

    Returns:
        The exit status: 0 nothing to worry about (facts of severity info do not count), 1 findings,
        2 the input could not be read.
    """
    try:
        recording, paths = _inputs(what, telemetry, logs, tr)
        if recording is None and not paths:
            click.echo(tr("Name a recording, a run's folder or a log (see --help)."), err=True)
            return UNREADABLE
        engine = run_engine(_items(recording, paths, tr), settings.thresholds, settings.silenced)
    except (LogError, RecordingError) as error:
        say(f"yolomon: {tr(error.message)}", err=True)
        return UNREADABLE
    findings = [finding for finding in engine.all_findings() if not finding.silenced]
    findings.sort(key=lambda finding: finding.raised_ts)
    times = where_the_time_goes(engine)
    if as_json:
        for body in [*(finding_json(f, tr) for f in findings), *(_times_json(t, engine) for t in times)]:
            sys.stdout.buffer.write(msgspec.json.encode(body) + b"\n")
        sys.stdout.buffer.flush()
    else:
        for line in _lines(engine, findings, times, tr):
            say(line)
    return FOUND if any(finding.severity != "info" for finding in findings) else READ


def _inputs(
    what: str | None, telemetry: str | None, logs: Sequence[str], tr: Translate
) -> tuple[str | None, list[str]]:
    """The recording and the logs that are meant."""
    paths = list(logs)
    if what is None:
        return telemetry, paths
    path = Path(what)
    if is_folder(path):
        beside = [str(path / name) for name in RECORDING_NAMES if os.path.isfile(path / name)]  # noqa: PTH113
        try:
            found = chosen.files([what], tr)
        except UserError:
            if not beside:
                raise
            found = []
        return telemetry or (beside[0] if beside else None), paths + [f for f in found if f not in beside]
    if telemetry is None and _is_recording(what):
        return what, paths
    return telemetry, [what, *paths]


def _items(recording: str | None, paths: Sequence[str], tr: Translate) -> Iterator[Item]:
    """All items in time's order; says how far it is. A recording is read as it is judged, and never kept."""
    records = []
    for path in paths:
        with Progress(msg("reading {path}", path=path), tr) as progress:
            records.append(read_log(path, progress))
    total = max(1, sum(map(len, records)))
    reader = None if recording is None else RecordingReader(recording)
    streams: list[Iterable[Item]] = [*records] if reader is None else [reader, *records]
    with Progress(msg("diagnosing"), tr) as progress:
        for count, item in enumerate(merge_by_time(*streams)):
            yield item
            if count % 64 == 0:
                progress(100 * count / total if reader is None else reader.read_percent)


def _is_recording(path: str) -> bool:
    try:
        return next(iter(RecordingReader(path)), None) is not None
    except RecordingError:
        return False


# ---------------------------------------------------------------- JSON


def _times_json(times: TimesOfRank, engine: Engine) -> dict[str, Any]:
    """Where the time went, in the shape of a finding, so that one reader reads all lines."""
    history = engine.history
    return {
        "code": "time-split",
        "severity": "info",
        "target": "run" if times.gpu_index is None else f"gpu{times.gpu_index}",
        "onset_ts": times.start_ts,
        "raised_ts": history.now_ts,
        "cleared_ts": None,
        "rank": times.rank,
        "elapsed_seconds": times.elapsed_seconds,
        "seconds": times.seconds,
        "estimated": list(times.estimated),
        "epochs": times.epochs,
    }


# ---------------------------------------------------------------- the report


def _lines(engine: Engine, findings: list[Finding], times: list[TimesOfRank], tr: Translate) -> list[str]:
    history = engine.history
    train, run = history.train, history.train.run
    start, end = history.first_ts or history.now_ts, history.now_ts
    head = [
        word
        for word in (
            run.model,
            None if run.image_size is None else str(run.image_size),
            None if run.batch_size is None else tr("batch {size:g}", size=run.batch_size),
            tr("{count} GPUs", count=len(history.gpus)) if history.gpus else None,
        )
        if word
    ]
    lines = [
        tr("{start} to {end} ({length})", start=clock(start), end=clock(end), length=duration(end - start))
    ]
    if head:
        lines.append("  ".join(head))
    if train.epoch is not None:
        lines.append(tr("epoch {epoch} of {epochs}", epoch=train.epoch, epochs=train.total_epochs or "?"))
    if train.best_map50_95 is not None:
        best = tr(
            "best mAP50-95 {value:.4f} at epoch {epoch}", value=train.best_map50_95, epoch=train.best_epoch
        )
        lines.append(best)
    lines.append("")
    if not findings:
        lines.append(tr("Nothing wrong was found."))
    for finding in sorted(findings, key=lambda f: (_ORDER[f.severity], f.onset_ts)):
        lines += [*_finding_lines(finding, start, tr), ""]
    if times:
        lines += ["", tr("Where the time went")]
        lines += [_times_line(entry, tr) for entry in times]
    return lines


def _finding_lines(finding: Finding, start: float, tr: Translate) -> list[str]:
    span = tr(
        "since {clock} (+{after})", clock=clock(finding.onset_ts), after=duration(finding.onset_ts - start)
    )
    if finding.cleared_ts is not None:
        span += ", " + tr("over at {clock}", clock=clock(finding.cleared_ts))
    lines = [
        f"{_MARKS[finding.severity]} {tr(finding.summary)}",
        f"  {finding.code} · {finding.target} · {span}",
        f"  {tr(finding.cause)}",
        f"  → {tr(finding.remedy)}",
    ]
    lines += [f"  {tr('not seen')}: {tr(message)}" for message in finding.unseen]
    return lines


def _times_line(times: TimesOfRank, tr: Translate) -> str:
    name = f"GPU {times.gpu_index}" if times.gpu_index is not None else tr("rank {rank}", rank=times.rank)
    whole = times.elapsed_seconds or 1.0
    parts = [
        f"{tr(Message(category))} {100 * seconds / whole:.0f} %"
        for category, seconds in sorted(times.seconds.items(), key=lambda item: -item[1])
        if seconds / whole >= 0.005
    ]
    return f"  {name}: " + ", ".join(parts) + (f" ({tr('partly estimated')})" if times.estimated else "")
