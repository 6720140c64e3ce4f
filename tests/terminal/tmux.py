"""A real tmux with a server of its own: keys are pressed, the screen is read back."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
YOLOMON = (sys.executable, "-m", "yolomon")
LEFT = "left with status"
START_SECONDS = 30.0  # a slow machine under load; the usual is one
ANSWER_SECONDS = 10.0


class Tmux:
    """A server on its own socket, without the user's settings."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._count = 0
        self.client_command = (shutil.which("tmux") or "tmux", "-L", socket)
        self("new-session", "-d", "-s", "keeper", "exec sleep 3600", config=True)
        self("set-option", "-g", "status", "off")

    def __call__(self, *arguments: str, config: bool = False, check: bool = True) -> str:
        """What that tmux command prints."""
        first = ("-f", "/dev/null") if config else ()
        command = (self.client_command[0], *first, *self.client_command[1:], *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        if check and done.returncode:
            raise AssertionError(f"tmux {shlex.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def open(
        self,
        command: tuple[str, ...] | list[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        columns: int = 140,
        rows: int = 40,
    ) -> Pane:
        """A pane in which a shell runs the command, says with what status it ended, and stays."""
        self._count += 1
        name = f"pane{self._count}"
        line = f"{shlex.join(command)}; echo {LEFT} $?; stty -a; exec sleep 3600"
        self("new-session", "-d", "-s", name, "-x", str(columns), "-y", str(rows), "-c", str(folder),
             f"exec env -i {_assignments(environment)} sh -c {shlex.quote(line)}")  # fmt: skip
        return Pane(self, name)

    def close(self) -> None:
        """End the server and all that runs in it."""
        self("kill-server", check=False)


def _assignments(environment: Mapping[str, str]) -> str:
    """Nothing of the tests' own environment comes through (it may hold COLUMNS, NO_COLOR or TMUX)."""
    return " ".join(f"{key}={shlex.quote(value)}" for key, value in environment.items())


class Pane:
    """One program's screen."""

    def __init__(self, tmux: Tmux, name: str) -> None:
        self._tmux = tmux
        self.name = name
        self._shell = int(self.ask("pane_pid"))

    def ask(self, variable: str) -> str:
        """A variable of tmux, e.g. alternate_on."""
        return self._tmux("display-message", "-p", "-t", self.name, f"#{{{variable}}}").strip()

    def screen(self, *, colours: bool = False) -> str:
        """What a person sees now."""
        return self._tmux("capture-pane", "-p", *(("-e",) if colours else ()), "-t", self.name)

    def press(self, *keys: str) -> None:
        """Press keys, named as tmux names them. After Escape a pause: else it is Alt and the next."""
        self._tmux("send-keys", "-t", self.name, *keys)
        if keys[-1] == "Escape":
            time.sleep(0.2)

    def send(self, data: bytes, scratch: Path) -> None:
        """Bytes from the terminal, as they are."""
        scratch.write_bytes(data)
        self._tmux("load-buffer", "-b", "raw", str(scratch))
        self._tmux("paste-buffer", "-r", "-d", "-b", "raw", "-t", self.name)

    def record(self, file: Path) -> None:
        """Write all that the program sends to the terminal to a file, from now on."""
        self._tmux("pipe-pane", "-O", "-t", self.name, f"exec cat >> {shlex.quote(str(file))}")

    def resize(self, columns: int, rows: int) -> None:
        """The window gets another size."""
        self._tmux("resize-window", "-t", self.name, "-x", str(columns), "-y", str(rows))

    def until(self, wanted: str | Callable[[str], object], seconds: float = ANSWER_SECONDS) -> str:
        """The screen, once it holds the text or satisfies the question; fails with the last screen."""
        end = time.monotonic() + seconds
        while True:
            shown = self.screen()
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            if time.monotonic() > end:
                raise AssertionError(f"did not come within {seconds} s: {wanted}\n{shown}")
            time.sleep(0.05)

    def until_left(self, seconds: float = ANSWER_SECONDS) -> int:
        """The program's exit status, once it has ended; the terminal is as it was before."""
        shown = self.until(lambda text: LEFT in text and "icanon" in text, seconds)
        flags = {name: self.ask(name) for name in ("alternate_on", "cursor_flag", "mouse_any_flag")}
        assert flags == {"alternate_on": "0", "cursor_flag": "1", "mouse_any_flag": "0"}
        assert " icanon" in shown and "-icanon" not in shown, "keys are still read one by one"
        assert " echo " in shown and "-echo " not in shown, "what is typed is not shown"
        return int(shown.split(LEFT, 1)[1].split()[0])

    def process(self) -> psutil.Process:
        """The program in it."""
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            children = psutil.Process(self._shell).children()
            if children:
                return children[0]
            time.sleep(0.02)
        raise AssertionError(f"nothing runs any more:\n{self.screen()}")

    def kill(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        self.process().send_signal(number)

    def close(self) -> None:
        """End the session and what runs in it."""
        self._tmux("kill-session", "-t", self.name, check=False)
