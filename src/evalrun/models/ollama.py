"""A judge behind Ollama's chat API, through the official client.

Owns the one call and the translation of its faults. Retries, recording and replay happen in the httpx
transport that is handed in; the window is always sent, because Ollama cuts a longer prompt without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from evalrun.addresses import shown_url
from evalrun.errors import UnavailableError, UnreachableError
from evalrun.http import lost, reason_of
from evalrun.models import Completion, model
from evalrun.network import network
from evalrun.records import Message
from evalrun.settings import DEFAULT_OLLAMA


@model("ollama")
class OllamaModel:
    """`MODEL` as Ollama lists it. Its address is `base_url` or `OLLAMA_HOST`."""

    takes_key = False

    def __init__(
        self,
        name: str,
        base_url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout: float = 120.0,
        digest: str | None = None,
    ) -> None:
        self.name = name
        self.digest = digest
        self._base_url = base_url
        # Imported with the first judge of Ollama: it takes half a second that no other run needs to wait.
        import ollama

        self._client = ollama.AsyncClient(
            host=base_url, transport=transport, timeout=timeout, trust_env=False
        )

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
        import ollama

        options = {"temperature": temperature, "seed": seed, "num_predict": max_tokens, "num_ctx": num_ctx}
        turns = [turn.model_dump() for turn in messages]
        try:
            reply = await self._client.chat(
                model=self.name, messages=turns, stream=False, format=dict(schema), options=options
            )
        except ollama.ResponseError as fault:
            raise self._unavailable(f"answered {fault.status_code}: {fault.error[:300]}") from fault
        except (ConnectionError, httpx.RequestError) as fault:
            raise self._lost(fault) from fault
        except ValueError as fault:
            raise self._unavailable("sent something that is no chat reply") from fault
        return Completion(
            reply.message.content or "", reply.done_reason, reply.prompt_eval_count, reply.eval_count, num_ctx
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    def _lost(self, fault: ConnectionError | httpx.RequestError) -> UnavailableError:
        # Of a refused connection the client makes an error of its own, without the reason.
        cause = fault if isinstance(fault, httpx.RequestError) else fault.__context__
        reason = reason_of(cause) if isinstance(cause, httpx.RequestError) else str(fault)
        kind = UnreachableError if isinstance(fault, ConnectionError) else lost(fault)
        return self._unavailable(f"could not be reached: {reason}", kind)

    def _unavailable(self, what: str, kind: type[UnavailableError] = UnavailableError) -> UnavailableError:
        where = shown_url(self._base_url)
        return kind(f"judge model '{self.name}' at {where} {what}", "is Ollama running there?")
