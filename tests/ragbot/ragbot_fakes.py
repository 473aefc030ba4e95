"""Hand-written fakes for ragbot's tests: a model server, a chat model, an embedder and a counting index."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from aiohttp import web
from numpy.typing import NDArray

from ragbot.answer import Twin
from ragbot.connection import Connection, server
from ragbot.contract import Chunk, Usage
from ragbot.index import Index, build
from ragbot.models import Call, ChatModel, Completion
from ragbot.profile import parse_profile
from ragbot.service import create_app

PROFILE = """# Mara Lund

Mara builds search tools.

## Work

I work at Acme since 2020, on search.

## Study

I studied physics in Graz.

## Salary

My salary is not discussed.
"""


class WordEmbedder:
    """One dimension a known word: cosine is the share of common words."""

    name = "words"
    words = ("mara", "search", "work", "acme", "study", "studied", "physics", "salary", "planted", "kafka")

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        rows = [[float(text.lower().count(word)) for word in self.words] for text in texts]
        return np.array(rows)


@dataclass(frozen=True)
class CountingIndex(Index):
    """An index that remembers each search it was asked for."""

    searches: list[int] = field(default_factory=list)

    def search(self, query: NDArray[np.int16], k: int) -> tuple[Chunk, ...]:
        self.searches.append(k)
        return super().search(query, k)


class ScriptedModel:
    """Gives ``pieces`` as its answer and keeps every call; ``fails`` is raised after the first piece."""

    name = "scripted"

    def __init__(self, *pieces: str, finish: str = "stop", fails: Exception | None = None) -> None:
        self.pieces = pieces or ("I work ", "at Acme.")
        self.calls: list[Call] = []
        self.closed = False
        self._finish = finish
        self._fails = fails

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        if self._fails:
            raise self._fails
        return Completion(
            "".join(self.pieces), self.name, self._finish, Usage(prompt_tokens=90, completion_tokens=7)
        )

    async def stream(self, call: Call) -> AsyncGenerator[str | Completion]:
        self.calls.append(call)
        yield self.pieces[0]
        if self._fails:
            raise self._fails
        for piece in self.pieces[1:]:
            yield piece
        yield Completion(
            "".join(self.pieces), self.name, self._finish, Usage(prompt_tokens=90, completion_tokens=7)
        )

    async def close(self) -> None:
        self.closed = True


def make_twin(model: ChatModel | None = None, profile: str = PROFILE) -> tuple[Twin, list[int]]:
    """A twin of ``profile``, and the list its searches are counted in."""
    found = parse_profile(profile)
    index = build(found, WordEmbedder())
    counting = CountingIndex(index.embedder, index.dims, index.profile, index.chunks, index.vectors)
    return Twin(counting, WordEmbedder(), model or ScriptedModel(), 2, found.name), counting.searches


@asynccontextmanager
async def client_of(twin: Twin, *, trace: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service of ``twin``, without a socket."""
    transport = httpx.ASGITransport(create_app(twin, trace=trace), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
        yield client


@asynccontextmanager
async def running(
    twin: Twin, *, trace: bool = True, connection: type[Connection] = Connection
) -> AsyncIterator[int]:
    """The service of ``twin`` behind a socket, as ``ragbot serve`` has it; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = server(create_app(twin, trace=trace), connection)
    serving = asyncio.create_task(served.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        served.should_exit = True
        await serving


def events_of(text: str) -> list[tuple[str, Any]]:
    """(name, data) of each server-sent event."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [
        (block[0].removeprefix("event: "), json.loads(block[1].removeprefix("data: "))) for block in blocks
    ]


class FakeOllama:
    """An Ollama server on loopback that answers from a script and keeps each body it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[Any] = []
        self.pieces = ["I studied ", "physics."]
        self.status = 200
        self.finish: dict[str, Any] = {
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 90,
            "eval_count": 7,
        }
        self.embeddings: Any = None
        self.window = 1000

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        if self.status != 200:
            return web.json_response(
                {"error": f"refused: {body['messages'][-1]['content']}"}, status=self.status
            )
        if not body["stream"]:
            return web.json_response(self._line(body, "".join(self.pieces)) | self.finish)
        reply = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await reply.prepare(request)
        for piece in self.pieces:
            await reply.write(json.dumps(self._line(body, piece) | {"done": False}).encode() + b"\n")
        if self.finish:
            await reply.write(json.dumps(self._line(body, "") | self.finish).encode() + b"\n")
        return reply

    def _line(self, body: Any, text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}

    async def embed(self, request: web.Request) -> web.Response:
        """As Ollama documents it: a row for each text of ``input``, one text or several, in their order."""
        body = await request.json()
        self.bodies.append(body)
        if self.status != 200 or self.embeddings is not None:
            return web.json_response(self.embeddings, status=self.status)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if not body.get("truncate", True) and any(len(text) > self.window for text in texts):
            return web.json_response({"error": "the input length exceeds the context length"}, status=400)
        rows = [[float(len(text[: self.window])), 1.0] for text in texts]
        counted = {"total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": len(texts)}
        return web.json_response({"model": body["model"], "embeddings": rows} | counted)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeOllama]:
        """Serve on a free port of loopback until the block ends."""
        app = web.Application()
        app.router.add_post("/api/chat", self.chat)
        app.router.add_post("/api/embed", self.embed)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()
