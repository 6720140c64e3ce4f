"""Theme and window outlive the screen; nothing about the file can hurt."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolomon.settings import Settings
from yolomon.tui.kept import Keeper, Kept, applied, read


def test_what_was_chosen_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "state" / "screen.json"
    keeper = Keeper(file)
    keeper.keep(theme="light")
    keeper.keep(window_seconds=600.0)
    keeper.close(5.0)
    assert read(file) == Kept(theme="light", window_seconds=600.0)
    assert [entry.name for entry in file.parent.iterdir()] == ["screen.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"theme": 7}', b'{"theme": "no-such"}', b'{"window_seconds": -3}', b"\xff\xfe"],
)
def test_a_strange_file_keeps_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "screen.json"
    file.write_bytes(content)
    assert read(file) == Kept()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    keeper = Keeper(tmp_path / "state" / "screen.json")
    keeper.keep(theme="dark")
    keeper.close(5.0)
    assert read(tmp_path / "state" / "screen.json") == Kept()


def test_what_the_user_set_wins_over_what_was_kept() -> None:
    settings = Settings(theme="dark", window_seconds=300.0)
    kept = Kept(theme="light", window_seconds=60.0)
    told = applied(settings, {"theme": "option", "window_seconds": "default"}, kept)
    assert (told.theme, told.window_seconds) == ("dark", 60.0)
