"""`yolomon explain [CODE]`: the catalog for the terminal."""

from __future__ import annotations

import difflib
import importlib

import click

from yolomon.diagnosis.catalog import CATALOG, explain
from yolomon.messages import Translate
from yolomon.settings import Settings


def print_explanation(code: str | None, settings: Settings, tr: Translate) -> int:
    """Print what a code means, or list all of them. Returns the exit status; 2: no such code."""
    importlib.import_module("yolomon.diagnosis.rules")  # rules declare their thresholds
    if code is None:
        width = max(map(len, CATALOG))
        for entry in sorted(CATALOG.values(), key=lambda entry: entry.code):
            click.echo(f"{entry.code:{width}}  {tr(entry.title)}")
        return 0
    if code not in CATALOG:
        near = difflib.get_close_matches(code, CATALOG, n=1)
        click.echo(tr("There is no code {code!r}; `yolomon explain` lists all.", code=code), err=True)
        if near:
            click.echo(tr("Did you mean {code}?", code=near[0]), err=True)
        return 2
    click.echo(explain(code, tr, settings.thresholds))
    return 0
