"""Rows of a separated-values log by column name: padded, quoted, CRLF, with a header that may come again.

Columns are taken by their stripped name, never by position: trainers pad them, re-order them and add to them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable

from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.numbers import number
from yolomon.trainlog.plain_text import plain, shown


def columns_of(line: str, delimiter: str = ",") -> list[str]:
    """The cells of one line, stripped of padding."""
    if '"' in line:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
    return [cell.strip() for cell in line.split(delimiter)]


def header_of(head: Head, delimiter: str = ",") -> list[str]:
    """The columns of the first line that is not empty; [] for an empty file."""
    for line in head.lines:
        if line.strip():
            return columns_of(line, delimiter)
    return []


def looks_like_header(columns: list[str]) -> bool:
    """Whether these are at least two different names and no numbers."""
    return (
        len(columns) > 1
        and all(columns)
        and not any(number(c) is not None for c in columns if c.lower() != "nan")
    )


class Table:
    """Turns lines into {column: cell}. `is_header` tells a header line from a row, also in mid-file."""

    def __init__(
        self, is_header: Callable[[list[str]], bool], delimiter: str = ",", long_rows: bool = False
    ) -> None:
        self.columns: list[str] = []
        self._is_header = is_header
        self._delimiter = delimiter
        self._long_rows = long_rows  # a row may have more cells than the header; the known ones are kept

    def row(self, line: bytes) -> dict[str, str] | BrokenLine | None:
        """The cells of a row by column; None for a header or an empty line; BrokenLine for a torn row."""
        text = plain(line)
        if not text.strip():
            return None
        cells = columns_of(text, self._delimiter)
        if self._is_header(cells):
            self.columns = cells
            return None
        if not self.columns:
            return BrokenLine(shown(text, 120), "row before any header")
        if len(cells) != len(self.columns) and not (self._long_rows and len(cells) > len(self.columns)):
            return BrokenLine(shown(text, 120), f"{len(cells)} cells under {len(self.columns)} columns")
        return dict(zip(self.columns, cells, strict=False))
