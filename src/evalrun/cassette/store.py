"""A cassette folder: its two books of lines, who answered them, and what may be asked for anew.

Owns the files of the folder and when a recording is stale. Headers, hosts and keys are never stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from evalrun.cassette.differing import difference
from evalrun.cassette.keys import (
    BOOKS,
    Address,
    Book,
    Mode,
    address_of,
    belongs_to_a_draw,
    blanked,
    line_order,
    named,
    without_empty,
)
from evalrun.errors import InputError, Problem, RecordingError
from evalrun.jsonl import (
    Appender,
    first_fault,
    packed,
    packed_path,
    pretty_json,
    raw_lines,
    to_line,
    write_atomically,
)
from evalrun.locking import FolderLock
from evalrun.records import Exchange, Record
from evalrun.redaction import Redaction, Unredactable, key_in
from evalrun.validation import at_most
from evalrun.wires import EVENT_STREAM, Asked, asked, is_generation, may_be_generation, output_of, wire_of


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

    @classmethod
    def of(cls, folder: Path) -> Sources:
        """What ``source.json`` of a cassette says; nothing where there is none.

        Raises:
            InputError: it is no such file.
        """
        file = folder / "source.json"
        try:
            return cls.model_validate_json(file.read_bytes()) if file.is_file() else cls()
        except ValidationError as error:
            message = f"not a cassette's source.json: {first_fault(error)}"
            raise InputError([Problem(str(file), message, "restore it, or record again")]) from None


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


def read_book(file: Path) -> Iterator[Exchange]:
    """The lines of a book of a cassette, or of the packed one beside it; a torn last line is left out.

    Raises:
        InputError: every line that is none of a recording, after those before it; a folder or a pipe there.
    """
    for place in (file, packed_path(file)):
        if place.exists() and not place.is_file():
            raise InputError(
                [Problem(str(place), "is no file", "move it away, or name another cassette.path")]
            )
    read, problems = Exchange.__pydantic_validator__.validate_json, list[Problem]()
    for number, raw in raw_lines(file):
        try:
            line = read(raw)
        except ValidationError as error:
            hint = "take the line out, and record it again: --record-missing"
            message = f"not a line of a recording: {first_fault(error)}"
            problems.append(Problem(f"{file}:{number}", message, hint))
        else:
            if not problems:
                yield line
    if problems:
        raise InputError(at_most(problems))


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
        self.sources = Sources.of(path)
        for book in BOOKS:
            file = path / f"{book}.jsonl"
            if self.mode == "record" and file.is_symlink():  # told before anything is asked for it
                raise InputError([Problem(str(file), "is a symbolic link", "put the file itself there")])
            for line in read_book(file):
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


def put_book(path: Path, lines: Iterable[bytes], *, compress: bool) -> None:
    """Put the lines of a book in place, packed or plain, and take away what it was before."""
    data = b"".join(lines)
    if compress:
        write_atomically(packed_path(path), packed(data))
        path.unlink(missing_ok=True)
    else:
        write_atomically(path, data)
        packed_path(path).unlink(missing_ok=True)
