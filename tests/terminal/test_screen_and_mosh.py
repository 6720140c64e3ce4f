"""Through GNU screen and through mosh, as people do who do not use tmux."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.terminal.on_pty import OnPty
from tests.terminal.tmux import START_SECONDS, YOLOMON

DEMO = (*YOLOMON, "demo", "--speed", "4")


def drawn(columns: int, rows: int, text: str) -> bool:
    """Whether a whole screen of that size is there: the demo's mark in the first line, keys in the last."""
    lines = text.splitlines()
    return (
        len(lines) == rows
        and "DEMO" in lines[0]
        and lines[-1].startswith(" ? help")
        and max(map(len, lines)) <= columns
        and "GPU" in text
    )


class Screen:
    """A GNU screen with a session of its own, and terminals that attach to it."""

    def __init__(self, environment: dict[str, str], sockets: Path) -> None:
        sockets.mkdir(mode=0o700)
        self._environment = {**environment, "SCREENDIR": str(sockets), "SCREENRC": "/dev/null"}
        self._terminals: list[OnPty] = []

    def attach(self, *arguments: str, columns: int, rows: int) -> OnPty:
        terminal = OnPty(
            ["screen", "-U", *arguments], environment=self._environment, columns=columns, rows=rows
        )
        self._terminals.append(terminal)
        return terminal

    def close(self) -> None:
        subprocess.run(["screen", "-S", "yolomon", "-X", "quit"], env=self._environment, capture_output=True)
        for terminal in self._terminals:
            terminal.close()


@pytest.fixture
def screen(surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    if shutil.which("screen") is None:
        pytest.skip("GNU screen is not installed: apt-get install screen")
    opened = Screen(surroundings, tmp_path_factory.mktemp("screen") / "s")
    yield opened
    opened.close()


def test_in_gnu_screen_resized_detached_and_attached_at_another_size(screen: Screen) -> None:
    first = screen.attach("-S", "yolomon", *DEMO, columns=120, rows=30)
    first.until(lambda text: drawn(120, 30, text), START_SECONDS)
    first.resize(80, 20)
    first.until(lambda text: drawn(80, 20, text))
    first.press(b"\x01d")
    assert first.status() == 0
    second = screen.attach("-r", "yolomon", columns=100, rows=28)
    second.until(lambda text: drawn(100, 28, text))
    second.press(b"?")
    second.until("keys on every page")
    second.press(b"?")
    second.until(lambda text: drawn(100, 28, text) and "keys on every page" not in text)
    second.press(b"q")
    assert second.status() == 0, "the last program has left, and so does screen"


class Mosh:
    """yolomon under a mosh server on this machine, and a client."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = {**environment, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            ["mosh-server", "new", "-i", "127.0.0.1", "-c", "256", "--", *DEMO],
            env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        found = re.search(r"MOSH CONNECT (\d+) (\S+)", done.stdout)
        server = re.search(r"detached, pid = (\d+)", done.stdout + done.stderr)
        if found is None or server is None:
            pytest.skip(f"mosh-server does not start here: {done.stderr.strip()[-200:]}")
        self._port, self._key = found[1], found[2]
        self.server = psutil.Process(int(server[1]))
        self._clients: list[OnPty] = []

    def connect(self, columns: int, rows: int) -> OnPty:
        environment = {**self._environment, "MOSH_KEY": self._key, "MOSH_NO_TERM_INIT": "1"}
        client = OnPty(
            ["mosh-client", "127.0.0.1", self._port], environment=environment, columns=columns, rows=rows
        )
        self._clients.append(client)
        return client

    def yolomon(self) -> psutil.Process:
        return self.server.children(recursive=True)[-1]

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self.server.is_running():
            for process in [*self.server.children(recursive=True), self.server]:
                process.kill()


@pytest.fixture
def mosh(surroundings: dict[str, str]) -> Iterator[Mosh]:
    if shutil.which("mosh-server") is None or shutil.which("mosh-client") is None:
        pytest.skip("mosh is not installed: apt-get install mosh")
    opened = Mosh(surroundings)
    yield opened
    opened.close()


def test_through_mosh_drawn_resized_and_alive_after_the_client_is_lost(mosh: Mosh) -> None:
    client = mosh.connect(120, 30)
    client.until(lambda text: drawn(120, 30, text), START_SECONDS)
    client.press(b"?")
    client.until("keys on every page")
    client.press(b"?")
    client.until(lambda text: drawn(120, 30, text))
    client.resize(80, 20)
    client.until(lambda text: drawn(80, 20, text))
    program = mosh.yolomon()
    os.kill(client.pid, signal.SIGKILL)
    client.status()
    assert program.is_running(), "the session waits for its client to roam back"
    assert program.cpu_percent(1.0) < 60
    mosh.server.terminate()
    assert program in psutil.wait_procs([program], timeout=6)[0]


def test_through_mosh_a_key_leaves(mosh: Mosh) -> None:
    client = mosh.connect(100, 30)
    client.until(lambda text: drawn(100, 30, text), START_SECONDS)
    client.press(b"q")
    assert client.status() == 0
