"""One HTTP client per service: deadlines, retry, rate limit, and a URL that is joined the same way each time.

Owns how a call is made and when it is made again. What is asked and what the reply means belong to targets
and judge providers; what is recorded belongs to :mod:`evalrun.cassette`, which sits below as a transport.
"""

from __future__ import annotations

import asyncio
import email.utils
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Annotated, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
import stamina
from aiohttp.abc import ResolveResult
from httpx_aiohttp import AiohttpTransport
from pydantic import AfterValidator

from evalrun.errors import UnavailableError

stamina.instrumentation.set_on_retry_hooks(())  # retries are counted in meta.json, not logged

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
RETRY_AFTER_LIMIT = 60.0
"""Seconds. A server that asks for a longer wait is not asked again: sooner than it wants would be wrong."""
MISS_HEADER = "x-evalrun-miss"


@dataclass(frozen=True)
class Limits:
    """What one service may be asked at once and how long it may take; seconds, calls, calls a second."""

    concurrency: int = 4
    timeout: float = 120.0
    rate: float | None = None
    retries: int = 2


def _whole(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(mark.isspace() for mark in url):
        raise ValueError("is not the address of a bot: write it like http://127.0.0.1:8000")
    return url.rstrip("/")


BotUrl = Annotated[str, AfterValidator(_whole)]
"""Where a bot listens: with its scheme, and without a slash at the end."""


def is_loopback(url: str) -> bool:
    """Whether ``url`` names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def join_url(base: str, path: str) -> str:
    """``base`` and ``path`` with exactly one slash between; a path of the base is kept."""
    return base.rstrip("/") + "/" + path.lstrip("/") if path else base.rstrip("/")


def retry_after(response: httpx.Response) -> float | None:
    """Seconds the server asks to wait, in either form of the header; None if it does not."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(when - time.time(), 0.0)


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for ``url``; none for this machine."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    named = getproxies()
    return named.get(parts.scheme) or named.get("all")


class _Resolver(aiohttp.ThreadedResolver):
    """Knows localhost by both its addresses, whatever the machine's own list of hosts says."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host."""
        if host != "localhost":
            return await super().resolve(host, port, family)
        both = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=0)
            for kind, address in both
        ]


class Network(AiohttpTransport):
    """The transport that really connects. It keeps no cookies: a draw must not know of the one before."""

    def __init__(self, base_url: str, concurrency: int) -> None:
        # Reading the authorities takes 80 ms, and a plain connection asks none of them.
        secure = urlsplit(base_url).scheme == "https"
        trusted = httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        super().__init__(verify=trusted, proxy=_proxy(base_url), client=self._session)
        self._kept_alive = concurrency + 4

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._kept_alive, ssl=self.ssl_context, resolver=_Resolver(), use_dns_cache=False
        )
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request.

        Raises:
            httpx.TransportError: no connection, or what came back is no HTTP.
        """
        try:
            return await super().handle_async_request(request)
        except aiohttp.ClientError as error:
            raise httpx.RemoteProtocolError(f"no HTTP: {error}") from None


def _proxy(base_url: str) -> httpx.Proxy | None:
    found = proxy_of(base_url)
    if found is None:
        return None
    if urlsplit(found).scheme not in ("http", "https"):
        raise UnavailableError(
            f"{base_url}: a proxy of kind '{urlsplit(found).scheme}' cannot be used",
            "set HTTP_PROXY or HTTPS_PROXY to an http:// proxy, or NO_PROXY to this host",
        )
    return httpx.Proxy(found)


def network(base_url: str, concurrency: int) -> httpx.AsyncBaseTransport:
    """The transport that really connects: one pool, kept alive for as many calls as may be in flight.

    Raises:
        UnavailableError: the environment names a proxy of a kind that cannot be used.
    """
    return Network(base_url, concurrency)


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
        return True if wait is None else wait <= RETRY_AFTER_LIMIT and wait
    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.ReadTimeout)


class RetryTransport(httpx.AsyncBaseTransport):
    """Asks within a service's limits, and again on 408, 425, 429, 5xx and broken connections.

    A reply arrives whole or not at all; the last one is returned whatever its status.

    Raises:
        httpx.TransportError: no whole reply within the deadline (``ReadTimeout``), or no connection.
    """

    def __init__(self, limits: Limits, inner: httpx.AsyncBaseTransport) -> None:
        self.retries = 0
        self._limits = limits
        self._inner = inner
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._rate = _rate_limit(limits.rate)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request and its retries."""
        async with self._slots:
            try:
                async for attempt in stamina.retry_context(
                    on=_backoff,
                    attempts=self._limits.retries + 1,
                    timeout=None,
                    wait_initial=0.2,
                    wait_max=10.0,
                ):
                    with attempt:
                        self.retries += attempt.num > 1
                        return await self._once(request)
            except Retryable as error:
                return error.response
        raise AssertionError("unreachable")

    async def _once(self, request: httpx.Request) -> httpx.Response:
        if watch := request.extensions.get("watch"):
            watch.begin()
        try:
            async with self._rate, asyncio.timeout(self._limits.timeout):
                response = await self._inner.handle_async_request(request)
                await response.aread()
        except TimeoutError:
            raise httpx.ReadTimeout(f"no whole reply within {self._limits.timeout:g} s") from None
        if response.status_code in RETRIED and not (watch and watch.final()):
            raise Retryable(response)
        return response

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


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
        self._client = httpx.AsyncClient(
            transport=self._transport,
            headers=dict(headers or {}),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx.Timeout(limits.timeout, connect=min(10.0, limits.timeout)),
            trust_env=False,
        )

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
        await self._client.aclose()

    async def call(
        self, method: str, path: str, body: Any = None, *, watch: Watch | None = None
    ) -> httpx.Response:
        """One call with a JSON body; returns the last response, whatever its status.

        Raises:
            UnavailableError: no whole reply, or no connection; names what was tried.
        """
        url = join_url(self.base_url, path)
        try:
            extensions = {"watch": watch} if watch else {}
            return await self._client.request(method, url, json=body, extensions=extensions)
        except httpx.RequestError as error:
            reason = str(error) or type(error).__name__
            proxy = proxy_of(self.base_url)
            via = f" through the proxy {urlsplit(proxy).hostname}:{urlsplit(proxy).port}" if proxy else ""
            if self._launched:  # the port is in what the network says, too
                words = reason if isinstance(error, httpx.ReadTimeout) else "no connection, or it broke off"
                raise UnavailableError(
                    f"{self.name}: {self.shown(path)}: {words}", f"{url}: {reason}"
                ) from None
            raise UnavailableError(f"{self.name}: {url}{via}: {reason}") from None

    def shown(self, path: str) -> str:
        """How messages name a path of this service: by its whole URL, unless its port is of this run only."""
        return (path or "/") if self._launched else join_url(self.base_url, path)
