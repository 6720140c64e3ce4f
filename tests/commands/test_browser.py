"""The browser view lets in only who has the token, from this machine's own address."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("textual_serve", reason="the extra yolomon[web] is not installed")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[int, str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "yolomon", "serve", "--port", str(port), "demo"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    token = process.stdout.readline().strip().partition("?token=")[2]
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield port, token
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def get(port: int, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def test_without_the_token_nothing_is_shown(served: tuple[int, str]) -> None:
    port, _ = served
    for path in ("/", "/ws", "/static/js/textual.js", "/?token=wrong"):
        assert get(port, path).status == 403


def test_the_token_becomes_a_cookie_that_opens_the_page(served: tuple[int, str]) -> None:
    port, token = served
    answer = get(port, f"/?token={token}")
    assert answer.status == 302
    cookie = answer.getheader("Set-Cookie") or ""
    assert "HttpOnly" in cookie
    page = get(port, "/", Cookie=cookie.split(";")[0])
    assert page.status == 200
    assert "default-src 'self'" in (page.getheader("Content-Security-Policy") or "")
    assert b"textual.js" in page.read()


def test_another_host_or_origin_is_refused_even_with_the_cookie(served: tuple[int, str]) -> None:
    port, token = served
    cookie = f"yolomon_token={token}"
    assert get(port, "/", Cookie=cookie, Host="rebound.example").status == 403
    assert get(port, "/ws", Cookie=cookie, Origin="http://elsewhere.example").status == 403


def test_a_taken_port_is_said_in_one_line(served: tuple[int, str]) -> None:
    port, _ = served
    command = [sys.executable, "-m", "yolomon", "serve", "--port", str(port)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 2
    assert str(port) in result.stderr
    assert "Traceback" not in result.stderr
