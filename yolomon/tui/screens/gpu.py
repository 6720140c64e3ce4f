"""One GPU: all its signals, why its clocks are where they are, its processes, its rank, its MIG instances."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click

from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.tui.canvas import Line, width_of
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.short_names import brief
from yolomon.tui.signals import reading
from yolomon.tui.view import Frame
from yolomon.tui.widgets.findings_panel import sign_of, since
from yolomon.tui.widgets.gpu_card import judgement_of
from yolomon.tui.widgets.gpu_signals import axis_place, clock_events, entries, signal_lines
from yolomon.tui.widgets.gpu_title import shows_waits, wait_legend
from yolomon.tui.widgets.text_lines import cells, heading, pairs, paragraph
from yolomon.tui.widgets.time_axis import axis_words
from yolomon.tui.words import cells_of, fit, percent, plain, size


class GpuPage(BodyPage):
    """The arrow keys choose which; the page keys scroll."""

    PAGE: ClassVar[str] = "gpu"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "other(-1)", "GPU before", id="gpu_before", tooltip="The GPU before this one"),
        Binding("down", "other(1)", "Next GPU", id="gpu_next", tooltip="The next GPU"),
        Binding("k", "move(-1)", "Up", id="gpu_up", show=False, tooltip="Up by a line"),
        Binding("j", "move(1)", "Down", id="gpu_down", show=False, tooltip="Down by a line"),
    ]
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("up,down", msg("GPU")),
        ("left,right", msg("cursor")),
        ("+-", msg("window")),
        ("j/k", msg("scroll")),
        ("Esc", msg("overview")),
        ("?", msg("help")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._graphs = range(0)  # their lines

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The chosen GPU; the worst off until one was chosen."""
        gpus = frame.history.by_index()
        if not gpus:
            self._graphs = range(0)
            return [[], *no_gpu(frame, width)]
        gpu = chosen(frame, gpus, self.monitor.choices.gpu_index)
        lines, self._graphs = gpu_lines(frame, gpu, len(gpus), width, height)
        return lines

    def on_click(self, event: Click) -> None:
        """Put the cursor on the moment that was clicked; beside the graphs put it away."""
        first, count = axis_place(self.size.width)
        place = event.x - first
        axis = self.monitor.frame().axis(count)
        inside = (
            event.widget is self.body and event.y + self.first_line in self._graphs and 0 <= place < count
        )
        at = axis.start_of(place, count) + axis.seconds_per_column / 2
        self.monitor.look_at(min(at, axis.end_ts) if inside else None)

    def action_other(self, direction: int) -> None:
        """Another GPU; with one alone the keys scroll."""
        frame = self.monitor.frame()
        gpus = frame.history.by_index()
        if len(gpus) < 2:
            self.action_move(direction)
            return
        now = gpus.index(chosen(frame, gpus, self.monitor.choices.gpu_index))
        self.monitor.choices.gpu_index = gpus[(now + direction) % len(gpus)].info.index
        self.first_line = 0
        self.monitor.redraw()


def chosen(frame: Frame, gpus: list[GpuHistory], index: int | None) -> GpuHistory:
    """The GPU that the user chose, else the one of the worst finding, else the first."""
    by_index = {gpu.info.index: gpu for gpu in gpus}
    if index in by_index:
        return by_index[index]
    for finding in frame.findings_at():
        if finding.target.startswith("gpu") and finding.target[3:].isdigit():
            found = by_index.get(int(finding.target[3:]))
            if found is not None:
                return found
    return gpus[0]


def no_gpu(frame: Frame, width: int) -> list[Line]:
    """Why there is none."""
    status = frame.history.statuses.get("nvml")
    if status is not None and not status.ok and status.cause is not None:
        lines = paragraph(frame.tr(status.cause), width, "warn")
        if status.remedy is not None:
            lines += paragraph(frame.tr(status.remedy), width, "info", first=f"   {frame.glyphs.arrow} ")
        return lines
    return paragraph(frame.tr("No GPU was read yet."), width, "dim")


def gpu_lines(frame: Frame, gpu: GpuHistory, count: int, width: int, height: int) -> tuple[list[Line], range]:
    """The whole page of one GPU, and which of its lines are graphs."""
    tr = frame.tr
    judgement, ink = judgement_of(frame, gpu, reading(frame, gpu))
    title = f"GPU {gpu.info.index}"
    if count > 1:
        title = tr("GPU {index} of {count}", index=gpu.info.index, count=count)
    rank = frame.engine.job.rank_of(gpu.info.index)
    words = [title, plain(gpu.info.name)]
    if rank is not None:
        words.append(tr("rank {rank}", rank=rank))
    member = next((m for m in frame.engine.job.members if m.gpu_index == gpu.info.index), None)
    if member is not None and member.cuda_index is not None and width >= 100:
        words.append(f"cuda:{member.cuda_index}")
    room = width - width_of([(judgement, "")]) - (2 if judgement else 1)
    text = f" {frame.glyphs.dot} ".join(words)
    while len(words) > 1 and cells_of(text) > room - 5:  # which GPU it is stays; its model is known best
        words.pop(1)
        text = f" {frame.glyphs.dot} ".join(words)
    lines: list[Line] = [heading(frame, text, room)]
    lines[0] = [*lines[0], (f" {judgement}" if judgement else "", ink)]
    for finding in [f for f in frame.findings_at() if f.target == f"gpu{gpu.info.index}"][
        : 1 if height < 14 else 2
    ]:
        sign, finding_ink = sign_of(frame, finding)
        said = plain(tr(finding.summary))
        if height < 20:
            said = brief(tr, finding, width - 5, frame.glyphs.ellipsis)
        else:
            said += f" {frame.glyphs.dot} {since(frame, finding)}"
        lines += [
            [(piece[0][0], finding_ink), piece[1]]
            for piece in paragraph(said, width, "text", first=f" {sign} ")
        ]
    found, missing = entries(frame, gpu)
    below = facts(frame, gpu, width)
    below += process_table(frame, gpu, width)
    below += mig_table(frame, gpu, width)
    if missing:
        names = tr("not told by this GPU: {names}", names=", ".join(missing))
        below += [[], *paragraph(names, width, "dim", first=" ")]
    room = height - len(lines) - 1 - len(below)
    graphs = signal_lines(frame, gpu, found, width, room)
    first, columns = axis_place(width)
    axis = axis_line(frame, first, columns, width, wait_legend(frame) if shows_waits(graphs) else "")
    drawn = range(len(lines), len(lines) + len(graphs))
    lines += [*graphs, axis]
    return [*lines, *below], drawn


def axis_line(frame: Frame, first: int, count: int, width: int, legend: str = "") -> Line:
    """The time axis as words below the graphs; before it what a sign in them means."""
    taken: list[tuple[int, str]] = [(1, legend)] if legend else []
    for place, word in axis_words(frame, first, count):  # the first ones matter most
        end = place + cells_of(word)
        if end <= width and all(end < at or place > at + cells_of(other) for at, other in taken):
            taken.append((place, word))
    text = ""
    for place, word in sorted(taken):
        text += " " * (place - cells_of(text)) + word
    return (
        [(text[: len(legend) + 1], "wait"), (text[len(legend) + 1 :], "dim")] if legend else [(text, "dim")]
    )


def facts(frame: Frame, gpu: GpuHistory, width: int) -> list[Line]:
    """Clock events in words, and the numbers that no graph shows."""
    tr, info, slow, sample = frame.tr, gpu.info, gpu.slow, gpu.sample
    mask = sample.clock_event_reasons if sample is not None else None
    words, ink = clock_events(tr, mask)
    lines = paragraph(words, width, ink, first=f" {tr('clocks')}: ") if mask is not None else []
    entries_: list[tuple[str, str, str]] = []

    def add(name: str, value: object, ink: str = "number") -> None:
        if value is not None:
            entries_.append((name, str(value), ink))

    start = frame.end_ts - frame.window_seconds
    least = gpu.fast.pooled("utilization_min_percent", start, frame.end_ts, 1)[0]
    most = gpu.fast.pooled("utilization_max_percent", start, frame.end_ts, 1)[0]
    if least is not None and most is not None:  # of the driver's own samples, several between two readings
        add(tr("least and most utilization"), f"{least.minimum:.0f}-{most.maximum:.0f} %")
    if sample is not None and sample.performance_state is not None:
        add(tr("performance state"), f"P{sample.performance_state}")
    if slow is not None:
        link = None
        if slow.pcie_generation is not None and slow.pcie_width is not None:
            link = f"gen {slow.pcie_generation} x{slow.pcie_width}"
            if info.pcie_generation_max and info.pcie_width_max:
                link += f" / gen {info.pcie_generation_max} x{info.pcie_width_max}"
        add(tr("PCIe link"), link)
        add(tr("PCIe replays"), slow.pcie_replays)
        add(tr("ECC corrected"), slow.ecc_corrected, "warn" if slow.ecc_corrected else "number")
        add(tr("ECC uncorrected"), slow.ecc_uncorrected, "crit" if slow.ecc_uncorrected else "number")
        if slow.remapped_rows_pending is not None or slow.remapped_rows_failed is not None:
            bad = slow.remapped_rows_failed or slow.remapped_rows_pending
            row = tr("failed") if slow.remapped_rows_failed else tr("pending") if bad else tr("none")
            add(tr("row remapping"), row, "warn" if bad else "number")
        add(tr("fan"), None if slow.fan_percent is None else percent(slow.fan_percent))
        if slow.energy_joules is not None:
            add(tr("energy since the driver loaded"), f"{slow.energy_joules / 3.6e6:.1f} kWh")
    add(tr("memory in all"), None if info.memory_total_bytes is None else size(info.memory_total_bytes))
    if info.memory_reserved_bytes:
        add(tr("of it the driver's"), size(info.memory_reserved_bytes))
    add(tr("compute capability"), info.compute_capability)
    add("PCI", None if info.pci_bus_id is None else plain(info.pci_bus_id), "text")
    if width >= 60:
        add("UUID", fit(plain(info.uuid), 44), "text")
    return [*lines, *pairs(entries_, width, indent=1)]


def process_table(frame: Frame, gpu: GpuHistory, width: int) -> list[Line]:
    """Who is on the GPU."""
    tr = frame.tr
    if gpu.slow is None or gpu.slow.processes is None:
        return []
    lines: list[Line] = [[], heading(frame, tr("processes"), width)]
    if not gpu.slow.processes:
        return [*lines, *paragraph(tr("None is visible on this GPU."), width, "dim", first=" ")]
    own = frame.engine.job.gpu_pids.get(gpu.info.index, ())
    known = frame.history.processes.by_pid
    for process in sorted(gpu.slow.processes, key=lambda p: -(p.memory_used_bytes or 0)):
        told = known.get(process.pid)
        rank = frame.engine.job.rank_of(gpu.info.index) if process.pid in own else None
        if rank is not None:
            whose, ink = tr("rank {rank}", rank=rank), "text"
        else:
            whose, ink = (tr("this job"), "text") if process.pid in own else (tr("others"), "warn")
        name = "" if told is None else plain(told.sample.command or told.sample.name)
        lines.append(
            cells(
                width, (" ", -1, "text"), (str(process.pid), 8, "number"),
                (size(process.memory_used_bytes), 8, "number"), ("  ", -2, "text"),
                (whose if own else "", -9, ink), (process.kind, -9, "dim"),
                (name or tr("not visible from here"), -max(1, width - 38), "text" if name else "dim"),
            )
        )  # fmt: skip
    return lines


def mig_table(frame: Frame, gpu: GpuHistory, width: int) -> list[Line]:
    """The instances of a partitioned GPU."""
    tr = frame.tr
    if gpu.slow is None or not gpu.slow.mig_instances:
        return []
    lines: list[Line] = [[], heading(frame, tr("MIG instances"), width)]
    for instance in gpu.slow.mig_instances:
        active = None if instance.gpm is None else instance.gpm.sm_active_percent
        lines.append(
            cells(
                width, (" ", -1, "text"), (str(instance.gpu_instance), 3, "label"), ("  ", -2, "text"),
                (plain(instance.name), -26, "text"), (size(instance.memory_used_bytes), 8, "number"),
                (f" / {size(instance.memory_total_bytes)}", -10, "dim"),
                ("" if active is None else f"SM {percent(active)}", 10, "number"),
            )
        )  # fmt: skip
    return lines
