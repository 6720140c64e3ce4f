"""`yolomon config`: every setting, its value, and where it comes from."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator

import msgspec

from yolomon.diagnosis import thresholds as known
from yolomon.messages import Message, Translate
from yolomon.settings import LoadedSettings


def lines(loaded: LoadedSettings, tr: Translate, *, thresholds: bool = False) -> Iterator[str]:
    """The settings as TOML that could be put into the file, each with its origin as a comment."""
    there = tr("read") if os.path.isfile(loaded.file) else tr("not there")  # noqa: PTH113 - a folder may be closed to this user
    yield f"# {loaded.file} ({there})"
    for name in loaded.settings.__struct_fields__:
        if name == "thresholds":
            continue
        value = msgspec.json.encode(getattr(loaded.settings, name)).decode()
        yield f"{name} = {value}  # {loaded.origin[name]}"
    importlib.import_module("yolomon.diagnosis.rules")  # rules declare their thresholds
    given = loaded.settings.thresholds
    shown = [item for name, item in sorted(known.DECLARED.items()) if thresholds or name in given]
    if shown:
        yield "\n[thresholds]"
    for item in shown:
        origin = loaded.origin["thresholds"] if item.name in given else "default"
        number = given.get(item.name, item.default)
        yield f'"{item.name}" = {number}  # {origin}; {item.unit}; {tr(Message(item.about))}'
