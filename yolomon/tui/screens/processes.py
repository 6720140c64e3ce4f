"""The processes: trainer, ranks and loader workers as a tree, and the others on the GPUs."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.messages import Message, msg
from yolomon.tui.canvas import Line
from yolomon.tui.choices import ORDERS, Order
from yolomon.tui.process_tree import Entry, process_entries
from yolomon.tui.screens.list_page import ListPage
from yolomon.tui.view import Frame
from yolomon.tui.widgets.text_lines import cells, heading, paragraph
from yolomon.tui.words import MISSING, fit, rate, size


class ProcessesPage(ListPage):
    """A line a process; below it the chosen one's whole command."""

    PAGE: ClassVar[str] = "processes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "next_order", "Order", id="order", tooltip="Order by something else"),
        Binding("T", "order('tree')", "Tree", id="order_tree", show=False, tooltip="As a tree"),
        Binding("P", "order('cpu')", "By CPU", id="order_cpu", show=False, tooltip="Order by CPU"),
        Binding("M", "order('memory')", "By memory", id="order_memory", show=False,
                tooltip="Order by memory"),
        Binding("V", "order('gpu')", "By GPU memory", id="order_gpu", show=False,
                tooltip="Order by GPU memory"),
        Binding("I", "order('io')", "By I/O", id="order_io", show=False,
                tooltip="Order by reading and writing"),
    ]  # fmt: skip
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("up,down", msg("choose")),
        ("o", msg("order")),
        ("/", msg("filter")),
        ("Esc", msg("overview")),
        ("?", msg("help")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._pid: int | None = None

    def rows(self, frame: Frame, width: int) -> list[Line]:
        """All processes; the choice stays with its process."""
        order = self.monitor.choices.order
        self._entries = process_entries(frame, order)
        pids = [entry.pid for entry in self._entries]
        if self._pid in pids:
            self.chosen = pids.index(self._pid)
        elif pids:
            self._pid = pids[min(self.chosen, len(pids) - 1)]
        return [process_row(frame, entry, width - 2) for entry in self._entries]

    def head(self, frame: Frame, width: int) -> list[Line]:
        """How many, the order, and the names of the columns."""
        tr = frame.tr
        order = self.monitor.choices.order
        names = {
            "tree": tr("as a tree"), "cpu": tr("by CPU"), "memory": tr("by memory"),
            "gpu": tr("by GPU memory"), "io": tr("by I/O"),
        }  # fmt: skip
        title = tr("processes: {n}, {order}", n=len(self._entries), order=names[order])
        lines = [heading(frame, title, width)]
        if not self._entries:
            text = tr("No process holds these words.") if frame.filter else no_process(frame)
            return [*lines, *paragraph(text, width, "dim")]
        return [*lines, [("  ", "text"), *column_names(frame, width - 2, order)]]

    def detail(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The chosen process in full."""
        if not self._entries or height < 3:
            return []
        entry = self._entries[self.chosen]
        lines = [heading(frame, f"pid {entry.pid}", width)]
        lines += paragraph(entry.name or frame.tr("not visible from here"), width)[: max(1, height - 2)]
        told = frame.history.processes.by_pid.get(entry.pid)
        if told is not None:
            sample = told.sample
            words = [
                f"{frame.tr('threads')} {sample.threads}" if sample.threads else "",
                f"{frame.tr('cores allowed')} {sample.affinity_cores}" if sample.affinity_cores else "",
                f"CUDA_VISIBLE_DEVICES={sample.cuda_visible_devices}" if sample.cuda_visible_devices else "",
                f"{frame.tr('in')} {sample.cwd}" if sample.cwd else "",
            ]
            if (
                sample.pss_bytes is None and sample.rss_bytes is not None and width >= 58
            ):  # as the sign itself
                words.append(frame.tr("* resident memory: shared pages count in every process"))
            lines += paragraph(f" {frame.glyphs.dot} ".join(w for w in words if w), width, "dim")
        return lines

    def choice_changed(self) -> None:
        """The choice is a process, not a line."""
        if self._entries:
            self._pid = self._entries[min(self.chosen, len(self._entries) - 1)].pid

    def action_next_order(self) -> None:
        """The next order."""
        now = ORDERS.index(self.monitor.choices.order)
        self.action_order(ORDERS[(now + 1) % len(ORDERS)])

    def action_order(self, order: Order) -> None:
        """Order by that; the list begins at its top."""
        self.monitor.choices.order = order
        self._pid, self.chosen = None, 0
        self.monitor.redraw()


def no_process(frame: Frame) -> str:
    """Why the list is empty."""
    if frame.history.host_info.pid_namespace_shared is False:
        return frame.tr(
            "The trainer's processes are in another PID namespace: start yolomon in its container."
        )
    return frame.tr("No process of a training and none on a GPU was seen yet.")


# (name in the head, cells, least width of the page at which it is shown)
_COLUMNS: tuple[tuple[str, int, int], ...] = (
    ("pid", 8, 0), ("rank", 10, 0), ("cpu", 8, 0), ("memory", 9, 0), ("gpu", 9, 56), ("read", 11, 76),
    ("write", 11, 90), ("status", 12, 100),
)  # fmt: skip


LEAST_CELLS = 12  # of the command: with less it is told below alone


def column_names(frame: Frame, width: int, order: Order) -> Line:
    """The head of the table; the column that orders it is marked."""
    tr = frame.tr
    names = {
        "pid": "PID", "rank": " " + tr("role"), "cpu": "CPU %", "memory": tr("RAM"), "gpu": tr("GPU mem"),
        "read": tr("read"), "write": tr("written"), "status": "  " + tr("status"),
    }  # fmt: skip
    spans: list[tuple[str, int, str]] = []
    for name, length, least in _COLUMNS:
        if width >= least:
            ordered = name == order or (order == "io" and name in ("read", "write"))
            text = names[name] + (frame.glyphs.down if ordered else "")
            left = name in ("rank", "status")
            spans.append((text, -length if left else length, "title" if ordered else "label"))
    room = width - sum(abs(length) for _, length, _ in spans)
    return (
        cells(width, *spans, ("  " + tr("command"), -room, "label"))
        if room >= LEAST_CELLS
        else cells(width, *spans)
    )


def role_words(frame: Frame, entry: Entry) -> tuple[str, str]:
    """What the process is to the job."""
    tr = frame.tr
    if entry.foreign:
        return tr("others"), "warn"
    if entry.rank is not None:
        return tr("rank {rank}", rank=entry.rank), "title"
    if entry.worker:
        return tr("worker"), "dim"
    return (tr("on a GPU"), "text") if entry.gpus else (tr("launcher"), "dim")


def process_row(frame: Frame, entry: Entry, width: int) -> Line:
    """One process; a number that was not read is a dash, never 0."""
    role, role_ink = role_words(frame, entry)
    memory = size(entry.memory_bytes) if entry.memory_bytes is not None else MISSING
    if entry.memory_bytes is not None and not entry.is_pss and width >= 56:
        memory += "*"
    cpu = MISSING if entry.cpu_percent is None else f"{entry.cpu_percent:.0f}"
    status = entry.status or MISSING
    bad = status in ("disk-sleep", "zombie", "dead", "stopped")
    values = {
        "pid": (str(entry.pid), "number"),
        "rank": (" " + role, role_ink),
        "cpu": (cpu, "number"),
        "memory": (memory, "number"),
        "gpu": (size(entry.gpu_memory_bytes) if entry.gpus else "", "number"),
        "read": (rate(entry.read_bytes_per_second), "number"),
        "write": (rate(entry.write_bytes_per_second), "number"),
        "status": ("  " + status, "warn" if bad else "dim"),
    }
    spans: list[tuple[str, int, str]] = []
    for name, length, least in _COLUMNS:
        if width >= least:
            left = name in ("rank", "status")
            spans.append((values[name][0], -length if left else length, values[name][1]))
    room = width - sum(abs(length) for _, length, _ in spans)
    if room < LEAST_CELLS:
        return cells(width, *spans)
    branch = ""
    if entry.depth:
        ascii_only = frame.glyphs.style == "ascii"
        corner = ("`-" if entry.last else "|-") if ascii_only else ("└─" if entry.last else "├─")
        branch = "  " * (entry.depth - 1) + corner + " "
    name = entry.name or frame.tr("not visible from here")
    text = "  " + branch + fit(name, max(0, room - 2 - len(branch)), frame.glyphs.ellipsis)
    return cells(width, *spans, (text, -room, "text" if entry.visible else "dim"))
