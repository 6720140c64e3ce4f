"""Where the kernel's files lie, and how they are read: in few system calls, never more than a bound."""

from __future__ import annotations

import os
from typing import NamedTuple

MAX_BYTES = 256 * 1024


class Roots(NamedTuple):
    """The roots of the kernel's file systems; tests give folders of their own."""

    proc: str = "/proc"
    sys: str = "/sys"
    etc: str = "/etc"
    run: str = "/run"
    top: str = "/"


REAL = Roots()


def read_bytes(path: str, limit: int = MAX_BYTES) -> bytes:
    """The first `limit` bytes of a file.

    Raises:
        OSError: it cannot be opened or read (a process that ended gives ProcessLookupError).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        parts = []
        size = 0
        # to the end: one read of a seq_file gives whole records only, often less than was asked for
        while size < limit and (data := os.read(descriptor, limit - size)):
            parts.append(data)
            size += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)


def read_text(path: str, limit: int = MAX_BYTES) -> str:
    """As `read_bytes`, decoded; bytes that are no UTF-8 are replaced."""
    return read_bytes(path, limit).decode("utf-8", "replace")


def text_or_none(path: str) -> str | None:
    """The text of a small file, or None where it cannot be read."""
    try:
        return read_text(path)
    except OSError:
        return None


def int_or_none(path: str) -> int | None:
    """The one number in a file; None where it is missing or no number ("max")."""
    text = text_or_none(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def keyed_int(path: str, key: str) -> int | None:
    """The number behind `key` in a file of "key number" lines (vmstat, memory.stat, memory.events)."""
    for line in (text_or_none(path) or "").splitlines():
        name, _, value = line.partition(" ")
        if name.rstrip(":") == key:
            try:
                return int(value.split()[0])
            except (ValueError, IndexError):
                return None
    return None


def printable(text: str, limit: int = 4096) -> str:
    """Text from outside as plain data: control characters become a space, at most `limit` characters."""
    text = text[:limit]
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text).strip()
