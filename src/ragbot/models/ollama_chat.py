"""Chat through an Ollama server, with Ollama's own client.

Owns the body that goes over the wire and the reading of what comes back: only a whole answer is an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ragbot.contract import Usage
from ragbot.errors import ModelError
from ragbot.models import Call, Completion, Opened, chat_provider, is_loopback, ollama_host

TIMEOUT = 900.0
"""Seconds of silence; a server with one slot answers a queue of requests one after the other."""


@chat_provider("ollama")
class OllamaChat:
    """One model of the server at ``OLLAMA_HOST``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._host = ollama_host()
        self._client: Opened[Any] = Opened(self._open)

    def warm(self) -> None:
        """Import what a call needs."""
        import httpx_aiohttp  # noqa: F401
        import ollama  # noqa: F401

    async def complete(self, call: Call) -> Completion:
        """One answer, asked for with ``stream: false``."""
        try:
            reply = await (await self._client.get()).chat(**self._body(call), stream=False)
        except Exception as error:
            raise self._refusal(error) from error
        return self._whole(reply, reply.message.content or "")

    async def stream(self, call: Call) -> AsyncGenerator[str | Completion]:
        """Pieces as they come, then the whole answer."""
        pieces: list[str] = []
        reply = None
        try:
            client = await self._client.get()
            async with aclosing(await client.chat(**self._body(call), stream=True)) as parts:
                async for reply in parts:
                    if piece := reply.message.content:
                        pieces.append(piece)
                        yield piece
        except Exception as error:
            raise self._refusal(error) from error
        yield self._whole(reply, "".join(pieces))

    async def close(self) -> None:
        """Close the connections."""
        if self._client.found is not None:
            await self._client.found.close()

    def _open(self) -> Any:
        import httpx
        from httpx_aiohttp import AiohttpTransport
        from ollama import AsyncClient

        local = is_loopback(self._host)
        return AsyncClient(
            self._host,
            timeout=httpx.Timeout(TIMEOUT, connect=10),
            limits=httpx.Limits(max_connections=None),
            # With 16 answers at once a sixth of the time httpx's own pool takes; it knows no proxies, and
            # takes 0, not None, for no limit.
            transport=AiohttpTransport(limits=httpx.Limits(max_connections=0)) if local else None,
            trust_env=not local,
            follow_redirects=False,
        )

    def _body(self, call: Call) -> dict[str, Any]:
        options: dict[str, Any] = {
            "num_ctx": call.window,
            "num_predict": call.max_tokens,
            "temperature": call.temperature,
        }
        if call.seed is not None:
            options["seed"] = call.seed
        messages = [message.model_dump() for message in call.messages]
        return {"model": self.name, "messages": messages, "options": options}

    def _whole(self, reply: Any, text: str) -> Completion:
        if reply is None or not reply.done:
            raise ModelError("the model server broke off in the middle of an answer", "ask again")
        usage = Usage(prompt_tokens=reply.prompt_eval_count, completion_tokens=reply.eval_count)
        return Completion(text, reply.model or self.name, reply.done_reason, usage)

    def _refusal(self, error: Exception) -> ModelError:
        status = getattr(error, "status_code", None)
        if status == 404:
            return ModelError(
                f"the model server has no model '{self.name}'", f"ollama pull {self.name}", str(error)
            )
        if isinstance(status, int) and status > 0:
            return ModelError(f"the model server answered with status {status}", detail=str(error))
        hint = f"is Ollama running at {self._host}? (OLLAMA_HOST)"
        return ModelError("the model server did not answer", hint, f"{type(error).__name__}: {error}")
