"""Recorded exchanges as an httpx transport: replay, record, live.

Owns the key of an exchange, the files of a cassette folder and when a recording is stale. What an exchange
proves belongs to :mod:`evalrun.provenance`. Headers, hosts and keys are never stored.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import httpx
from pydantic import Field

from evalrun.digest import read_json, tagged
from evalrun.errors import InputError, Problem, RecordingError
from evalrun.jsonl import Appender, packed, packed_path, pretty_json, read_lines, to_line, write_atomically
from evalrun.locking import FolderLock
from evalrun.records import Exchange, Record
from evalrun.redaction import Redaction, Unredactable, key_in, open_query, without
from evalrun.wires import (
    EVENT_STREAM,
    Asked,
    asked,
    bytes_of,
    charset_of,
    is_generation,
    may_be_generation,
    output_of,
    same_path,
    text_of,
    wire_of,
)

Mode = Literal["replay", "record", "live"]
Book = Literal["bot", "judge"]
_FENCE = re.compile(r"^(<<(?:context|end) )[0-9a-f]{16}(>>)$", re.MULTILINE)
BOOKS: tuple[Book, ...] = ("bot", "judge")
_MOST_OCCURRENCES = 8


class Address(NamedTuple):
    """Which turn of which draw of which case a model call belongs to."""

    case: str
    draw: int
    turn: int = 0


ADDRESS: ContextVar[Address | None] = ContextVar("address", default=None)


@contextmanager
def addressed(address: Address | None) -> Iterator[None]:
    """Model calls made inside belong to ``address``."""
    token = ADDRESS.set(address)
    try:
        yield
    finally:
        ADDRESS.reset(token)


def without_empty(value: Any) -> Any:
    """``value`` without nulls and empty lists in its mappings: absent and empty ask for the same.

    Its keys are in order, as they are in a line that was stored.
    """
    if isinstance(value, dict):
        return {
            key: without_empty(item) if isinstance(item, dict | list | tuple) else item
            for key in sorted(value)
            if (item := value[key]) not in (None, [], ())
        }
    if isinstance(value, list | tuple):
        return [without_empty(item) for item in value]
    return value


def blanked(value: Any, ignore: Sequence[re.Pattern[str]]) -> Any:
    """``value`` with every match of ``ignore`` blanked in its strings."""
    if not ignore:
        return value
    if isinstance(value, dict):
        return {key: blanked(item, ignore) for key, item in value.items()}
    if isinstance(value, list):
        return [blanked(item, ignore) for item in value]
    if isinstance(value, str):
        for pattern in ignore:
            value = pattern.sub("", value)
    return value


def exchange_key(
    method: str, path: str, body: Any, occurrence: int = 0, ignore: Sequence[re.Pattern[str]] = ()
) -> str:
    """Digest of method, path, body and occurrence; the host is no part of it."""
    return _key(method, path, without_empty(body), occurrence, ignore)


def _key(method: str, path: str, asked: Any, occurrence: int, ignore: Sequence[re.Pattern[str]]) -> str:
    return tagged("exchange", [method, path, blanked(asked, ignore), occurrence])


def has_own_key(line: Exchange, ignore: Sequence[re.Pattern[str]] = ()) -> bool:
    """Whether the key of a line is that of its own request, at an occurrence that a draw may have."""
    return any(
        line.key == exchange_key(line.method, line.path, line.request, occurrence, ignore)
        for occurrence in range(_MOST_OCCURRENCES)
    )


class Source(Record):
    """Who answered: what a recording says of the model behind its lines."""

    kind: str
    model: str = ""
    facts: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    recorded: tuple[str, str]


class Sources(Record):
    """``source.json`` of a cassette."""

    format: Literal["cassette.v1"] = "cassette.v1"
    sources: dict[str, Source] = Field(default_factory=dict)


def keep_seed(folder: Path, seed: str) -> None:
    """Write a ``source.json`` that says which seed the canaries of a live run were drawn from."""
    today = date.today().isoformat()
    source = Source(kind="canaries", facts={"seed": seed}, recorded=(today, today))
    write_atomically(folder / "source.json", pretty_json(Sources(sources={"canaries": source})))


@dataclass(frozen=True)
class Miss:
    """A request without a recording, and how it differs from the nearest one."""

    book: Book
    address: Address | None
    path: str
    stale: bool
    difference: str


class RecordingMiss(RecordingError):
    """Raised by the transport where a replay has no line; carries the miss."""

    def __init__(self, miss: Miss) -> None:
        kind = "a stale" if miss.stale else "no"
        super().__init__(
            f"{kind} recording of {miss.path}: {miss.difference}",
            f"{miss.book}.jsonl of the cassette has no such line; --record-missing records it",
        )
        self.miss = miss


class Unstorable(RecordingError):
    """Raised by the transport where a reply came that must not be written down as it is."""


def redacted(line: Exchange, rules: Redaction) -> Exchange:
    """A line whose reply holds nothing that must not stay in it.

    Raises:
        Unstorable: there is no such reply; says why.
    """
    try:
        reply, places = rules.of_reply(line.reply, binary=line.media_type == EVENT_STREAM)
    except Unredactable as error:
        raise Unstorable(
            f"the reply of {line.path} was not recorded: {error}", "see cassette.redact in the config"
        ) from None
    if not places:
        return line
    return line.model_copy(update={"reply": reply, "redacted": line.redacted + places})


def key_of(line: Exchange) -> str:
    """What kind of key the reply of a line holds, by its looks, also where it came in pieces; else empty."""
    said = output_of(line.path, line.reply).text if is_generation(line.path) else ""
    return key_in(line.reply) or key_in(said)


@dataclass
class Spent:
    """What really went to a model: calls, and the tokens that its replies counted.

    ``uncounted``: replies that did not say how many they took.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, prompt_tokens: int | None, completion_tokens: int | None) -> None:
        """Count the tokens of one reply. A prompt that was still in the server's memory may have none."""
        self.prompt_tokens += prompt_tokens or 0
        self.completion_tokens += completion_tokens or 0
        self.uncounted += completion_tokens is None


@dataclass
class _Lines:
    by_address: dict[tuple[Address, str], Exchange] = field(default_factory=dict)
    by_key: dict[str, Exchange] = field(default_factory=dict)
    at: dict[Address, list[Exchange]] = field(default_factory=dict)

    def add(self, line: Exchange) -> None:
        address = address_of(line)
        if address is not None:
            self.by_address[address, line.key] = line
            self.at.setdefault(address, []).append(line)
        self.by_key[line.key] = line

    def all(self) -> list[Exchange]:
        """Every line once; one without an address under its key alone."""
        return [
            *self.by_address.values(),
            *(line for line in self.by_key.values() if address_of(line) is None),
        ]


def address_of(line: Exchange) -> Address | None:
    """The address of a line; None for a call that is no generation."""
    if line.case is None or line.draw is None or line.turn is None:
        return None
    return Address(line.case, line.draw, line.turn)


def named(book: Book, line: Exchange) -> str:
    """How people are told of a line: whose it is, of which draw, or of which path."""
    return f"{book}, {line.path if line.case is None else f'{line.case}, draw {(line.draw or 0) + 1}'}"


def belongs_to_a_draw(line: Exchange) -> bool:
    """Whether a line is of a call that makes an answer: a model's, or the bot's own."""
    return address_of(line) is not None or is_generation(line.path)


def line_order(line: Exchange) -> tuple[Any, ...]:
    """Calls that are no generations first, then by case, draw, turn and key."""
    return (line.case is not None, line.case or "", line.draw or 0, line.turn or 0, line.key)


class Cassette:
    """A cassette folder in one of its modes. ``path`` None: live, nothing is stored.

    In ``record`` mode what has a line is replayed and what has none is asked for and stored; a stale line is
    refused, or with ``refresh`` asked for again and replaced. One process at a time records into a folder.

    Raises:
        UserError: another process records there, or a file there is none of a cassette.
        RecordingError: there is no folder to replay.
    """

    def __init__(
        self,
        path: Path | None,
        mode: Mode,
        *,
        ignore: Sequence[re.Pattern[str]] = (),
        redaction: Redaction | None = None,
        compress: bool = False,
        refresh: bool = False,
        about: Mapping[Any, Mapping[str, str]] | None = None,
    ) -> None:
        if path is None and mode != "live":
            raise RecordingError("no cassette is configured", "set cassette.path, or run with --live")
        self.path = path
        self.mode = mode
        self.ignore = tuple(ignore)
        self.redaction = redaction or Redaction()
        self.compress = compress
        self.refresh = refresh
        self.refused: list[str] = []
        self.keys: list[str] = []
        """The lines of a recording that is closed whose reply holds what looks like a key, and which kind."""
        self.misses: list[Miss] = []
        self.spent: dict[Book, Spent] = {book: Spent() for book in BOOKS}
        self.replayed = 0
        self.stood_in: set[Address] = set()
        self._about = about or {}
        self._lines: dict[Book, _Lines] = {book: _Lines() for book in BOOKS}
        self._appenders: dict[Book, Appender] = {}
        self._touched: dict[str, tuple[str, Asked]] = {}
        self._used: dict[Book, set[tuple[Address | None, str]]] = {book: set() for book in BOOKS}
        self.sources = Sources()
        self._lock = FolderLock(path) if path is not None and mode == "record" else None
        if path is not None and mode != "live":
            self._read(path)

    def _read(self, path: Path) -> None:
        if not path.is_dir():
            if self.mode == "replay":
                raise RecordingError(
                    f"{path}: no recording here", "record one with --record, or run with --live"
                )
            return
        source = path / "source.json"
        if source.is_file():
            try:
                self.sources = Sources.model_validate_json(source.read_bytes())
            except ValueError as error:
                raise InputError([Problem(str(source), f"not a cassette's source.json: {error}")]) from None
        for book in BOOKS:
            for line in read_lines(path / f"{book}.jsonl", Exchange):
                self._lines[book].add(redacted(line, self.redaction))

    @classmethod
    def holding(cls, lines: Iterable[Exchange], ignore: Sequence[re.Pattern[str]] = ()) -> Cassette:
        """A replay of exchanges already in hand; ``Exchange.source`` names their book."""
        made = cls(None, "live", ignore=ignore)
        made.mode = "replay"
        for line in lines:
            made._lines["judge" if line.source == "judge" else "bot"].add(line)
        return made

    @property
    def calls(self) -> int:
        """Calls that really went to a model; a replayed one is none."""
        return sum(spent.calls for spent in self.spent.values())

    @property
    def unknown(self) -> list[str]:
        """The paths of recorded calls that may have made a model write, of no draw and of no known wire."""
        lines = self._lines["bot"].by_key.values()
        nobodys = (line for line in lines if line.method == "POST" and address_of(line) is None)
        return sorted({line.path for line in nobodys if may_be_generation(line.path)})

    # ------------------------------------------------------------ looking up

    def find(self, book: Book, address: Address | None, key: str) -> Exchange | None:
        """The line of a request: a bot's generation by address and key, all else by key alone."""
        lines = self._lines[book]
        if book == "bot" and address is not None:
            return lines.by_address.get((address, key))
        return lines.by_key.get(key)

    def miss(self, book: Book, address: Address | None, path: str, body: Any) -> Miss:
        """Note a request without a line, and say what differs from the nearest one."""
        near = self._lines[book].at.get(address, []) if address else []
        near = [*self._waiting(book, address), *near]
        nearest = next((line.request for line in near if line.path == path), None)
        found = Miss(
            book,
            address,
            path,
            stale=nearest is not None,
            difference=self._difference(path, nearest, body) if nearest is not None else "never recorded",
        )
        self.misses.append(found)
        return found

    def _difference(self, path: str, old: Any, new: Any) -> str:
        return difference(path, blanked(old, self.ignore), blanked(without_empty(new), self.ignore))

    def may_ask(self, book: Book, address: Address | None) -> bool:
        """Whether a request without a line may go upstream: one of a draw with other lines is stale."""
        if self.mode != "record":
            return self.mode == "live"
        return self.refresh or book == "judge" or not self._waiting(book, address)

    def _waiting(self, book: Book, address: Address | None) -> list[Exchange]:
        """The lines of an address that nothing has asked for yet."""
        lines = self._lines[book].at.get(address, []) if address else []
        return [line for line in lines if (address, line.key) not in self._used[book]]

    # ------------------------------------------------------------ storing

    def store(self, book: Book, line: Exchange) -> None:
        """Append a line that just came from upstream (record mode only)."""
        if self.mode != "record" or self.path is None:
            return
        if book not in self._appenders:
            self.path.mkdir(parents=True, exist_ok=True)
            self._appenders[book] = Appender(self.path / f"{book}.jsonl")
        self._lines[book].add(line)
        self._appenders[book].write(line)
        self._touch(line)

    def use(self, book: Book, line: Exchange, address: Address | None) -> None:
        """Note that a request of ``address`` was answered by this line."""
        if self.mode == "live":
            return  # there are no others
        self._used[book].add((address, line.key))

    def _touch(self, line: Exchange) -> None:
        if wire := wire_of(line.path):
            self._touched[line.source] = wire.name, asked(line.path, line.request)
        elif address_of(line) is not None:
            self._touched[line.source] = "bot", Asked()

    def close(self, *, whole: bool = False) -> None:
        """Sort what is recorded and put it in place; write ``source.json``; let others record there.

        With ``refresh``, lines go that the draws asked for now did not use again. ``whole``: every planned
        draw was answered and judged; else a line that draws share may be that of one which was not.
        """
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()
        if self._lock is None or self.path is None:
            return
        with closing(self._lock):
            self._settle(self.path, whole)
        self._lock = None

    def _settle(self, path: Path, whole: bool) -> None:
        for book in BOOKS:  # both, always: a recording that was killed left its lines as they came
            if lines := sorted(self._kept(book, whole), key=line_order):
                put_book(path / f"{book}.jsonl", map(to_line, lines), compress=self.compress)
            self.keys += [f"{named(book, line)}: {kind}" for line in lines if (kind := key_of(line))]
        if self._lines["bot"].by_key or self._lines["judge"].by_key:
            self._write_sources(path)

    def _kept(self, book: Book, whole: bool) -> list[Exchange]:
        lines = self._lines[book].all()
        if book == "judge":
            smallest = {line.key: line for line in sorted(lines, key=line_order, reverse=True)}
            lines = list(smallest.values())
        if not self.refresh:
            return lines
        used = self._used[book]
        asked, keys = {address for address, _ in used}, {key for _, key in used}

        def dead(line: Exchange) -> bool:
            address = address_of(line)
            if address not in asked:
                return False
            if book == "judge" or address is None:  # several draws may share it
                return whole and line.key not in keys
            return (address, line.key) not in used

        return [line for line in lines if not dead(line)]

    def _write_sources(self, path: Path) -> None:
        today = date.today().isoformat()
        sources = {
            name: source.model_copy(update={"facts": dict(self._about.get(name, source.facts))})
            for name, source in self.sources.sources.items()
        }
        for name, (kind, call) in self._touched.items():
            old = sources.get(name)
            sources[name] = Source(
                kind=kind,
                model=call.model,
                facts=dict(self._about.get(name, old.facts if old else {})),
                parameters=call.parameters,
                recorded=(old.recorded[0] if old else today, today),
            )
        self.sources = Sources(sources=sources)
        write_atomically(path / "source.json", pretty_json(self.sources))

    def fact(self, source: str, name: str) -> str | None:
        """What is known of a source: told by the config when recording, else by ``source.json``."""
        told = self._about.get(source, {})
        known = self.sources.sources.get(source)
        return told.get(name) or (known.facts.get(name) if known else None)

    @property
    def recorded(self) -> tuple[str, str] | None:
        """First and last day of the recording."""
        days = [day for source in self.sources.sources.values() for day in source.recorded]
        return (min(days), max(days)) if days else None

    def seconds_of(self, book: Book) -> float | None:
        """Mean recorded seconds of a call of a draw; None without any."""
        found = [line.seconds for line in self._lines[book].by_key.values() if belongs_to_a_draw(line)]
        return sum(found) / len(found) if found else None


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


def put_book(path: Path, lines: Iterable[bytes], *, compress: bool) -> None:
    """Put the lines of a book in place, packed or plain, and take away what it was before."""
    data = b"".join(lines)
    if compress:
        write_atomically(packed_path(path), packed(data))
        path.unlink(missing_ok=True)
    else:
        write_atomically(path, data)
        packed_path(path).unlink(missing_ok=True)


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
        key = _key(request.method, path, body, occurrence, self.cassette.ignore)
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
        first = _key(method, path, body, 0, self.cassette.ignore)
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


def difference(path: str, old: Any, new: Any) -> str:
    """What differs between two request bodies of one path, in one line for people."""
    if wire_of(path) is None and (told := next(_changed_texts(old, new), "")):
        return told
    old_prompt, new_prompt = asked(path, old).prompt, asked(path, new).prompt
    if len(old_prompt) != len(new_prompt):
        return f"{len(new_prompt)} prompt messages instead of {len(old_prompt)}"
    for number, (before, after) in enumerate(zip(old_prompt, new_prompt, strict=True), start=1):
        if before != after:
            return f"prompt message {number}: {_first_line(before, after)}"
    changed = sorted(_changed(old, new))
    return "request fields: " + ", ".join(changed) if changed else "the same request, asked once more"


def _first_line(before: str, after: str) -> str:
    """The first line that differs; the digest in a fence differs with any text, and so tells nothing."""
    was, now = (_FENCE.sub(r"\1…\2", text).split("\n") for text in (before, after))
    for old, new in zip_longest(was, now, fillvalue=""):
        if old != new:
            return _around(old, new)
    return _around(before, after)


def _around(before: str, after: str, context: int = 24) -> str:
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    tail = 0
    while tail < min(len(before), len(after)) - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    cut = max(0, start - context)
    was, now = (text[cut : max(start, len(text) - tail) + context] for text in (before, after))
    return f"{_clip(was)!r} became {_clip(now)!r}"


def _clip(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _changed_texts(old: Any, new: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changed_texts(old.get(key), new.get(key), f"{prefix}{key}.")
    elif isinstance(old, str) and isinstance(new, str) and old != new:
        yield f"{prefix.rstrip('.') or 'the body'}: {_first_line(old, new)}"


def _changed(old: Any, new: Any, prefix: str = "") -> Iterable[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {*old, *new}:
            yield from _changed(old.get(key), new.get(key), f"{prefix}{key}.")
    elif old != new:
        yield prefix.rstrip(".")
