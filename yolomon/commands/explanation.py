"""`yolomon explain [CODE]`: the catalog for the terminal."""

from __future__ import annotations

import importlib

import click

from yolomon.commands.names import no_code
from yolomon.diagnosis.catalog import CATALOG, explain
from yolomon.messages import Translate
from yolomon.settings import Settings


def print_explanation(code: str | None, settings: Settings, tr: Translate) -> int:
    """Print what a code means, or list all of them. Returns the exit status.

    Raises:
        SettingsError: there is no such code.
    """
    importlib.import_module("yolomon.diagnosis.rules")  # rules declare their thresholds
    if code is None:
        width = max(map(len, CATALOG))
        for entry in sorted(CATALOG.values(), key=lambda entry: entry.code):
            click.echo(f"{entry.code:{width}}  {tr(entry.title)}")
        return 0
    if code not in CATALOG:
        raise no_code(code, "explain")
    click.echo(explain(code, tr, settings.thresholds))
    return 0
