"""The command line: each command is a thin door to one module. Heavy imports happen inside the commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from yolomon.messages import Translate
    from yolomon.settings import LoadedSettings

F = TypeVar("F", bound=Callable[..., Any])


class Between(click.FloatRange):
    """A number within limits. `click.FloatRange` lets NaN through: it is neither below nor above."""

    def __init__(self, least: float, most: float) -> None:
        super().__init__(min=least, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if number != number:
            self.fail(f"{value} is no number.", param, ctx)
        return number


class DefaultToWatch(click.Group):
    """A group in which `yolomon LOG ...` and `yolomon` alone mean `yolomon watch`."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command; what the user gave and cannot be used is one line and exit status 2."""
        from yolomon.commands.printed import say
        from yolomon.messages import UserError, translator

        _SPOKEN.clear()
        try:
            return super().main(*arguments, **options)
        except UserError as error:
            tr = translator(_language(_SPOKEN[-1] if _SPOKEN else "auto"))
            say(f"yolomon: {tr(error.message)}", err=True)
            sys.exit(2)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `watch` in front where the first word is no command, unless it was surely meant as one."""
        own = {"--help", "-h", "--version"}
        if not args or (args[0] not in self.commands and args[0] not in own):
            if args:
                _refuse_a_misspelt_command(args[0], self.commands)
            args = ["watch", *args]
        return super().parse_args(ctx, args)


_SPOKEN: list[str] = []  # the language that was set, for an error after that


def _refuse_a_misspelt_command(word: str, commands: Iterable[str]) -> None:
    """A bare word that is no file and nearly a command: waiting for a log of that name would help nobody."""
    if not word.isalpha() or os.path.lexists(word):
        return
    from yolomon.messages import UserError, msg
    from yolomon.nearest import nearest

    near = nearest(word, commands, 0.75)
    if near is not None:
        raise UserError(
            msg(
                "there is no command and no file {word!r}; did you mean `yolomon {near}`? "
                "(A log that is still to come: ./{word})",
                word=word, near=near,
            )
        )  # fmt: skip


def _tell_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        import yolomon

        click.echo(f"yolomon {yolomon.__version__}")
        ctx.exit()


@click.group(cls=DefaultToWatch, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version.",
)
def cli() -> None:
    """A terminal dashboard for training YOLO and other detectors on NVIDIA GPUs.

    `yolomon [LOG ...]` opens the dashboard; without a LOG it finds the one of the running training.
    """


def screen_options(command: F) -> F:
    """The options of every command that opens the screen."""
    for option in (
        click.option(
            "--window",
            "window_seconds",
            type=float,
            help="Seconds on the graphs' time axis; 0: the whole run.",
        ),
        click.option("--theme", help="auto, dark, light, high-contrast, color-blind, monochrome, terminal."),
        click.option("--language", help="auto, en or zh_CN."),
        click.option("--graph", help="auto, braille, blocks or ascii: how graphs are drawn."),
        click.option("--mouse/--no-mouse", default=None, help="Use the mouse."),
    ):
        command = option(command)
    return command


@cli.command(hidden=True)
@click.argument("logs", nargs=-1, metavar="[LOG ...]")
@click.option("--once", is_flag=True, help="Print one reading and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print JSON.")
@click.option(
    "--tee", type=click.Path(dir_okay=False), help="With LOG '-': also write the input to this file."
)
@click.option(
    "--interval", "interval_seconds", type=float, help="Seconds between two readings (at least 0.5)."
)
@screen_options
def watch(logs: tuple[str, ...], once: bool, as_json: bool, tee: str | None, **options: Any) -> None:
    """Open the dashboard (the command that needs no name)."""
    if as_json and not once:
        raise click.UsageError("--json goes with --once.")
    if "-" in logs and len(logs) > 1:
        raise click.UsageError("LOG '-' (standard input) goes with no other LOG.")
    if tee is not None and logs != ("-",):
        raise click.UsageError("--tee goes with LOG '-' (standard input).")
    if logs == ("-",) and sys.stdin.isatty():
        raise click.UsageError("LOG '-' reads what is piped in: yolo train ... 2>&1 | yolomon -")
    loaded, tr = _settings(options)
    if once:
        from yolomon.commands import reading

        sys.exit(reading.print_once(logs, loaded.settings, tr, as_json=as_json, tee=tee))
    _need_terminal()

    def session() -> Any:
        from yolomon import live

        return live.attach(logs, loaded.settings, tee=Path(tee) if tee else None)

    try:
        _show(session, loaded, tr)
    finally:
        if logs == ("-",):
            _pass_on(tee, tr)


@cli.command()
@click.option(
    "--speed",
    type=Between(0.01, 1000),
    default=1.0,
    show_default=True,
    help="How many times faster than recorded.",
)
@screen_options
def demo(speed: float, **options: Any) -> None:
    """Show a recording that ships with yolomon. Needs no GPU and no network.

    The recording is stitched together from real runs on two H200: the curves of a whole run, then a
    straggling rank, then memory growth.
    """
    loaded, tr = _settings(options)
    _need_terminal()

    def session() -> Any:
        from yolomon import live

        return live.demo(speed, loaded.settings)

    _show(session, loaded, tr, demo=True)


@cli.command()
@click.argument("recording", type=click.Path())
@click.option("--log", "logs", multiple=True, type=click.Path(), help="A trainer's log to play beside it.")
@click.option(
    "--speed",
    type=Between(0.01, 1000),
    default=1.0,
    show_default=True,
    help="How many times faster than recorded.",
)
@screen_options
def replay(recording: str, logs: tuple[str, ...], speed: float, **options: Any) -> None:
    """Play a recording on the dashboard."""
    loaded, tr = _settings(options)
    from yolomon import live

    with _reading(tr) as told:
        session = live.replay(recording, logs, speed, loaded.settings, told=told)
    _need_terminal()
    _show(session, loaded, tr)


@cli.command()
@click.argument("logs", nargs=-1, metavar="[LOG ...]")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
@click.option(
    "--seconds",
    type=Between(0.5, 1e9),
    help="Stop after this long; else at Ctrl-C or SIGTERM.",
)
@click.option(
    "--interval", "interval_seconds", type=float, help="Seconds between two readings (at least 0.5)."
)
def record(logs: tuple[str, ...], output: str, seconds: float | None, **options: Any) -> None:
    """Write what flows to a file, without a screen (schema yolomon.telemetry/1)."""
    loaded, tr = _settings(options)
    from yolomon.commands import recording

    sys.exit(recording.record(logs, Path(output), loaded.settings, tr, seconds=seconds))


@cli.command()
@click.argument("what", required=False, metavar="[RECORDING|RUN_DIR|LOG]")
@click.option("--telemetry", type=click.Path(), help="A recording of the devices.")
@click.option("--log", "logs", multiple=True, type=click.Path(), help="A trainer's log; one for each rank.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each finding.")
@click.option("--language", help="auto, en or zh_CN.")
def diagnose(
    what: str | None, telemetry: str | None, logs: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Say after the fact what was wrong: from a recording, a run's folder, or a log alone.

    Exit status: 0 nothing found, 1 findings, 2 the input could not be read.
    """
    loaded, tr = _settings(options)
    from yolomon.commands import report

    sys.exit(report.diagnose(what, telemetry, logs, loaded.settings, tr, as_json=as_json))


@cli.command()
@click.argument("code", required=False)
@click.option("--language", help="auto, en or zh_CN.")
def explain(code: str | None, **options: Any) -> None:
    """Tell what a finding means, the rule behind it, what could fool it and what to try."""
    loaded, tr = _settings(options)
    from yolomon.commands import explanation

    sys.exit(explanation.print_explanation(code, loaded.settings, tr))


@cli.command()
@click.argument("log", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--language", help="auto, en or zh_CN.")
def inspect(log: str, as_json: bool, **options: Any) -> None:
    """Print what was recognised in a log: format, roles, segments, records, broken lines."""
    _, tr = _settings(options)
    from yolomon.commands import inspection

    sys.exit(inspection.print_inspection(log, tr, as_json=as_json))


@cli.command()
@click.argument("log", required=False, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each check.")
@click.option("--language", help="auto, en or zh_CN.")
def doctor(log: str | None, as_json: bool, **options: Any) -> None:
    """Check driver, NVML, container, terminal, locale and log. Exit status 1 when a check fails."""
    _, tr = _settings(options)
    from yolomon.commands import checkup

    sys.exit(checkup.print_checks(log, tr, as_json=as_json))


@cli.command()
@click.option("--thresholds", is_flag=True, help="Also every threshold of every rule, with unit and default.")
@click.option("--language", help="auto, en or zh_CN.")
def config(thresholds: bool, **options: Any) -> None:
    """Print every setting, its value and where it comes from."""
    loaded, tr = _settings(options)
    from yolomon.commands import configuration
    from yolomon.commands.printed import say

    for line in configuration.lines(loaded, tr, thresholds=thresholds):
        say(line)


@cli.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": ["--help"],
    }
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND ...")
@click.option("--features/--no-features", default=False, help="Also write statistics of feature maps.")
def run(command: tuple[str, ...], features: bool) -> None:
    """Run a training command with yolomon's own stream beside it: `yolomon run yolo detect train ...`."""
    from yolomon.trainer import launch

    sys.exit(launch.run(list(command), features=features))


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[LOG ... | demo | replay FILE]")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="On 127.0.0.1.")
def serve(arguments: tuple[str, ...], port: int) -> None:
    """Show the same screen in a browser, on 127.0.0.1 behind a token."""
    _, tr = _settings({})
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a browser that leaves ends nothing
    from yolomon.commands import browser

    sys.exit(browser.serve(arguments, port, tr))


# ---------------------------------------------------------------- shared by the commands


def _settings(options: dict[str, Any]) -> tuple[LoadedSettings, Translate]:
    """The settings, each name and value checked: the same way for every command."""
    from yolomon.messages import translator
    from yolomon.settings import load

    _SPOKEN.append(options.get("language") or os.environ.get("YOLOMON_LANGUAGE") or "auto")
    loaded = load(options)
    _SPOKEN.append(loaded.settings.language)
    if loaded.settings.thresholds or loaded.settings.silenced:
        from yolomon.commands import names

        names.check(loaded)
    return loaded, translator(_language(loaded.settings.language))


def _language(setting: str) -> str:
    if setting != "auto":
        return setting
    names: Sequence[str] = ("LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG")
    return next((value for name in names if (value := os.environ.get(name))), "en")


def _need_terminal() -> None:
    from yolomon.messages import UserError, msg

    if os.environ.get("TEXTUAL_DRIVER"):  # a browser
        return
    if not sys.stdout.isatty():
        raise UserError(
            msg(
                "The dashboard needs a terminal. Over SSH: ssh -t HOST yolomon. "
                "For scripts: yolomon --once --json."
            )
        )
    term = os.environ.get("TERM", "")
    if term in ("dumb", "unknown", ""):
        raise UserError(
            msg(
                "TERM={term} cannot place text on the screen. "
                "Set TERM=xterm-256color, or use yolomon --once.",
                term=term or '""',
            )
        )


def _pass_on(tee: str | None, tr: Translate) -> None:
    """The screen was left, the training goes on: somebody has to read its pipe."""
    from yolomon.commands.printed import say
    from yolomon.trainlog import stream

    if stream.has_ended():
        return
    where = tr("the terminal") if tee is None else tee
    say(
        tr("The training goes on; its output is passed on to {where}. Ctrl-C ends it.", where=where), err=True
    )

    def fault(error: OSError) -> None:
        why = tr("The log cannot be passed on: {reason}", reason=error.strerror or str(error))
        with suppress(OSError):  # the terminal is gone, too; the training goes on
            say(why, err=True)

    stream.pass_on(tee=tee, told=fault)


@contextmanager
def _reading(tr: Translate) -> Iterator[Callable[[str, float], object]]:
    """How far the reading of the logs beside a recording is, as a line on the terminal."""
    from yolomon.commands.progress import Progress
    from yolomon.messages import msg

    with Progress(msg("reading {path}"), tr) as progress:
        yield lambda path, percent: progress(percent, path=path)


def _show(session: Any, loaded: LoadedSettings, tr: Translate, *, demo: bool = False) -> None:
    """Open the screen over a session, or over a callable that makes one once the first picture is there."""
    from yolomon.lean import begin_screen

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the screen has a terminal to give back first
    begin_screen()
    from yolomon.tui import kept
    from yolomon.tui.run import show

    file = kept.state_file()
    before = kept.read(file)
    settings = kept.applied(loaded.settings, loaded.origin, before)
    sys.exit(show(session, settings, tr, kept.Keeper(file, before), demo=demo))
