"""Where things go: from the terminal's size and the number of GPUs to rectangles. Pure arithmetic.

The order of what is given up as room gets scarce: taller graphs, frames, curves, records, the host, the
graphs of temperature and power, all graphs but one. Never: the verdict, each GPU, the worst finding.
"""

from __future__ import annotations

from typing import Literal

import msgspec

GpuMode = Literal["cards", "pairs", "rows", "strip", "heat", "none"]

CARD_MIN_WIDTH = 46
PAIR_MIN_WIDTH = 38
ROW_MIN_WIDTH = 34
STRIP_CELL = 9
SIDE_MIN_WIDTH = 110
# In which order more rows make the graphs of a card taller: utilization says most, temperature least.
_GROWTH = ("util", "power", "util", "memory", "temperature", "power", "util", "memory", "power", "util")
GRAPHS = ("util", "memory", "temperature", "power")


class Rect(msgspec.Struct, frozen=True):
    """A rectangle in cells."""

    x: int
    y: int
    width: int
    height: int

    @property
    def bottom(self) -> int:
        """The first row below."""
        return self.y + self.height

    @property
    def right(self) -> int:
        """The first column to the right."""
        return self.x + self.width


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The overview's parts; None: not shown at this size."""

    top: Rect | None = None
    gpus: Rect | None = None
    mode: GpuMode = "none"
    gpu_columns: int = 1
    graph_heights: tuple[int, int, int, int] = (1, 1, 1, 1)  # utilization, memory, temperature, power
    heading: bool = False  # a line over rows, strip and heat: what is shown, which is the worst, the signs
    host: Rect | None = None
    host_graphs: bool = False
    curves: Rect | None = None
    trainer: Rect | None = None
    findings: Rect | None = None
    footer: Rect | None = None

    def rectangles(self) -> dict[str, Rect]:
        """The parts that are shown, by name."""
        named = {
            "top": self.top, "gpus": self.gpus, "host": self.host, "curves": self.curves,
            "trainer": self.trainer, "findings": self.findings, "footer": self.footer,
        }  # fmt: skip
        return {name: rect for name, rect in named.items() if rect is not None}


def plan(width: int, height: int, gpus: int, finding_rows: int = 0) -> Plan:
    """The overview for a terminal of `width` x `height` cells and a number of GPUs.

    `finding_rows` is what the worst finding needs to be told whole: it gets it, up to half of a small screen
    and two fifths of others, as long as the GPUs keep their detail and no part has to go. On a very small
    one their memory's graphs give way to what is to be done.
    """
    if width < 1 or height < 1:
        return Plan()
    usual = _findings_rows(width, height)
    least = _plan(width, height, gpus, usual)
    small = height < 12
    for rows in range(min(finding_rows, height // 2 if small else height * 2 // 5), usual, -1):
        found = _plan(width, height, gpus, rows, rows - usual)
        same = (found.mode, found.gpu_columns) == (least.mode, least.gpu_columns)
        if least.mode in ("strip", "heat"):  # their signs are explained above them, or nowhere
            same = same and found.heading == least.heading
        if not same and small and least.mode == "pairs":
            same = found.mode == "rows"
        if same and least.rectangles().keys() <= found.rectangles().keys():
            return found
    return least


def _plan(width: int, height: int, gpus: int, findings: int, more: int = 0) -> Plan:
    """The plan with so many rows of findings, of which `more` are taken from the trainer's."""
    top = 1 if height < 14 or width >= 90 else 2
    footer = 1 if height >= 12 else 0
    host = 1 if height >= 14 else 0
    body = height - top - footer - findings - host
    if body < 1:
        findings = max(0, min(findings, height - top))
        return Plan(
            top=Rect(0, 0, width, top),
            findings=Rect(0, height - findings, width, findings) if findings and height > top else None,
        )
    frame = Plan(
        top=Rect(0, 0, width, top),
        findings=Rect(0, height - footer - findings, width, findings) if findings else None,
        footer=Rect(0, height - 1, width, 1) if footer else None,
    )
    options = []
    if width >= SIDE_MIN_WIDTH:
        options.append(_side(frame, width, top, body, host, gpus))
    options.append(_stacked(frame, width, top, body, host, gpus, more))
    return max(options, key=lambda option: (_DETAIL[option.mode], option.trainer is not None, option.heading))


_DETAIL: dict[GpuMode, int] = {"cards": 4, "pairs": 3, "rows": 2, "strip": 1, "heat": 0, "none": 0}


def _findings_rows(width: int, height: int) -> int:
    if height < 3:
        return 0
    if height < 12:
        return 1
    if height < 20:
        return 2
    if height < 28:
        return 3
    rows = 4 if height < 36 else 5 if height < 56 else 7
    return rows + (1 if width < 70 else 0)  # narrow: the same words take more lines


def gpu_rows(mode: GpuMode, gpus: int, columns: int, width: int, heights: int = 4) -> int:
    """How many rows the GPUs take; `heights` is the sum of a card's graph rows."""
    deep = -(-gpus // max(1, columns))
    if mode == "cards":
        return deep * (heights + 1) + 1
    if mode == "pairs":
        return deep * 2 + 1
    if mode == "rows":
        return deep
    if mode == "strip":
        return -(-gpus // strip_cells(width, gpus))
    if mode == "heat":
        return -(-gpus // heat_cells(width))
    return 4


def strip_cells(width: int, gpus: int) -> int:
    """How many GPUs a line of the strip holds: as many lines as needed, all of them about equally long."""
    most = max(1, width // STRIP_CELL)
    lines = max(1, -(-gpus // most))
    return max(1, -(-gpus // lines))


def _heading(mode: GpuMode, gpus: int, spare: int) -> bool:
    """Whether a line over the GPUs is worth it: few cells each explain themselves least."""
    if mode in ("strip", "heat"):
        return spare >= 2
    return mode == "rows" and gpus > 4 and spare >= 6


def heat_cells(width: int) -> int:
    """How many GPUs a line of bare signs holds: a round number where possible."""
    room = max(1, width - 7)
    for count in (64, 32, 16, 8):
        if count <= room:
            return count
    return room


def _choose(width: int, rows: int, gpus: int) -> tuple[GpuMode, int] | None:
    """The most detailed way to show the GPUs in that room, with its number of columns."""
    for mode, least in (("cards", CARD_MIN_WIDTH), ("pairs", PAIR_MIN_WIDTH), ("rows", ROW_MIN_WIDTH)):
        most = max(1, width // least) if width >= least or mode == "rows" else 0
        for columns in range(1, min(most, gpus) + 1):
            if gpu_rows(mode, gpus, columns, width) <= rows:  # type: ignore[arg-type]
                return mode, columns  # type: ignore[return-value]
    if gpu_rows("strip", gpus, 1, width) <= rows:
        return "strip", 1
    if gpu_rows("heat", gpus, 1, width) <= rows:
        return "heat", 1
    return None


def grow(rows: int) -> tuple[int, int, int, int]:
    """Heights of the four graphs of a card that together fill `rows` (at least 4)."""
    heights = dict.fromkeys(GRAPHS, 1)
    for extra in range(max(0, rows - 4)):
        name = _GROWTH[extra] if extra < len(_GROWTH) else ("util", "power", "util", "memory")[extra % 4]
        heights[name] += 1
    return (heights["util"], heights["memory"], heights["temperature"], heights["power"])


def _side(frame: Plan, width: int, top: int, body: int, host: int, gpus: int) -> Plan:
    """GPUs left, trainer right."""
    left = min(max(56, width * 42 // 100), 116)
    right = Rect(left, top, width - left, body + host)
    chosen = _choose(left, body, gpus) if gpus else ("none", 1)
    mode, columns = chosen or ("heat", 1)
    heading = _heading(mode, gpus, body - gpu_rows(mode, gpus, columns, left) + 1)
    gpus_rect, heights, host_rect, graphs = _fill_left(mode, columns, left, top, body, host, gpus, heading)
    curves, trainer = _split_right(right)
    return msgspec.structs.replace(
        frame, gpus=gpus_rect, mode=mode, gpu_columns=columns, graph_heights=heights, heading=heading,
        host=host_rect, host_graphs=graphs, curves=curves, trainer=trainer,
    )  # fmt: skip


def _fill_left(
    mode: GpuMode, columns: int, width: int, top: int, body: int, host: int, gpus: int, heading: bool
) -> tuple[Rect, tuple[int, int, int, int], Rect | None, bool]:
    """Give the GPUs' column all its rows: taller graphs first, then graphs of the host."""
    heights = (1, 1, 1, 1)
    if mode == "cards":
        deep = -(-gpus // columns)
        each = (body - 1) // deep - 1
        if body - deep * 19 - 1 >= 6:  # enough is left for graphs of the host
            each = min(each, 18)
        heights = grow(each)
        used = gpu_rows(mode, gpus, columns, width, sum(heights))
    else:
        used = min(body, gpu_rows(mode, gpus, columns, width) + heading)
    rest = body - used
    rect = Rect(0, top, width, used)
    if rest >= 5:
        return rect, heights, Rect(0, top + used, width, rest + host), True
    return (
        rect,
        heights,
        Rect(0, top + used, width, host + rest) if host + rest else None,
        False,
    )


def _split_right(area: Rect) -> tuple[Rect | None, Rect]:
    """Curves above, the trainer's numbers, records and time below."""
    if area.height < 12:
        return None, area
    below = max(8, min(area.height * 45 // 100, 20))
    above = area.height - below
    return Rect(area.x, area.y, area.width, above), Rect(area.x, area.y + above, area.width, below)


def _stacked(frame: Plan, width: int, top: int, body: int, host: int, gpus: int, more: int = 0) -> Plan:
    """GPUs above, host line, trainer below."""
    body += more
    wanted = (
        12
        if body >= 36
        else 9
        if body >= 22
        else 8
        if body >= 17
        else 5
        if body >= 11
        else 3
        if body >= 8
        else 1
    )
    body, wanted = body - more, max(1, wanted - more)
    chosen: tuple[GpuMode, int] | None = ("none", 1)
    if gpus:
        chosen = _choose(width, body - wanted, gpus)
        if chosen is None or (chosen[0] in ("strip", "heat") and body < 12):
            chosen, wanted = _choose(width, body, gpus) or ("heat", 1), 0
    mode, columns = chosen if chosen is not None else ("heat", 1)
    heights = (1, 1, 1, 1)
    used = min(body, gpu_rows(mode, gpus, columns, width))
    heading = _heading(mode, gpus, body - used)
    used += heading
    if mode == "cards":
        deep = -(-gpus // columns)
        # Half of the room is the trainer's; what is over makes the graphs taller.
        each = min(max(4, (max(body - wanted, 0) * 6 // 10 - 1) // deep - 1), 14)
        heights = grow(each)
        used = gpu_rows(mode, gpus, columns, width, sum(heights))
    trainer_rows = body - used
    y = top + used
    host_rect = Rect(0, y, width, host) if host else None
    trainer_area = Rect(0, y + host, width, trainer_rows)
    curves: Rect | None = None
    trainer: Rect | None = trainer_area if trainer_rows else None
    if trainer is not None and width >= 100 and trainer_rows >= 6:
        half = width // 2
        curves = Rect(0, trainer.y, half, trainer_rows)
        trainer = Rect(half, trainer.y, width - half, trainer_rows)
    elif trainer is not None and trainer_rows >= 10:
        below = 2 if trainer_rows < 12 else 4 if trainer_rows < 14 else 6 if trainer_rows < 20 else 9
        curves = Rect(0, trainer.y, width, trainer_rows - below)
        trainer = Rect(0, trainer.y + trainer_rows - below, width, below)
    return msgspec.structs.replace(
        frame, gpus=Rect(0, top, width, used), mode=mode, gpu_columns=columns, graph_heights=heights,
        heading=heading, host=host_rect, curves=curves, trainer=trainer,
    )  # fmt: skip
