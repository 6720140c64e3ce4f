"""The pages as text, compared with what was looked at and found good. The recording's clock stands still.

To take what is drawn now as good: python -m tests.tui.test_page_pictures
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.test_pages import lines_of, press, screen

FOLDER = Path(__file__).parent / "pictures"
PICTURES = {
    "findings-80x24": ("6", (80, 24), "en"),
    "processes-100x24": ("3", (100, 24), "en"),
    "features-100x24": ("5", (100, 24), "en"),
}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are local ones."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def picture(name: str) -> str:
    """The page's lines."""
    key, size, language = PICTURES[name]
    async with screen(size=size, language=language) as (app, pilot):
        await press(app, pilot, key)
        return "\n".join(line.rstrip() for line in lines_of(app)) + "\n"


@pytest.mark.parametrize("name", PICTURES)
async def test_looks_as_it_was_approved(name: str) -> None:
    assert await picture(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    FOLDER.mkdir(exist_ok=True)
    for each in PICTURES:
        (FOLDER / f"{each}.txt").write_text(asyncio.run(picture(each)), "utf-8")
