"""What a request must be before the service reads it: small, and meant for this server.

Owns the limits of a request, the Host and Origin checks, which keep other web pages from talking to a bot on
the reader's own machine, and the end of work for a client that left. Leaves what a body says to ``contract``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_HEAD = 16 * 1024
"""Bytes of a request's headers."""
MAX_BODY = 256 * 1024
"""Bytes of a request body."""
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """ASGI middleware; ``host`` is the name the server was told to listen on."""

    def __init__(self, app: App, host: str) -> None:
        self._app = app
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with 400, 403, 413 or 431 and a short JSON text."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if refusal := _stranger(scope, self._host):
            await _refuse(send, *refusal)
            return
        try:
            body = await _body(scope, receive)
        except _TooLong:
            await _refuse(send, 413, f"a request may have {MAX_BODY // 1024} KiB")
        except _Left:
            return
        else:
            reply = _Sending(send)
            await _while_there(self._app(scope, _replay(body), reply), receive, reply)


def _stranger(scope: Scope, bound: str) -> tuple[int, str] | None:
    """Why this request is not for this server, as (status, text)."""
    if sum(len(key) + len(value) for key, value in scope["headers"]) > MAX_HEAD:
        return 431, f"the headers of a request may have {MAX_HEAD // 1024} KiB"
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


class _TooLong(Exception):
    """A body that is longer than one may be."""


class _Left(Exception):
    """The client went away before its request was whole."""


async def _body(scope: Scope, receive: Receive) -> bytes:
    """The whole body.

    Raises:
        _TooLong: as soon as it is known to be; the rest is not read.
        _Left: there is no rest.
    """
    declared = next((value for key, value in scope["headers"] if key == b"content-length"), b"0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise _TooLong
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Left
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise _TooLong
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes) -> Receive:
    """``receive`` of a request whose body was read already; who answers a client that left is cancelled."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await asyncio.get_running_loop().create_future()

    return replay


class _Sending:
    """``send`` that adds the headers every reply has, and knows whether the reply is whole."""

    def __init__(self, send: Send) -> None:
        self.whole = False
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.whole = True
        await self._send(message)


async def _while_there(answering: Awaitable[None], receive: Receive, reply: _Sending) -> None:
    """Answer, for as long as somebody waits for it: when the client leaves, its model call ends."""
    answer = asyncio.ensure_future(answering)

    async def until_left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not reply.whole:
            answer.cancel()

    leaving = asyncio.create_task(until_left())
    try:
        await answer
    except asyncio.CancelledError:
        if not leaving.done():  # it is this server that ends
            raise
    finally:
        leaving.cancel()


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}).encode()
    length = (b"content-length", str(len(body)).encode())
    headers = [(b"content-type", b"application/json"), length, (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
