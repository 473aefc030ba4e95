"""Chat through any server that speaks OpenAI's API: OpenAI, vLLM, llama.cpp's server, LM Studio.

Owns the body that goes over the wire and the reading of what comes back, whole or as server-sent events: only
a whole answer is an answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from ragbot.contract import Usage
from ragbot.errors import ModelError
from ragbot.models import Call, Completion, Opened, chat_provider, is_loopback
from ragbot.models.openai_server import OpenAIServer

TIMEOUT = 900.0
"""Seconds of silence; a server with one slot answers a queue of requests one after the other."""


@chat_provider("openai")
class OpenAIChat:
    """One model of the server at ``OPENAI_BASE_URL``, with the key in ``OPENAI_API_KEY`` if there is one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._server = OpenAIServer.of_environment()
        self._limit = "max_tokens"
        self._client: Opened[Any] = Opened(self._open)

    async def complete(self, call: Call) -> Completion:
        """One answer, asked for with ``stream: false``."""
        reply = await self._sent(self._body(call) | {"stream": False})
        try:
            parts = [await reply.aread()]
        except Exception as error:
            raise self._server.silent(error) from error
        finally:
            await reply.aclose()  # also when nobody waits any more
        return self._whole(_objects(parts))

    async def stream(self, call: Call) -> AsyncGenerator[str | Completion]:
        """Pieces as they come, then the whole answer."""
        body = self._body(call) | {"stream": True, "stream_options": {"include_usage": True}}
        reply = await self._sent(body)
        events: list[dict[str, Any]] = []
        try:
            async for event in _events(reply.aiter_lines()):
                events.append(event)
                if piece := _said(event):
                    yield piece
        except Exception as error:
            raise self._server.silent(error) from error
        finally:
            await reply.aclose()
        yield self._whole(events)

    async def close(self) -> None:
        """Close the connections."""
        if self._client.found is not None:
            await self._client.found.aclose()

    async def _sent(self, body: dict[str, Any]) -> Any:
        """The reply to ``body`` with its head read; once more where the limit has its newer name only."""
        reply = await self._post(body)
        if reply.status_code == 400 and b"max_completion_tokens" in await reply.aread():
            self._limit = "max_completion_tokens"
            reply = await self._post(body | {self._limit: body.pop("max_tokens", None)})
        if reply.status_code != 200:
            raise self._server.refusal(reply.status_code, (await reply.aread()).decode("utf-8", "replace"))
        return reply

    async def _post(self, body: dict[str, Any]) -> Any:
        client = await self._client.get()
        request = client.build_request("POST", f"{self._server.url}/chat/completions", json=body)
        try:
            return await client.send(request, stream=True)
        except Exception as error:
            raise self._server.silent(error) from error

    def _open(self) -> Any:
        import httpx
        from httpx_aiohttp import AiohttpTransport

        local = is_loopback(self._server.url)
        return httpx.AsyncClient(
            headers=self._server.headers,
            timeout=httpx.Timeout(TIMEOUT, connect=10),
            limits=httpx.Limits(max_connections=None),
            transport=AiohttpTransport(limits=httpx.Limits(max_connections=0)) if local else None,
            trust_env=not local,
        )

    def _body(self, call: Call) -> dict[str, Any]:
        seed = {} if call.seed is None else {"seed": call.seed}
        return {
            "model": self.name,
            "messages": [message.model_dump() for message in call.messages],
            "temperature": call.temperature,
            self._limit: call.max_tokens,
            **seed,
        }

    def _whole(self, values: list[dict[str, Any]]) -> Completion:
        """The answer that the parts of a reply make.

        Raises:
            ModelError: no part says why the model stopped.
        """
        reasons = [choice["finish_reason"] for choice in map(_choice, values) if choice.get("finish_reason")]
        if not reasons:
            raise ModelError("the model server broke off in the middle of an answer", "ask again")
        counts: dict[str, Any] = next(
            (value["usage"] for value in reversed(values) if value.get("usage")), {}
        )
        usage = Usage(
            prompt_tokens=counts.get("prompt_tokens"), completion_tokens=counts.get("completion_tokens")
        )
        named = next((value["model"] for value in values if isinstance(value.get("model"), str)), self.name)
        return Completion("".join(map(_said, values)), named, str(reasons[-1]), usage)


def _choice(value: dict[str, Any]) -> dict[str, Any]:
    choices = value.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _said(value: dict[str, Any]) -> str:
    choice = _choice(value)
    message = choice.get("message") or choice.get("delta")
    said = message if isinstance(message, dict) else {}
    text = said.get("content") or said.get("refusal")
    return text if isinstance(text, str) else ""


def _objects(parts: list[bytes]) -> list[dict[str, Any]]:
    try:
        values = [json.loads(part) for part in parts]
    except (ValueError, RecursionError):
        values = []
    return [value for value in values if isinstance(value, dict)]


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of server-sent events, up to ``[DONE]``."""
    async for line in lines:
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            return
        for value in _objects([data.encode()]) if data else []:
            yield value
