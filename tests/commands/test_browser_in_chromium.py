"""The browser view in a real browser: headless Chromium opens it, sees the screen, and a key reaches it."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
import socket as socket_module
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra yolomon[web] is not installed")
pytest.importorskip("textual_serve", reason="the extra yolomon[web] is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
DRAWN_BYTES = 40_000  # the page before the first byte of the screen is a picture of about 13 kB


class Browser:
    """One tab, over the DevTools protocol."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._count = 0

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._count += 1
        await self._socket.send_json({"id": self._count, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json(timeout=20)
            if answer.get("id") == self._count:
                return dict(answer.get("result", {}))

    async def picture(self) -> bytes:
        return base64.b64decode((await self.call("Page.captureScreenshot")).get("data", ""))

    async def picture_when(self, seconds: float, least: int) -> bytes:
        until = time.monotonic() + seconds
        while len(picture := await self.picture()) < least and time.monotonic() < until:
            await asyncio.sleep(0.3)
        return picture

    async def closed(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = await self.call("Runtime.evaluate", expression="document.body.className")
            if "-closed" in answer.get("result", {}).get("value", ""):
                return True
            await asyncio.sleep(0.2)
        return False


async def test_the_screen_is_drawn_and_a_key_reaches_it(tmp_path: Path) -> None:
    with socket_module.socket() as free:
        free.bind(("127.0.0.1", 0))
        unused_tcp_port = free.getsockname()[1]
    serve = [sys.executable, "-m", "yolomon", "serve", "--port", str(unused_tcp_port), "demo"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    browser = subprocess.Popen(
        [CHROMIUM or "", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--remote-debugging-port=0",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
         f"--user-data-dir={tmp_path}", "--window-size=1400,800", "about:blank"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port_file = tmp_path / "DevToolsActivePort"
        until = time.monotonic() + 30
        while not port_file.exists() and time.monotonic() < until:
            await asyncio.sleep(0.1)
        port = port_file.read_text().splitlines()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                page = next(tab for tab in await answer.json() if tab["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Browser(socket)
                await tab.call("Page.navigate", url=address)
                overview = await tab.picture_when(30, DRAWN_BYTES)
                assert len(overview) >= DRAWN_BYTES
                await tab.call("Runtime.evaluate", expression="document.querySelector('textarea')?.focus()")
                await tab.call("Input.insertText", text="q")
                assert await tab.closed(15)  # the key reached yolomon, and it left
    finally:
        browser.send_signal(signal.SIGTERM)
        server.send_signal(signal.SIGTERM)
        browser.wait(15)
        assert server.wait(15) == 0
