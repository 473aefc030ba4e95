"""One HTTP client per service: deadlines, retry, rate limit, and a pause of all where one is told to wait.

Owns how often a call is made and when it is made again. What connects belongs to :mod:`evalrun.network`, what
is asked and what the reply means to targets and judge providers; what is recorded to :mod:`evalrun.cassette`,
which sits between as a transport.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from urllib.parse import urlsplit

import httpx
import stamina
from pydantic_core import to_json

from evalrun.addresses import join_url, shown_url
from evalrun.digest import utf8
from evalrun.errors import UnavailableError, UnreachableError
from evalrun.network import Redirected, deadlines, network, proxy_of, unreachable

stamina.instrumentation.set_on_retry_hooks(())  # retries are counted in meta.json, not logged

RETRIED = frozenset({408, 425, 429, *range(500, 600)})
GATEWAY = frozenset({502, 503, 504})
"""What a gateway says for a service that is gone. Who sends Retry-After with it is there."""
RETRY_AFTER_LIMIT = 60.0
"""Seconds. A server that asks for a longer wait is not asked again: sooner than it wants would be wrong."""
PAUSE = 1.0
"""Seconds that nobody asks a service which has said 429 and not for how long."""
JITTER = 1.0
"""Seconds over which those are spread who wait for the same moment."""
_REASON = 300
JSON = {"content-type": "application/json"}
TOGETHER = 3
"""Replies of one service that are gone on with in one round of the event loop."""
MISS_HEADER = "x-evalrun-miss"


@dataclass(frozen=True)
class Limits:
    """What one service may be asked at once and how long it may take; seconds, calls, calls a second."""

    concurrency: int = 4
    timeout: float = 120.0
    rate: float | None = None
    retries: int = 2


def retry_after(response: httpx.Response) -> float | None:
    """Seconds the server asks to wait, in either form of the header; None if it does not."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(seconds, 0.0)


class LeftAlone(httpx.TransportError):
    """A server asks to be left alone for longer than a run waits: ``seconds``, as it ``said`` so."""

    def __init__(self, said: str, seconds: float) -> None:
        limit = f"a run waits {RETRY_AFTER_LIMIT:.0f} s at most"
        super().__init__(f"{said}: it asks to be left alone for {seconds:.0f} s, and {limit}")


@dataclass(frozen=True)
class Watch:
    """What a caller watches of a call: ``begin`` before each attempt, ``final`` when not to ask again."""

    begin: Callable[[], None]
    final: Callable[[], bool]


class Retryable(Exception):
    """A reply worth asking for again; carries the wait the server asked for."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"HTTP {response.status_code}")
        self.response = response


def _backoff(error: Exception) -> bool | float:
    if isinstance(error, Retryable):
        wait = retry_after(error.response)
        return True if wait is None else wait + random.random() * JITTER
    return unreachable(error)


class _Pause:
    """A wait that a service asked one caller for: meanwhile nobody asks it."""

    def __init__(self) -> None:
        self._until = 0.0

    def at_least(self, seconds: float) -> None:
        """Nobody asks for so long, from now on."""
        self._until = max(self._until, time.monotonic() + seconds)

    async def over(self) -> None:
        """Wait for the end, and a moment longer: not all come back at once.

        Raises:
            LeftAlone: it is too far away.
        """
        left = self._until - time.monotonic()
        while left > 0:
            if left > RETRY_AFTER_LIMIT:
                raise LeftAlone("HTTP 429 before", left)
            await asyncio.sleep(left + random.random() * JITTER)
            left = self._until - time.monotonic()


class PacedTransport(httpx.AsyncBaseTransport):
    """Asks at a rate and within a deadline, and not at all while a 429 tells everybody to wait.

    Raises:
        httpx.TransportError: no whole reply within the deadline (``ReadTimeout``), no connection, or a 429
            that asks for a longer wait than is kept, from the call after it on (``LeftAlone``).
    """

    def __init__(self, timeout: float, rate: float | None, inner: httpx.AsyncBaseTransport) -> None:
        self._timeout = timeout
        self._deadlines = deadlines(timeout)
        self._inner = inner
        self._rate = _rate_limit(rate)
        self._pause = _Pause()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request."""
        request.extensions = {**request.extensions, "timeout": self._deadlines}
        await self._pause.over()
        async with self._rate:
            await self._pause.over()  # which may have begun while this call waited for its turn
            response = await self._whole(request)
        if response.status_code == 429:
            wait = retry_after(response)
            self._pause.at_least(PAUSE if wait is None else wait)
        return response

    async def _whole(self, request: httpx.Request) -> httpx.Response:
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._inner.handle_async_request(request)
                await response.aread()
                return response
        except TimeoutError:
            raise httpx.ReadTimeout(f"no whole reply within {self._timeout:g} s") from None

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


class _Turns:
    """Lets a few callers go on in each round of the event loop.

    What is made of a reply takes a millisecond. Where many come at once, all of them in one round would keep
    every request that is ready, and every other reply, waiting for as many milliseconds.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = TOGETHER

    async def mine(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        if self._left == TOGETHER:
            loop.call_soon(self._next, loop)
        if self._left:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = TOGETHER
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # else who waited is gone
                turn.set_result(None)
                self._left -= 1
        if self._left < TOGETHER:
            loop.call_soon(self._next, loop)


class RetryTransport(httpx.AsyncBaseTransport):
    """Asks within a service's limits, and again on 408, 425, 429, 5xx and broken connections.

    A reply arrives whole or not at all; the last one is returned whatever its status. A call that may have
    been read is not repeated for its deadline alone: it may have been paid for.

    Raises:
        httpx.TransportError: no whole reply within the deadline (``ReadTimeout``), no connection, or a server
            that asks for a longer wait than is kept (``LeftAlone``).
    """

    def __init__(self, limits: Limits, inner: httpx.AsyncBaseTransport) -> None:
        self.retries = 0
        self._attempts = limits.retries + 1
        self._paced = PacedTransport(limits.timeout, limits.rate, inner)
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._turns = _Turns()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request and its retries."""
        response = await self._asked(request)
        await self._turns.mine()
        return response

    async def _asked(self, request: httpx.Request) -> httpx.Response:
        async with self._slots:
            try:
                return await self._once(request)
            except (Retryable, httpx.TransportError) as error:
                failed = error  # nearly no call gets here: only these pay for what counts and waits
            try:
                return await self._again(request, failed)
            except Retryable as error:
                return error.response

    async def _again(self, request: httpx.Request, failed: Exception) -> httpx.Response:
        """What comes after the first attempt, which ``failed``."""
        async for attempt in stamina.retry_context(
            on=_backoff,
            attempts=self._attempts,
            timeout=None,
            wait_initial=0.2,
            wait_max=10.0,
            wait_jitter=JITTER,
        ):
            with attempt:
                if attempt.num == 1:
                    raise failed
                self.retries += 1
                return await self._once(request)
        raise AssertionError("unreachable")

    async def _once(self, request: httpx.Request) -> httpx.Response:
        if watch := request.extensions.get("watch"):
            watch.begin()
        response = await self._paced.handle_async_request(request)
        if response.status_code not in RETRIED or (watch and watch.final()):
            return response
        wait = retry_after(response) or 0.0
        if wait > RETRY_AFTER_LIMIT:
            raise LeftAlone(f"HTTP {response.status_code}", wait)
        raise Retryable(response)

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._paced.aclose()


def _rate_limit(rate: float | None) -> AbstractAsyncContextManager[Any]:
    if rate is None:
        return nullcontext()
    from aiolimiter import AsyncLimiter

    # One call a slot: a burst after a pause would break what the user promised the service.
    return AsyncLimiter(1, 1 / rate)


class Service:
    """A service at one base URL. Use as an async context manager.

    Args:
        name: how messages call it.
        base_url: scheme, host, optional port and path.
        limits: what it may be asked.
        transport: what connects; the network by default.
        launched: whether its port is one of this run only, which stands in no result.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        limits: Limits,
        *,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        launched: bool = False,
    ) -> None:
        self.name = name
        self.base_url = base_url
        self._launched = launched
        self._transport = RetryTransport(limits, transport or network(base_url, limits.concurrency))
        self._headers = httpx.Headers(JSON)
        self._headers.update(headers)
        self._urls: dict[str, httpx.URL] = {}

    @property
    def retries(self) -> int:
        """How many calls were made again."""
        return self._transport.retries

    async def __aenter__(self) -> Service:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def call(
        self, method: str, path: str, body: Any = None, *, watch: Watch | None = None
    ) -> httpx.Response:
        """One call with a JSON body; returns the last response, whatever its status.

        Raises:
            UnavailableError: no whole reply; names what was tried.
            UnreachableError: nobody was there to be asked.
        """
        if (url := self._urls.get(path)) is None:
            url = self._urls[path] = httpx.URL(join_url(self.base_url, path))
        try:
            return await carried(self._transport, json_request(method, url, self._headers, body, watch))
        except httpx.RequestError as error:
            raise self._lost(path, error) from None

    def _lost(self, path: str, error: httpx.RequestError) -> UnavailableError:
        kind = lost(error)
        reason, where = reason_of(error), self.shown(path)
        if self._launched:  # the port is in what the network says, too
            told = isinstance(error, (httpx.ReadTimeout, Redirected, LeftAlone))
            words = reason if told else "no connection, or it broke off"
            return kind(f"{self.name}: {where}: {words}", f"{join_url(self.base_url, path)}: {reason}")
        proxy = urlsplit(proxy_of(self.base_url) or "")
        via = f" through the proxy {proxy.hostname}:{proxy.port}" if proxy.hostname else ""
        return kind(f"{self.name}: {where}{via}: {reason}")

    def shown(self, path: str) -> str:
        """How messages name a path of this service: by its whole URL, unless its port is of this run only."""
        return shown_url((path or "/") if self._launched else join_url(self.base_url, path))


def json_request(
    method: str, url: httpx.URL, headers: httpx.Headers, body: Any, watch: Watch | None = None
) -> httpx.Request:
    """A request with a JSON body, or with none where ``body`` is None; ``headers`` say that it is JSON.

    Its ``extensions["json"]`` is that body: who records it need not read it again. Nobody may change it.
    """
    watched = {"watch": watch} if watch else {}
    if body is None:
        return httpx.Request(method, url, headers=headers, extensions=watched)
    # A stream of one piece: content would have httpx look up and add headers that the network adds itself.
    stream, extensions = httpx.ByteStream(_encoded(body)), {"json": body, **watched}
    request = httpx.Request(method, url, headers=headers, stream=stream, extensions=extensions)
    request.read()  # at once: whoever passes it on would read it piece by piece
    return request


def _encoded(body: Any) -> bytes:
    """``body`` as JSON, in the order of its keys: a model writes the fields of a schema as they come."""
    try:
        return to_json(body)
    except ValueError:  # half of a character, which is U+FFFD everywhere
        return utf8(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


async def carried(transport: httpx.AsyncBaseTransport, request: httpx.Request) -> httpx.Response:
    """The whole reply to a request, past what a client of httpx does: redirects, cookies, a log line.

    Redirects and deadlines belong to the transport, no cookie is kept; the client's way costs as much again.
    """
    response = await transport.handle_async_request(request)
    await response.aread()
    return response


def reason_of(error: httpx.RequestError) -> str:
    """What the network says of a call that got no reply, in a line: some of it may be the server's words."""
    return " ".join(str(error).split())[:_REASON] or type(error).__name__


def lost(error: Exception) -> type[UnavailableError]:
    """The kind of error that a call without a reply is."""
    return UnreachableError if unreachable(error) or isinstance(error, LeftAlone) else UnavailableError


def refusal(response: httpx.Response) -> type[UnavailableError]:
    """The kind of error that a status is: a gateway's for a service that is gone, or a service's own."""
    gone = response.status_code in GATEWAY and retry_after(response) is None
    return UnreachableError if gone else UnavailableError
