"""Settings: defaults < config file < environment < command line; each value knows where it came from."""

from __future__ import annotations

import math
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

ENVIRONMENT_PREFIX = "YOLOMON_"
THEMES = ("auto", "dark", "light", "high-contrast", "color-blind", "monochrome", "terminal")
LONGEST_INTERVAL_SECONDS = 3600.0  # a wait must fit the platform's time_t
LONGEST_WINDOW_SECONDS = 1e8  # three years


class SettingsError(ValueError):
    """A setting that cannot be used, said in one line with the file or variable it came from."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a user can set. Passed in where needed, never reached for."""

    interval_seconds: float = 1.0  # fast tier; at least 0.5
    slow_interval_seconds: float = 5.0
    window_seconds: float = 300.0  # the graphs' time axis; 0: the whole run
    theme: str = "auto"  # auto, dark, light, high-contrast, color-blind, monochrome, terminal
    language: str = "auto"  # auto (the locale), en, zh_CN
    graph: Literal["auto", "braille", "blocks", "ascii"] = "auto"
    mouse: bool = True
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)  # by name, see `yolomon config`
    silenced: tuple[str, ...] = ()  # codes never shown


class LoadedSettings(msgspec.Struct, frozen=True):
    """Settings and where each value came from: "default", a file, a variable or "option"."""

    settings: Settings
    origin: dict[str, str]
    file: Path


def config_file() -> Path:
    """Where the settings file lies (it need not exist)."""
    import platformdirs

    return Path(platformdirs.user_config_dir("yolomon")) / "config.toml"


def load(
    options: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> LoadedSettings:
    """Read all layers.

    Args:
        options: values given on the command line; None means "not given".
        environment: the process's environment unless given; `YOLOMON_INTERVAL_SECONDS=2` sets one.
        file: the settings file unless the default one is meant.

    Raises:
        SettingsError: a file that is not TOML, an unknown name, or a value of the wrong kind.
    """
    environment = os.environ if environment is None else environment
    file = Path(environment.get(ENVIRONMENT_PREFIX + "CONFIG") or file or config_file())
    values: dict[str, Any] = {}
    origin = dict.fromkeys(Settings.__struct_fields__, "default")
    for name, value in _from_file(file).items():
        values[name], origin[name] = value, str(file)
    for name in Settings.__struct_fields__:
        raw = environment.get(ENVIRONMENT_PREFIX + name.upper())
        if raw is not None:
            values[name], origin[name] = _from_text(name, raw), ENVIRONMENT_PREFIX + name.upper()
    for name, value in (options or {}).items():
        if value is not None:
            values[name], origin[name] = value, "option"
    for name in values:
        if name not in Settings.__struct_fields__:
            raise SettingsError(f"{origin[name]}: unknown setting {name!r}")
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].split("[")[0].rstrip("`")
        raise SettingsError(f"{origin.get(name, file)}: {name}: {error}") from error
    _check(settings, origin)
    return LoadedSettings(settings, origin, file)


def _check(settings: Settings, origin: Mapping[str, str]) -> None:
    """Refuse, with its origin, a value of the right kind that nothing can be done with."""

    def refuse(name: str, why: str) -> SettingsError:
        return SettingsError(f"{name} = {getattr(settings, name)} ({origin[name]}): {why}")

    for name in ("interval_seconds", "slow_interval_seconds"):
        if not 0.5 <= getattr(settings, name) <= LONGEST_INTERVAL_SECONDS:
            raise refuse(name, f"at least 0.5 and at most {LONGEST_INTERVAL_SECONDS:.0f}")
    if not 0 <= settings.window_seconds <= LONGEST_WINDOW_SECONDS:
        raise refuse("window_seconds", f"0 (the whole run) to {LONGEST_WINDOW_SECONDS:.0f}")
    if settings.theme not in THEMES:
        raise refuse("theme", "one of " + ", ".join(THEMES))
    # a locale's whole name ("zh_CN.UTF-8", "zh-Hans") is understood, too: see `messages.normalize_language`
    if settings.language != "auto" and not settings.language.lower().startswith(("en", "zh")):
        raise refuse("language", "one of auto, en, zh_CN")
    for name, value in settings.thresholds.items():
        if not math.isfinite(value):
            raise SettingsError(f"{name} = {value} ({origin['thresholds']}): no number to compare with")


def _from_file(file: Path) -> dict[str, Any]:
    try:
        kind = file.stat().st_mode
    except OSError:  # also a home that this user may not enter (`sudo -u`): there are no settings for them
        return {}
    try:
        if stat.S_ISFIFO(kind):  # reading it would wait for a writer
            raise SettingsError(f"{file}: no regular file")
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error
    values, why = _toml(text)
    if why is not None:
        raise SettingsError(f"{file}: {why}")
    return values


def _from_text(name: str, raw: str) -> Any:  # noqa: ANN401 - any TOML value
    """A variable's value: TOML where it parses as such (lists, tables), else the bare text."""
    values, why = _toml(f"value = {raw}")
    return values["value"] if why is None else raw


def _toml(text: str) -> tuple[dict[str, Any], str | None]:
    """What a text of TOML says, or why it is none. The parser is loaded only where there is such a text."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text), None
    except tomllib.TOMLDecodeError as error:
        return {}, str(error)
