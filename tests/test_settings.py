"""Defaults < file < environment < options, and each value knows where it came from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolomon.settings import THEMES, SettingsError, load
from yolomon.tui import theme


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('theme = "light"\nwindow_seconds = 60\nlanguage = "zh_CN"\n')
    loaded = load({"theme": "dark", "mouse": None}, environment={"YOLOMON_WINDOW_SECONDS": "900"}, file=file)
    assert (loaded.settings.theme, loaded.origin["theme"]) == ("dark", "option")
    assert (loaded.settings.window_seconds, loaded.origin["window_seconds"]) == (
        900,
        "YOLOMON_WINDOW_SECONDS",
    )
    assert (loaded.settings.language, loaded.origin["language"]) == ("zh_CN", str(file))
    assert (loaded.settings.mouse, loaded.origin["mouse"]) == (True, "default")


def test_thresholds_are_a_table(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[thresholds]\n"data-starvation.share" = 0.4\n')
    assert load(environment={}, file=file).settings.thresholds == {"data-starvation.share": 0.4}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("theme = ", "config.toml"),
        ("them = 'dark'", "them"),
        ("mouse = 'maybe'", "mouse"),
        ("interval_seconds = 0.01", "at least 0.5"),
        ("graph = 'oil'", "graph"),
        ("interval_seconds = inf", "at most 3600"),
        ("slow_interval_seconds = 0", "at least 0.5"),
        ("window_seconds = -5", "the whole run"),
        ("window_seconds = nan", "the whole run"),
        ("theme = 'drak'", "color-blind"),
        ("language = 'tlh'", "zh_CN"),
        ("[thresholds]\n'data-starvation.share' = nan", "data-starvation.share"),
    ],
)
def test_a_bad_file_is_said_in_one_line(tmp_path: Path, text: str, word: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=word) as error:
        load(environment={}, file=file)
    assert "\n" not in str(error.value).strip()


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert load(environment={}, file=tmp_path / "none.toml").settings.theme == "auto"


def test_every_theme_of_the_screen_can_be_set() -> None:
    assert {"auto", *theme.NAMES} == set(THEMES)


@pytest.mark.parametrize("language", ["auto", "en", "zh", "zh-CN", "zh_CN.UTF-8", "en_US.UTF-8"])
def test_a_language_may_be_the_name_of_a_locale(tmp_path: Path, language: str) -> None:
    assert load({"language": language}, environment={}, file=tmp_path / "none").settings.language == language


def test_a_window_of_0_means_the_whole_run(tmp_path: Path) -> None:
    assert load({"window_seconds": 0}, environment={}, file=tmp_path / "none").settings.window_seconds == 0


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(SettingsError, match="no regular file"):
        load(environment={}, file=tmp_path / "config.toml")


def test_a_home_without_a_folder_for_settings_has_none(tmp_path: Path) -> None:
    (tmp_path / ".config").touch()
    assert load(environment={}, file=tmp_path / ".config" / "config.toml").settings.theme == "auto"


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        load(environment={}, file=tmp_path)
