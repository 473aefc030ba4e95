"""Model calls as an httpx transport: from the cassette, or from upstream and into it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import httpx

from evalrun.cassette.keys import ADDRESS, Address, Book, address_of, key_for, without_empty
from evalrun.cassette.store import Cassette, Miss, Unstorable, redacted
from evalrun.digest import read_json
from evalrun.errors import RecordingError
from evalrun.records import Exchange
from evalrun.redaction import open_query, without
from evalrun.wires import EVENT_STREAM, bytes_of, charset_of, is_generation, output_of, same_path, text_of


class RecordingMiss(RecordingError):
    """Raised by the transport where a replay has no line; carries the miss."""

    def __init__(self, miss: Miss) -> None:
        kind = "a stale" if miss.stale else "no"
        super().__init__(
            f"{kind} recording of {miss.path}: {miss.difference}",
            f"{miss.book}.jsonl of the cassette has no such line; --record-missing records it",
        )
        self.miss = miss


class _Shared(NamedTuple):
    """A reply that other draws may share. What was asked is left out: who shares it asks the same."""

    address: Address | None
    media_type: str
    status: int
    reply: str
    seconds: float
    finish: str | None
    adapted: tuple[str, ...]
    redacted: int

    @classmethod
    def of(cls, line: Exchange) -> _Shared:
        return cls(
            address_of(line),
            sys.intern(line.media_type),
            line.status,
            line.reply,
            line.seconds,
            line.finish,
            line.adapted,
            line.redacted,
        )

    def line(self, source: str, key: str, method: str, path: str, request: Any) -> Exchange:
        case, draw, turn = self.address or (None, None, None)
        return Exchange(
            source=source,
            key=key,
            case=case,
            draw=draw,
            turn=turn,
            method=method,
            path=path,
            media_type=self.media_type,
            request=request,
            status=self.status,
            reply=self.reply,
            seconds=self.seconds,
            finish=self.finish,
            adapted=self.adapted,
            redacted=self.redacted,
        )


class CassetteTransport(httpx.AsyncBaseTransport):
    """Carries the model calls of one book: from the cassette, or from upstream and into it.

    Every exchange that carried a reply is handed to ``observe``. Requests of the same address and body are
    told apart by their occurrence; :meth:`begin` starts the count of an address anew. ``own``: these are the
    calls to the bot itself; whatever is asked for a draw belongs to it, and the query of a URL counts.
    """

    def __init__(
        self,
        cassette: Cassette,
        book: Book,
        upstream: httpx.AsyncBaseTransport | None,
        observe: Callable[[Exchange], None] = lambda line: None,
        *,
        base_path: str = "",
        own: bool = False,
    ) -> None:
        self.cassette = cassette
        self.book: Book = book
        self._upstream = upstream
        self._observe = observe
        self._base_path = base_path.rstrip("/")
        self._own = own
        self._attempts: dict[Address, list[Exchange]] = {}
        self._occurrences: dict[Address, dict[str, int]] = {}
        self._flights: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._shared: dict[str, _Shared] = {}

    def connect(self, upstream: httpx.AsyncBaseTransport) -> None:
        """What it asks where there is no line."""
        self._upstream = upstream

    def know(self, lines: Iterable[Exchange]) -> None:
        """Replies of an earlier session, which later requests share as if they had just come."""
        for line in lines:
            self._shared.setdefault(line.key, _Shared.of(line))
            self.cassette.use(self.book, line, address_of(line))

    def begin(self, address: Address) -> None:
        """A new attempt of a draw: identical requests count from 0 again, what was seen proves nothing."""
        self._occurrences.pop(address, None)
        self._attempts.pop(address, None)

    def seen(self, address: Address) -> tuple[Exchange, ...]:
        """The bot's calls of a draw's last attempt, in order; forgets them."""
        return tuple(self._attempts.pop(address, ()))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Replay or forward one request.

        Raises:
            RecordingMiss: there is no line and none may be made.
        """
        raw, known = await request.aread(), request.extensions
        body = without_empty(
            self.cassette.redaction.of_request(known["json"] if "json" in known else _json_or_text(raw))
        )
        path = self._path(request)
        address = ADDRESS.get() if self._own or is_generation(path) else None
        occurrence = self._occurrence(address, request.method, path, body)
        key = key_for(request.method, path, body, occurrence, self.cassette.ignore)
        if self.book == "bot":
            return await self._answer(request, path, body, key, address)
        async with self._flights.setdefault(key, asyncio.Lock()):
            if key in self._shared:
                return _response(self._share(request.method, path, body, key, address), request)
            return await self._answer(request, path, body, key, address)

    def _path(self, request: httpx.Request) -> str:
        url = urlsplit(str(request.url))
        path, query = same_path(url.path.removeprefix(self._base_path)), open_query(url.query)
        return without(f"{path}?{query}" if self._own and query else path, self.cassette.redaction.secrets)

    def _share(self, method: str, path: str, body: Any, key: str, address: Address | None) -> Exchange:
        """A verdict that several draws share is kept under the smallest of their addresses."""
        line = self._shared[key].line(self.book, key, method, path, body)
        kept = address_of(line)
        if address is not None and kept is not None and address < kept and self.cassette.mode != "replay":
            line = line.model_copy(update=address._asdict())
            self.cassette.store(self.book, line)
            self._note(line, address)
        self.cassette.use(self.book, line, address)
        return line

    def _note(self, line: Exchange, address: Address | None) -> None:
        if self.book == "judge":
            self._shared[line.key] = _Shared.of(line)
        elif address is not None:
            self._attempts.setdefault(address, []).append(line)
        self.cassette.use(self.book, line, address)
        self._observe(line)

    async def _answer(
        self, request: httpx.Request, path: str, body: Any, key: str, address: Address | None
    ) -> httpx.Response:
        line = self.cassette.find(self.book, address, key)
        if line is not None and self.cassette.mode != "live":
            self.cassette.replayed += 1
            if self._own and address is not None:
                self.cassette.stood_in.add(address)
            self._note(line, address)
            return _response(line, request)
        if not self.cassette.may_ask(self.book, address) or self._upstream is None:
            raise RecordingMiss(self.cassette.miss(self.book, address, path, body))
        return await self._forward(request, path, body, key, address)

    def _occurrence(self, address: Address | None, method: str, path: str, body: Any) -> int:
        if address is None or self.book == "judge":
            return 0
        counts = self._occurrences.setdefault(address, {})
        first = key_for(method, path, body, 0, self.cassette.ignore)
        counts[first] = counts.get(first, -1) + 1
        return counts[first]

    async def _forward(
        self, request: httpx.Request, path: str, body: Any, key: str, address: Address | None
    ) -> httpx.Response:
        assert self._upstream is not None
        started = time.perf_counter()
        spent = self.cassette.spent[self.book]
        spent.calls += 1
        response = await self._upstream.handle_async_request(request)
        await response.aread()
        kind, said = response.headers.get("content-type", ""), None
        media_type = kind.partition(";")[0].strip()
        content = text_of(response.content, media_type, charset_of(kind))
        if 200 <= response.status_code < 300 and not _only_error(content):
            said = output_of(path, content) if is_generation(path) else None
            if said is not None and not self._own:  # of a bot itself its reply is asked for them
                spent.add(said.prompt_tokens, said.completion_tokens)
            line = self._stored(
                Exchange(
                    source=self.book,
                    key=key,
                    case=address.case if address else None,
                    draw=address.draw if address else None,
                    turn=address.turn if address else None,
                    method=request.method,
                    path=path,
                    media_type=media_type,
                    request=body,
                    status=response.status_code,
                    reply=content,
                    seconds=round(time.perf_counter() - started, 3),
                    finish=said.finish if said is not None else None,
                    adapted=response.extensions.get("adapted", ()),
                )
            )
            said = said if line.reply == content else None
            content = line.reply  # who asked reads what a replay reads
            self._note(line, address)
        elif media_type != EVENT_STREAM:  # an error is told, at times only its beginning
            content = without(content, self.cassette.redaction.secrets)
        if said is not None and kind == media_type and response.content == content.encode():
            response.extensions["said"] = said  # it need not be read again
            return response
        headers = {"content-type": media_type or "application/json"}
        if "retry-after" in response.headers:
            headers["retry-after"] = response.headers["retry-after"]
        return httpx.Response(
            response.status_code,
            headers=headers,
            content=bytes_of(content, media_type),
            request=request,
        )

    def _stored(self, line: Exchange) -> Exchange:
        """The line as it is written down.

        Raises:
            Unstorable: it must not be.
        """
        try:
            line = redacted(line, self.cassette.redaction)
        except Unstorable as error:
            self.cassette.refused.append(error.message)
            raise
        self.cassette.store(self.book, line)
        return line

    async def aclose(self) -> None:
        """Close what connects upstream, and forget what was said."""
        self._shared.clear()
        if self._upstream is not None:
            await self._upstream.aclose()


def _json_or_text(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return read_json(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")


def _only_error(content: str) -> bool:
    value = _json_or_text(content.encode()) if '"error"' in content else None
    return isinstance(value, dict) and set(value) == {"error"}


def _response(line: Exchange, request: httpx.Request) -> httpx.Response:
    return httpx.Response(
        line.status,
        headers={"content-type": line.media_type},
        content=bytes_of(line.reply, line.media_type),
        request=request,
    )
