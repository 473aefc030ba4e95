"""What really connects: this machine without a proxy, certificates checked, redirects on one server only.

Owns that whatever keeps a whole reply from arriving is one kind of error. How often and how fast a service is
asked belongs to :mod:`evalrun.http`, above it; how an address is written to :mod:`evalrun.addresses`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from aiohttp.abc import ResolveResult
from aiohttp.http_exceptions import HttpProcessingError
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import AiohttpResponseStream, map_aiohttp_exceptions

from evalrun.addresses import is_loopback
from evalrun.errors import UnavailableError, UserError

MOST_REDIRECTS = 5
MOST_BYTES = 64 * 1024 * 1024
"""Of one reply, unpacked. Nothing that a bot or a model says is that long."""
_CONNECT_SECONDS = 10.0
ACCEPTED = "gzip, deflate"
"""How a reply may be packed: what is asked for, whatever else is installed here."""
_READABLE = frozenset({"", "identity", "gzip", "deflate"})
_READ = frozenset({b"content-type", b"retry-after", b"location"})
"""The headers of a reply that anybody here asks for; its length is that of the body unpacked."""


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for ``url``; none for this machine."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    named = getproxies()
    return named.get(parts.scheme) or named.get("all")


# ---------------------------------------------------------------- what can go wrong


class Redirected(httpx.RemoteProtocolError):
    """A redirect that is not followed; the message says where it leads and why not."""


class Untrusted(httpx.ProtocolError):
    """A certificate that proves nothing."""


def unreachable(error: Exception) -> bool:
    """Whether nobody was there, or hung up before a whole reply: asking again may help."""
    return isinstance(error, (httpx.ConnectTimeout, httpx.NetworkError))


async def why_silent(url: str) -> str:
    """Why nobody can be asked at ``url``; empty where something listens, or where a proxy would know."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_of(url):
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), _CONNECT_SECONDS)
    except TimeoutError:
        return f"no connection within {_CONNECT_SECONDS:g} s"
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else "no connection"
    writer.close()
    return ""


def deadlines(timeout: float) -> dict[str, float]:
    """The seconds that connecting, each read and each write may take of a call that may take ``timeout``.

    Connecting may take half of it at most, so that a call knows whether anybody may have read its request.
    """
    connect = min(_CONNECT_SECONDS, timeout / 2)
    return {"connect": connect, "read": timeout, "write": timeout, "pool": timeout}


# ---------------------------------------------------------------- connecting


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


class Whole(httpx.Response):
    """A reply of which every byte is here. One made of ``content`` would be read as a stream first."""

    def __init__(
        self, status: int, headers: Sequence[tuple[bytes, bytes]], content: bytes, request: httpx.Request
    ) -> None:
        length = (b"content-length", str(len(content)).encode())
        stream = httpx.ByteStream(content)
        super().__init__(status, headers=[*headers, length], stream=stream, request=request)
        self._whole = content

    @property
    def content(self) -> bytes:
        """The body."""
        return self._whole

    async def aread(self) -> bytes:
        """The body."""
        return self._whole


class Network(AiohttpTransport):
    """The transport that really connects. It keeps no cookies: a draw must not know of the one before.

    A reply is read at once, of which httpx-aiohttp would make a stream first: that takes as long as the call.
    """

    def __init__(self, base_url: str, concurrency: int) -> None:
        super().__init__(verify=_trusted(base_url, os.environ), proxy=_proxy(base_url), client=self._session)
        self._kept_alive = concurrency + 4

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._kept_alive, ssl=self.ssl_context, resolver=_Resolver(), use_dns_cache=False
        )
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request, and its whole reply.

        Raises:
            httpx.TransportError: no connection, no whole reply, or what came back is no HTTP.
        """
        await request.aread()
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._once(request)
            if response.is_success or not response.has_redirect_location:
                return response
            request = _redirected(request, response)
        raise Redirected(f"more than {MOST_REDIRECTS} redirects, the last one to {request.url.path}")

    async def _once(self, request: httpx.Request) -> httpx.Response:
        try:
            with map_aiohttp_exceptions():
                return await self._asked(request)
        except httpx.TransportError as error:
            if isinstance(error.__cause__, aiohttp.ClientSSLError):
                raise Untrusted(f"{error.__cause__}; {_HOW_TO_TRUST}") from None
            if isinstance(error.__cause__, aiohttp.ServerDisconnectedError):  # its text is the reply so far
                raise httpx.ReadError("the server disconnected") from None
            if isinstance(error.__cause__, aiohttp.ClientConnectorError):
                raise type(error)(_why_no_connection(error.__cause__)) from None
            raise
        except (aiohttp.ClientError, HttpProcessingError, httpx.DecodingError) as error:
            raise httpx.RemoteProtocolError(f"no HTTP: {error}") from None
        except OSError as error:
            raise httpx.ReadError(str(error)) from None

    async def _asked(self, request: httpx.Request) -> httpx.Response:
        if not isinstance(self.client, aiohttp.ClientSession):
            self.client = self._session()
        reply = await self.client.request(
            request.method,
            str(request.url),
            headers={"accept-encoding": ACCEPTED} | dict(request.headers.multi_items()),
            data=request.content or None,
            allow_redirects=False,
            auto_decompress=False,
            timeout=_timeout(**request.extensions.get("timeout", {})),
            proxy=str(self.proxy.url) if self.proxy else None,
            proxy_auth=aiohttp.BasicAuth(*self.proxy.auth) if self.proxy and self.proxy.auth else None,
            proxy_headers=self.proxy.headers if self.proxy else None,
        )
        async with reply:
            headers = [pair for pair in reply.raw_headers if pair[0].lower() in _READ]
            return Whole(reply.status, headers, await _read(reply), request)


def _why_no_connection(error: aiohttp.ClientConnectorError) -> str:
    """Where nobody was, and what the machine says of it, without the words of those who tried."""
    said = error.os_error
    known = os.strerror(said.errno) if said.errno and said.errno > 0 else said.strerror
    both = " (127.0.0.1 and ::1)" if error.host == "localhost" else ""
    return f"no connection to {error.host}:{error.port}{both}: {known or said}"


@lru_cache(maxsize=16)  # a service has one, and each call would make it anew
def _timeout(
    connect: float | None = None,
    read: float | None = None,
    write: float | None = None,
    pool: float | None = None,
) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=connect, sock_read=read, connect=pool)


_HOW_TO_TRUST = "a certificate of your own authority is trusted with SSL_CERT_FILE=ca.pem"


def _trusted(base_url: str, env: Mapping[str, str]) -> ssl.SSLContext:
    """The authorities that count. Reading them takes 80 ms, and a plain connection asks none of them.

    Raises:
        UserError: those of the environment cannot be read.
    """
    if urlsplit(base_url).scheme != "https":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one
        path = env.get("SSL_CERT_FILE") or env.get("SSL_CERT_DIR")
        raise UserError(
            f"SSL_CERT_FILE: no certificates can be read from {path}: {error.strerror or error}",
            "name a file of certificates in PEM, or unset it",
        ) from None


def _proxy(base_url: str) -> httpx.Proxy | None:
    found = proxy_of(base_url)
    if found is None:
        return None
    try:
        kind, host = urlsplit(found).scheme, urlsplit(found).hostname
        if kind in ("http", "https") and host:
            return httpx.Proxy(found)
    except (ValueError, httpx.InvalidURL):
        kind = ""
    what = f"of kind '{kind}'" if kind not in ("", "http", "https") else "without a host"
    raise UnavailableError(
        f"{base_url}: a proxy {what} cannot be used",
        "set HTTP_PROXY or HTTPS_PROXY to an http:// proxy, or NO_PROXY to this host",
    )


async def _read(reply: aiohttp.ClientResponse) -> bytes:
    """The body of a reply, read to its end and unpacked; nobody takes packed bytes for text.

    Raises:
        httpx.RemoteProtocolError: it is packed in a way that is not read here, or it is too long.
        httpx.DecodingError: it is not packed as it says.
    """
    named = ",".join(reply.headers.getall("content-encoding", ())).lower()
    if unread := next((name for one in named.split(",") if (name := one.strip()) not in _READABLE), ""):
        raise httpx.RemoteProtocolError(f"the reply is packed as '{unread}'; only {ACCEPTED} can be read")
    parts, size = [], 0
    async for part in _unpacked(reply, named) if named else reply.content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise httpx.RemoteProtocolError(f"a reply of more than {MOST_BYTES >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


async def _unpacked(reply: aiohttp.ClientResponse, named: str) -> AsyncIterator[bytes]:
    """The pieces of a packed body, small ones: few bytes may unpack to very many."""
    stream = AiohttpResponseStream(reply)
    response = httpx.Response(reply.status, headers={"content-encoding": named}, stream=stream)
    async for part in response.aiter_bytes():
        yield part


def _redirected(request: httpx.Request, response: httpx.Response) -> httpx.Request:
    """The request again where a redirect leads: the same one, on the same server.

    Raises:
        Redirected: it leads to another server, which must get neither keys nor questions, or would turn a
            POST into a GET.
    """
    try:
        url = request.url.join(response.headers["location"])
    except httpx.InvalidURL:
        raise Redirected(f"HTTP {response.status_code}: it leads to no address") from None
    if _server(url) != _server(request.url):
        where = f"{url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}{url.path}"
        reason = "another server gets nothing from here; is it the right one?"
        raise Redirected(f"HTTP {response.status_code} to {where}: {reason}")
    if request.method not in ("GET", "HEAD") and response.status_code not in (307, 308):
        reason = f"a {request.method} would become a GET; write the address that it leads to"
        raise Redirected(f"HTTP {response.status_code} to {url.path}: {reason}")
    return httpx.Request(
        request.method, url, headers=request.headers, content=request.content, extensions=request.extensions
    )


def _server(url: httpx.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)  # httpx leaves out the port that a scheme has by itself


def network(base_url: str, concurrency: int) -> httpx.AsyncBaseTransport:
    """The transport that really connects: one pool, kept alive for as many calls as may be in flight.

    Raises:
        UnavailableError: the environment names a proxy of a kind that cannot be used.
        UserError: it names certificates that cannot be read.
    """
    return Network(base_url, concurrency)
