"""What a request must be before the service reads it: small, and meant for this server.

Owns the body limit and the Host and Origin checks, which keep other web pages from talking to a bot on the
reader's own machine. Leaves what a body says to ``contract``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 256 * 1024
"""Bytes of a request body."""
HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))


class Guard:
    """ASGI middleware; ``host`` is the name the server was told to listen on."""

    def __init__(self, app: App, host: str) -> None:
        self._app = app
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with 400, 403 or 413 and a short JSON text."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if refusal := _stranger(scope, self._host):
            await _refuse(send, *refusal)
            return
        body = await _body(scope, receive)
        if body is None:
            await _refuse(send, 413, f"a request may have {MAX_BODY // 1024} KiB")
            return
        await self._app(scope, _replay(body, receive), _with_headers(send))


def _stranger(scope: Scope, bound: str) -> tuple[int, str] | None:
    """Why this request is not for this server, as (status, text)."""
    named = [value.decode("latin-1").lower() for key, value in scope["headers"] if key == b"host"]
    address, port = scope.get("server") or (bound, None)
    names = {bound.lower(), address.lower()}
    if address.startswith("127.") or address == "::1":
        names |= {"localhost", "127.0.0.1", "::1"}
    allowed = {f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names}
    if port == 80:
        allowed |= {one.removesuffix(":80") for one in allowed}
    if len(named) != 1 or named[0] not in allowed:
        return 400, "this server does not answer to that Host"
    origins = [value.decode("latin-1").lower() for key, value in scope["headers"] if key == b"origin"]
    if any(origin != f"http://{named[0]}" for origin in origins):
        return 403, "this server does not answer pages of another origin"
    return None


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body, or None as soon as it is known to be too long."""
    declared = next((value for key, value in scope["headers"] if key == b"content-length"), b"0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        return None
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """``receive`` of a request whose body was read already."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _with_headers(send: Send) -> Send:
    """``send`` that adds the headers every reply has."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
