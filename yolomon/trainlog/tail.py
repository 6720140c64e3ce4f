"""Following one file by its path, whatever the writer, a rotation or a network file system does to it.

By polling: inotify says nothing about what other hosts write (telegraf#6706, fluent-bit#3111). Each look
compares
the path's device and inode, the size, the first bytes, and the last bytes that were read, because a file that
was
rewritten in place keeps its inode and may be longer than before (beats#39731).
"""

# Paths are strings here: they are looked at several times a second.
# ruff: noqa: PTH116

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import Literal

import msgspec

from yolomon.messages import Message, msg

CHUNK_BYTES = 1 << 18
CHUNKS_A_LOOK = 64  # then others get a turn
HEAD_BYTES = 1024
END_BYTES = 64
REOPEN_SECONDS = 5.0  # of silence; an open of NFS asks the server anew (close-to-open)

RestartReason = Literal["truncated", "replaced", "rewritten"]


class Chunk(msgspec.Struct, frozen=True):
    """Bytes that follow those before."""

    data: bytes


class Restart(msgspec.Struct, frozen=True):
    """The content begins anew. `complete`: the old content was read to its end before it went away."""

    reason: RestartReason
    complete: bool


Event = Chunk | Restart
State = Literal["waiting", "reading", "following", "gone", "unreadable"]


class FileFollower:
    """The bytes of one path, in order, each once. Use from one thread.

    Args:
        path: a regular file, or a link to one; it need not exist yet.
        offset: where to begin; what lies before is taken as read.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.state: State = "waiting"
        self.detail: Message | None = None
        self.size = 0
        self.offset = offset
        self._fd: int | None = None
        self._identity: tuple[int, int] | None = None
        self._changed: tuple[int, int] | None = None  # mtime in ns, size at the last look
        self._head = b""
        self._end = b""
        self._opened_ts = 0.0
        self._swapped = False

    def close(self) -> None:
        """Give the file back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def look(self, now: float) -> Iterator[Event]:
        """What is new since the last look. `now` is any clock in seconds that goes on."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            yield from self._left_over()
            known = self._identity is not None
            self.state = "gone" if known else "waiting"
            self.detail = (
                msg("the file is gone; waiting for it to come back") if known else msg("no such file yet")
            )
            return
        except OSError as error:
            self._unreadable(error)
            return
        if not stat.S_ISREG(found.st_mode):
            self._not_a_file(found.st_mode)
            return
        identity = (found.st_dev, found.st_ino)
        if self._fd is not None and identity != self._identity:
            yield from self._left_over()
            if self._unread():
                return  # more of the old file first; the new one waits
            self.close()
            yield self._restart("replaced", complete=True)
        if self._fd is None and not self._open(now):
            return
        if self._swapped:  # it became another file while none was open
            self._swapped = False
            yield self._restart("replaced", complete=False)
        changed = (found.st_mtime_ns, found.st_size)
        if changed == self._changed and self.offset >= found.st_size:
            if now - self._opened_ts >= REOPEN_SECONDS:
                self.close()  # the next look opens it again, by path
                self._open(now)
            self.state, self.detail = "following", None
            return
        yield from self._read()
        if self.offset >= self.size:
            self._changed = changed

    # ------------------------------------------------------------ reading

    def _read(self) -> Iterator[Event]:
        """Read on in the open file, at most `CHUNKS_A_LOOK` pieces."""
        fd = self._fd
        assert fd is not None
        try:
            for _ in range(CHUNKS_A_LOOK):
                self.size = os.fstat(fd).st_size
                if self.size < self.offset:
                    yield self._restart("truncated", complete=False)
                data = os.pread(fd, CHUNK_BYTES, self._past_hole(fd))
                # The marks are compared after the read: what was rewritten before or during it is then seen.
                if not self._same_content(fd):
                    yield self._restart("rewritten", complete=False)
                    continue
                if not data:
                    break
                if self.offset < HEAD_BYTES and len(self._head) == self.offset:
                    self._head += data[: HEAD_BYTES - len(self._head)]
                self.offset += len(data)
                self._end = (self._end + data)[-END_BYTES:]
                yield Chunk(data)
        except OSError as error:
            self._unreadable(error)
            self.close()
            return
        self.state = "following" if self.offset >= self.size else "reading"
        self.detail = None

    def _past_hole(self, fd: int) -> int:
        """The offset, or the end of the hole it lies in (copytruncate under a writer without append)."""
        if self._end.strip(b"\0") or not self._end or self.size - self.offset < CHUNK_BYTES:
            return self.offset
        try:
            self.offset = max(self.offset, os.lseek(fd, self.offset, os.SEEK_DATA))
        except OSError:  # all hole, or a file system that cannot tell
            return self.offset
        self._end = b""
        return self.offset

    def _same_content(self, fd: int) -> bool:
        if self._head and os.pread(fd, len(self._head), 0) != self._head:
            return False
        return not self._end or os.pread(fd, len(self._end), self.offset - len(self._end)) == self._end

    def _restart(self, reason: RestartReason, *, complete: bool) -> Restart:
        self.offset = 0
        self._head = self._end = b""
        self._changed = None
        return Restart(reason, complete)

    def _left_over(self) -> Iterator[Event]:
        """The rest of a file that lost its name: the open descriptor still reads it."""
        if self._fd is not None:
            yield from self._read()

    def _unread(self) -> bool:
        return self._fd is not None and self.offset < os.fstat(self._fd).st_size

    def _open(self, now: float) -> bool:
        try:
            # O_NONBLOCK: a FIFO put in the file's place between stat and open must not block.
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._unreadable(error)
            return False
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            self._not_a_file(found.st_mode)
            return False
        identity = (found.st_dev, found.st_ino)
        if self._identity is not None and identity != self._identity:
            self._swapped = self.offset > 0
        elif self.offset and not self._end:  # begun in the middle: what lies before is the mark
            self._head = os.pread(fd, min(self.offset, HEAD_BYTES), 0)
            self._end = os.pread(fd, min(self.offset, END_BYTES), max(0, self.offset - END_BYTES))
        self._fd, self._identity, self._opened_ts = fd, identity, now
        self.size = found.st_size
        return True

    # ------------------------------------------------------------ what cannot be read

    def _unreadable(self, error: OSError) -> None:
        self.state = "unreadable"
        if error.errno in (errno.EACCES, errno.EPERM):
            self.detail = msg("no permission to read it")
        elif error.errno == errno.ESTALE:
            self.detail = msg("the network file system lost it (stale handle); trying again")
            self.close()
        elif error.errno == errno.ELOOP:
            self.detail = msg("a symbolic link that points to itself")
        else:
            self.detail = msg("cannot be read: {reason}", reason=os.strerror(error.errno or 0))

    def _not_a_file(self, mode: int) -> None:
        self.close()
        self.state = "unreadable"
        if stat.S_ISDIR(mode):
            self.detail = msg("is a folder, not a log file")
        elif stat.S_ISFIFO(mode):
            self.detail = msg("is a pipe (FIFO): read it with `yolomon - < {path}`", path=self.path)
        else:
            self.detail = msg("is no regular file (a device or socket)")
