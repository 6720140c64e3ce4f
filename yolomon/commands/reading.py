"""One reading of everything, as text and as JSON: what `yolomon --once` prints."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from yolomon import live
from yolomon.commands import chosen
from yolomon.commands.printed import say
from yolomon.history import GpuHistory, History
from yolomon.messages import Translate
from yolomon.model import Finding
from yolomon.settings import Settings
from yolomon.trainlog.stream import StreamSource
from yolomon.units import duration, gibibytes, number


def as_json_object(history: History, findings: list[Finding], tr: Translate) -> dict[str, Any]:
    """The newest value of everything, under the names of the data model; null where not available."""
    train = history.train
    last = train.ranks[0].last if 0 in train.ranks else None
    return {
        "ts": history.now_ts or None,
        "gpus": [_gpu_json(gpu) for gpu in history.by_index()],
        "host": {**msgspec.to_builtins(history.host_info), **_plain(history.host.sample)},
        "train": {
            "epoch": train.epoch,
            "epochs": train.total_epochs,
            "step": train.step,
            "batch": train.batch,
            "batches": train.batches,
            "best_map50_95": train.best_map50_95,
            "run": msgspec.to_builtins(train.run),
            "last": None if last is None else msgspec.to_builtins(last),
            "logs": [msgspec.to_builtins(log) for log in train.logs.values()],
        },
        "statuses": [
            {
                "source": status.source,
                "ok": status.ok,
                "reason": status.reason,
                "cause": None if status.cause is None else tr(status.cause),
                "remedy": None if status.remedy is None else tr(status.remedy),
            }
            for status in history.statuses.values()
        ],
        "findings": [finding_json(finding, tr) for finding in findings],
    }


def finding_json(finding: Finding, tr: Translate) -> dict[str, Any]:
    """A finding with its sentences in the reader's language."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "target": finding.target,
        "onset_ts": finding.onset_ts,
        "raised_ts": finding.raised_ts,
        "cleared_ts": finding.cleared_ts,
        "confidence": finding.confidence,
        "summary": tr(finding.summary),
        "cause": tr(finding.cause),
        "remedy": tr(finding.remedy),
        "evidence": finding.evidence,
        "related": list(finding.related),
        "unseen": [tr(message) for message in finding.unseen],
    }


def as_lines(history: History, findings: list[Finding], tr: Translate) -> list[str]:
    """The same for people, a line each for every GPU, the host, the trainer and every finding."""
    lines = []
    for status in history.statuses.values():
        if not status.ok and status.cause is not None:
            lines.append(f"{status.source}: {tr(status.cause)}")
            if status.remedy is not None:
                lines.append(f"  -> {tr(status.remedy)}")
    lines += [_gpu_line(gpu, tr) for gpu in history.by_index()]
    host = history.host.sample
    if host is not None:
        cpu = history.host.table.latest("cpu_percent")
        lines.append(
            tr(
                "host   CPU {cpu}  RAM {used} of {total}  load {load}",
                cpu=number(cpu[1] if cpu else None, "%"),
                used=gibibytes(host.memory_used_bytes),
                total=gibibytes(host.memory_total_bytes or history.host_info.memory_total_bytes),
                load=number(host.load_average[0] if host.load_average else None, digits=2),
            )
        )
    lines += _train_lines(history, tr)
    for finding in findings:
        lines.append(f"{finding.severity}  {finding.target}  {tr(finding.summary)}")
        lines.append(f"  {tr(finding.cause)}")
        lines.append(f"  -> {tr(finding.remedy)}")
    return lines


def _gpu_line(gpu: GpuHistory, tr: Translate) -> str:
    sample, info = gpu.sample, gpu.info
    head = f"GPU {info.index}  {info.name}"
    if sample is None:
        return f"{head}  {tr('no reading yet')}"
    if sample.state != "ok":
        since = duration((gpu.sample_ts or 0) - sample.state_since_ts) if sample.state_since_ts else "?"
        words = tr("lost") if sample.state == "lost" else tr("no answer")
        return f"{head}  {words} ({since}) {sample.error or ''}".rstrip()
    return "  ".join(
        (
            head,
            tr("util {value}", value=number(sample.utilization_percent, "%")),
            f"{gibibytes(sample.memory_used_bytes)} / {gibibytes(info.memory_total_bytes)}",
            number(sample.temperature_celsius, "°C"),
            f"{number(sample.power_watts)} / {number(info.power_limit_watts)} W",
        )
    )


def _train_lines(history: History, tr: Translate) -> list[str]:
    train = history.train
    lines = []
    for log in train.logs.values():
        words = f"{log.source}  {log.format}  {log.state}".replace("    ", "  ")
        lines.append(words if log.detail is None else f"{words}  {tr(log.detail)}")
    if train.epoch is None and train.step is None:
        return lines
    place = []
    if train.epoch is not None:
        place.append(tr("epoch {epoch}/{epochs}", epoch=train.epoch, epochs=train.total_epochs or "?"))
    if train.step is not None:
        place.append(tr("step {step}", step=train.step))
    for name, words in (("loss", "loss"), ("map50_95", "mAP50-95"), ("images_per_second", "img/s")):
        curve = train.curves.get(name)
        if curve is not None and len(curve):
            place.append(f"{words} {curve.last[-1]:.4g}")
    lines.append("train  " + "  ".join(place))
    return lines


def _gpu_json(gpu: GpuHistory) -> dict[str, Any]:
    body = {**msgspec.to_builtins(gpu.info), **_plain(gpu.sample)}
    for name in ("utilization_samples_percent", "slow", "gpm"):
        body.pop(name, None)
    return body | _plain(gpu.slow) | {"gpm": _plain(gpu.gpm) or None}


def _plain(struct: msgspec.Struct | None) -> dict[str, Any]:
    return {} if struct is None else {name: getattr(struct, name) for name in struct.__struct_fields__}


ONCE_SECONDS = 3.0
"""At most this long is waited for the first readings."""
UNREAD = ("unreadable", "waiting", "gone")
"""States of a log of which nothing was read."""


def print_once(
    logs: Sequence[str], settings: Settings, tr: Translate, *, as_json: bool, tee: str | None = None
) -> int:
    """Read everything once and print it. Returns the exit status: 2 where a named log could not be read.

    Raises:
        UserError: a named folder holds no log.
    """
    files = list(logs) if list(logs) == ["-"] else chosen.files(logs, tr)
    session = live.attach(files, settings, tee=None if tee is None else Path(tee))
    session.start()
    try:
        until = time.monotonic() + ONCE_SECONDS
        while time.monotonic() < until and not _complete(session, files):
            time.sleep(0.05)
            session.drain(1.0)
    finally:
        session.stop(0.5)
    session.drain(1.0)
    history, findings = session.history, session.findings()
    if not logs:
        chosen.tell_found(session, tr)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(as_json_object(history, findings, tr)) + b"\n")
        sys.stdout.buffer.flush()
    else:
        for line in as_lines(history, findings, tr):
            say(line)
    torn = any(isinstance(source, StreamSource) and source.tee_fault for source in session.sources)
    return 2 if torn or (files and _unread(history, files)) else 0


def _unread(history: History, files: Sequence[str]) -> bool:
    """Whether a named log told nothing: it is not there, cannot be read, or is in no known format."""
    known = [log for log in history.train.logs.values() if log.format and log.state not in UNREAD]
    return len(known) < len(files)


def _complete(session: live.Session, files: Sequence[str]) -> bool:
    history = session.history
    gpus = history.by_index()
    machine = history.host.table.latest("cpu_percent") is not None and (
        all(gpu.sample is not None and gpu.slow is not None for gpu in gpus)
        if gpus
        else "nvml" in history.statuses
    )
    states = [log.state for log in history.train.logs.values()]
    if list(files) == ["-"]:
        return machine and states == ["ended"]
    read = all(state not in ("reading", "waiting") for state in states)
    expected = len(files) or len(session.followed)
    return machine and session.searched and read and len(states) >= expected
