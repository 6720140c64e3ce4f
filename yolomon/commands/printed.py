"""Lines on standard output and standard error that hold what came from outside: paths, options, log lines."""

from __future__ import annotations

import click

from yolomon.messages import one_line


def say(line: str, *, err: bool = False) -> None:
    """Print one line; nothing in it reaches the terminal as an escape sequence or a second line."""
    click.echo(one_line(line), err=err)
