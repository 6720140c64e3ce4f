"""The training curves: which, which part of the run, how smooth, beside an earlier run of the same folder."""

from __future__ import annotations

import time
from math import ceil
from typing import ClassVar

from textual.binding import Binding, BindingType

from yolomon.earlier_run import EarlierRuns
from yolomon.history import Curve
from yolomon.messages import Message, msg
from yolomon.tui.canvas import Line, fill, width_of
from yolomon.tui.curve_chart import SMOOTHING, Drawn, Look, best_of, chart_lines
from yolomon.tui.screens.body_page import BodyPage
from yolomon.tui.signal_words import WORDS
from yolomon.tui.view import Frame
from yolomon.tui.widgets.curves import INKS, short
from yolomon.tui.widgets.text_lines import heading, paragraph
from yolomon.tui.words import fit, number, pad, pad_left, plain

_METRICS = ("map50_95", "map50", "precision", "recall", "fitness")
_ALONE = ("learning_rate", "images_per_second", "gradient_norm")
_TIMES = ("step_seconds", "data_seconds")
_SHOWN_AT_FIRST = ("loss", "map50_95", "map50")
LIST_CELLS = 34
WIDE = 90
LEAST_SPAN = 0.05  # of an epoch, or of a step
REDRAW_SECONDS = 2.0


class CurvesPage(BodyPage):
    """A list of the curves, and a chart for each kind of number among the chosen ones."""

    PAGE: ClassVar[str] = "curves"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", id="curve_up", show=False, tooltip="The curve above"),
        Binding("down,j", "move(1)", "Down", id="curve_down", show=False, tooltip="The curve below"),
        Binding("space,enter", "show_curve", "Show", id="show_curve", tooltip="Show or hide this curve"),
        Binding("a", "alone", "Alone", id="alone", tooltip="Show the chosen curve alone, or the usual"),
        Binding("plus,equals_sign", "zoom(0.5)", "Zoom in", id="zoom_in", tooltip="A shorter part of it"),
        Binding("minus", "zoom(2)", "Zoom out", id="zoom_out", tooltip="A longer part of it"),
        Binding("left", "pan(-1)", "Earlier", id="pan_left", tooltip="An earlier part of the run"),
        Binding("right", "pan(1)", "Later", id="pan_right", tooltip="A later part of the run"),
        Binding("0,home", "whole", "Whole run", id="whole", tooltip="Show the whole run"),
        Binding("l", "logarithmic", "Log scale", id="logarithmic", tooltip="Logarithmic or linear scale"),
        Binding("m", "smooth", "Smooth", id="smooth", tooltip="Smooth the curves: not, some, much"),
        Binding("b", "band", "Band", id="band", tooltip="Least and greatest values as a band"),
        Binding("v", "compare", "Compare", id="compare", tooltip="Compare with an earlier run of the folder"),
        Binding("x", "stop_reading", "Stop", id="stop_reading", tooltip="Stop reading, compare with no run"),
    ]  # fmt: skip
    KEYS: ClassVar[tuple[tuple[str, Message], ...]] = (
        ("Space", msg("show")),
        ("+-", msg("zoom")),
        ("left,right", msg("move")),
        ("l", msg("log scale")),
        ("m", msg("smooth")),
        ("v", msg("compare")),
        ("Esc", msg("overview")),
        ("?", msg("help")),
    )

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0
        self.names: list[str] = []
        self.part: tuple[float, float] | None = None  # of the axis; None: the whole run
        self.earlier = EarlierRuns()
        self._next_run = 0
        self._wants_run = False
        self._kept: tuple[tuple[object, ...], float, list[Line]] | None = None

    def on_unmount(self) -> None:
        """Nobody waits for the earlier run any more."""
        self.earlier.stop()

    # ------------------------------------------------------------ drawing

    def body_lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Drawn anew when a key was pressed, else at most every two seconds."""
        choices = self.monitor.choices
        if self._wants_run and not self.earlier.busy and self.earlier.runs is not None:
            self._wants_run = False
            self._read_next(frame)
        state: tuple[object, ...] = (
            width, height, self.chosen, frozenset(choices.toggled), choices.logarithmic, choices.smooth,
            choices.band, self.part, frame.filter, self.earlier.progress_percent, self.earlier.chosen,
            len(self.earlier.curves), self._wants_run,
        )  # fmt: skip
        now = time.monotonic()
        if self._kept is not None and self._kept[0] == state and now - self._kept[1] < REDRAW_SECONDS:
            return self._kept[2]
        lines = self._lines(frame, width, height)
        self._kept = (state, now, lines)
        return lines

    def _lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        tr = frame.tr
        curves = frame.history.train.curves
        self.names = ordered_names(frame)
        self.chosen = max(0, min(self.chosen, len(self.names) - 1))
        head = [heading(frame, self._title(frame), width)]
        if not self.names:
            text = tr("No curve holds these words.") if frame.filter else tr("No losses yet.")
            return [*head, *paragraph(text, width, "dim")]
        shown = [name for name in ordered_names(frame, everything=True) if self._is_shown(name)]
        inks = {name: INKS[place % len(INKS)] for group in grouped(shown) for place, name in enumerate(group)}
        listing = [self._entry(frame, name, inks) for name in self.names]
        room = height - len(head)
        if width >= WIDE:
            rows = _around(listing, self.chosen, room)
            charts = self._charts(frame, shown, curves, inks, width - LIST_CELLS, room)
            body = [
                [*fill(left[:], LIST_CELLS), *right]
                for left, right in zip(
                    [*rows, *([[]] * (room - len(rows)))],
                    [*charts, *([[]] * (room - len(charts)))],
                    strict=False,
                )
            ]
            return [*head, *body]
        rows = _around(listing, self.chosen, 1 if height < 14 else min(5, max(2, height // 5)))
        return [*head, *rows, *self._charts(frame, shown, curves, inks, width, room - len(rows))]

    def _title(self, frame: Frame) -> str:
        tr, choices = frame.tr, self.monitor.choices
        words = [tr("training curves")]
        if choices.logarithmic:
            words.append(tr("log scale"))
        if choices.smooth:
            words.append(tr("smoothed {strength}", strength=SMOOTHING[choices.smooth]))
        earlier = self.earlier
        if earlier.progress_percent is not None and earlier.chosen:
            name = plain(_base(earlier.chosen))
            words.append(
                tr("reading {run}: {percent} %, x stops", run=name, percent=f"{earlier.progress_percent:.0f}")
            )
        elif earlier.chosen and earlier.curves:
            words.append(tr("dotted: {run}", run=plain(_base(earlier.chosen))))
        elif earlier.chosen and earlier.failure is not None:
            words.append(f"{plain(_base(earlier.chosen))}: {tr(earlier.failure)}")
        elif self._wants_run:
            words.append(tr("looking for earlier runs"))
        return f" {frame.glyphs.dot} ".join(words)

    def _entry(self, frame: Frame, name: str, inks: dict[str, str]) -> Line:
        curve = frame.history.train.curves[name]
        shown = self._is_shown(name)
        mark = "[x] " if shown else "[ ] "
        value = number(curve.last[-1]) if len(curve) else ""
        label = curve_word(frame, name)
        room = LIST_CELLS - 4 - 4 - 9
        ink = inks.get(name, "dim") if shown else "dim"
        if name == (self.names[self.chosen] if self.names else None):
            return [(f"> {mark}{pad(fit(label, room), room)}{pad_left(value, 9)} ", "selected")]
        line: Line = [("  ", "text"), (mark, ink), (pad(fit(label, room), room), ink)]
        line.append((pad_left(value, 9) + " ", "number" if shown else "dim"))
        return line

    def _charts(
        self,
        frame: Frame,
        shown: list[str],
        curves: dict[str, Curve],
        inks: dict[str, str],
        width: int,
        room: int,
    ) -> list[Line]:
        groups = grouped(shown)
        if not groups:
            return paragraph(frame.tr("Choose curves with the space bar."), width, "dim")
        fit_in = max(1, min(len(groups), room // 6))
        chosen = self.names[self.chosen]
        if fit_in < len(groups):  # the chosen curve's chart is never the one that is left out
            groups.sort(key=lambda group: chosen not in group)
        lines: list[Line] = []
        choices = self.monitor.choices
        for place, group in enumerate(groups[:fit_in]):
            height = room // fit_in + (1 if place < room % fit_in else 0)
            start, end = self._span(curves)
            look = Look(
                x_from=start, x_to=end, logarithmic=choices.logarithmic,
                smoothing=SMOOTHING[choices.smooth], band=choices.band and len(group) <= 3,
                epochs=frame.history.train.epoch is not None,
            )  # fmt: skip
            unit = frame.tr("epoch") if look.epochs else frame.tr("step")
            drawn = [Drawn(curves[name], inks[name], best_kind(name)) for name in group]
            drawn += [
                Drawn(self.earlier.curves[name], "dim", earlier=True)
                for name in group
                if name in self.earlier.curves
            ]
            lines.append(self._legend(frame, group, curves, inks, width))
            body = chart_lines(drawn, look, frame.glyphs, width, height - 1, unit)
            if not body:
                body = [[("   " + frame.tr("nothing in this part of the run"), "dim")]]
            lines += [*body, *([[]] * (height - 1 - len(body)))]
        return lines

    def _legend(
        self, frame: Frame, group: list[str], curves: dict[str, Curve], inks: dict[str, str], width: int
    ) -> Line:
        """Every curve has its name before any its value, and every value is there before a best one."""
        for much in (2, 1, 0):
            pieces = [self._named(frame, name, curves[name], inks[name], much) for name in group]
            if 1 + sum(width_of(piece) + 2 for piece in pieces) <= width:
                break
        line: Line = [(" ", "text")]
        for piece in pieces:
            if width_of(line) + width_of(piece) > width:
                break
            line += [*piece, ("  ", "text")]
        return line

    def _named(self, frame: Frame, name: str, curve: Curve, ink: str, much: int) -> Line:
        """A curve's name; with its newest value (1); with its best one too (2)."""
        tr = frame.tr
        piece: Line = [(curve_word(frame, name), ink)]
        if much and len(curve):
            piece.append((f" {number(curve.last[-1])}", "number"))
        best = best_of(curve, best_kind(name)) if much > 1 else None
        if best is not None:
            at = ceil(best[0] - 1e-9)  # 2.5: half of the third epoch
            where = (
                tr("in epoch {n}", n=at) if frame.history.train.epoch is not None else tr("in step {n}", n=at)
            )
            piece.append((f" + {tr('best')} {number(best[1])} {where}", "ok"))
        if curve.non_finite_count:
            piece.append((f" {tr('{n} NaN', n=curve.non_finite_count)}", "crit"))
        return piece

    # ------------------------------------------------------------ what is shown

    def _is_shown(self, name: str) -> bool:
        usual = name in _SHOWN_AT_FIRST or (
            group_of(name) == "losses" and name != "loss" and self._is_part(name)
        )
        return usual != (name in self.monitor.choices.toggled)

    def _is_part(self, name: str) -> bool:
        """A part of the training loss: shown at first; validation losses are not."""
        return "val" not in name.lower()

    def _span(self, curves: dict[str, Curve]) -> tuple[float, float]:
        return self._whole(curves) if self.part is None else self.part

    def _whole(self, curves: dict[str, Curve]) -> tuple[float, float]:
        known = [curve for curve in [*curves.values(), *self.earlier.curves.values()] if len(curve)]
        start = min((curve.x[0] for curve in known), default=0.0)
        end = max((curve.x[-1] for curve in known), default=1.0)
        return start, max(end, start + LEAST_SPAN)

    # ------------------------------------------------------------ keys

    def action_move(self, lines: int) -> None:
        """Another curve of the list."""
        self.chosen = max(0, min(self.chosen + lines, len(self.names) - 1))
        self.monitor.redraw()

    def scroll_lines(self, lines: int) -> None:
        """The wheel moves in the list."""
        self.action_move(lines)

    def action_show_curve(self) -> None:
        """Show or hide the chosen curve."""
        if self.names:
            self.monitor.choices.toggled ^= {self.names[self.chosen]}
            self.monitor.redraw()

    def action_alone(self) -> None:
        """Show the chosen curve alone; where it is, the usual ones."""
        if not self.names:
            return
        chosen, toggled = self.names[self.chosen], self.monitor.choices.toggled
        everything = ordered_names(self.monitor.frame(), everything=True)
        alone = [name for name in everything if self._is_shown(name)] == [chosen]
        toggled.clear()
        if not alone:
            toggled.update(name for name in everything if self._is_shown(name) != (name == chosen))
        self.monitor.redraw()

    def action_zoom(self, factor: float) -> None:
        """A shorter or longer part of the run, around its middle; at the newest end it stays there."""
        frame = self.monitor.frame()
        curves = frame.history.train.curves
        now, whole, part = self._span(curves), self._whole(curves), self.part
        length = max(LEAST_SPAN, (now[1] - now[0]) * factor)
        if length >= whole[1] - whole[0]:
            self.action_whole()
            return
        at_end = part is None or part[1] >= whole[1]
        middle = (now[0] + now[1]) / 2
        start = whole[1] - length if at_end and factor < 1 else middle - length / 2
        start = min(max(start, whole[0]), whole[1] - length)
        self.part = (start, start + length)
        self.monitor.redraw()

    def action_pan(self, direction: int) -> None:
        """An earlier or later part, by a quarter of it."""
        if self.part is None:
            return
        frame = self.monitor.frame()
        part, whole = self.part, self._whole(frame.history.train.curves)
        length = part[1] - part[0]
        start = min(max(part[0] + direction * length / 4, whole[0]), whole[1] - length)
        self.part = (start, start + length)
        self.monitor.redraw()

    def action_whole(self) -> None:
        """The whole run."""
        self.part = None
        self.monitor.redraw()

    def action_logarithmic(self) -> None:
        """Logarithmic or linear."""
        self.monitor.choices.logarithmic ^= True
        self.monitor.redraw()

    def action_smooth(self) -> None:
        """The next strength."""
        self.monitor.choices.smooth = (self.monitor.choices.smooth + 1) % len(SMOOTHING)
        self.monitor.redraw()

    def action_band(self) -> None:
        """With the band, or without."""
        self.monitor.choices.band ^= True
        self.monitor.redraw()

    def action_compare(self) -> None:
        """The next earlier run of the folder; after the last one none."""
        self._read_next(self.monitor.frame())
        self.monitor.redraw()

    def action_stop_reading(self) -> None:
        """Compare with no run."""
        self._wants_run = False
        self.earlier.clear()
        self.monitor.redraw()

    def _read_next(self, frame: Frame) -> None:
        runs = self.earlier.runs
        if runs is None:
            logs = [path for path in frame.history.train.logs if path != "-"]
            if not logs:
                self.monitor.say(frame.tr("No earlier run: no log file of this one is followed."))
                return
            self._wants_run = True
            self.earlier.look(logs[0])
            return
        if not runs:
            self.monitor.say(frame.tr("No earlier run was found beside this one's folder."))
        elif self._next_run < len(runs):
            self.earlier.read(runs[self._next_run])
            self._next_run += 1
        else:
            self._next_run = 0
            self.earlier.clear()


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _around(rows: list[Line], chosen: int, room: int) -> list[Line]:
    first = max(0, min(chosen - room // 2, len(rows) - room))
    return rows[first : first + max(1, room)]


def group_of(name: str) -> str:
    """Curves of one group share a scale."""
    if name in _METRICS:
        return "metrics"
    if name in _TIMES:
        return "times"
    return name if name in _ALONE else "losses"


def grouped(names: list[str]) -> list[list[str]]:
    """The names by group, losses and metrics first."""
    groups: dict[str, list[str]] = {"losses": [], "metrics": []}
    for name in names:
        groups.setdefault(group_of(name), []).append(name)
    return [group for group in groups.values() if group]


def ordered_names(frame: Frame, *, everything: bool = False) -> list[str]:
    """Curves that have a point: losses, metrics, then the rest; those that the filter leaves."""
    curves = frame.history.train.curves
    names = [name for name, curve in curves.items() if len(curve) or curve.non_finite_count]
    words = [] if everything else frame.filter.lower().split()
    names = [name for name in names if all(w in f"{name} {curve_word(frame, name)}".lower() for w in words)]
    order = {"losses": 0, "metrics": 1}
    return sorted(names, key=lambda name: (order.get(group_of(name), 2), "val" in name.lower()))


def best_kind(name: str) -> str:
    """Whether more or less is better; "" for those whose best nobody asks for."""
    return {"map50_95": "max", "fitness": "max", "loss": "min"}.get(name, "")


def curve_word(frame: Frame, name: str) -> str:
    """What a curve is called: "box", "val box", "mAP50-95", "step time"."""
    if name in WORDS and name != "loss":
        return frame.tr(WORDS[name])
    word = short(name)
    return f"val {word}" if name.lower().startswith("val/") else word
