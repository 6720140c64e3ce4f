"""`yolomon doctor`: the checks, one a line, each with its remedy."""

from __future__ import annotations

import sys

import click
import msgspec

from yolomon.commands import chosen
from yolomon.commands.printed import say
from yolomon.doctor import run_checks, worst
from yolomon.live import is_folder
from yolomon.messages import Translate, one_line
from yolomon.trainlog.discover import find_logs

_COLORS = {"PASS": "green", "WARN": "yellow", "FAIL": "red"}


def print_checks(log: str | None, tr: Translate, *, as_json: bool) -> int:
    """Print all checks. Returns the exit status: 1 when one fails, else 0."""
    if log is not None and is_folder(log) and (found := find_logs(log)):
        chosen.tell(found, tr)
        log = found[0].path
    checks = run_checks(log)
    for check in checks:
        detail, remedy = tr(check.detail), None if check.remedy is None else tr(check.remedy)
        if as_json:
            body = {"name": check.name, "status": check.status, "detail": detail, "remedy": remedy}
            sys.stdout.buffer.write(msgspec.json.encode(body) + b"\n")
            continue
        click.echo(f"{click.style(check.status, fg=_COLORS[check.status])}  {check.name}: {one_line(detail)}")
        if remedy is not None:
            say(f"      -> {remedy}")
    sys.stdout.buffer.flush()
    return 1 if worst(checks) == "FAIL" else 0
