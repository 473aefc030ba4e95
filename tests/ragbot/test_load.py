"""Many readers at once: every stream is whole, others are answered meanwhile, nothing holds up the loop.

No clock decides: what blocks does so until the test has seen that the server still answers.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import pytest
from aiohttp import web
from numpy.typing import NDArray
from ragbot_fakes import FakeOllama, WordEmbedder, events_of, make_twin, running

from ragbot.answer import Twin
from ragbot.contract import Message
from ragbot.errors import ModelError
from ragbot.models import Call, Opened, chat_model
from ragbot.models.ollama_chat import OllamaChat
from ragbot.models.openai_chat import OpenAIChat

STREAMS = 64
QUESTION = {"question": "Where do you work?"}
LIMIT = 20
"""Seconds after which a test has failed; none waits for it."""


class GatedOllama(FakeOllama):
    """Streams one piece, and the rest once :attr:`go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        reply = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await reply.prepare(request)
        for piece in self.pieces:
            await reply.write(json.dumps(self._line(body, piece) | {"done": False}).encode() + b"\n")
            await self.go.wait()
        await reply.write(json.dumps(self._line(body, "") | self.finish).encode() + b"\n")
        return reply


async def test_many_streams_at_once_and_health_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are in the middle of their answer at the same time; then each comes to its end, whole."""
    ollama, talking = GatedOllama(), 0

    async def read(client: httpx.AsyncClient) -> list[tuple[str, Any]]:
        nonlocal talking
        text = ""
        async with client.stream("POST", "/chat", json=QUESTION) as response:
            async for piece in response.aiter_text():
                talking += "event: token" in piece and "event: token" not in text
                text += piece
        return events_of(text)

    async with ollama.running():
        monkeypatch.setenv("OLLAMA_HOST", ollama.url)
        twin, _ = make_twin(chat_model("m"))
        limits = httpx.Limits(max_connections=None)
        async with (
            running(twin, trace=False) as port,
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", trust_env=False, limits=limits, timeout=LIMIT
            ) as client,
        ):
            readers = [asyncio.create_task(read(client)) for _ in range(STREAMS)]
            async with asyncio.timeout(LIMIT):
                while talking < STREAMS:
                    assert {"ready": True} == (await client.get("/healthz")).json()
                    await asyncio.sleep(0)
            assert not any(reader.done() for reader in readers)
            assert {"ready": True} == (await client.get("/healthz")).json()
            ollama.go.set()
            heard = await asyncio.wait_for(asyncio.gather(*readers), LIMIT)
    assert STREAMS == len(ollama.bodies)
    for events in heard:
        assert ["sources", "token", "token", "done"] == [name for name, _ in events]
        assert "I studied physics." == events[-1][1]["answer"]


class BlockedEmbedder(WordEmbedder):
    """Embeds a question once it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        self.began.set()
        if not self.go.wait(LIMIT):
            raise ModelError("nobody let it go: the loop was blocked")
        return super().embed(texts)


@pytest.mark.parametrize("path", ["/chat", "/retrieve"])
async def test_embedding_does_not_block_the_loop(path: str) -> None:
    """While every embedding and search of 64 questions is stuck, health answers; then all are answered."""
    twin, _ = make_twin()
    embedder = BlockedEmbedder()
    blocked = Twin(twin.index, embedder, twin.model, twin.k)
    async with (
        running(blocked) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=2 * LIMIT) as client,
    ):
        asked = [asyncio.create_task(client.post(path, json=QUESTION)) for _ in range(STREAMS)]
        assert await asyncio.to_thread(embedder.began.wait, LIMIT)
        assert {"ready": True} == (await client.get("/healthz")).json()
        assert not any(one.done() for one in asked)
        embedder.go.set()
        assert [200] * STREAMS == [reply.status_code for reply in await asyncio.gather(*asked)]


async def test_what_is_opened_late_is_opened_once_and_beside_the_loop() -> None:
    """The first calls wait for it together; the loop does not."""
    go, opened = threading.Event(), list[int]()

    def opening() -> int:
        assert go.wait(LIMIT), "nobody let it go: the loop was blocked"
        opened.append(threading.get_ident())
        return 7

    late = Opened(opening)
    assert None is late.found
    callers = [asyncio.create_task(late.get()) for _ in range(3)]
    await asyncio.sleep(0)
    go.set()
    assert [7, 7, 7] == await asyncio.gather(*callers)
    assert 7 == late.found
    assert 1 == len(opened)
    assert threading.get_ident() not in opened


class WatchedOllama(OllamaChat):
    """Remembers in which thread its client was made."""

    thread = 0

    def _open(self) -> Any:
        self.thread = threading.get_ident()
        return super()._open()


class WatchedOpenAI(OpenAIChat):
    """The same, for the other API."""

    thread = 0

    def _open(self) -> Any:
        self.thread = threading.get_ident()
        return super()._open()


@pytest.mark.parametrize("kind", [WatchedOllama, WatchedOpenAI])
async def test_providers_import_their_libraries_beside_the_loop(
    kind: type[WatchedOllama] | type[WatchedOpenAI], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a second of importing is no half second in which streams stand still."""
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    model = kind("m")
    with pytest.raises(ModelError):
        await model.complete(Call((Message(role="user", content="q"),), 0.0, 9, 99))
    await model.close()
    assert model.thread not in (0, threading.get_ident())
