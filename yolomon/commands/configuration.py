"""`yolomon config`: every setting, its value, and where it comes from."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import msgspec

from yolomon.diagnosis import thresholds as known
from yolomon.messages import Translate
from yolomon.settings import LoadedSettings


def lines(loaded: LoadedSettings, tr: Translate, *, thresholds: bool = False) -> Iterator[str]:
    """The settings as TOML that could be put into the file, each with its origin as a comment."""
    there = tr("read") if loaded.file.is_file() else tr("not there")
    yield f"# {loaded.file} ({there})"
    for name in loaded.settings.__struct_fields__:
        if name == "thresholds":
            continue
        value = msgspec.json.encode(getattr(loaded.settings, name)).decode()
        yield f"{name} = {value}  # {loaded.origin[name]}"
    importlib.import_module("yolomon.diagnosis.rules")  # rules declare their thresholds
    given = loaded.settings.thresholds
    shown = known.DECLARED if thresholds else {name: known.DECLARED.get(name) for name in given}
    if shown:
        yield "\n[thresholds]"
    for name, item in sorted(shown.items()):
        number = given.get(name, None if item is None else item.default)
        about = tr("no rule knows this name") if item is None else f"{item.unit}; {item.about}"
        origin = loaded.origin["thresholds"] if name in given else "default"
        yield f'"{name}" = {number}  # {origin}; {about}'
