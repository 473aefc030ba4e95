"""A bot and a judge that know the answer at once, and a fixed time later say it.

One process, one loop, HTTP/1.1 read by hand, so that it takes little of the machine that is measured. What it
saw of its caller it tells at ``/seen``. Faults come at fixed places: every n-th request is one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count

_ITEM = re.compile(rb"item (\d+)")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SLOW = 10  # times the latency
_FILLER = "It is kept dry, away from light, and looked at twice a year by whoever has the key of the room. "


@dataclass(frozen=True)
class Faults:
    """Of how many requests each is one; 0 for never."""

    errors: int = 0
    resets: int = 0
    slow: int = 0

    def of(self, number: int) -> str:
        """What becomes of the request of this number, from 1."""
        kinds = (("errors", self.errors), ("resets", self.resets), ("slow", self.slow))
        return next((name for name, every in kinds if every and number % every == 0), "")


@dataclass
class Seen:
    """What came in: requests, how many of them were spoilt, how many at once, and over how many seconds."""

    requests: int = 0
    spoilt: int = 0
    now: int = 0
    most: int = 0
    first: float = 0.0
    last: float = 0.0


def answer_of(item: int) -> bytes:
    """What the bot says of one item, and from which three chunks."""
    said = f"Item {item} is on shelf {item % 97}."
    chunks = [
        {"id": f"item-{item}", "text": f"{said} {_FILLER * 2}"},
        *({"id": f"room-{n}", "text": f"Room {n} is on the ground floor. {_FILLER * 2}"} for n in (1, 2)),
    ]
    return json.dumps({"answer": said, "contexts": chunks}).encode()


def verdict_of(item: int) -> bytes:
    """What the judge says of that answer, in the shape of OpenAI's API."""
    said = f"Item {item} is on shelf {item % 97}"
    claims = [{"claim": said, "quote": said, "supported": "yes"}]
    text = json.dumps({"claims": claims, "answer_is_refusal": "no"})
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1500, "completion_tokens": 50}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()


class Stub(asyncio.Protocol):
    """One connection."""

    def __init__(self, latency: float, faults: Faults, seen: Seen, numbers: Iterator[int]) -> None:
        self._latency, self._faults, self._seen, self._numbers = latency, faults, seen, numbers
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take in a piece; answer what is whole."""
        self._data += data
        head, blank, body = self._data.partition(b"\r\n\r\n")
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        if blank and len(body) >= length:
            self._data = b""
            self._asked(head, body)

    def _asked(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /seen"):
            return self._say(200, json.dumps(asdict(self._seen)).encode())
        seen, now = self._seen, time.monotonic()
        seen.requests, seen.first = seen.requests + 1, seen.first or now
        seen.now += 1
        seen.most = max(seen.most, seen.now)
        fault = self._faults.of(next(self._numbers))
        seen.spoilt += bool(fault)
        judged = b"/chat/completions " in head.partition(b"\r\n")[0]
        item = int(_ITEM.findall(body)[-1])
        wait = self._latency * (SLOW if fault == "slow" else 1)
        asyncio.get_running_loop().call_later(wait, self._answer, fault, judged, item)

    def _answer(self, fault: str, judged: bool, item: int) -> None:
        self._seen.now -= 1
        self._seen.last = time.monotonic()
        if fault == "resets":
            assert self._transport is not None
            self._transport.abort()
        elif fault == "errors":
            self._say(503, b'{"error": "spoilt on purpose"}')
        else:
            self._say(200, verdict_of(item) if judged else answer_of(item))

    def _say(self, status: int, body: bytes) -> None:
        assert self._transport is not None
        head = f"HTTP/1.1 {status} .\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def serve(latency: float, faults: Faults) -> None:
    """Listen on a free port of this machine and print it, until stopped."""
    seen, numbers = Seen(), count(1)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stub(latency, faults, seen, numbers), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    for name in ("errors", "resets", "slow"):
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help="every N-th request")
    given = parser.parse_args()
    asyncio.run(serve(given.latency, Faults(given.errors, given.resets, given.slow)))
