"""The host: one line, or graphs where there is room."""

from __future__ import annotations

from yolomon.history import Table
from yolomon.tui import plots
from yolomon.tui.canvas import Canvas, Line, fill, width_of
from yolomon.tui.layout import Plan
from yolomon.tui.plots import Style
from yolomon.tui.view import Frame
from yolomon.tui.widgets.box import bottom_edge, inside, top_edge
from yolomon.tui.widgets.time_axis import axis_words
from yolomon.tui.words import pad, pad_left, percent, rate, size

_SPARK_CELLS = 8


class HostPanel(Canvas):
    """The overview's host."""

    def draw(self, frame: Frame, plan: Plan) -> None:
        """Draw this moment."""
        rect = plan.host
        if rect is not None:
            if plan.host_graphs:
                self.show(host_card(frame, rect.width, rect.height))
            else:
                self.show(host_lines(frame, rect.width, rect.height))


def _value(frame: Frame, name: str) -> float | None:
    host = frame.history.host
    if frame.live and frame.view.cursor_ts is None:
        found = host.table.latest(name)
        return None if found is None or frame.now_ts - found[0] > 30 else found[1]
    at = frame.at_ts
    bucket = host.table.pooled(name, at - 5, at + 0.05, 1)[0]
    return None if bucket is None else bucket.mean


def memory_total(frame: Frame) -> float | None:
    """What the host, or the container where its limit is lower, has."""
    sample, info = frame.history.host.sample, frame.history.host_info
    if info.memory_limit_bytes:
        return info.memory_limit_bytes
    return (sample.memory_total_bytes if sample is not None else None) or info.memory_total_bytes


def host_lines(frame: Frame, width: int, height: int) -> list[Line]:
    """As "CPU ▂▂▂ 14 %  RAM 38 G/251 G  shm 1 %  disk 120 MB/s  net 2 MB/s", as much as has room."""
    tr = frame.tr
    sample = frame.history.host.sample
    if sample is None:
        return [[(" ", "text"), (tr("host: no reading yet"), "dim")]]
    table = frame.history.host.table
    pieces: list[Line] = []
    cpu = _value(frame, "cpu_percent")
    if cpu is not None:
        spark = plots.runs(
            plots.one_row(
                frame.columns.get(("host",), table, "cpu_percent", frame.axis(_SPARK_CELLS), _SPARK_CELLS),
                Style(scale=100.0, ink=lambda _: "work"),
                frame.glyphs,
            )
        )
        pieces.append([(tr("CPU "), "label"), *spark, (pad_left(percent(cpu), 6), "number")])
    total, used = memory_total(frame), _value(frame, "memory_used_bytes")
    if used is not None:
        ink = (
            "crit"
            if total and used >= 0.97 * total
            else "warn"
            if total and used >= 0.92 * total
            else "number"
        )
        of = f"/{size(total)}" if total else ""
        pieces.append([(tr("RAM "), "label"), (size(used), ink), (of, "dim")])
    if sample.shm_used_bytes is not None and sample.shm_total_bytes:
        share = 100 * sample.shm_used_bytes / sample.shm_total_bytes
        pieces.append([(tr("shm "), "label"), (percent(share), "warn" if share >= 90 else "number")])
    read, written = _value(frame, "disk_read_bytes_per_second"), _value(frame, "disk_write_bytes_per_second")
    if read is not None or written is not None:
        pieces.append([(tr("disk "), "label"), (pad_left(rate((read or 0) + (written or 0)), 8), "number")])
    received, sent = (
        _value(frame, "net_received_bytes_per_second"),
        _value(frame, "net_sent_bytes_per_second"),
    )
    if received is not None or sent is not None:
        pieces.append([(tr("net "), "label"), (pad_left(rate((received or 0) + (sent or 0)), 8), "number")])
    if sample.swap_used_bytes:
        pieces.append([(tr("swap "), "label"), (size(sample.swap_used_bytes), "number")])
    if sample.disk_free_bytes is not None:
        free = sample.disk_free_bytes
        low = sample.disk_total_bytes and free < 0.05 * sample.disk_total_bytes
        pieces.append([(tr("free "), "label"), (size(free), "warn" if low else "number")])
    if sample.load_average is not None:
        pieces.append([(tr("load "), "label"), (f"{sample.load_average[0]:.1f}", "number")])
    return [fill(line, width) for line in _spread(pieces, width, height)]


def _spread(pieces: list[Line], width: int, height: int) -> list[Line]:
    """The pieces in as few lines as hold them, of even length: none stands alone on the last one."""
    cells = [width_of(piece) for piece in pieces]
    best = _broken(cells, width, height)
    for narrower in range(width - 1, 0, -1) if len(best) > 1 else ():
        counts = _broken(cells, narrower, height)
        if len(counts) != len(best) or sum(counts) != sum(best):
            break
        best = counts
    lines: list[Line] = []
    place = 0
    for count in best:
        line: Line = [(" ", "text")]
        for piece in pieces[place : place + count]:
            line += [*piece, ("  ", "text")]
        lines.append(line)
        place += count
    return lines


def _broken(cells: list[int], width: int, height: int) -> list[int]:
    """How many pieces of these lengths each line holds; what has no room at all is left out."""
    counts, used = [0], 1
    for length in cells:
        if used + length + 2 > width:
            if len(counts) == height:
                break
            counts.append(0)
            used = 1
        counts[-1] += 1
        used += length + 2
    return counts


def host_card(frame: Frame, width: int, height: int) -> list[Line]:
    """CPU, memory, disk and network as graphs."""
    tr, table = frame.tr, frame.history.host.table
    info = frame.history.host_info
    title = tr("host") if not info.cores else tr("host · {cores} cores", cores=info.cores)
    lines = [top_edge(frame.glyphs, width, title)]
    count = max(1, width - 2 - 6 - 9 - 7 - 4)
    rows = height - 2
    total = memory_total(frame)
    cpu, busiest = _value(frame, "cpu_percent"), _value(frame, "cpu_busiest_core_percent")
    used = _value(frame, "memory_used_bytes")
    read, received = (
        _value(frame, "disk_read_bytes_per_second"),
        _value(frame, "net_received_bytes_per_second"),
    )
    entries: list[tuple[str, str, str, str, Style]] = []
    flat = Style(scale=100.0, ink=lambda _: "work", measure="mean")
    entries.append((tr("CPU"), percent(cpu), "cpu_percent", "", flat))
    entries.append((tr("core"), percent(busiest), "cpu_busiest_core_percent", tr("busiest"), flat))
    share = "" if not total or used is None else percent(100 * used / total)
    entries.append(
        (tr("RAM"), size(used), "memory_used_bytes", share, Style(scale=total, ink=lambda _: "memory"))
    )
    for label, value, name in (
        (tr("disk"), read, "disk_read_bytes_per_second"),
        (tr("net"), received, "net_received_bytes_per_second"),
    ):
        peak = _round_scale(table, frame, name)
        entries.append((label, rate(value), name, "", Style(scale=peak, ink=lambda _: "power")))
    shown = entries[: max(1, rows)]
    heights = [max(1, rows // len(shown))] * len(shown)
    for place in range(rows - sum(heights)):
        heights[place % len(heights)] += 1
    for (label, shown_value, name, verdict, style), graph_height in zip(shown, heights, strict=True):
        columns = frame.columns.get(("host",), table, name, frame.axis(count), count)
        for place, row in enumerate(plots.many_rows(columns, style, frame.glyphs, graph_height)):
            head = [(" " + pad(label, 6), "label"), (pad_left(shown_value, 9), "number"), (" ", "text")]
            body: Line = head if place == 0 else [(" " * 17, "text")]
            body = [*body, *plots.runs(row), (" ", "text")]
            body.append((pad_left(verdict, 7) if place == 0 else " " * 7, "dim"))
            lines.append(inside(frame.glyphs, width, body))
    lines.append(bottom_edge(frame.glyphs, width, axis_words(frame, 18, count)))
    return lines


def _round_scale(table: Table, frame: Frame, name: str) -> float:
    """A fixed scale for a rate that has no limit: the power of ten above what the window held."""
    bucket = table.pooled(name, frame.end_ts - frame.window_seconds, frame.end_ts, 1)[0]
    scale = 1e6
    while bucket is not None and scale < bucket.maximum:
        scale *= 10
    return scale
