"""What a cassette folder holds: counted, checked line by line, and freed of what no draw needs any more.

Owns reading a folder as it lies on disk. How a line comes to be and is found again belongs to ``cassette``;
which lines are needed is found out by replaying.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalrun.cassette import (
    BOOKS,
    Address,
    Book,
    Sources,
    Unstorable,
    address_of,
    belongs_to_a_draw,
    has_own_key,
    key_of,
    line_order,
    named,
    put_book,
    read_book,
    redacted,
)
from evalrun.errors import RecordingError, UserError
from evalrun.folders import new_run_folder
from evalrun.journal import RunFolder
from evalrun.jsonl import packed_path, raw_lines, torn_bytes
from evalrun.planning import make_plan
from evalrun.records import Exchange, Record
from evalrun.redaction import Redaction
from evalrun.reports.progress import Progress
from evalrun.runner import execute
from evalrun.settings import RunConfig
from evalrun.wires import asked, is_generation, output_of

Need = tuple[Book, Address | None, str]
_LOST = ("recording:", "service:", "budget:")


@dataclass(frozen=True)
class Recording:
    """The cassette of a config, as it lies on disk."""

    path: Path
    ignore: tuple[re.Pattern[str], ...]
    redaction: Redaction

    @classmethod
    def of(cls, config: RunConfig) -> Recording:
        """The one that a config names.

        Raises:
            UserError: it names none.
            RecordingError: there is nothing yet.
        """
        if config.cassette is None:
            raise UserError(f"{config.path}: no cassette is configured", "set cassette.path")
        if not config.cassette.path.is_dir():
            raise RecordingError(f"{config.cassette.path}: no recording here", "record one with --record")
        wanted = config.cassette
        return cls(
            wanted.path,
            tuple(re.compile(text) for text in wanted.ignore),
            Redaction(tuple(re.compile(text) for text in wanted.redact), config.secrets),
        )

    def file(self, book: Book) -> Path:
        """Where the lines of a book stand, or stand packed beside it."""
        return self.path / f"{book}.jsonl"

    def size(self, book: Book) -> int:
        """Bytes on disk."""
        files = (self.file(book), packed_path(self.file(book)))
        return sum(file.stat().st_size for file in files if file.is_file())

    def lines(self, book: Book) -> list[Exchange]:
        """The lines of a book, in the order of the file."""
        return list(read_book(self.file(book)))

    def sources(self) -> Sources:
        """What ``source.json`` says; nothing where there is none.

        Raises:
            InputError: it is no such file.
        """
        return Sources.of(self.path)


# ---------------------------------------------------------------- counting


class BookStats(Record):
    """What the lines of one book come to. Seconds are the model's; tokens None where no line counts them."""

    book: Book
    lines: int
    bytes: int
    cases: int
    draws: int
    models: tuple[str, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float
    recorded: tuple[str, str] | None


class Stats(Record):
    """All books of a cassette."""

    books: tuple[BookStats, ...]


def stats_of(recording: Recording) -> Stats:
    """What each book comes to."""
    return Stats(books=tuple(_book_stats(recording, book) for book in BOOKS))


def _book_stats(recording: Recording, book: Book) -> BookStats:
    lines = recording.lines(book)
    calls = [line for line in lines if belongs_to_a_draw(line)]
    said = [output_of(line.path, line.reply) for line in calls]
    source = recording.sources().sources.get(book)
    return BookStats(
        book=book,
        lines=len(lines),
        bytes=recording.size(book),
        cases=len({line.case for line in calls}),
        draws=len({(line.case, line.draw) for line in calls}),
        models=tuple(sorted({asked(line.path, line.request).model for line in calls} - {""})),
        prompt_tokens=_total(one.prompt_tokens for one in said),
        completion_tokens=_total(one.completion_tokens for one in said),
        seconds=round(sum(line.seconds for line in calls), 3),
        recorded=source.recorded if source else None,
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# ---------------------------------------------------------------- checking


def faults_of(recording: Recording) -> list[str]:
    """What is wrong with a cassette, each as ``file:line: what``."""
    sources = recording.sources().sources
    return [
        f"{recording.file(book).name}{where}: {what}"
        for book in BOOKS
        for where, what in _faults(recording, book, set(sources))
    ]


def _faults(recording: Recording, book: Book, sources: set[str]) -> Iterator[tuple[str, str]]:
    lines = recording.lines(book)
    if torn := torn_bytes(recording.file(book)):
        yield "", f"the last line is torn ({torn} bytes)"
    seen: set[tuple[Address | None, str]] = set()
    before: Exchange | None = None
    for number, line in enumerate(lines, start=1):
        address = None if book == "judge" else address_of(line)
        found = [*_line_faults(line, recording.ignore, sources), *_left_in(line, recording.redaction)]
        if (address, line.key) in seen:
            found.append("this request stands there twice")
        if before is not None and line_order(line) < line_order(before):
            found.append("out of order")
        yield from ((f":{number}", what) for what in found)
        seen.add((address, line.key))
        before = line


def _left_in(line: Exchange, rules: Redaction) -> Iterator[str]:
    try:
        left = redacted(line, rules).redacted - line.redacted
    except Unstorable as error:
        yield error.message
        return
    if left:
        yield "its reply holds what must not be written down: 'run --record' takes it out"


def redactions_of(recording: Recording) -> tuple[int, int, int]:
    """(lines whose reply was redacted, places in them, lines whose request holds what a pattern matches)."""
    lines = [line for book in BOOKS for line in recording.lines(book)]
    hit = sum(recording.redaction.matches(line.request) for line in lines)
    return sum(line.redacted > 0 for line in lines), sum(line.redacted for line in lines), hit


def keys_of(recording: Recording) -> list[str]:
    """The lines whose reply holds what looks like a key, each as ``file:line: what``."""
    return [
        f"{recording.file(book).name}:{number}: {named(book, line)}: {kind}"
        for book in BOOKS
        for number, line in enumerate(recording.lines(book), start=1)
        if (kind := key_of(line))
    ]


def _line_faults(line: Exchange, ignore: Sequence[re.Pattern[str]], sources: set[str]) -> Iterator[str]:
    if not has_own_key(line, ignore):
        yield "the key is not that of the request: one of them was changed"
    if not 200 <= line.status < 300:
        yield f"a reply with status {line.status} is no recording"
    if is_generation(line.path):
        if output_of(line.path, line.reply).finish != line.finish:
            yield "the finish reason is not that of the reply"
        if address_of(line) is None:
            yield "a model call without case, draw and turn"
    if belongs_to_a_draw(line) and line.source not in sources:
        yield f"its source '{line.source}' is not in source.json"


# ---------------------------------------------------------------- pruning


async def needed_by(configs: Sequence[RunConfig]) -> set[Need]:
    """The lines that replays of all these configs ask for.

    Raises:
        RecordingError: a replay misses something, so that what it needs is not known.
    """
    found: set[Need] = set()
    for config in configs:
        with tempfile.TemporaryDirectory(prefix="evalrun-") as folder:
            run = new_run_folder(Path(folder) / "run", config.name)
            await execute(make_plan(config, "replay"), run, Progress(io.StringIO()))
            _check_whole(config, run)
            found |= {_need("judge" if line.source == "judge" else "bot", line) for line in run.exchanges()}
    return found


def _check_whole(config: RunConfig, run: RunFolder) -> None:
    errors = [*(draw.error for draw in run.draws()), *(one.error for one in run.judgements())]
    lost = [error for error in errors if error is not None and error.startswith(_LOST)]
    if lost or not run.header.complete:
        reason = lost[0] if lost else "the run stopped before its end"
        raise RecordingError(
            f"{config.path}: its replay is not whole, so what it needs is not known: {reason}",
            "record what is missing first: --record-missing",
        )


def _need(book: Book, line: Exchange) -> Need:
    """What finds a line: a verdict that draws share has the address of one of them, and counts for all."""
    return book, None if book == "judge" else address_of(line), line.key


@dataclass(frozen=True)
class Pruned:
    """The lines of one book that nothing needs, and the others as they stand in the file."""

    book: Book
    dead: tuple[Exchange, ...]
    kept: tuple[bytes, ...]


def prune(recording: Recording, needed: set[Need]) -> list[Pruned]:
    """What can go from each book. A call that is no generation stays: a bot may have had it in a cache."""
    return [_pruned(recording, book, needed) for book in BOOKS]


def _pruned(recording: Recording, book: Book, needed: set[Need]) -> Pruned:
    dead, kept = [], []
    for _, raw in raw_lines(recording.file(book)):
        line = Exchange.model_validate_json(raw)
        is_dead = address_of(line) is not None and _need(book, line) not in needed
        dead.append(line) if is_dead else kept.append(raw)
    return Pruned(book, tuple(dead), tuple(kept))


def write_pruned(recording: Recording, pruned: Iterable[Pruned]) -> None:
    """Put the books without their dead lines in place; one without any is not touched."""
    for one in pruned:
        if one.dead:
            file = recording.file(one.book)
            put_book(file, one.kept, compress=packed_path(file).is_file())
