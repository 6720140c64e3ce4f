"""Thresholds of all rules: name, default, unit and why. Overridden by `[thresholds]` of the settings file."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Threshold(msgspec.Struct, frozen=True):
    """One number a rule uses."""

    name: str  # "data-starvation.share"
    default: float
    unit: str
    about: str


class Thresholds:
    """The thresholds in force. Rules declare theirs at import with `declare`."""

    def __init__(self, overrides: Mapping[str, float] | None = None) -> None:
        self._values = {name: item.default for name, item in DECLARED.items()}
        for name, value in (overrides or {}).items():
            if name not in DECLARED:
                raise KeyError(f"no threshold named {name!r}")
            self._values[name] = float(value)

    def __getitem__(self, name: str) -> float:
        return self._values[name]


DECLARED: dict[str, Threshold] = {}


def declare(name: str, default: float, unit: str, about: str) -> str:
    """Declare a threshold once, at import of the rule that uses it. Returns its name.

    Raises:
        ValueError: the name is taken.
    """
    if name in DECLARED:
        raise ValueError(f"threshold {name!r} is declared twice")
    DECLARED[name] = Threshold(name, default, unit, about)
    return name
