"""Settings: defaults < config file < environment < command line; each value knows where it came from."""

from __future__ import annotations

import math
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from yolomon.messages import Message, UserError, msg
from yolomon.nearest import nearest

ENVIRONMENT_PREFIX = "YOLOMON_"
CONFIG_VARIABLE = ENVIRONMENT_PREFIX + "CONFIG"
# Of the trainer's side (`yolomon run`) and of the project's own checks: no settings, and no mistakes.
OTHER_VARIABLES = frozenset({"YOLOMON_RUN_FEATURES", "YOLOMON_CI_TRAINING"})
THEMES = ("auto", "dark", "light", "high-contrast", "color-blind", "monochrome", "terminal")
LONGEST_INTERVAL_SECONDS = 3600.0  # a wait must fit the platform's time_t
LONGEST_WINDOW_SECONDS = 1e8  # three years


GRAPHS = ("auto", "braille", "blocks", "ascii")
LANGUAGES = ("auto", "en", "zh_CN")
_KINDS: dict[str, Message] = {
    "mouse": msg("true or false"),
    "thresholds": msg("a table of names and numbers"),
    "silenced": msg('a list of codes, e.g. ["stall"]'),
    "theme": msg("a text"),
    "language": msg("a text"),
    "graph": msg("a text"),
}


class SettingsError(UserError):
    """A setting that cannot be used, said in one line with the file or variable it came from."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a user can set. Passed in where needed, never reached for."""

    interval_seconds: float = 1.0  # fast tier; at least 0.5
    slow_interval_seconds: float = 5.0
    window_seconds: float = 300.0  # the graphs' time axis; 0: the whole run
    theme: str = "auto"  # auto, dark, light, high-contrast, color-blind, monochrome, terminal
    language: str = "auto"  # auto (the locale), en, zh_CN
    graph: str = "auto"  # auto, braille, blocks, ascii
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
    file = Path(environment.get(CONFIG_VARIABLE) or file or config_file())
    values: dict[str, Any] = {}
    origin = dict.fromkeys(Settings.__struct_fields__, "default")
    for name, value in _from_file(file).items():
        _check_name(name, str(file))
        values[name], origin[name] = value, str(file)
    for variable, raw in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in (CONFIG_VARIABLE, *OTHER_VARIABLES):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if variable != ENVIRONMENT_PREFIX + name.upper() or name not in Settings.__struct_fields__:
            raise _unknown_variable(variable)
        if raw:  # set to nothing is not set
            values[name], origin[name] = _from_text(name, raw), variable
    for name, value in (options or {}).items():
        if value is not None:
            values[name], origin[name] = value, "option"
    settings = _converted(values, origin)
    _check(settings, origin)
    return LoadedSettings(settings, origin, file)


def _check_name(name: str, where: str) -> None:
    if name in Settings.__struct_fields__:
        return
    near = nearest(name, Settings.__struct_fields__)
    if near is None:
        raise SettingsError(
            msg("{where}: no setting is called {name!r}; `yolomon config` lists them", where=where, name=name)
        )
    raise SettingsError(
        msg(
            "{where}: no setting is called {name!r}; did you mean {near!r}?",
            where=where,
            name=name,
            near=near,
        )
    )


def _unknown_variable(variable: str) -> SettingsError:
    names = [ENVIRONMENT_PREFIX + name.upper() for name in Settings.__struct_fields__]
    near = nearest(
        variable.removeprefix(ENVIRONMENT_PREFIX), [n.removeprefix(ENVIRONMENT_PREFIX) for n in names]
    )
    if near is None:
        return SettingsError(
            msg(
                "{name}: no such variable is known; known are {names}",
                name=variable,
                names=", ".join([*names, CONFIG_VARIABLE]),
            )
        )
    return SettingsError(
        msg(
            "{name}: no such variable is known; did you mean {near}?",
            name=variable,
            near=ENVIRONMENT_PREFIX + near,
        )
    )


def _converted(values: Mapping[str, Any], origin: Mapping[str, str]) -> Settings:
    """The values as settings; one of the wrong kind is refused under its name."""
    for name, value in values.items():
        try:
            msgspec.convert({name: value}, Settings, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(
                msg(
                    "{name} = {value} ({where}): must be {kind}",
                    name=name,
                    value=_shown(value),
                    where=origin[name],
                    kind=_KINDS.get(name, msg("a number")),
                )
            ) from error
    return msgspec.convert(values, Settings, strict=False)


def _shown(value: object) -> str:
    """A value as it is told: one line, of bounded length."""
    text = str(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:59] + "…"


def _check(settings: Settings, origin: Mapping[str, str]) -> None:
    """Refuse, with its origin, a value of the right kind that nothing can be done with."""

    def refuse(name: str, why: Message) -> SettingsError:
        value = _shown(getattr(settings, name))
        return SettingsError(
            msg("{name} = {value} ({where}): {why}", name=name, value=value, where=origin[name], why=why)
        )

    for name in ("interval_seconds", "slow_interval_seconds"):
        if not 0.5 <= getattr(settings, name) <= LONGEST_INTERVAL_SECONDS:
            raise refuse(name, msg("at least 0.5 and at most {most:.0f}", most=LONGEST_INTERVAL_SECONDS))
    if not 0 <= settings.window_seconds <= LONGEST_WINDOW_SECONDS:
        raise refuse("window_seconds", msg("0 (the whole run) to {most:.0f}", most=LONGEST_WINDOW_SECONDS))
    # a locale's whole name ("zh_CN.UTF-8", "zh-Hans") is understood, too: see `messages.normalize_language`
    locale = settings.language.lower().startswith(("en", "zh"))
    for name, known in (("theme", THEMES), ("graph", GRAPHS), ("language", LANGUAGES)):
        value = getattr(settings, name)
        if value in known or (name == "language" and locale):
            continue
        near = nearest(value, known)
        if near is None:
            raise refuse(name, msg("one of {names}", names=", ".join(known)))
        raise refuse(name, msg("did you mean {near!r}? Known are {names}", near=near, names=", ".join(known)))
    for name, number in settings.thresholds.items():
        if not 0 <= number < math.inf:
            where = origin["thresholds"]
            raise SettingsError(
                msg(
                    "{name} = {value} ({where}): must be a number from 0 on",
                    name=name,
                    value=number,
                    where=where,
                )
            )


def _from_file(file: Path) -> dict[str, Any]:
    try:
        kind = file.stat().st_mode
    except OSError:  # also a home that this user may not enter (`sudo -u`): there are no settings for them
        return {}
    try:
        if stat.S_ISFIFO(kind):  # reading it would wait for a writer
            raise SettingsError(msg("{path} is no regular file", path=str(file)))
        text = file.read_text("utf-8-sig")  # some editors put a byte order mark in front
    except OSError as error:
        raise SettingsError(
            msg("{path} cannot be read: {why}", path=str(file), why=error.strerror or str(error))
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(msg("{path} is no UTF-8 text", path=str(file))) from error
    values, why = _toml(text)
    if why is not None:
        raise SettingsError(msg("{path} is no TOML: {why}", path=str(file), why=why))
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
    except (
        ValueError,
        RecursionError,
    ) as error:  # also thousands of digits or brackets
        return {}, str(error)
