"""The window's own size wins over exported variables."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios

import pytest

from yolomon.tui.run import trust_the_window


@pytest.mark.parametrize(("size", "kept"), [((40, 140), False), ((0, 0), True)])
def test_exported_columns_and_lines_give_way_to_a_window_that_tells_its_size(
    size: tuple[int, int], kept: bool
) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {"COLUMNS": "80", "LINES": "24"}
    trust_the_window(environment, follower)
    assert ("COLUMNS" in environment) == ("LINES" in environment) == kept
    os.close(leader)
    os.close(follower)


def test_a_browser_keeps_them() -> None:
    environment = {"COLUMNS": "80", "TEXTUAL_DRIVER": "x:Y"}
    trust_the_window(environment)
    assert "COLUMNS" in environment
