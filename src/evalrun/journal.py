"""The run folder: append-only journals while a run goes on, sorted and sealed at its end.

Owns the files of a run and how a killed run is read back. What stands in the lines is decided by
:mod:`evalrun.records`; what is made of them by reports.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from evalrun.errors import UserError
from evalrun.jsonl import (
    Appender,
    first_fault,
    journal_line,
    packed_path,
    pretty_json,
    raw_lines,
    read_lines,
    sorted_lines,
    torn_bytes,
    write_atomically,
    write_lines,
)
from evalrun.locking import hold
from evalrun.records import (
    Begun,
    Case,
    CaseContext,
    Context,
    Draw,
    Exchange,
    Judgement,
    Meta,
    Record,
    RunHeader,
    Score,
)
from evalrun.redaction import without

R = TypeVar("R", bound=Record)
HEADER = "run.json"
META = "meta.json"
RESUME = "resume.json"


def _place(line: Any) -> tuple[Any, ...]:
    """Where a line stands: by case, then by draw; what is of the case as a whole first."""
    index = line.get("index")
    return (line["case"], (index is not None, index or 0))


KINDS: dict[str, tuple[type[Record], Callable[[Any], tuple[Any, ...]]]] = {
    "cases": (Case, lambda line: ()),
    "contexts": (CaseContext, lambda line: (line["case"], line["context"]["digest"])),
    "draws": (Draw, _place),
    "judgements": (Judgement, _place),
    "scores": (Score, lambda line: (*_place(line), line["metric"])),
    "exchanges": (
        Exchange,
        lambda line: (
            (line["case"] is not None, line["case"] or ""),
            line["draw"] or 0,
            line["turn"] or 0,
            line["source"],
            line["key"],
        ),
    ),
}
"""Journal name → (record of a line, sort key of the sealed file from its JSON); cases keep their order."""


class _Repeats:
    """Whether any exchange may stand in its journal twice, from what orders them."""

    def __init__(self) -> None:
        self.any = False
        self._seen: set[int] = set()

    def note(self, place: tuple[Any, ...]) -> None:
        """Take in one exchange. Its hash is kept alone: where two agree by chance, lines are compared."""
        (of_case, _), _, _, source, key = place
        mark = hash(place if of_case and source != "judge" else (source, key))
        self.any = self.any or mark in self._seen
        self._seen.add(mark)


def _exchanges_once(path: Path, order: Callable[[Any], tuple[Any, ...]]) -> Iterator[bytes]:
    """The sorted exchanges, each once; they are read again for it only where there may be two of one."""
    repeats = _Repeats()
    lines = sorted_lines(path, order, repeats.note)
    first = next(lines, None)  # by now all of them are noted
    if first is not None:
        every = chain((first,), lines)
        yield from _once(every) if repeats.any else every


def _once(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Every exchange once: draws share a verdict, and a bot started again makes its first calls again.

    Of two of one draw the later one counts, which the draw was made of; of a shared one the first.
    """
    shared: set[bytes] = set()
    last: tuple[Any, bytes] | None = None
    for line in lines:
        value = from_json(line)
        if value["source"] == "judge" or value["case"] is None:
            key = sha256(f"{value['source']}\n{value['key']}".encode()).digest()
            if key in shared:
                continue
            shared.add(key)
            place = None
        else:
            place = (value["source"], value["case"], value["draw"], value["turn"], value["key"])
        if last is not None and (place is None or place != last[0]):
            yield last[1]
        last = (place, line)
    if last is not None:
        yield last[1]


class _Cases(dict[str, Case]):
    """The cases of a run, one of which may be gone."""

    def __init__(self, path: Path, cases: Mapping[str, Case]) -> None:
        super().__init__(cases)
        self._path = path

    def __missing__(self, name: str) -> Case:
        message = f"{self._path}: holds no case '{name}', which an answer is to"
        raise UserError(message, f"see what else is wrong: evalrun verify {self._path.parent}")


class RunFolder:
    """A run on disk. Iterators read the journals a line at a time; nothing is kept in memory.

    ``secrets``: words that are hidden in whatever is written down.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.secrets: tuple[str, ...] = ()
        self._open: dict[str, Appender] = {}
        self._held: IO[bytes] | None = None

    def file(self, kind: str) -> Path:
        """The path of a journal."""
        return self.path / f"{kind}.jsonl"

    def append(self, kind: str, *records: Record) -> None:
        """Append records to a journal, in one step."""
        if kind not in self._open:
            if not self._open:  # a folder that is taken away later is not made again
                self.path.mkdir(parents=True, exist_ok=True)
            self._open[kind] = Appender(self.file(kind), self.secrets)
        self._open[kind].write(*records)

    def rewrite(self, kind: str, records: Iterable[Record]) -> None:
        """Put a journal in place whole, in one step; what is appended from here on stands behind it."""
        if kind in self._open:
            self._open.pop(kind).close()
        write_lines(self.file(kind), map(journal_line, records))

    def begin(self, begun: Begun) -> None:
        """Write ``resume.json``: from here on the run can be gone on with."""
        write_atomically(self.path / RESUME, pretty_json(begun))
        self.hold()

    def hold(self) -> None:
        """Keep every other process from going on with this run while this one lives, however it ends.

        Raises:
            UserError: another one does.
        """
        held = (self.path / RESUME).open("rb")
        if not hold(held):
            held.close()
            raise UserError(f"{self.path}: this run is still going on", "wait for its end")
        self.let_go()
        self._held = held

    def take(self, mark: Path) -> bool:
        """Make the file ``mark`` and keep other processes from it; False where something stands in it.

        Raises:
            UserError: another process keeps it.
        """
        held = mark.open("ab")
        if not hold(held):
            held.close()
            raise UserError(f"{self.path}: another run writes there", "name another folder")
        self._held = held
        return not mark.stat().st_size

    def finish(self) -> None:
        """Nothing is left to go on with."""
        (self.path / RESUME).unlink(missing_ok=True)
        self.let_go()

    def let_go(self) -> None:
        """Another process may go on with this run."""
        if self._held is not None:
            self._held.close()
            self._held = None

    @property
    def gone(self) -> tuple[str, ...]:
        """The journals that the run wrote and that are not there any more."""
        written = (f"{kind}.jsonl" for kind in KINDS if f"{kind}.jsonl" in self.header.journals)
        return tuple(
            name
            for name in written
            if not ((self.path / name).is_file() or packed_path(self.path / name).is_file())
        )

    def cases_of_draws(self) -> Mapping[str, Case]:
        """The cases by their ids; one that is not there raises a UserError, as where its line was lost."""
        return _Cases(self.file("cases"), {case.id: case for case in self.cases()})

    def need_all(self) -> None:
        """Refuse to show a run of which a part is missing.

        Raises:
            UserError: names the journals that are gone.
        """
        if gone := self.gone:
            raise UserError(
                f"{self.path}: {', '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone",
                "put it back from a copy, or run again",
            )

    @property
    def torn(self) -> tuple[str, ...]:
        """The journals whose last line is half: the run was killed while it was written."""
        return tuple(f"{kind}.jsonl" for kind in KINDS if torn_bytes(self.file(kind)))

    @property
    def unfinished(self) -> bool:
        """Whether the run can be gone on with."""
        return (self.path / RESUME).is_file()

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / HEADER).is_file() and not self.unfinished

    @property
    def begun(self) -> Begun:
        """``resume.json``."""
        return self._document(RESUME, Begun)

    def close(self) -> None:
        """Sync and close every journal."""
        for appender in self._open.values():
            appender.close()
        self._open.clear()

    def seal(self) -> dict[str, str]:
        """Rewrite every journal in its order; returns file name → sha256.

        Raises:
            OSError: one of them is not there any more.
        """
        for appender in self._open.values():
            appender.check()
        self.close()
        digests: dict[str, str] = {}
        for kind, (_, order) in KINDS.items():
            path = self.file(kind)
            digests[path.name] = write_lines(path, self._in_order(kind, path, order))
        return digests

    def _in_order(self, kind: str, path: Path, order: Callable[[Any], tuple[Any, ...]]) -> Iterator[bytes]:
        if kind == "cases":
            return (line for _, line in raw_lines(path))
        return _exchanges_once(path, order) if kind == "exchanges" else sorted_lines(path, order)

    def write_header(self, header: RunHeader, meta: Meta) -> None:
        """Write ``run.json`` and ``meta.json``."""
        text = without(pretty_json(header).decode(), self.secrets)
        write_atomically(self.path / HEADER, text.encode())
        write_atomically(self.path / META, pretty_json(meta))

    @property
    def header(self) -> RunHeader:
        """``run.json``.

        Raises:
            UserError: there is none, or it is of another format.
        """
        return self._document(HEADER, RunHeader)

    @property
    def meta(self) -> Meta:
        """``meta.json``."""
        return self._document(META, Meta)

    def _document(self, name: str, record: type[R]) -> R:
        path = self.path / name
        if not path.is_file():
            raise UserError(
                f"{self.path}: " + ("this run is not finished" if self.unfinished else f"no {name} here"),
                f"go on with it: {self.begun.command}"
                if self.unfinished
                else "name the folder of a finished run, as in runs/1130-quality",
            )
        try:
            return record.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise UserError(
                f"{path}: {first_fault(error)}",
                "written by another version? run again",
            ) from None

    def cases(self) -> Iterator[Case]:
        """The cases in dataset order."""
        return read_lines(self.file("cases"), Case)

    def contexts(self, cases: Container[str] | None = None) -> Iterator[tuple[str, Context]]:
        """(case id, context); of these ``cases`` alone."""
        return ((line.case, line.context) for line in read_lines(self.file("contexts"), CaseContext, cases))

    def draws(self, cases: Container[str] | None = None, holding: bytes = b"") -> Iterator[Draw]:
        """The draws, by case and index once sealed; of these ``cases`` and lines ``holding`` that alone."""
        return read_lines(self.file("draws"), Draw, cases, holding)

    def judgements(self, cases: Container[str] | None = None, holding: bytes = b"") -> Iterator[Judgement]:
        """The judge's readings, ordered and chosen as the draws are."""
        return read_lines(self.file("judgements"), Judgement, cases, holding)

    def scores(self, cases: Container[str] | None = None, holding: bytes = b"") -> Iterator[Score]:
        """The scores, by case, index, metric once sealed; of ``cases`` and lines ``holding`` that alone."""
        return read_lines(self.file("scores"), Score, cases, holding)

    def exchanges(self) -> Iterator[Exchange]:
        """The observed model calls, by case, draw, turn and key once sealed."""
        return read_lines(self.file("exchanges"), Exchange)
