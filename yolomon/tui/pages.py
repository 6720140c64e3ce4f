"""The pages in the order of Tab and of the keys 1 to 7. Each is loaded when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import msgspec
from textual.binding import Binding, BindingType

from yolomon.messages import Message, msg
from yolomon.tui.screens.page import Page


class PageInfo(msgspec.Struct, frozen=True):
    """A page: its key, where it is, what it is called."""

    key: str
    name: str
    module: str
    class_name: str
    title: Message
    about: Message


PAGES = (
    PageInfo(
        "1",
        "overview",
        "yolomon.tui.screens.overview",
        "Overview",
        msg("overview"),
        msg("Show the overview: all that matters on one screen"),
    ),
    PageInfo(
        "2",
        "gpu",
        "yolomon.tui.screens.gpu",
        "GpuPage",
        msg("one GPU"),
        msg("Show one GPU: all its signals, its processes, its rank"),
    ),
    PageInfo(
        "3",
        "processes",
        "yolomon.tui.screens.processes",
        "ProcessesPage",
        msg("processes"),
        msg("Show the processes: trainer, ranks, loader workers, others on the GPUs"),
    ),
    PageInfo(
        "4",
        "curves",
        "yolomon.tui.screens.curves",
        "CurvesPage",
        msg("training curves"),
        msg("Show the training curves: choose, zoom, compare with an earlier run"),
    ),
    PageInfo(
        "5",
        "features",
        "yolomon.tui.screens.features",
        "FeaturesPage",
        msg("features"),
        msg("Show statistics of the feature maps, layer by layer"),
    ),
    PageInfo(
        "6",
        "findings",
        "yolomon.tui.screens.findings",
        "FindingsPage",
        msg("findings"),
        msg("Show all findings, also those that are over"),
    ),
    PageInfo(
        "7",
        "help",
        "yolomon.tui.screens.help",
        "HelpPage",
        msg("help"),
        msg("Show all keys and what the signs mean"),
    ),
)


# The words of a tooltip and of the palette; with the page's title they are translated by their key.
BINDINGS: tuple[BindingType, ...] = tuple(
    Binding(
        "question_mark,7" if page.key == "7" else page.key,
        f"page('{page.name}')",
        str(page.title).capitalize() if page.name != "gpu" else "One GPU",
        id=f"page_{page.name}",
        show=False,
        tooltip=str(page.about),
    )
    for page in PAGES
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
