"""`python -m yolomon` and the `yolomon` command."""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main() -> None:
    """Run the command line.

    Exit status of every command: 0 done; 1 the answer is that something is wrong (`diagnose`, `doctor`);
    2 it could not be done: a bad option or setting, an input that cannot be read, an output that cannot be
    written, no terminal; 128 + number when a signal ended it.
    """
    end_by_signals()
    fill_standard_streams()
    from yolomon.cli import cli

    try:
        cli(prog_name="yolomon")
    except OSError as error:  # stdout on a full disk; the commands answer for the files that they open
        where = "the output" if error.filename is None else repr(error.filename)
        with contextlib.suppress(OSError):  # a terminal that is gone
            sys.stderr.write(f"yolomon: {where}: {error.strerror or error}\n")
        sys.exit(2)


def end_by_signals() -> None:
    """Ctrl-C, and a reader that left (`yolomon diagnose ... | head`), end a command as they end any other.

    Python would make exceptions of them. The shell is to see the signal, a script's loop is to stop, and no
    half-written report is to look like a whole one. What has something to put in order (the screen, a
    recording) takes care of signals itself. A signal that is ignored from outside (nohup) stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def fill_standard_streams() -> None:
    """Where input, output or errors were closed (`<&-`, some daemons), nothing takes their places.

    Else the next file that is opened would get the number, and be read as the log or written over.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115


if __name__ == "__main__":
    main()
