"""A program on a terminal of our own making: what it shows is read by an emulator, keys are written to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte

ANSWER_SECONDS = 20.0


class OnPty:
    """One program; it is the leader of a session of its own, as a login shell's child is."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        columns: int = 120,
        rows: int = 30,
        before: Callable[[], object] | None = None,
    ) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            if before is not None:
                before()
            os.execvpe(command[0], list(command), dict(environment))
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.sent = b""  # all that the program wrote
        self._status: int | None = None
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """The window gets another size."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        """Bytes as the terminal sends them."""
        os.write(self._terminal, keys)

    def read(self, seconds: float) -> None:
        """Take what comes within that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._take(left):
            pass

    def shown(self) -> str:
        """What a person sees now."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def until(self, wanted: str | Callable[[str], object], seconds: float = ANSWER_SECONDS) -> str:
        """The screen, once it holds the text or satisfies the question; fails with the last screen."""
        end = time.monotonic() + seconds
        while True:
            shown = self.shown()
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            if time.monotonic() > end or self._take(0.1):
                raise AssertionError(f"did not come within {seconds} s: {wanted}\n{shown}")

    def status(self, seconds: float = ANSWER_SECONDS) -> int:
        """The exit status, once it has ended; below 0 the signal."""
        end = time.monotonic() + seconds
        while self._status is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise AssertionError(f"it goes on after {seconds} s:\n{self.shown()}")
            elif self._terminal < 0 or self._take(0.05):
                time.sleep(0.05)
        return self._status

    def keys_are_lines(self) -> bool:
        """Whether the terminal gives whole lines and shows what is typed, as a shell expects it."""
        local = termios.tcgetattr(self._terminal)[3]
        return bool(local & termios.ICANON) and bool(local & termios.ECHO)

    def drop(self) -> None:
        """The line is gone: what an SSH connection that breaks does to the terminal."""
        os.close(self._terminal)
        self._terminal = -1

    def close(self) -> None:
        """End it, whatever it does."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._status = -signal.SIGKILL
        if self._terminal >= 0:
            self.drop()

    def _take(self, seconds: float) -> bool:
        """Read once; True where nothing will come any more."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # EIO: the other side is closed
            return True
        self.sent += data
        self._stream.feed(data)
        return not data
