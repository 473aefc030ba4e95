"""Chat through Amazon Bedrock's Converse API, by boto3.

Owns the body of a call and the reading of what comes back, whole or as a stream: only a whole answer is an
answer. boto3 waits in threads, outside of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any

from ragbot.contract import Usage
from ragbot.errors import ModelError, RagbotError
from ragbot.models import Call, Completion, chat_provider
from ragbot.models.bedrock_runtime import THREADS, need_boto3, runtime, trouble

REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}


@chat_provider("bedrock")
class BedrockChat:
    """One model or inference profile of the region."""

    def __init__(self, name: str) -> None:
        need_boto3()
        self.name = name
        self._client: Any = None
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="bedrock")

    async def complete(self, call: Call) -> Completion:
        """One answer, by Converse."""
        reply = await self._waited(lambda: self._connected().converse(**self._body(call)))
        content = reply["output"]["message"]["content"]
        return self._whole("".join(part.get("text", "") for part in content), [reply])

    async def stream(self, call: Call) -> AsyncGenerator[str | Completion]:
        """Pieces as they come, then the whole answer, by ConverseStream."""
        reply = await self._waited(lambda: self._connected().converse_stream(**self._body(call)))
        pieces: list[str] = []
        events: list[dict[str, Any]] = []
        coming: Iterator[dict[str, Any]] = iter(reply["stream"])
        try:
            while (event := await self._waited(partial(next, coming, None))) is not None:
                events += event.values()
                if piece := event.get("contentBlockDelta", {}).get("delta", {}).get("text"):
                    pieces.append(piece)
                    yield piece
        finally:
            reply["stream"].close()
        yield self._whole("".join(pieces), events)

    async def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown(wait=False)
        if self._client is not None:
            self._client.close()

    async def _waited(self, work: Callable[[], Any]) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RagbotError:
            raise
        except Exception as error:
            raise trouble(error) from error

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = runtime()
        return self._client

    def _body(self, call: Call) -> dict[str, Any]:
        # Converse knows no seed. In the metadata of a request it changes nothing, and tells who watches the
        # wire which call this is.
        seed = {} if call.seed is None else {"requestMetadata": {"seed": str(call.seed)}}
        return {
            "modelId": self.name,
            "system": [{"text": turn.content} for turn in call.messages if turn.role == "system"],
            "messages": [
                {"role": turn.role, "content": [{"text": turn.content}]}
                for turn in call.messages
                if turn.role != "system"
            ],
            "inferenceConfig": {"maxTokens": call.max_tokens, "temperature": call.temperature},
            **seed,
        }

    def _whole(self, text: str, values: Iterable[dict[str, Any]]) -> Completion:
        """The answer; ``values`` say why the model stopped and what was counted.

        Raises:
            ModelError: no part says why the model stopped.
        """
        told = {name: part for value in values for name, part in value.items()}
        reason = told.get("stopReason")
        if reason is None:
            raise ModelError("the model server broke off in the middle of an answer", "ask again")
        counts = told.get("usage", {})
        usage = Usage(prompt_tokens=counts.get("inputTokens"), completion_tokens=counts.get("outputTokens"))
        return Completion(text, self.name, REASONS.get(reason, reason), usage)
