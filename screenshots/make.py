"""Makes the pictures of the screen anew, from the recording that ships with yolomon.

    python -m screenshots.make            the pictures of the README
    python -m screenshots.make --matrix [demo gpus states looks]
                                          every size, state, number of GPUs and look, into screenshots/matrix/

SVG as Textual draws it; PNG through headless Chromium, with the fonts DejaVu and Noto Sans Mono CJK
(Debian: chromium fonts-dejavu fonts-noto-cjk).
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len

from tests.tui.recordings import START, StoredFeed, run, slow_rank
from tests.tui.states import STATES
from yolomon import live
from yolomon.messages import translator
from yolomon.settings import Settings
from yolomon.tui.app import MonitorApp
from yolomon.tui.theme import NAMES as THEME_NAMES
from yolomon.tui.widgets import curves

FOLDER = Path(__file__).parent
SIZES = [(240, 70), (140, 40), (120, 30), (100, 24), (80, 24), (60, 15), (40, 10), (50, 60), (200, 12)]
MOMENTS = {"healthy": 100.0, "straggler": 205.0, "memory-growth": 300.0}
GPUS = (0, 1, 4, 8, 16, 64)
STATE_SIZES = [(120, 30), (80, 24), (40, 10)]
LOOKS = {
    "chinese": ("zh_CN", "dark", "blocks"),
    "braille": ("en", "dark", "braille"),
    "ascii": ("en", "dark", "ascii"),
    **{theme: ("en", theme, "blocks") for theme in THEME_NAMES if theme != "dark"},
}
PARTS = ("demo", "gpus", "states", "looks")
README = [
    ("demo-140x40", "straggler", (140, 40), "en", "dark", ""),
    ("growth-140x40", "memory-growth", (140, 40), "en", "dark", ""),
    ("healthy-140x40", "healthy", (140, 40), "en", "dark", ""),
    ("demo-80x24", "straggler", (80, 24), "en", "dark", ""),
    ("demo-light-120x30", "straggler", (120, 30), "en", "light", ""),
    ("demo-zh-140x40", "straggler", (140, 40), "zh_CN", "dark", ""),
    ("page-gpu-120x36", "straggler", (120, 36), "en", "dark", "2"),
    ("page-processes-120x30", "straggler", (120, 30), "en", "dark", "3"),
    ("page-curves-120x36", "memory-growth", (120, 36), "en", "dark", "4"),
    ("page-features-120x30", "straggler", (120, 30), "en", "dark", "5"),
    ("page-findings-120x30", "memory-growth", (120, 30), "en", "dark", "6"),
    ("page-explanation-120x40", "straggler", (120, 40), "en", "dark", "enter"),
    ("page-help-120x40", "straggler", (120, 40), "en", "dark", "7"),
]


async def picture(
    name: str, seconds: float, size: tuple[int, int], language: str, theme: str, keys: str
) -> None:
    """One picture of the demo `seconds` after its start."""
    settings = Settings(theme=theme, graph="blocks")
    session = live.demo(0.0, settings)
    app = MonitorApp(session, settings, translator(language), timed=False)
    async with app.run_test(size=size) as pilot:
        session.start()
        until = time.monotonic() + 20
        while session.history.first_ts is None and time.monotonic() < until:
            session.drain(0.1)
            await asyncio.sleep(0.01)
        assert session.history.first_ts is not None
        target = session.history.first_ts + seconds
        assert session.replay is not None
        session.replay.skip_to(target)
        quiet = 0
        while quiet < 10 and time.monotonic() < until:
            quiet = 0 if session.drain(0.5) else quiet + 1
            await asyncio.sleep(0.02)
        session.replay.speed = 1.0  # said on screen
        for key in keys.split():
            await pilot.press(key)
        for _ in range(3):
            app.redraw()
            await pilot.pause(0.05)
        write(name, app.export_screenshot(title="yolomon"))
    session.stop(0.5)


async def state_picture(
    name: str, feed: StoredFeed, later: float, keys: Sequence[str], size: tuple[int, int],
    language: str = "en", theme: str = "dark", graph: str = "blocks",
) -> None:  # fmt: skip
    """One picture of a small recording whose clock stands still, `later` seconds after its end."""
    now = max(feed.clock(), START) + later
    settings = Settings(theme=theme, graph=graph)  # type: ignore[arg-type]
    app = MonitorApp(feed, settings, translator(language), timed=False, clock=lambda: now)
    async with app.run_test(size=size) as pilot:
        for key in keys:
            await pilot.press(key)
        for _ in range(3):
            app.redraw()
            await pilot.pause(0.05)
        write(name, app.export_screenshot(title="yolomon"))


async def matrix(parts: Sequence[str]) -> None:
    """Every size in every part of the demo, with every number of GPUs, in every state, and in every look."""
    if "demo" in parts:
        for moment, seconds in MOMENTS.items():
            for columns, rows in SIZES:
                name = f"matrix/{moment}-{columns}x{rows}"
                await picture(name, seconds, (columns, rows), "en", "dark", "")
    if "gpus" in parts:
        for gpus in GPUS:
            feed = slow_rank(gpus) if gpus > 1 else StoredFeed(run(gpus))
            for columns, rows in SIZES:
                await state_picture(f"matrix/gpus-{gpus}-{columns}x{rows}", feed, 0.0, (), (columns, rows))
    if "states" in parts:
        for state, (make, later, keys) in STATES.items():
            for columns, rows in STATE_SIZES:
                await state_picture(f"matrix/{state}-{columns}x{rows}", make(), later, keys, (columns, rows))
    if "looks" in parts:
        for look, (language, theme, graph) in LOOKS.items():
            make, later, keys = STATES["many-findings"]
            name = f"matrix/look-{look}"
            await state_picture(name, make(), later, keys, (120, 30), language, theme, graph)


def write(name: str, svg: str) -> None:
    """The SVG, and a PNG where cairosvg is installed."""
    (FOLDER / f"{name}.svg").parent.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print(f"{name}: no PNG without chromium")
        return
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    width, height = (round(float(side)) for side in box.groups())
    fonts = "DejaVu Sans Mono, Noto Sans Mono CJK SC"
    svg = _TEXT.sub(_true_width, svg)
    plain = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", fonts)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        style = "margin:0;background:#000"
        page.write_text(f'<meta charset="utf-8"><body style="{style}">{plain}</body>', encoding="utf-8")
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--no-first-run",
            f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
            f"--screenshot={FOLDER / name}.png", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    print(name)


def _true_width(match: re.Match[str]) -> str:
    """Textual counts a double-width character as one cell when it says how long a text is."""
    cells = cell_len(html.unescape(match[4]).replace("\xa0", " "))
    letters = len(html.unescape(match[4]))
    return f"{match[1]}{float(match[2]) * cells / letters:g}{match[3]}{match[4]}</text>"


_TEXT = re.compile(r'(<text [^>]*textLength=")([\d.]+)("[^>]*>)([^<]+)</text>')


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--matrix", nargs="*", choices=PARTS, metavar="PART",
        help=f"every size in every state, or these parts of it: {', '.join(PARTS)}",
    )  # fmt: skip
    chosen = parser.parse_args().matrix
    os.environ["COLORTERM"] = (
        "truecolor"  # themes are drawn as they are, from whatever terminal this is started
    )
    if chosen is not None:
        curves.prepare()
        asyncio.run(matrix(chosen or PARTS))
        return
    for name, moment, size, language, theme, keys in README:
        asyncio.run(picture(name, MOMENTS[moment], size, language, theme, keys))


if __name__ == "__main__":
    main()
