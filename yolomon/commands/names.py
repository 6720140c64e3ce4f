"""Names in the settings that only the diagnosis knows: thresholds and codes. One check for every command."""

from __future__ import annotations

import importlib

from yolomon.diagnosis import thresholds as declared
from yolomon.diagnosis.catalog import CATALOG
from yolomon.messages import msg
from yolomon.nearest import nearest
from yolomon.settings import LoadedSettings, SettingsError


def check(loaded: LoadedSettings) -> None:
    """Refuse a threshold or a code that does not exist, and a share that was meant as percent.

    Raises:
        SettingsError: with the place it came from and the right name that is nearest.
    """
    importlib.import_module("yolomon.diagnosis.rules")  # rules declare their thresholds
    where = loaded.origin["thresholds"]
    for name, value in loaded.settings.thresholds.items():
        known = declared.DECLARED.get(name)
        if known is None:
            raise _no_threshold(name, where)
        if known.unit == "share" and value > 1:
            raise SettingsError(
                msg("{name} = {value} ({where}): a share, from 0 to 1", name=name, value=value, where=where)
            )
    for entry in loaded.settings.silenced:
        if entry.partition("@")[0] not in CATALOG:
            raise no_code(entry.partition("@")[0], loaded.origin["silenced"])


def _no_threshold(name: str, where: str) -> SettingsError:
    near = nearest(name, declared.DECLARED)
    if near is None:
        return SettingsError(
            msg(
                "{where}: no threshold is called {name!r}; `yolomon config --thresholds` lists them",
                where=where, name=name,
            )
        )  # fmt: skip
    return SettingsError(
        msg(
            "{where}: no threshold is called {name!r}; did you mean {near!r}?",
            where=where,
            name=name,
            near=near,
        )
    )


def no_code(name: str, where: str) -> SettingsError:
    """There is no such code; `where` is the setting or the command that was given it."""
    near = nearest(name, CATALOG)
    if near is None:
        return SettingsError(
            msg("{where}: there is no code {name!r}; `yolomon explain` lists them", where=where, name=name)
        )
    return SettingsError(
        msg("{where}: there is no code {name!r}; did you mean {near!r}?", where=where, name=name, near=near)
    )
