"""The terminal driver: survives odd input, ends when the terminal is gone, asks for few events.

- Bytes that are no UTF-8 (legacy mouse reports after a tmux or SSH reattach) crash Textual's own driver
  (Textualize/textual#6668, #4376); here they are replaced.
- A terminal that is gone (end of file, EIO, hang-up) ends the program; Textual's driver would spin on it when
  SIGHUP is ignored, as under nohup.
- With a log piped in (`train | yolomon -`) the keys are read from the terminal itself; Textual's driver would
  read them from the pipe, and take the log's bytes for keys.
- Only clicks and the wheel are asked for: reports of every mouse move cost a slow line much and show nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import sys
import termios
import threading
from codecs import getincrementaldecoder
from types import FrameType
from typing import TYPE_CHECKING

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.app import App

END_WITHIN_SECONDS = 2.0
TERMINATE_WITHIN_SECONDS = 4.0
SIGNALLED = 128  # exit status: this and the signal's number, as shells count
ESCAPE_SECONDS = 0.1  # how long an Escape may be the beginning of a longer key


class TerminalDriver(LinuxDriver):
    """Textual's driver for Linux and macOS, hardened for SSH and tmux."""

    def __init__(
        self,
        app: App[object],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if os.isatty(1):  # else it would be drawn into the file of `2> errors.txt`
            self._file = open(1, "w", encoding=_encoding(), errors="replace", closefd=False)  # noqa: SIM115
        if not os.isatty(self.fileno):
            self.fileno = keyboard()
            self.input_tty = True
        self._loop_of_app: asyncio.AbstractEventLoop | None = None
        self._gone = threading.Event()
        self._wake_read, self._wake_write = os.pipe()

    def start_application_mode(self) -> None:
        """Take the terminal."""
        self._loop_of_app = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, self._hang_up)
            for number in (signal.SIGTERM, signal.SIGINT):  # Ctrl-C is a key here; `kill -INT` is none
                signal.signal(number, self._terminate)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._end()

    def _terminate(self, number: int, _frame: FrameType | None) -> None:
        """Leave in good order; anyway where the terminal takes nothing more (flow control, a frozen line)."""
        killer = threading.Timer(TERMINATE_WITHIN_SECONDS, self._leave_by_force, (SIGNALLED + number,))
        killer.daemon = True
        killer.start()
        if self._loop_of_app is not None and not self._loop_of_app.is_closed():
            self._loop_of_app.call_soon_threadsafe(self._exit_app, SIGNALLED + number)

    def _end(self) -> None:
        """The terminal is gone: leave in good order if possible, but leave."""
        if self._gone.is_set():
            return
        self._gone.set()
        self.exit_event.set()
        killer = threading.Timer(END_WITHIN_SECONDS, os._exit, (SIGNALLED + signal.SIGHUP,))
        killer.daemon = True
        killer.start()
        if self._loop_of_app is not None and not self._loop_of_app.is_closed():
            self._loop_of_app.call_soon_threadsafe(self._exit_app, SIGNALLED + signal.SIGHUP)

    def _leave_by_force(self, status: int) -> None:
        """The screen waits for a terminal that takes nothing: its keys are set right, and that is it."""
        if self.attrs_before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        os._exit(status)

    def _exit_app(self, status: int) -> None:
        self._app.exit(status)

    def _enable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")

    def _enable_mouse_pixels(self) -> None:
        """Cells are exact enough."""

    def _disable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1000l\x1b[?1006l")

    def write(self, data: str) -> None:
        """Write, unless the terminal is gone: then nobody reads, and a full queue would block."""
        writer = self._writer_thread
        if self._gone.is_set() or writer is None:
            return
        if not writer.is_alive() and writer.ident is not None:
            self._end()
            return
        writer.write(data)

    def close(self) -> None:
        """Stop writing; a writer that the terminal no longer takes from is left behind (it is a daemon)."""
        if not self._gone.is_set():
            super().close()

    def disable_input(self) -> None:
        """Stop reading keys, at once."""
        self.exit_event.set()
        os.write(self._wake_write, b"x")
        if self._key_thread is not None and self._key_thread is not threading.current_thread():
            self._key_thread.join(END_WITHIN_SECONDS)
        self._key_thread = None
        self._disable_mouse_support()
        self.exit_event.clear()
        try:
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        except termios.error:
            return  # no terminal any more: nothing to flush

    def run_input_thread(self) -> None:
        """Read keys until told to stop or the terminal is gone. Sleeps without waking while no key comes."""
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        parser = XTermParser(self._debug)
        timeout: float | None = None
        with selectors.SelectSelector() as selector:  # macOS's kqueue knows no /dev/tty
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = {key.fd for key, _ in selector.select(timeout)}
                if self._wake_read in ready:
                    os.read(self._wake_read, 64)
                    return
                if self.fileno in ready:
                    try:
                        data = os.read(self.fileno, 4096)
                    except OSError:  # EIO: the terminal hung up
                        data = b""
                    if not data:
                        self._end()
                        return
                    for event in parser.feed(decode(data)):
                        self.process_message(event)
                    timeout = ESCAPE_SECONDS
                else:
                    timeout = None
                for event in parser.tick():
                    self.process_message(event)


def _encoding() -> str:
    """That of standard output."""
    return getattr(sys.__stdout__, "encoding", None) or "utf-8"


def keyboard() -> int:
    """Reads the terminal's keys where standard input is a pipe; open until the process ends."""
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # no controlling terminal (setsid, some containers): the one that is drawn on
        return 2 if os.isatty(2) else 1


def unusable(environment: dict[str, str] | None = None) -> str | None:
    """Why no screen can be drawn here, as a template for the user's language; None if one can.

    The caller checks for a terminal first; this is about what TERM says.
    """
    term = (os.environ if environment is None else environment).get("TERM", "")
    if term in ("dumb", "unknown", ""):
        return (
            "This terminal (TERM={term}) cannot move the cursor. "
            "Use `yolomon --once`, or set TERM, e.g. TERM=xterm-256color."
        )
    return None
