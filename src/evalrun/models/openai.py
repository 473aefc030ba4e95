"""A judge behind OpenAI's chat API: OpenAI itself, vLLM, llama.cpp's server, LM Studio and others like them.

Owns the request and its simpler forms for servers that refuse a schema. The reply is read by
:mod:`evalrun.wires`; whether it is a verdict is for the judge's own parser, whatever the server promised.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from evalrun.addresses import join_url
from evalrun.errors import UserError
from evalrun.fallback import Body, FallbackTransport, Remedy
from evalrun.models import Completion, OverHttp, model, strict
from evalrun.network import network
from evalrun.records import Message
from evalrun.wires import with_version

OFFICIAL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"


@model("openai")
class OpenAIModel(OverHttp):
    """`MODEL` as the server lists it. At `base_url` or `OPENAI_BASE_URL`; `key_env` names its key."""

    takes_key = True

    @staticmethod
    def url_of(base_url: str, name: str) -> str:
        """The chat API."""
        return join_url(with_version(base_url), "chat/completions")

    @staticmethod
    def default_url(env: Mapping[str, str]) -> str:
        """Where the server is, if the config does not say."""
        return env.get("OPENAI_BASE_URL") or OFFICIAL

    @staticmethod
    def upstream(base_url: str, concurrency: int, key_env: str | None) -> httpx.AsyncBaseTransport:
        """What connects: with the key, and with simpler forms of a request that the server refuses.

        Raises:
            UserError: the key is missing where one is needed, or it is no header.
        """
        key = _key(base_url, key_env)
        return FallbackTransport(_KeyTransport(network(base_url, concurrency), key), REMEDIES)

    async def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        temperature: float,
        seed: int,
        max_tokens: int,
        num_ctx: int,
    ) -> Completion:
        """One chat call, not streamed. The server's window is its own; ``num_ctx`` is not sent.

        Raises:
            UnavailableError: no connection, a timeout, a status other than 2xx, or no chat reply.
        """
        shape = {"name": "verdict", "schema": strict(schema), "strict": True}
        body = {
            "model": self.name,
            "messages": [{"role": turn.role, "content": turn.content} for turn in messages],
            "temperature": temperature,
            "seed": seed,
            "max_tokens": max_tokens,
            "response_format": {"type": "json_schema", "json_schema": shape},
        }
        return await self.asked(body, "choices")


def _key(base_url: str, key_env: str | None) -> str:
    key = os.environ.get(key_env or KEY, "").strip()
    if not key and (key_env or httpx.URL(base_url).host == httpx.URL(OFFICIAL).host):
        raise UserError(f"judge: {key_env or KEY} is not set", "set it to the key of the judge's server")
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"judge: {key_env or KEY} holds what no key holds", "set it to the key alone")
    return key


class _KeyTransport(httpx.AsyncBaseTransport):
    """Adds the key below the recording, which so never sees it."""

    def __init__(self, inner: httpx.AsyncBaseTransport, key: str) -> None:
        self._inner = inner
        self._key = key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._key:
            request.headers["authorization"] = f"Bearer {self._key}"
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


# ---------------------------------------------------------------- simpler forms


def _told(body: Body) -> Body:
    """The schema as words at the end of the first message, where the server cannot enforce it."""
    schema = body["response_format"].get("json_schema", {}).get("schema")
    if schema is None:
        return body
    words = f"Reply with one JSON object of this JSON Schema, and nothing else:\n{json.dumps(schema)}"
    first, *rest = body["messages"]
    return body | {"messages": [first | {"content": f"{first['content']}\n\n{words}"}, *rest]}


def _json_object(body: Body) -> Body:
    return _told(body) | {"response_format": {"type": "json_object"}}


def _plain(body: Body) -> Body:
    return {name: value for name, value in _told(body).items() if name != "response_format"}


def _newer_limit(body: Body) -> Body:
    rest = {name: value for name, value in body.items() if name != "max_tokens"}
    return rest | {"max_completion_tokens": body["max_tokens"]}


_FORMAT = re.compile(
    r"response_format|json_schema|json_object|structured.output|guided|grammar", re.IGNORECASE
)
REMEDIES = (
    Remedy("response_format: json_object", _FORMAT, _json_object),
    Remedy("response_format: none", _FORMAT, _plain, after="response_format: json_object"),
    Remedy("max_completion_tokens", re.compile(r"max_completion_tokens"), _newer_limit),
)
