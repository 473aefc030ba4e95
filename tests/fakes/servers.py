"""Fake servers on loopback: model servers in a thread of their own, and any handler inside a test's loop.

Owns how they are started and what they are asked; what they say is a function that the test gives.
"""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiohttp import web

Json = dict[str, Any]
Say = Callable[[Json], "str | Json"]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="fake servers").start()
    return loop


def there(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` gives, done in the thread of the fake servers."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result(10)


class FakeModel:
    """A server of Ollama's chat API, also at ``/say``, in a background thread.

    ``say`` gets the body of a call and returns the text, or fields that replace those of the reply; one with
    ``status`` is sent as it is, with that status and its ``headers``; status 0 resets the connection.
    ``bodies`` keeps what was asked, in order. Started again, it listens where it did.
    """

    def __init__(self, say: Say) -> None:
        self.say = say
        self.bodies: list[Json] = []
        self.delay = 0.0
        self.url = ""
        self._port = 0
        self._runner: web.AppRunner | None = None

    def start(self) -> FakeModel:
        """Listen on a free port, later on the same one."""
        self.url = there(self._start())
        return self

    def stop(self) -> None:
        """Stop listening; the port refuses from now on."""
        if self._runner is not None:
            there(self._runner.cleanup())
            self._runner = None

    async def _start(self) -> str:
        app = web.Application()
        app.router.add_post("/api/chat", self._chat)
        app.router.add_post("/say", self._chat)
        app.router.add_post("/api/embed", self._embed)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{self._port}"

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        said = self.say(body)
        if self.delay:
            await asyncio.sleep(self.delay)
        if isinstance(said, dict) and said.get("status") == 0 and request.transport is not None:
            request.transport.abort()
            return web.Response()
        if isinstance(said, dict) and "status" in said:
            return web.json_response(said.get("json", {}), status=said["status"], headers=said.get("headers"))
        return web.json_response(reply_of(body, said))

    async def _embed(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.json())
        return web.json_response({"embeddings": [[1.0, 0.0]]})


def reply_of(body: Json, said: str | Json) -> Json:
    """A reply as Ollama sends it: a token for every four characters of the prompt."""
    fields = {"text": said} if isinstance(said, str) else said
    sent = sum(len(message.get("content") or "") for message in body["messages"])
    reply = {
        "model": body["model"],
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": fields.get("text", "")},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": sent // 4 + 1,
        "eval_count": len(fields.get("text", "").split()),
    }
    return reply | {key: value for key, value in fields.items() if key != "text"}


@asynccontextmanager
async def serving(
    handler: Handler, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """``handler`` for every path of a server in this loop; its URL, which is https with a ``context``."""
    app = web.Application(client_max_size=8 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, port, ssl_context=context).start()
    port, scheme = runner.addresses[0][1], "https" if context else "http"
    try:
        yield f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    finally:
        await runner.cleanup()


def scripted(replies: list[Json]) -> Handler:
    """Gives the replies in order, the last one for ever: ``status``, ``headers``, ``json`` or ``body``."""
    left = list(replies)

    async def handle(request: web.Request) -> web.Response:
        reply = left.pop(0) if len(left) > 1 else left[0]
        text = json.dumps(reply["json"]) if "json" in reply else reply.get("body", "")
        return web.Response(
            status=reply.get("status", 200),
            headers=reply.get("headers"),
            text=text,
            content_type="application/json" if "json" in reply else "text/plain",
        )

    return handle
