"""Dataset files → cases.

Owns what a line of a dataset may hold, in JSONL and in CSV, and tells every fault of a file at once. Leaves
released versions to ``pins`` and what is done with a case to others.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalrun.digest import sha256_bytes
from evalrun.errors import InputError, Problem
from evalrun.pins import check_pin, pin
from evalrun.records import Case
from evalrun.registry import nearest
from evalrun.textfile import Row, csv_rows, decode, is_table, json_lines, plain, read_bytes
from evalrun.validation import Line, at_most, explain

UNCATEGORIZED = "uncategorized"
GROUPS = ("all", "answerable", "unanswerable", "attacks", "twins")
_CATEGORY = re.compile(r"\w[\w-]{0,63}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
CSV_LISTS = ("relevant_ids", "must_contain", "tags")
CSV_FIELDS = ("id", "question", "category", "expect", "reference", "cluster", *CSV_LISTS)


@dataclass(frozen=True)
class Dataset:
    """The cases of one file in its order. ``digest``: sha256 of its unpacked bytes; ``lines``: id → line."""

    name: str
    cases: tuple[Case, ...]
    digest: str
    path: Path
    lines: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def categories(self) -> dict[str, int]:
        """Category → number of cases, in order of appearance."""
        return dict(Counter(case.category for case in self.cases))

    @property
    def groups(self) -> set[str]:
        """Every group that has a case: ``all``, the populations, the categories."""
        return {group for case in self.cases for group in case.groups}


def load_dataset(path: Path, columns: Mapping[str, str] | None = None) -> Dataset:
    """The dataset in ``path``: UTF-8 JSONL; or a table, by its suffix, with ``columns`` as field → heading.
    Either may be packed, with ``.gz`` behind its name.

    A case without a category is ``uncategorized``. In CSV, lists are divided by ``;`` and an empty cell says
    nothing.

    Raises:
        InputError: every bad line with ``file:line``, no case at all, or a released version that was changed.
    """
    data = read_bytes(path)
    digest = sha256_bytes(data)
    notes = check_pin(plain(path), digest)
    reader = _Reader(path)
    reader.read(decode(path, data), columns)
    if reader.problems:
        raise InputError(at_most(reader.problems))
    if not reader.cases:
        raise InputError([Problem(str(path), "holds no cases", "one case a line; see the example datasets")])
    return Dataset(plain(path).stem, tuple(reader.cases), digest, path, reader.lines, notes)


def cases_of(path: Path, rows: Iterable[Row]) -> tuple[Case, ...]:
    """The cases in ``rows``, which were read from ``path`` in some other way; their source is not looked at.

    Raises:
        InputError: every bad row with ``file:line``, or no case at all.
    """
    reader = _Reader(path)
    for row in rows:
        reader._take(Row(row.line, row.value, json.dumps(row.value)))
    if reader.problems:
        raise InputError(at_most(reader.problems))
    if not reader.cases:
        raise InputError([Problem(str(path), "holds no questions")])
    return tuple(reader.cases)


def freeze(path: Path, columns: Mapping[str, str] | None = None) -> bool:
    """Pin a released version in ``SHA256SUMS`` beside it; False where it already is.

    Raises:
        UserError: it cannot be loaded, is no released version, or is pinned to another digest.
    """
    return pin(plain(path), load_dataset(path, columns).digest)


class _Reader:
    """Collects the cases and the problems of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cases: list[Case] = []
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._ids: dict[str, tuple[str, int]] = {}
        self._given: dict[frozenset[str], set[str]] = {}

    def read(self, text: str, columns: Mapping[str, str] | None) -> None:
        if is_table(self.path):
            rows = _csv_rows(self.path, text, columns)
        elif columns:
            rows = iter([Problem(str(self.path), "'columns' are for CSV files", "leave them out")])
        else:
            rows = json_lines(self.path, text)
        for row in rows:
            if isinstance(row, Problem):
                self.problems.append(row)
            else:
                self._take(row)

    def _take(self, row: Row) -> None:
        where = f"{self.path}:{row.line}"
        case, found = read_case(row, where)
        found += self._seen_before(where, row)
        self.problems += found
        if case is not None and not found:
            self.cases.append(_lean(case, self._given))
            self.lines[case.id] = row.line

    def _seen_before(self, where: str, row: Row) -> list[Problem]:
        """Ids must stay apart as names of files and tests, where case and outer spaces get lost."""
        name = row.value.get("id")
        if not isinstance(name, str):
            return []
        first, line = self._ids.setdefault(folded_id(name), (name, row.line))
        if line == row.line:
            return []
        if first == name:
            return [
                Problem(
                    where, f"id '{name}' stands twice, on lines {line} and {row.line}", "give each its own"
                )
            ]
        message = f"ids '{first}' (line {line}) and '{name}' (line {row.line}) differ only in case or spaces"
        return [Problem(where, message, "give each its own")]


class _Fields:
    """Holds values as any object does: under names that are kept once for all of them."""


def _lean(case: Case, given: dict[frozenset[str], set[str]]) -> Case:
    """``case`` in a third of the room: a large dataset is held whole while it is asked.

    pydantic keeps beside the values of each which of them were given, and all names once more.
    """
    fields = _Fields()
    for name, value in case.__dict__.items():
        setattr(fields, name, value)
    object.__setattr__(case, "__dict__", fields.__dict__)
    same = given.setdefault(frozenset(case.model_fields_set), case.model_fields_set)
    object.__setattr__(case, "__pydantic_fields_set__", same)
    return case


def read_case(row: Row, where: str) -> tuple[Case | None, list[Problem]]:
    """The case in a row and what is wrong with it; no case where its shape is wrong."""
    found = [Problem(where, message, hint) for message, hint in _faults(row.value)]
    source = row.source
    if "category" not in row.value:
        source = json.dumps({**row.value, "category": UNCATEGORIZED})
    try:
        return Case.model_validate_json(source, strict=True), found
    except ValidationError as fault:
        return None, _together(found, explain(fault, Case, Line(where)))


def _together(found: list[Problem], schema: list[Problem]) -> list[Problem]:
    """Both; but pydantic tells of relevant_ids the faults of each of its shapes, we of the one meant."""
    others = [problem for problem in schema if "'relevant_ids" not in problem.message]
    return [*found, *others] or schema


def folded_id(name: str) -> str:
    """What two ids must not share: they must stay apart as names of files and tests."""
    return unicodedata.normalize("NFC", name).casefold().strip()


# ---------------------------------------------------------------- what the shape of a case does not say


def _faults(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(message, hint) of each rule on a case that its types do not say."""
    name = value.get("id")
    if isinstance(name, str) and (not name.strip() or _CONTROL.search(name)):
        yield "'id' is blank or holds a control character", "an id is a word like talks-02"
    for field in ("question", "reference", "cluster"):
        text = value.get(field)
        if isinstance(text, str) and not text.strip():
            yield (
                f"'{field}' is blank",
                "write it, or leave the key out" if field != "question" else "write it",
            )
    category = value.get("category")
    if isinstance(category, str) and not _CATEGORY.match(category):
        yield "'category' is not a word", "letters, digits, '_' and '-', at most 64"
    if category in GROUPS:
        yield f"'category' is '{category}', the name of a group of its own", "call it something else"
    must_contain = value.get("must_contain")
    if isinstance(must_contain, list) and "" in must_contain:
        yield "'must_contain' holds an empty text, which every answer contains", "take it out"
    yield from _relevance_faults(value.get("relevant_ids"))
    yield from _pattern_faults(value.get("metadata"))


def _pattern_faults(metadata: Any) -> Iterator[tuple[str, str]]:
    """What the scorer ``regex`` could not read."""
    if not isinstance(metadata, dict) or metadata.get("regex") is None:
        return
    try:
        re.compile(metadata["regex"])
    except (re.error, RecursionError, OverflowError) as fault:
        yield f"'metadata.regex' is not a regular expression: {fault}", "a backslash is written twice in JSON"
    except TypeError:
        yield "'metadata.regex' should be text", "it is what the scorer regex looks for in the answer"


def _relevance_faults(relevant: Any) -> Iterator[tuple[str, str]]:
    if isinstance(relevant, dict):
        for name, grade in relevant.items():
            if isinstance(grade, bool) or not isinstance(grade, int | float) or grade < 0:
                yield f"'relevant_ids.{name}' is not a grade", "a grade is a number from 0"
    elif isinstance(relevant, list):
        yield from _listed_faults(relevant)
    elif relevant is not None:
        hint = 'write ["talks"], {"talks": 2} or [{"quote": "…"}]'
        yield "'relevant_ids' is neither a list nor a mapping of grades", hint


def _listed_faults(relevant: list[Any]) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(relevant):
        if isinstance(item, dict):
            quote = item.get("quote")
            if len(item) != 1 or not isinstance(quote, str) or not quote.strip():
                yield f"'relevant_ids.{index}' is not a quote", 'write {"quote": "a passage of the document"}'
        elif not isinstance(item, str):
            shown = json.dumps(item)[:40]
            yield f"'relevant_ids.{index}' is {shown}; ids must be text", f'write "{shown}"'
    texts = [item for item in relevant if isinstance(item, str)]
    if len({isinstance(item, dict) for item in relevant}) > 1:
        yield "'relevant_ids' holds ids and quotes", "use one of the two"
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        yield f"'relevant_ids' holds '{twice}' twice", "name each once"


# ---------------------------------------------------------------- CSV


def _csv_rows(path: Path, text: str, columns: Mapping[str, str] | None) -> Iterator[Row | Problem]:
    try:
        headings, rows = csv_rows(path, text)
    except InputError as error:
        yield from error.problems
        return
    fields, problems = _csv_fields(path, headings, columns)
    if problems:
        yield from problems
        return
    for row in rows:
        if isinstance(row, Problem):
            yield row
        else:
            value = dict(_csv_values(fields, row.values))
            yield Row(row.line, value, json.dumps(value))


def _csv_fields(
    path: Path, headings: Sequence[str], columns: Mapping[str, str] | None
) -> tuple[dict[str, int], list[Problem]]:
    """Field → index of its column, and what is wrong with the headings."""
    problems: list[Problem] = []
    fields: dict[str, int] = {}
    for field, heading in (columns or {name: name for name in headings}).items():
        if field not in CSV_FIELDS:
            hint = nearest(field, CSV_FIELDS) or "with 'columns' in the config other headings are left alone"
            problems.append(Problem(f"{path}:1", f"'{field}' is not a field of a case in CSV", hint))
        elif headings.count(heading) != 1:
            twice = heading in headings
            message = f"{'more than one' if twice else 'no'} column '{heading}'"
            hint = nearest(heading, headings) or f"headings: {', '.join(headings)}"
            hint = "keep one of them, or give the other another heading" if twice else hint
            problems.append(Problem(f"{path}:1", message, hint))
        else:
            fields[field] = headings.index(heading)
    return fields, problems


def _csv_values(fields: Mapping[str, int], cells: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for field, column in fields.items():
        if cells[column].strip():
            yield field, csv_value(field, cells[column])


def csv_value(field: str, text: str) -> Any:
    """What a cell of a field says: lists are divided by ``;``."""
    return [part.strip() for part in text.split(";") if part.strip()] if field in CSV_LISTS else text
