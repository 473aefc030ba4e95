"""Which retrieved chunks are relevant to a question, said by a person over the chunks of several runs.

Owns the pool, the passages that may stand for a chunk, and the dataset as it grows, one chunk at a time. A
passage survives another chunking where an id does not. How a chunk is shown is decided by the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from evalrun.dataset import load_dataset
from evalrun.digest import tagged
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import to_line, write_atomically
from evalrun.language.quotes import holds_quote
from evalrun.language.text import folded, sentences
from evalrun.records import Case, Chunk, Quote

PASSAGES = 9
_SHORTEST = 4
"""Words: a shorter passage may stand in chunks that say nothing of the question."""
_LONGEST = 300


@dataclass(frozen=True)
class Pooled:
    """One chunk that some run retrieved for a question; ``key`` names its text, whatever its id."""

    case: Case
    chunk: Chunk

    @property
    def key(self) -> str:
        """The first 16 hex digits of the digest of the text."""
        return tagged("chunk", self.chunk.text).removeprefix("sha256:")[:16]


def pool(folders: Sequence[RunFolder]) -> list[Pooled]:
    """The chunks that any of the runs retrieved, each text once a question.

    Questions are those of the first run that have an answer, in its order. Chunks of one stand in the order
    of their digests, so that their place tells nothing of any ranking.

    Raises:
        UserError: a run asked something else under the same id, or nothing was retrieved.
    """
    cases = {case.id: case for case in folders[0].cases() if case.expect == "answer"}
    found: dict[str, dict[str, Pooled]] = {name: {} for name in cases}
    for folder in folders:
        asked = {case.id: case.question for case in folder.cases()}
        for name, context in folder.contexts():
            if name not in cases:
                continue
            if asked[name] != cases[name].question:
                raise UserError(
                    f"{folder.path}: '{name}' is another question there", "pool runs of one dataset"
                )
            for chunk in context.chunks:
                one = Pooled(cases[name], chunk)
                found[name].setdefault(one.key, one)
    pooled = [chunks[key] for chunks in found.values() for key in sorted(chunks)]
    if not pooled:
        raise UserError(
            f"{folders[0].path}: retrieved nothing for a question that has an answer", "name another run"
        )
    return pooled


def passages(one: Pooled, others: Iterable[Chunk]) -> list[str]:
    """Up to nine passages of a chunk that stand in no other chunk of the pool, the likeliest first.

    Likeliest: most words of question and reference. The whole beginning where no sentence will do.
    """
    texts = [chunk.text for chunk in others if chunk.text != one.chunk.text]
    wanted = set(folded(f"{one.case.question} {one.case.reference or ''}").split())
    whole = [text.strip() for text in sentences(one.chunk.text)]
    long = [text for text in whole if len(text.split()) >= _SHORTEST and len(text) <= _LONGEST]
    own = [text for text in dict.fromkeys(long) if not any(holds_quote(other, text) for other in texts)]
    own.sort(key=lambda text: -len(wanted & set(folded(text).split())))
    text = " ".join(one.chunk.text.split())
    return own[:PASSAGES] or [shorten(text, _LONGEST, placeholder="") or text]


class RelevanceSheet:
    """A dataset whose ``relevant_ids`` grow as quotes. It is written whole after each chunk.

    ``metadata.pool`` of a case holds, by key of a chunk, what was said of it: that makes a second call go on
    where the first stopped, and shows how many chunks were looked at.
    """

    def __init__(self, path: Path, cases: Iterable[Case]) -> None:
        self.path = path
        self._cases = {case.id: case for case in cases}

    @classmethod
    def open(cls, path: Path, cases: Iterable[Case]) -> RelevanceSheet:
        """The sheet in ``path``, or a new one of ``cases``.

        Raises:
            UserError: the file holds other questions.
        """
        made = cls(path, cases)
        if path.exists():
            known = {case.id: case for case in load_dataset(path).cases}
            asked = {name: case.question for name, case in made._cases.items()}
            if asked != {name: case.question for name, case in known.items()}:
                raise UserError(
                    f"{path}: holds other questions than the run", "name another file with --output"
                )
            made._cases = known
        return made

    def said(self, one: Pooled) -> bool | None:
        """What was said of a chunk; None: nothing yet."""
        said: bool | None = self._judged(one.case.id).get(one.key)
        return said

    def covered(self, one: Pooled) -> bool:
        """Whether the chunk holds a passage that was chosen already: then it counts without being asked."""
        return any(holds_quote(one.chunk.text, quote.quote) for quote in self._quotes(one.case.id))

    def put(self, one: Pooled, quote: str | None) -> None:
        """A chunk is relevant because of ``quote``, or is not. Saying it again replaces what was said."""
        case = self._cases[one.case.id]
        kept = [known for known in self._quotes(case.id) if not holds_quote(one.chunk.text, known.quote)]
        quotes = (*kept, *([Quote(quote=quote)] if quote is not None else []))
        judged = self._judged(case.id) | {one.key: quote is not None}
        metadata = case.metadata | {"pool": judged}
        self._keep(case.model_copy(update={"relevant_ids": quotes, "metadata": metadata}))

    def take(self, one: Pooled) -> None:
        """A chunk that is covered counts as relevant; what is chosen stays."""
        case = self._cases[one.case.id]
        judged = self._judged(case.id) | {one.key: True}
        self._keep(case.model_copy(update={"metadata": case.metadata | {"pool": judged}}))

    def _keep(self, case: Case) -> None:
        self._cases[case.id] = case
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, b"".join(map(to_line, self._cases.values())))
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written: {error.strerror}", "name another file"
            ) from None

    def _judged(self, name: str) -> dict[str, bool]:
        found = self._cases[name].metadata.get("pool")
        return dict(found) if isinstance(found, dict) else {}

    def _quotes(self, name: str) -> list[Quote]:
        """What was chosen here; ids that the dataset had before are replaced with the first chunk."""
        return [item for item in self._cases[name].relevant_ids or () if isinstance(item, Quote)]

    @property
    def empty(self) -> list[str]:
        """Questions of whose pool nothing is relevant so far, of those that were begun."""
        return [name for name in self._cases if self._judged(name) and not self._quotes(name)]
