"""Bytes made into lines: half lines wait, endless ones are dropped and counted, padding of NUL bytes goes."""

from __future__ import annotations

import re

from yolomon.trainlog.prefixes import unprefixed

LINE_LIMIT = 4 << 20  # bytes; records of 1 MB are seen in the wild, a longer line is not a record
_ENDS = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class LineSplitter:
    r"""Collects the pieces of lines.

    Args:
        redraws: whether a carriage return ends a piece too (consoles that draw a progress bar over and over);
            what a launcher put in front of a line of a console is taken off, too.
        limit: bytes after which an unfinished line is given up; it counts in `overlong`.
    """

    def __init__(self, *, redraws: bool = False, limit: int = LINE_LIMIT) -> None:
        self._redraws = redraws
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._dropping = False
        self._at_start = True
        self.overlong = 0

    @property
    def pending(self) -> bytes:
        """The unfinished line."""
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0] if self._pieces else b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, without their ends; empty ones are left out."""
        if b"\0" in data:
            data = data.replace(b"\0", b"")  # a hole left by copytruncate (logrotate#363)
        if self._at_start and data:
            self._at_start = False
            if data.startswith(_BOM):
                data = data[3:]
        if not data:
            return []
        lines = _ENDS.split(data) if self._redraws else data.split(b"\n")
        if len(lines) == 1:
            self._hold(lines[0])
            return []
        rest = lines.pop()
        if self._dropping:
            lines[0] = b""
            self._dropping = False
        elif self._pieces:
            lines[0] = self.take() + lines[0]
        self._hold(rest)
        if self._redraws:
            return [rest for line in lines if line and (rest := unprefixed(line))]
        return [line[:-1] if line.endswith(b"\r") else line for line in lines if line and line != b"\r"]

    def take(self) -> bytes:
        """The unfinished line, which is then forgotten: it was complete, or will never be."""
        line = self.pending
        self._pieces, self._size = [], 0
        return line

    def take_last(self) -> bytes:
        """The unfinished line as `feed` would have given it; nothing more will come."""
        line = self.take()
        return unprefixed(line) if self._redraws else line

    def _hold(self, piece: bytes) -> None:
        if not piece or self._dropping:
            return
        if self._size + len(piece) > self._limit:
            self._pieces, self._size, self._dropping = [], 0, True
            self.overlong += 1
            return
        self._pieces.append(piece)
        self._size += len(piece)
