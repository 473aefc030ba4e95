"""A recording proxy between a bot and its model server: sees the prompt that really goes over the wire.

Owns which model call belongs to which draw, and whom it lets in. It listens on loopback unless told otherwise
and forwards to its one upstream; whether it forwards or replays, and what was seen of a draw, is the
cassette's business.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from types import TracebackType
from urllib.parse import unquote, urlsplit

import httpx
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from evalrun.addresses import join_url, shown_url
from evalrun.aws import ResigningTransport
from evalrun.cassette import Address, Cassette, CassetteTransport, RecordingMiss, Unstorable, addressed
from evalrun.digest import read_json
from evalrun.errors import UnreachableError, UserError
from evalrun.http import MISS_HEADER, LeftAlone, PacedTransport, reason_of, refusal
from evalrun.network import network, unreachable
from evalrun.records import Exchange
from evalrun.wires import asked, is_generation

_FORWARDED = ("accept", "authorization", "content-type", "x-api-key")
_NAMES = ("localhost", "host.docker.internal", "host.containers.internal")
"""What this machine is called from here and from containers. Any other name may be a page's own."""
_BODY_LIMIT = 16 * 1024 * 1024


class Tap:
    """The proxy. Use as an async context manager; :attr:`url` is what the bot gets as its model's base URL.

    Args:
        upstream: base URL of the bot's model server.
        cassette: replays, records or passes on.
        seeds: seed of a draw's model call → its address.
        observe: called with every exchange, as it happens.
        timeout: seconds a model call may take.
        concurrency: model calls in flight.
        bind: address it listens on.
        host: what the bot calls that address; by default as it is.
        token: what a call must bring to be let in; empty: nothing.
    """

    def __init__(
        self,
        upstream: str,
        cassette: Cassette,
        seeds: Mapping[int, Address],
        observe: Callable[[Exchange], None],
        *,
        timeout: float,
        concurrency: int,
        bind: str = "127.0.0.1",
        host: str | None = None,
        token: str = "",
    ) -> None:
        self.url = ""
        self.refused = 0
        self._bind = bind
        self._host = host or (f"[{bind}]" if ":" in bind else bind)
        self._token = token
        self.current: Address | None = None
        self._upstream = upstream
        self._seeds = seeds
        self._missed: dict[Address | None, RecordingMiss | Unstorable] = {}
        self.upstream_gone = False
        """Whether nobody was there at the last call that went upstream."""
        self.unwritten: OSError | None = None
        """Why a call could not be written down. From then on none goes upstream: its reply would be lost."""
        self._calls = 0
        self._transport = CassetteTransport(
            cassette,
            "bot",
            None
            if cassette.mode == "replay"
            else PacedTransport(timeout, None, ResigningTransport(network(upstream, concurrency), upstream)),
            observe,
            base_path=urlsplit(upstream).path,
        )
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Tap:
        app = web.Application(client_max_size=_BODY_LIMIT, middlewares=[_no_pages(self._host)])
        app.router.add_route("*", "/{path:.*}", self._handle)
        # When it ends, its bot has ended: nobody waits for a reply that is still to come.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind, 0).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UserError(
                f"tap.bind: cannot listen on {self._bind}: {error.strerror or error}",
                "name an address of this machine, or 0.0.0.0 for all of them",
            ) from None
        port = self._runner.addresses[0][1]
        self.url = f"http://{self._host}:{port}" + (f"/{self._token}" if self._token else "")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._transport.aclose()

    def begin(self, address: Address) -> None:
        """A new attempt of a draw starts: what was seen of it before proves nothing."""
        self._transport.begin(address)

    @property
    def heard(self) -> int:
        """How many calls came, those refused among them: a bot that calls is there."""
        return self._calls + self.refused

    def seen(self, address: Address) -> tuple[Exchange, ...]:
        """The model calls of a draw's last attempt, in order; forgets them."""
        return self._transport.seen(address)

    def missed(self, address: Address) -> RecordingMiss | Unstorable | None:
        """What of this draw has no recording, if any; a call without an address counts for every draw."""
        return self._missed.get(address) or self._missed.get(None)

    def missed_itself(self, address: Address) -> bool:
        """Whether a call of this very draw has no recording."""
        return address in self._missed

    def _address(self, path: str, raw: bytes) -> Address | None:
        if not is_generation(path):
            return None
        try:
            seed = asked(path, read_json(raw)).seed
        except ValueError:
            seed = None
        return self._seeds.get(seed, self.current) if seed is not None else self.current

    def _let_in(self, request: web.Request) -> tuple[str, dict[str, str]] | None:
        """(path and query, headers) of a call as they go on, without the token; None where it brings none."""
        headers = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
        if not self._token:
            return request.path_qs, headers
        if _same(headers.get("authorization", ""), f"Bearer {self._token}"):
            del headers["authorization"]  # it is ours, not the model's key
            brought = True
        else:
            brought = False
        first, slash, rest = request.path_qs.removeprefix("/").partition("/")
        if _same(first, self._token):
            return slash + rest, headers
        return (request.path_qs, headers) if brought else None

    async def _handle(self, request: web.Request) -> web.Response:
        allowed = self._let_in(request)
        if allowed is None:
            self.refused += 1
            return web.json_response({"error": "this call brings no token of the tap"}, status=403)
        path, headers = allowed
        self._calls += 1
        raw = await request.read()
        if self.unwritten is not None:
            return _cannot_be_written()
        address = self._address(path.partition("?")[0], raw)
        inner = httpx.Request(
            request.method,
            upstream_url(self._upstream, path),
            headers=headers,
            content=raw,
        )
        try:
            with addressed(address):
                response = await self._transport.handle_async_request(inner)
            self.upstream_gone = refusal(response) is UnreachableError
        except (RecordingMiss, Unstorable) as miss:
            self._missed.setdefault(address, miss)
            return web.json_response(
                {"error": "no recording of this request", "evalrun": "miss"},
                status=502,
                headers={MISS_HEADER: "1"},
            )
        except OSError as error:
            self.unwritten = error
            return _cannot_be_written()
        except UserError as error:  # what signing a request needs is missing
            return web.json_response({"error": error.message}, status=502)
        except httpx.TransportError as error:
            self.upstream_gone = unreachable(error) or isinstance(error, LeftAlone)
            return web.json_response({"error": f"model server: {reason_of(error)}"}, status=502)
        kept = {
            name: response.headers[name]
            for name in ("content-type", "retry-after")
            if name in response.headers
        }
        return web.Response(status=response.status_code, headers=kept, body=response.content)


def _cannot_be_written() -> web.Response:
    return web.json_response({"error": "this call cannot be written down"}, status=502)


def _no_pages(own: str) -> Middleware:
    """A bot calls by address or by the name it was told, and has no origin; a page in a browser has one."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
        if "Origin" in request.headers or not (_is_address(host) or host in (*_NAMES, own.lower())):
            return web.json_response({"error": "only a bot is answered here, no web page"}, status=403)
        raw = unquote(request.raw_path.partition("?")[0])
        if request.method == "CONNECT" or ".." in re.split(r"[/\\]", raw):
            return web.json_response({"error": "this is no proxy to elsewhere"}, status=400)
        return await handler(request)

    return check


def _is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def _same(brought: str, token: str) -> bool:
    """Compared in a time that tells nothing of where they differ."""
    return hmac.compare_digest(brought.encode("utf-8", "surrogateescape"), token.encode())


def upstream_url(upstream: str, path: str) -> str:
    """Where a bot's call goes: a version of the API that stands in both is written once."""
    version = re.search(r"/v[0-9][^/]*\Z", shown_url(upstream))
    doubled = version is not None and path.startswith(f"{version[0]}/")
    return join_url(upstream, path.removeprefix(version[0]) if version and doubled else path)
