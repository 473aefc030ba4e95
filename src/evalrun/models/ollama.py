"""A judge behind Ollama's chat API.

Owns the one call; the reply is read by :mod:`evalrun.wires`. Retries, recording and replay happen in the
transport that is handed in. The window is always sent, because Ollama cuts a longer prompt without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx

from evalrun.addresses import join_url
from evalrun.models import Completion, OverHttp, model
from evalrun.network import network
from evalrun.records import Message
from evalrun.settings import DEFAULT_OLLAMA


@model("ollama")
class OllamaModel(OverHttp):
    """`MODEL` as Ollama lists it. Its address is `base_url` or `OLLAMA_HOST`."""

    takes_key = False

    @staticmethod
    def url_of(base_url: str, name: str) -> str:
        """The chat API. Not through Ollama's own client: that takes half a second to import."""
        return join_url(base_url, "api/chat")

    @staticmethod
    def default_url(env: Mapping[str, str]) -> str:
        """Where the server is, if the config does not say."""
        return env.get("OLLAMA_HOST") or DEFAULT_OLLAMA

    @staticmethod
    def upstream(base_url: str, concurrency: int, key_env: str | None) -> httpx.AsyncBaseTransport:
        """What connects."""
        return network(base_url, concurrency)

    async def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        temperature: float,
        seed: int,
        max_tokens: int,
        num_ctx: int,
    ) -> Completion:
        """One chat call, not streamed.

        Raises:
            UnavailableError: no connection, a timeout, a status other than 2xx, or no chat reply.
        """
        body = {
            "model": self.name,
            "messages": [{"role": turn.role, "content": turn.content} for turn in messages],
            "stream": False,
            "format": dict(schema),
            "options": {
                "temperature": temperature,
                "seed": seed,
                "num_predict": max_tokens,
                "num_ctx": num_ctx,
            },
        }
        said = await self.asked(body, "message")
        return replace(said, window=num_ctx)
