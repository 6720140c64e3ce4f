"""The command line as a user meets it: good input works, bad input is one clear line, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "YOLOMON_CONFIG": "/nonexistent/config.toml"}


START = 1_796_000_000


def yolomon(
    *arguments: str | Path, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yolomon", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        env={**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).resolve().parents[1]), **variables},
    )


def log_of(folder: Path, *losses: str) -> Path:
    path = folder / "train.jsonl"
    lines = [
        f'{{"ts": {START + step}, "event": "batch", "epoch": 1, "epochs": 3, "batch": {step}, "batches": 99, '
        f'"step": {step}, "step_time": 0.1, "train/box_loss": {loss}}}'
        for step, loss in enumerate(losses, 1)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_help_names_every_command() -> None:
    words = yolomon("--help").stdout
    for command in (
        "config",
        "demo",
        "diagnose",
        "doctor",
        "explain",
        "inspect",
        "record",
        "replay",
        "run",
        "serve",
    ):
        assert command in words


def test_once_prints_one_reading_as_text_and_as_json(tmp_path: Path) -> None:
    log = log_of(tmp_path, "1.5", "1.25")
    text = yolomon("--once", log)
    assert text.returncode == 0
    assert "epoch 1/3" in text.stdout
    body = json.loads(yolomon("--once", "--json", log).stdout)
    assert body["train"]["step"] == 2
    assert body["train"]["last"]["roles"]["loss"] == 1.25
    assert body["host"]["memory_total_bytes"] > 0


def test_without_a_terminal_it_says_what_to_do() -> None:
    result = yolomon("demo")
    assert result.returncode == 2
    assert "ssh -t" in result.stderr


@pytest.mark.parametrize("command", [("inspect",), ("diagnose",), ("--once",), ("doctor",)])
@pytest.mark.parametrize("kind", ["missing", "empty", "folder", "binary", "escapes", "fifo"])
def test_bad_input_is_a_clear_line_and_no_traceback(
    tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    path = tmp_path / "input.log"
    if kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(os.urandom(4096) + b"\0" * 512)
    elif kind == "escapes":
        path.write_bytes(b"\x1b]0;owned\x07\x1b[2J[bold]not markup[/bold] {not: json}\n" * 5)
    elif kind == "fifo":
        os.mkfifo(path)
    result = yolomon(*command, path)
    assert "Traceback" not in result.stderr + result.stdout
    assert "\x1b" not in result.stdout + result.stderr
    assert result.returncode in (0, 1, 2)
    if command[0] in ("inspect", "diagnose"):
        assert result.returncode == 2
        assert str(path) in result.stderr + result.stdout


def test_diagnose_of_a_log_alone_finds_nan_and_exits_with_1(tmp_path: Path) -> None:
    log = log_of(tmp_path, *["1.0"] * 20, *["NaN"] * 5)
    result = yolomon("diagnose", log, "--json")
    assert result.returncode == 1
    first = json.loads(result.stdout.splitlines()[0])
    assert (first["code"], first["target"], first["severity"]) == ("nan-loss", "run", "critical")
    assert first["onset_ts"] == START + 21
    assert "nan-loss" in yolomon("diagnose", log).stdout


def test_diagnose_of_a_healthy_log_exits_with_0_and_the_times_add_up(tmp_path: Path) -> None:
    log = log_of(tmp_path, *["1.0"] * 50)
    result = yolomon("diagnose", log, "--json")
    assert result.returncode == 0
    split = json.loads(result.stdout.splitlines()[-1])
    assert split["code"] == "time-split"
    assert sum(split["seconds"].values()) == pytest.approx(split["elapsed_seconds"], abs=0.01)


def test_a_language_is_chosen_by_locale_and_by_option(tmp_path: Path) -> None:
    log = log_of(tmp_path, *["1.0"] * 5)
    english = yolomon("diagnose", log).stdout
    chinese = yolomon("diagnose", log, LC_ALL="zh_CN.UTF-8").stdout
    assert "Nothing wrong" in english
    assert "Nothing wrong" not in chinese
    assert chinese == yolomon("diagnose", log, "--language", "zh_CN").stdout


def test_a_bad_settings_file_is_said_with_its_name(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("them = 1\n")
    result = yolomon("config", YOLOMON_CONFIG=str(config))
    assert result.returncode == 2
    assert "config.toml" in result.stderr
    assert "them" in result.stderr


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "inf", "1e9"])
def test_a_speed_at_which_nothing_can_be_seen_is_refused(speed: str) -> None:
    result = yolomon("replay", "none.jsonl", "--speed", speed)
    assert result.returncode == 2
    assert "'--speed'" in result.stderr


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_recording_of_no_length_is_refused(tmp_path: Path, seconds: str) -> None:
    result = yolomon("record", "-o", tmp_path / "out.jsonl", "--seconds", seconds)
    assert result.returncode == 2
    assert not (tmp_path / "out.jsonl").exists()


def test_a_full_disk_under_the_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "yolomon", "explain"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=ENVIRONMENT,
        )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr == "yolomon: the output: No space left on device\n"


def test_an_unknown_threshold_is_said(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[thresholds]\n"nan-loss.patience" = 3\n')
    result = yolomon("--once", log_of(tmp_path, "1.0"), YOLOMON_CONFIG=str(config))
    assert result.returncode == 2
    assert "nan-loss.patience" in result.stderr


def test_config_shows_values_and_where_they_come_from(tmp_path: Path) -> None:
    lines = yolomon("config", "--thresholds", YOLOMON_THEME="light").stdout
    assert 'theme = "light"  # YOLOMON_THEME' in lines
    assert "window_seconds = 300.0  # default" in lines
    assert '"data-starvation.share"' in lines


def test_explain_knows_near_misses() -> None:
    assert "vram-growth" in yolomon("explain", "vram-growth").stdout
    result = yolomon("explain", "vram-grwth")
    assert result.returncode == 2
    assert "vram-growth" in result.stderr


def test_a_recording_can_be_diagnosed_and_recorded_anew(tmp_path: Path) -> None:
    log = log_of(tmp_path, *["1.0"] * 20, *["NaN"] * 5)
    output = tmp_path / "out.jsonl"
    result = yolomon("record", "-o", output, "--seconds", "3", log)
    assert result.returncode == 0, result.stderr
    kinds = {json.loads(line)["type"] for line in output.read_text().splitlines()}
    assert {"header", "sample", "train"} <= kinds
    assert yolomon("diagnose", output).returncode == 1
    again = yolomon("record", "-o", output, "--seconds", "1", log)
    assert again.returncode == 2
    assert str(output) in again.stderr


def test_a_replay_of_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", log_of(tmp_path, "1.0"), tmp_path):
        result = yolomon("replay", path)
        assert result.returncode == 2
        assert str(path) in result.stderr + result.stdout
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "{name}"),
        ("--once", "{name}"),
        ("diagnose", "{name}"),
        ("replay", "{name}"),
        ("doctor", "{name}"),
        ("record", "--seconds", "0.5", "-o", "absent/{name}"),
        ("--once", "--theme", "{name}"),
        ("inspect", "folder of {name}"),
        ("--once", "folder of {name}"),
    ],
    ids=lambda arguments: " ".join(arguments[:-1]),
)
def test_a_name_reaches_the_terminal_as_one_line_without_escapes(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A path or an option may hold a line's end, a window's title (OSC) and half a character."""
    name = "odd\n\x1b]0;title\x07\udcff"
    folder = tmp_path / f"folder of {name}"
    folder.mkdir()
    log_of(folder, "0.5", "0.4")
    done = subprocess.run(
        [sys.executable, "-m", "yolomon", *(a.replace("{name}", name) for a in arguments)],
        capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL, cwd=tmp_path,
        env={**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert not {0x1B, 0x07, 0xFF} & set(told)
    if arguments[0] != "doctor":  # its checks name the file only where it can be read
        assert b"?]0;title??" in told
