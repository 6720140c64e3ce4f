"""The application: it owns the view, drains the feed on a timer, and has the current page draw."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import msgspec
from rich.text import Text
from textual import constants
from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.filter import Monochrome, NoColor

from yolomon.lean import settle
from yolomon.messages import Translate
from yolomon.model import Finding
from yolomon.settings import Settings
from yolomon.tui import crash, glyphs, pages, theme
from yolomon.tui.choices import Choices
from yolomon.tui.entry import Entry
from yolomon.tui.feed import Feed
from yolomon.tui.kept import Keep
from yolomon.tui.plots import ColumnCache
from yolomon.tui.progress import eta_seconds
from yolomon.tui.screens.overview import Overview
from yolomon.tui.screens.page import Page
from yolomon.tui.short_names import short_name
from yolomon.tui.terminal import TerminalDriver
from yolomon.tui.view import Frame, View
from yolomon.tui.widgets import curves
from yolomon.tui.words import duration

TICK_SECONDS = 0.5  # two frames a second at most
AFTER_READING_SECONDS = 0.15  # by then all GPUs that answer at once have
QUIET_SECONDS = 1.0  # without news, ages and the clock move on this often
DRAIN_SECONDS = 0.02
NOTICE_SECONDS = 6.0
SETTLE_SECONDS = 4.0  # all modules are loaded by then


class MonitorApp(App[int]):
    """yolomon's screen.

    Args:
        feed: the monitor that is looked at.
        settings: theme, window, graph style, mouse.
        translate: into the user's language.
        clock: now on the samples' axis; the feed's own unless a test freezes it.
        timed: whether time makes the screen draw; tests turn it off and draw themselves.
        begin: called once the first picture is there, e.g. to start the sources.
        keep: told the theme and the window whenever the user chose another.
    """

    TITLE = "yolomon"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS: ClassVar[str | None] = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", id="quit", tooltip="Leave yolomon; the training goes on"),
        Binding("ctrl+c", "quit", "Quit", id="interrupt", show=False, tooltip="Leave yolomon"),
        Binding("p", "pause", "Pause", id="pause", tooltip="Freeze the view; reading goes on"),
        Binding("plus,equals_sign", "wider", "Longer", id="wider", tooltip="Show a longer window of time"),
        Binding("minus", "narrower", "Shorter", id="narrower", tooltip="Show a shorter window of time"),
        Binding(
            "left_square_bracket", "scrub(-1)", "Back", id="back", tooltip="Go back in time; reading goes on"
        ),
        Binding("right_square_bracket", "scrub(1)", "Forth", id="forth", tooltip="Go forth in time"),
        Binding("end", "newest", "Now", id="newest", tooltip="Return to the newest data"),
        Binding(
            "left", "cursor(-1)", "Earlier", id="cursor_left", tooltip="Read all signals at an earlier moment"
        ),
        Binding(
            "right", "cursor(1)", "Later", id="cursor_right", tooltip="Read all signals at a later moment"
        ),
        Binding(
            "escape",
            "clear",
            "Clear",
            id="clear",
            show=False,
            tooltip="Put filter and cursor away; then back",
        ),
        *pages.BINDINGS,
        Binding("enter", "explain", "Why", id="explain", tooltip="Explain the worst finding"),
        Binding("slash", "filter", "Filter", id="filter", tooltip="Show only what holds the typed words"),
        Binding("c", "pick_log", "Logs", id="pick_log", tooltip="Pick the training log to follow"),
        Binding("t", "next_theme", "Theme", id="next_theme", tooltip="Another colour theme; it is kept"),
        Binding("ctrl+p", "commands", "Commands", id="commands", tooltip="Find a command by its name"),
        Binding("s", "silence", "Silence", id="silence", tooltip="Do not show the worst finding any more"),
        Binding(
            "ctrl+l", "repaint", "Redraw", id="repaint", show=False, tooltip="Paint the whole screen anew"
        ),
        Binding(
            "ctrl+z",
            "suspend_process",
            "Suspend",
            id="suspend",
            show=False,
            tooltip="Put yolomon in the background; fg brings it back",
        ),
    ]

    def __init__(
        self,
        feed: Feed,
        settings: Settings,
        translate: Translate,
        *,
        clock: Callable[[], float] | None = None,
        timed: bool = True,
        begin: Callable[[], object] | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.tr = translate
        self.feed = feed
        self.settings = settings
        self.glyphs = glyphs.choose(settings.graph)
        self.view = View(window_seconds=settings.window_seconds)
        self._clock = clock or feed.clock
        self._timed = timed
        self._begin = begin
        self._columns = ColumnCache()
        self._keep = keep
        self.choices = Choices()
        self.entry: Entry | None = None
        self.filter = ""
        self._notice = ("", 0.0)
        self._drawn_at = 0.0
        self._asked = False  # for a log, on our own account: once
        self._drawn_machine_ts: float | None = None
        super().__init__(driver_class=None if constants.DRIVER else TerminalDriver)  # a browser's has its own
        if theme.colorless(settings.theme):  # Textual would send greys; the wish is no colour at all
            self._filters = [f for f in self._filters if not isinstance(f, Monochrome)] + [NoColor()]
        self.animation_level = "none"
        for known in theme.themes():
            self.register_theme(known)
        self.theme = theme.choose(settings.theme)

    def get_default_screen(self) -> Page:
        """The overview."""
        return Overview()

    def on_mount(self) -> None:
        """Begin to drain and to draw."""
        if self._timed:
            self.set_timer(TICK_SECONDS, self._tick, name="tick")
        self.call_after_refresh(self._first)

    def _first(self) -> None:
        """The first picture, then all that may take its time."""
        self.redraw()
        if self._begin is not None:
            self.call_after_refresh(self._begin)
        curves.prepare()
        if self._timed:
            self.set_timer(SETTLE_SECONDS, settle, name="settle")

    def _tick(self) -> None:
        began = time.monotonic()
        changed = self.feed.drain(DRAIN_SECONDS)
        behind = time.monotonic() - began >= DRAIN_SECONDS
        if self.feed.needs_choice and not self._asked:
            self._asked = True
            self.action_pick_log()
        now = time.monotonic()
        machine = self._machine_ts()
        if (changed and machine != self._drawn_machine_ts) or now - self._drawn_at >= QUIET_SECONDS - 0.1:
            self._drawn_machine_ts = machine
            self.redraw()
        self.set_timer(TICK_SECONDS if behind else self._until_next_reading(machine), self._tick, name="tick")

    def _until_next_reading(self, machine_ts: float | None) -> float:
        """Seconds until the GPUs' next reading is there: looking earlier would find nothing to draw."""
        if machine_ts is None or self.feed.replay is not None:
            return TICK_SECONDS
        due = machine_ts + self.settings.interval_seconds + AFTER_READING_SECONDS - self._clock()
        return min(max(due, TICK_SECONDS), QUIET_SECONDS) if due > 0 else TICK_SECONDS

    def _machine_ts(self) -> float | None:
        """The time of the GPUs' newest reading, else the host's: these make frames.

        Host and records come at other moments; they are drawn with the GPUs, once an interval, or after a
        second without them.
        """
        history = self.feed.engine.history
        read = [gpu.sample_ts for gpu in history.gpus.values() if gpu.sample_ts is not None]
        return max(read) if read else history.host.sample_ts

    def frame(self) -> Frame:
        """This moment."""
        feed = self.feed
        now = self._clock()
        cpu, rss = feed.own_cost()
        live = self.view.end_ts is None and self.view.frozen_ts is None and self.view.cursor_ts is None
        playback = feed.replay
        return Frame(
            engine=feed.engine,
            findings=feed.findings() if live else self._all_findings(),
            now_ts=now,
            view=self.view,
            tr=self.tr,
            glyphs=self.glyphs,
            columns=self._columns,
            interval_seconds=self.settings.interval_seconds,
            eta_seconds=eta_seconds(feed.engine.history, now),
            demo=feed.demo,
            replay_speed=None if playback is None else playback.speed,
            own_cpu_percent=cpu,
            own_rss_bytes=rss,
            filter=self.filter,
            typing=None if self.entry is None else self.entry.shown,
            notice=self._notice[0] if time.monotonic() < self._notice[1] else "",
        )

    def _all_findings(self) -> list[Finding]:
        order = {"critical": 0, "warning": 1, "info": 2}
        return sorted(self.feed.all_findings(), key=lambda f: (order[f.severity], f.onset_ts))

    def redraw(self) -> None:
        """Have the page on top draw this moment."""
        self._drawn_at = time.monotonic()
        page = self.screen
        if isinstance(page, Page) and page.size.area:
            page.draw(self.frame())

    def _fatal_error(self) -> None:
        """An error of our own: the terminal is given back, the details go to a file, the user gets a line."""
        self._exit_renderables.append(Text(crash.told(self.tr)))
        self._close_messages_no_wait()

    # ------------------------------------------------------------ actions

    def action_page(self, name: str) -> None:
        """Show a page; asking for the one that is shown leads back to the overview."""
        current = self.screen
        if not isinstance(current, Page):
            return
        wanted = "overview" if name == current.PAGE else name
        if wanted == current.PAGE:
            return
        self.filter = ""
        page = pages.make(wanted) if wanted != "overview" else None
        while len(self.screen_stack) > 1:  # the overview stays below all others
            self.pop_screen()
        if page is not None:
            self.push_screen(page)

    def action_next_page(self, direction: int) -> None:
        """The page after this one, in the order of the keys."""
        names = [page.name for page in pages.available()]
        current = self.screen
        if isinstance(current, Page):
            place = names.index(current.PAGE) if current.PAGE in names else 0
            self.action_page(names[(place + direction) % len(names)])

    def _look(self, **changes: float | None) -> None:
        self.view = msgspec.structs.replace(self.view, **changes)
        self.redraw()

    def look_at(self, ts: float | None) -> None:
        """Put the cursor on a moment; None: put it away."""
        if ts != self.view.cursor_ts:
            self._look(cursor_ts=ts)

    def action_pause(self) -> None:
        """Freeze the view, or let it follow again."""
        if self.view.frozen_ts is None:
            self._look(frozen_ts=self.view.end(self._clock()))
        else:
            self._look(frozen_ts=None, end_ts=None)

    def action_wider(self) -> None:
        """A longer window."""
        self._choose_window(self.view.wider())

    def action_narrower(self) -> None:
        """A shorter window."""
        self._choose_window(self.view.narrower(self.frame().window_seconds))

    def _choose_window(self, view: View) -> None:
        """Another window, and its length in words: a young run may not fill it yet."""
        self.view = view
        if self._keep is not None:
            self._keep(window_seconds=view.window_seconds)
        self._columns.clear()
        chosen, shown = view.window_seconds, self.frame().window_seconds
        if not chosen:
            self.say(self.tr("Window: the whole run"))
        elif shown < chosen:
            self.say(
                self.tr(
                    "Window: {time}; so far {shown} are filled",
                    time=duration(self.tr, chosen), shown=duration(self.tr, shown),
                )
            )  # fmt: skip
        else:
            self.say(self.tr("Window: {time}", time=duration(self.tr, chosen)))

    def action_scrub(self, direction: int) -> None:
        """Back or forth in time by a quarter of the window."""
        frame = self.frame()
        self.view = self.view.scrubbed(direction, frame.now_ts, frame.history.first_ts, frame.window_seconds)
        self.redraw()

    def action_newest(self) -> None:
        """Follow the newest data again."""
        self._look(end_ts=None, frozen_ts=None, cursor_ts=None)

    def action_cursor(self, direction: int) -> None:
        """Move the cursor by a sixtieth of the window; from the right edge it comes in."""
        frame = self.frame()
        step = frame.window_seconds / 60
        at = (self.view.cursor_ts if self.view.cursor_ts is not None else frame.end_ts) + direction * step
        if at >= frame.end_ts:
            self._look(cursor_ts=None)
        else:
            self._look(cursor_ts=max(at, frame.end_ts - frame.window_seconds))

    def action_clear(self) -> None:
        """The filter and the cursor first, then back to the page below, the overview in the end."""
        if self.filter or self.view.cursor_ts is not None:
            self.filter = ""
            self._look(cursor_ts=None)
        elif len(self.screen_stack) > 1:
            self.pop_screen()

    def action_silence(self) -> None:
        """Silence the worst finding."""
        standing = self.feed.findings()
        if standing:
            self.toggle_silence(standing[0])

    def toggle_silence(self, finding: Finding) -> None:
        """Say no more of a finding, or say it again. A recording notes either."""
        code, target = finding.code, finding.target
        values = {"name": short_name(self.tr, finding), "target": target}
        if finding.silenced:
            self.feed.engine.silence(code, target, on=False)
            self.feed.engine.silence(code, on=False)
            self.say(self.tr("Said again: {name} ({target}).", **values))
        else:
            self.feed.silence(code, target)
            self.say(self.tr("Silenced: {name} ({target}). Page 6 and s: say it again.", **values))

    def say(self, text: str) -> None:
        """Say what was just done in the last line, for a few seconds."""
        self._notice = (text, time.monotonic() + NOTICE_SECONDS)
        self.redraw()

    # ------------------------------------------------------------ typing, theme, commands

    def on_key(self, event: Key) -> None:
        """While a text is being typed every key goes into it, and none is a command.

        Here, where commands are found as well: a page sees keys before the command that came ahead of them
        has run, and what was typed quickly after "/" would be lost, or be commands.
        """
        if self.entry is not None:
            event.stop()
            event.prevent_default()
            self.type_key(event.key, event.character)

    def type_into(self, entry: Entry) -> None:
        """Have the keys go into a line of text."""
        self.entry = entry
        self.redraw()

    def type_key(self, key: str, character: str | None) -> None:
        """One key of the text."""
        if self.entry is not None and not self.entry.key(key, character):
            self.entry = None
        self.redraw()

    def action_filter(self) -> None:
        """Type words; lists show only what holds them."""

        def narrow(text: str | None) -> None:
            self.filter = text or ""

        self.type_into(Entry("/", self.filter, on_change=narrow, on_done=narrow))

    def action_next_theme(self) -> None:
        """The next colour theme; one that this terminal can show."""
        told = theme.colors()
        if told < 256:
            self.say(
                self.tr("Only {n} colours here: the terminal's own are used. See yolomon doctor.",
                        n=told)
            )  # fmt: skip
            return
        names = theme.NAMES
        place = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(place + 1) % len(names)]
        if self._keep is not None:
            self._keep(theme=self.theme)
        self.say(self.tr("Theme: {name}", name=self.theme))

    def action_commands(self) -> None:
        """Find a command by typing some of its name."""
        from textual.command import CommandPalette

        from yolomon.tui.commands import Verbs

        if isinstance(self.screen, Page):
            self.push_screen(CommandPalette(providers=[Verbs], placeholder=self.tr("Search for commands")))

    def action_explain(self) -> None:
        """Explain the worst finding: its evidence, the rule, what could fool it, what to try."""
        standing = self.frame().findings_at()
        if standing:
            self.explain(standing[0])
        else:
            self.say(self.tr("Nothing is wrong: there is nothing to explain."))

    def explain(self, finding: Finding) -> None:
        """Open the explanation of a finding."""
        from yolomon.tui.screens.explain import ExplainPage

        self.push_screen(ExplainPage(finding))

    def action_pick_log(self) -> None:
        """Show the logs that were found."""
        from yolomon.tui.screens.pick_log import PickLogPage

        if not isinstance(self.screen, PickLogPage):
            self.push_screen(PickLogPage())

    def action_repaint(self) -> None:
        """Paint everything anew, e.g. after a reattach garbled the screen."""
        self.screen.refresh(layout=True)
        self.refresh(repaint=True, layout=True)
