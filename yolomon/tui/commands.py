"""The command palette: the same actions as the keys, found by their names in the user's language."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode

from yolomon.tui.keys import key_words, own_bindings
from yolomon.tui.screens.page import Page

if TYPE_CHECKING:
    from yolomon.tui.app import MonitorApp

# Only of use as keys.
_NOT_VERBS = ("commands", "move(", "leaf(", "cursor(", "statistic(", "pan(", "other(")


class Verbs(Provider):
    """All that a key does here."""

    @property
    def monitor(self) -> MonitorApp:
        """The application, as what it is."""
        return cast("MonitorApp", self.app)

    def _verbs(self) -> Iterator[tuple[str, str, Any]]:
        """Name, what it does with its key, and the call."""
        tr = self.monitor.tr
        page = self.screen
        found: list[tuple[Binding, DOMNode]] = []
        if isinstance(page, Page):
            found += [(binding, page) for binding in own_bindings(type(page))]
        found += [(binding, self.app) for binding in own_bindings(type(self.app))]
        seen: set[str] = set()
        for binding, owner in found:
            if binding.action in seen or binding.action.startswith(_NOT_VERBS):
                continue
            seen.add(binding.action)
            about = f"{tr(binding.tooltip)}  ({key_words(binding.key)})"
            yield tr(binding.description), about, partial(self.app.run_action, binding.action, owner)

    async def discover(self) -> Hits:
        """All of them, before anything was typed."""
        for name, about, run in self._verbs():
            yield DiscoveryHit(name, run, help=about)

    async def search(self, query: str) -> Hits:
        """Those whose name or explanation holds what was typed."""
        matcher = self.matcher(query)
        for name, about, run in self._verbs():
            score = max(matcher.match(name), 0.8 * matcher.match(about))
            if score > 0:
                yield Hit(score, matcher.highlight(name), run, text=name, help=about)
