"""A request made simpler where a server refuses a part of it by name.

Owns when a refusal counts as one and what is tried next. It sits above the network and below the recording:
what is recorded is what was asked for, and beside it which remedies it took.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

Body = dict[str, Any]
REFUSALS = frozenset({400, 404, 415, 422, 500, 501})
"""Some servers answer 500 to a field they do not know; what counts is that the reply names it."""


@dataclass(frozen=True)
class Remedy:
    """What to do with a body when a refusal matches ``names``; ``name`` says it in a recording.

    ``after`` is the remedy that must have been tried before.
    """

    name: str
    names: re.Pattern[str]
    change: Callable[[Body], Body]
    after: str = ""


class FallbackTransport(httpx.AsyncBaseTransport):
    """Asks again with the next remedy, each at most once, and remembers what the server took.

    ``response.extensions["adapted"]`` holds the names of the remedies that a reply needed.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, remedies: Sequence[Remedy]) -> None:
        self._inner = inner
        self._remedies = tuple(remedies)
        self._taken: tuple[Remedy, ...] = ()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request, as often as remedies are left that its refusal asks for."""
        await request.aread()
        taken = self._taken
        while True:
            response = await self._inner.handle_async_request(_with(request, taken) if taken else request)
            await response.aread()
            remedy = self._for(response, taken)
            if remedy is None:
                break
            taken = (*taken, remedy)
        if response.is_success:
            self._taken = taken
            response.extensions["adapted"] = tuple(remedy.name for remedy in taken)
        return response

    def _for(self, response: httpx.Response, taken: Sequence[Remedy]) -> Remedy | None:
        if response.status_code not in REFUSALS:
            return None
        names = {"", *(remedy.name for remedy in taken)}
        left = (remedy for remedy in self._remedies if remedy not in taken and remedy.after in names)
        return next((remedy for remedy in left if remedy.names.search(response.text)), None)

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


def _with(request: httpx.Request, taken: Sequence[Remedy]) -> httpx.Request:
    """The request with its body made simpler."""
    body = json.loads(request.content)
    for remedy in taken:
        body = remedy.change(body)
    content = json.dumps(body, ensure_ascii=False).encode()
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in ("content-length", "transfer-encoding")
    }
    return httpx.Request(
        request.method, request.url, headers=headers, content=content, extensions=request.extensions
    )
