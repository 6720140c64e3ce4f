"""A small picture of dots: eight to a cell in braille, one to a cell without Unicode."""

from __future__ import annotations

from yolomon.tui.canvas import Line

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class Raster:
    """Dots in cells. Dot (0, 0) is at the left and top.

    Args:
        width: cells across.
        height: cells down.
        ascii_only: one dot a cell, drawn as "*".
    """

    def __init__(self, width: int, height: int, *, ascii_only: bool = False) -> None:
        self.width, self.height = width, height
        self.across, self.down = (1, 1) if ascii_only else (2, 4)
        self._ascii = ascii_only
        self._bits = [[0] * width for _ in range(height)]
        self._inks = [["dim"] * width for _ in range(height)]
        self._signs: dict[tuple[int, int], tuple[str, str]] = {}

    @property
    def dots(self) -> tuple[int, int]:
        """How many dots there are across and down."""
        return self.width * self.across, self.height * self.down

    def dot(self, x: int, y: int, ink: str) -> None:
        """Set one dot; the last ink in a cell is the one that shows. Outside nothing happens."""
        if 0 <= x < self.width * self.across and 0 <= y < self.height * self.down:
            row, column = y // self.down, x // self.across
            self._bits[row][column] |= 1 if self._ascii else _DOTS[y % 4][x % 2]
            self._inks[row][column] = ink

    def column(self, x: int, y_first: int, y_last: int, ink: str) -> None:
        """Dots from one height to another."""
        for y in range(min(y_first, y_last), max(y_first, y_last) + 1):
            self.dot(x, y, ink)

    def line(self, x0: int, y0: int, x1: int, y1: int, ink: str, *, every: int = 1) -> None:
        """A straight line from left to right; with `every` 2 only each second column of dots."""
        span = max(1, x1 - x0)
        before = y0
        for x in range(x0, x1 + 1):
            y = y0 + round((y1 - y0) * (x - x0) / span)
            if x % every == 0:
                step = 1 if y >= before else -1
                for between in range(before + step if y != before else y, y + step, step):
                    self.dot(x, between, ink)
            before = y

    def put(self, column: int, row: int, sign: str, ink: str, *, over: bool = True) -> None:
        """A sign in a cell; with `over` False only where no dot is."""
        if 0 <= column < self.width and 0 <= row < self.height and (over or not self._bits[row][column]):
            self._signs[row, column] = (sign, ink)

    def lines(self) -> list[Line]:
        """The rows, neighbours of one ink joined."""
        rows: list[Line] = []
        for row in range(self.height):
            line: Line = []
            for column in range(self.width):
                bits = self._bits[row][column]
                sign = self._signs.get((row, column))
                if sign is None:
                    text = " " if not bits else "*" if self._ascii else chr(0x2800 + bits)
                    sign = (text, self._inks[row][column] if bits else "dim")
                if line and line[-1][1] == sign[1]:
                    line[-1] = (line[-1][0] + sign[0], sign[1])
                else:
                    line.append(sign)
            rows.append(line)
        return rows
