"""The pages in the order of Tab and of the keys 1 to 7. Each is loaded when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import msgspec

from yolomon.messages import Message, msg
from yolomon.tui.screens.page import Page


class PageInfo(msgspec.Struct, frozen=True):
    """A page: its key, where it is, what it is called."""

    key: str
    name: str
    module: str
    class_name: str
    title: Message


PAGES = (
    PageInfo("1", "overview", "yolomon.tui.screens.overview", "Overview", msg("overview")),
    PageInfo("2", "gpu", "yolomon.tui.screens.gpu", "GpuPage", msg("one GPU")),
    PageInfo("3", "processes", "yolomon.tui.screens.processes", "ProcessesPage", msg("processes")),
    PageInfo("4", "curves", "yolomon.tui.screens.curves", "CurvesPage", msg("training curves")),
    PageInfo("5", "features", "yolomon.tui.screens.features", "FeaturesPage", msg("features")),
    PageInfo("6", "findings", "yolomon.tui.screens.findings", "FindingsPage", msg("findings")),
    PageInfo("7", "help", "yolomon.tui.screens.help", "HelpPage", msg("help")),
)


def available() -> list[PageInfo]:
    """The pages that this installation has."""
    return [page for page in PAGES if find_spec(page.module) is not None]


def make(name: str) -> Page | None:
    """A new page of that name."""
    for page in available():
        if page.name == name:
            made: Page = getattr(import_module(page.module), page.class_name)()
            return made
    return None
