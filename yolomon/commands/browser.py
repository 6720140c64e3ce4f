"""`yolomon serve`: the same screen in a browser, through textual-serve, on 127.0.0.1 behind a token.

Whoever has the token may type into the dashboard, so it is asked for on every request: once in the address,
then as a cookie. Requests that name another host (DNS rebinding) or come from another page are refused.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click

from yolomon.messages import Translate

COOKIE = "yolomon_token"
HOST = "127.0.0.1"
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; frame-ancestors 'none'"
)
Handler = Callable[[Any], Awaitable[Any]]


def serve(arguments: Sequence[str], port: int, tr: Translate, *, token: str | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        arguments: what follows `yolomon` in the served command.
        port: the port on 127.0.0.1.
        tr: the reader's language.
        token: a fixed token; a fresh one unless given.

    Returns:
        The exit status: 2 where the extra is missing or the port is taken.
    """
    try:
        from textual_serve.server import Server
    except ModuleNotFoundError:
        click.echo(tr("The browser view needs an extra: pip install 'yolomon[web]'"), err=True)
        return 2
    if _taken(port):
        click.echo(
            tr("Port {port} on {host} is taken; choose another with --port.", port=port, host=HOST), err=True
        )
        return 2
    secret = token or secrets.token_urlsafe(24)

    class TokenServer(Server):  # type: ignore[misc]
        async def _make_app(self) -> Any:
            app = await super()._make_app()
            app.middlewares.append(guard(secret, port))
            return app

        def initialize_logging(self) -> None:
            logging.basicConfig(level=logging.WARNING)  # the access log would hold the token

        async def on_startup(self, app: Any) -> None:
            click.echo(tr("Open {address}", address=f"http://{HOST}:{port}/?token={secret}"))
            click.echo(
                tr("From another machine: ssh -L {port}:{host}:{port} THIS-MACHINE", port=port, host=HOST)
            )
            click.echo(tr("Ctrl-C ends it"))

    command = shlex.join([sys.executable, "-m", "yolomon", *arguments])
    TokenServer(command, host=HOST, port=port, title="yolomon").serve()
    return 0


def guard(token: str, port: int) -> Any:
    """The aiohttp middleware that lets in only who has the token, from this address."""
    from aiohttp import web

    hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    @web.middleware  # type: ignore[untyped-decorator]
    async def check(request: Any, handler: Handler) -> Any:
        origin = request.headers.get("Origin")
        if request.host not in hosts or (origin is not None and origin.partition("://")[2] not in hosts):
            raise web.HTTPForbidden(text="another host")
        given = request.query.get("token")
        if given is not None and _same(given, token):
            answer = web.HTTPFound("/")
            answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
            raise answer
        if not _same(request.cookies.get(COOKIE, ""), token):
            raise web.HTTPForbidden(
                text="the address needs its token: see the terminal that runs yolomon serve"
            )
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return check


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False
