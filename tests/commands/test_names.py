"""A name that does not exist is told with the right one that is nearest, by every command in the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [
    ("--once",),
    (),
    ("demo",),
    ("replay", "none.jsonl"),
    ("record", "-o", "out.jsonl", "--seconds", "1"),
    ("diagnose", "none.jsonl"),
    ("explain",),
    ("inspect", "none.jsonl"),
    ("doctor",),
    ("config",),
    ("serve",),
]


def yolomon(
    *arguments: str, folder: Path, config: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    file = folder / "config.toml"
    file.write_text(config)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("YOLOMON_")}
    return subprocess.run(
        [sys.executable, "-m", "yolomon", *arguments],
        env={
            **environment,
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
            "YOLOMON_CONFIG": str(file),
            **variables,
        },
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("yolomon: ")
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0] if words else "dashboard")
def test_every_command_refuses_an_unknown_threshold(command: tuple[str, ...], tmp_path: Path) -> None:
    result = yolomon(*command, folder=tmp_path, config='[thresholds]\n"data-starvation.shar" = 0.4\n')
    refused(result, "config.toml", "'data-starvation.shar'", "did you mean 'data-starvation.share'?")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("them = 'dark'", ("'them'", "did you mean 'theme'?")),
        ("[threshold]", ("'threshold'", "did you mean 'thresholds'?")),
        ("interval = 2", ("'interval'", "did you mean 'interval_seconds'?")),
        ("colour = 2", ("'colour'", "`yolomon config` lists them")),
        ("theme = 'drak'", ("theme = drak", "did you mean 'dark'?")),
        ("graph = 'brail'", ("did you mean 'braille'?",)),
        ("graph = 'oil'", ("one of auto, braille, blocks, ascii",)),
        ("language = 'cn'", ("zh_CN",)),
        ("mouse = 'maybe'", ("mouse = maybe", "true or false")),
        ("silenced = 'stall'", ("a list of codes",)),
        ("silenced = ['stal']", ("'stal'", "did you mean 'stall'?")),
        ("silenced = ['vram-grow@gpu1']", ("did you mean 'vram-growth'?",)),
        ("[thresholds]\n'bottle.neck' = 1", ("'bottle.neck'", "`yolomon config --thresholds`")),
        ("[thresholds]\n'data-starvation.share' = 40", ("a share, from 0 to 1",)),
        ("[thresholds]\n'data-starvation.share' = -0.1", ("from 0 on",)),
        ("[thresholds]\n'stall.seconds' = inf", ("from 0 on",)),
        ("[thresholds]\n'stall.seconds' = true", ("a table of names and numbers",)),
        ("window_seconds = true", ("window_seconds", "a number")),
        ("window_seconds = " + "9" * 5000, ("config.toml",)),
        ("theme = " + "[" * 5000, ("config.toml",)),
    ],
)
def test_a_wrong_name_or_value_in_the_file(config: str, words: tuple[str, ...], tmp_path: Path) -> None:
    refused(yolomon("config", folder=tmp_path, config=config), *words)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("YOLOMON_THEEM", "dark", ("did you mean YOLOMON_THEME?",)),
        ("YOLOMON_WINDOW", "60", ("did you mean YOLOMON_WINDOW_SECONDS?",)),
        ("YOLOMON_theme", "dark", ("did you mean YOLOMON_THEME?",)),
        ("YOLOMON_XYZ", "1", ("known are YOLOMON_INTERVAL_SECONDS",)),
        ("YOLOMON_THEME", "drak", ("YOLOMON_THEME", "did you mean 'dark'?")),
        ("YOLOMON_MOUSE", "maybe", ("YOLOMON_MOUSE", "true or false")),
        ("YOLOMON_WINDOW_SECONDS", "nan", ("the whole run",)),
        ("YOLOMON_WINDOW_SECONDS", "1e999", ("the whole run",)),
        ("YOLOMON_INTERVAL_SECONDS", "-1", ("at least 0.5",)),
        ("YOLOMON_THRESHOLDS", "{'stall.secs' = 3}", ("YOLOMON_THRESHOLDS", "did you mean 'stall.seconds'?")),
        ("YOLOMON_SILENCED", "['nan']", ("YOLOMON_SILENCED",)),
    ],
)
def test_a_wrong_variable(variable: str, value: str, words: tuple[str, ...], tmp_path: Path) -> None:
    refused(yolomon("config", folder=tmp_path, **{variable: value}), *words)


def test_a_variable_set_to_nothing_is_not_set(tmp_path: Path) -> None:
    result = yolomon("config", folder=tmp_path, YOLOMON_THEME="", YOLOMON_LANGUAGE="")
    assert result.returncode == 0
    assert 'theme = "auto"  # default' in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("docter",), ("'docter'", "`yolomon doctor`", "./docter")),
        (("Diagnose", "x"), ("`yolomon diagnose`",)),
        (("explain", "vram-grwth"), ("did you mean 'vram-growth'?",)),
        (("explain", "zzz"), ("`yolomon explain` lists them",)),
        (("demo", "--theme", "lihgt"), ("option", "did you mean 'light'?")),
        (("demo", "--graph", "brail"), ("option", "did you mean 'braille'?")),
        (("demo", "--window", "nan"), ("option", "the whole run")),
        (("record", "-o", "x", "--interval", "inf"), ("option", "at least 0.5")),
        (("diagnose", "x", "--language", "klingon"), ("option", "zh_CN")),
    ],
)
def test_a_wrong_word_on_the_command_line(
    arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    refused(yolomon(*arguments, folder=tmp_path), *words)


@pytest.mark.parametrize(
    "arguments",
    [("--onec",), ("demo", "--sped", "4"), ("--json",), ("x.log", "--tee", "y"), ("-", "x.log", "--once")],
)
def test_options_that_do_not_exist_or_do_not_go_together(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = yolomon(*arguments, folder=tmp_path)
    assert result.returncode == 2
    assert "Usage:" in result.stderr and "Error:" in result.stderr


def test_a_file_with_the_name_of_a_misspelt_command_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "docter").write_text('{"epoch": 1, "epochs": 3, "step": 1, "loss": 0.5}\n')
    result = yolomon("docter", "--once", folder=tmp_path)
    assert result.returncode == 0
    assert "epoch 1/3" in result.stdout


def test_a_refusal_is_in_the_language_that_was_chosen(tmp_path: Path) -> None:
    for result in (
        yolomon("diagnose", "none.jsonl", "--language", "zh_CN", folder=tmp_path),
        yolomon("config", folder=tmp_path, config="them = 1", YOLOMON_LANGUAGE="zh_CN"),
        yolomon("config", folder=tmp_path, config="language = 'zh_CN'\n[thresholds]\n'x.y' = 1"),
    ):
        assert result.returncode == 2
        assert not result.stderr.isascii(), result.stderr
