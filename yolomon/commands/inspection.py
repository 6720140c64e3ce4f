"""`yolomon inspect LOG`: what was recognised, as text or as one JSON object."""

from __future__ import annotations

import sys

import click

from yolomon.commands import chosen
from yolomon.commands.printed import say
from yolomon.commands.progress import Progress
from yolomon.messages import Translate, msg
from yolomon.trainlog.inspect import InspectError, inspect


def print_inspection(log: str, tr: Translate, *, as_json: bool) -> int:
    """Print it; of a folder, its first log. Returns the exit status: 0 read, 2 could not be read.

    Raises:
        UserError: a folder without a log.
    """
    log = chosen.files([log], tr)[0]
    try:
        with Progress(msg("reading {path}", path=log), tr) as progress:
            found = inspect(log, told=progress)
    except InspectError as error:
        say(f"yolomon: {log}: {tr(error.message)}", err=True)
        return 2
    if as_json:
        sys.stdout.buffer.write(found.encode() + b"\n")
        sys.stdout.buffer.flush()
    else:
        click.echo(found.text(tr))
    return 0 if found.format else 2
