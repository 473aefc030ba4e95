"""A model server that streams, word by word, as Ollama's chat API does.

Owns the pace and the place where an answer waits; what is said is a function that the test gives.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading

from aiohttp import web

from fakes.servers import FakeModel, Json, Say, reply_of

HOLD = "⏸"
"""An answer waits at this mark until :attr:`StreamingModel.go` is set."""


class StreamingModel(FakeModel):
    """Streams what ``say`` returns, a word every ``pace`` seconds; ``left`` counts readers that went away."""

    def __init__(self, say: Say) -> None:
        super().__init__(say)
        self.pace = 0.0
        self.go = threading.Event()
        self.left = 0

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if not body.get("stream"):
            return await super()._chat(request)
        self.bodies.append(body)
        said = self.say(body)
        fields: Json = {"text": said} if isinstance(said, str) else said
        if "status" in fields:
            return web.json_response(fields.get("json", {}), status=fields["status"])
        reply = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await reply.prepare(request)
        try:
            await self._stream(request, reply, body, fields)
        except ConnectionResetError:
            self.left += 1
        return reply

    async def _stream(
        self, request: web.Request, reply: web.StreamResponse, body: Json, fields: Json
    ) -> None:
        for piece in re.findall(rf"{HOLD}|\s*[^\s{HOLD}]+|\s+", fields["text"]):
            if piece == HOLD:
                await self._held(request)
            else:
                await reply.write(line_of(reply_of(body, piece) | {"done": False}))
                await asyncio.sleep(self.pace)
        end = {key: value for key, value in fields.items() if key != "text"}
        await reply.write(line_of(reply_of(body, {"text": "", **end})))

    async def _held(self, request: web.Request) -> None:
        while not self.go.is_set():
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError
            await asyncio.sleep(0.02)


def line_of(reply: Json) -> bytes:
    """One line of a stream."""
    return json.dumps(reply).encode() + b"\n"
