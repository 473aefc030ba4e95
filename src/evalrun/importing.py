"""Questions of other tools → cases: CSV or JSON with any names, and promptfoo's YAML.

Owns which field of theirs is which of ours, and that what is not taken over is said at its place, with the
reason. What a case may hold is decided by ``dataset``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalrun.dataset import CSV_FIELDS as FIELDS
from evalrun.dataset import CSV_LISTS, cases_of, csv_value
from evalrun.errors import InputError, Problem, UserError
from evalrun.records import Case
from evalrun.registry import nearest
from evalrun.textfile import Row, csv_rows, is_table, json_rows, read_text
from evalrun.validation import at_most
from evalrun.yamlfile import Document, Loc, load_yaml

_SAME: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "question_id", "qid", "nr", "no"),
    "question": ("question", "query", "prompt", "input", "user_input", "message", "q", "text"),
    "reference": ("reference", "expected", "expected_output", "expected_answer", "ground_truth", "gold",
                  "ideal", "reference_answer", "answer"),
    "category": ("category", "type", "topic", "group"),
    "must_contain": ("must_contain", "contains", "keywords"),
    "relevant_ids": ("relevant_ids", "relevant", "relevant_docs"),
}  # fmt: skip
"""Field → the names others have for it, the surest first."""


@dataclass
class Imported:
    """The cases of a foreign file, what was read as what, and what was left behind, each with its place."""

    cases: tuple[Case, ...] = ()
    read_as: dict[str, str] = field(default_factory=dict)
    left: list[Problem] = field(default_factory=list)


def import_file(path: Path, mapping: Mapping[str, str]) -> Imported:
    """The cases in ``path`` (a table, JSON, or promptfoo's ``.yaml``); ``mapping`` is field → their name.

    Raises:
        InputError: every fault with ``file:line``.
        UserError: the kind of file is not known, or a field of ``mapping`` is not one of ours.
    """
    if strange := [name for name in mapping if name not in FIELDS]:
        hint = nearest(strange[0], FIELDS) or f"fields: {', '.join(FIELDS)}"
        raise UserError(f"--map {strange[0]}: not a field of a case", hint)
    suffix = path.suffix.lower()
    if is_table(path):
        return _from_csv(path, mapping)
    if suffix in (".yaml", ".yml"):
        return _from_promptfoo(path, mapping)
    if suffix in (".json", ".jsonl"):
        return _from_json(path, mapping)
    raise UserError(f"{path}: neither .csv, .tsv, .json, .jsonl nor .yaml", "write it as one of them")


def _numbered(rows: list[Row], prefix: str = "q") -> list[Row]:
    """Ids where there are none: ``q-001``."""
    taken = {row.value.get("id") for row in rows}
    named, number = [], 0
    for row in rows:
        value = dict(row.value)
        while "id" not in value:
            number += 1
            name = f"{prefix}-{number:03d}"
            if name not in taken:
                value = {"id": name, **value}
        named.append(Row(row.line, value, ""))
    return named


def _match(
    names: Sequence[str], mapping: Mapping[str, str], where: str
) -> tuple[dict[str, str], list[Problem]]:
    """Field → their name: as ``mapping`` says, else by the names others have for it, each once."""
    found = dict(mapping)
    problems = [
        Problem(where, f"--map {field}={name}: there is no '{name}'", nearest(name, names) or _there(names))
        for field, name in mapping.items()
        if name not in names
    ]
    known = {_folded(name): name for name in reversed(names)}
    for field_, others in _SAME.items():
        free = (known[other] for other in others if other in known and known[other] not in found.values())
        if field_ not in found and (name := next(free, None)) is not None:
            found[field_] = name
    for name in names:
        if _folded(name) in FIELDS and _folded(name) not in found and name not in found.values():
            found[_folded(name)] = name
    if "question" not in found and not problems:
        hint = f"--map question=…; {_there(names)}"
        problems.append(Problem(where, "nothing here is called a question", hint))
    return found, problems


def _there(names: Sequence[str]) -> str:
    return "there is: " + ", ".join(dict.fromkeys(names))


def _folded(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


# ---------------------------------------------------------------- CSV


def _from_csv(path: Path, mapping: Mapping[str, str]) -> Imported:
    headings, cells = csv_rows(path, read_text(path))
    found, problems = _match(headings, mapping, f"{path}:1")
    if problems:
        raise InputError(problems)
    rows = []
    for row in cells:
        if isinstance(row, Problem):
            problems.append(row)
        elif any(cell.strip() for cell in row.values):
            texts = {name: row.values[headings.index(theirs)].strip() for name, theirs in found.items()}
            rows.append(Row(row.line, {name: _cell(name, text) for name, text in texts.items() if text}, ""))
    if problems:
        raise InputError(at_most(problems))
    return _imported(path, rows, found, headings, "column ")


def _imported(
    path: Path, rows: list[Row], found: dict[str, str], names: Iterable[str], kind: str
) -> Imported:
    """The cases of ``rows``; what none of their fields was read from is left behind."""
    left = [
        Problem(f"{path}:1", f"{kind}'{name}' is not taken over", "--map FIELD=NAME takes it")
        for name in names
        if name not in found.values()
    ]
    return Imported(cases_of(path, _numbered(rows)), found, left)


def _from_json(path: Path, mapping: Mapping[str, str]) -> Imported:
    """A list of objects, or one a line: whatever they call a question, and what is expected of its answer."""
    objects, problems = [], []
    for row in json_rows(path, read_text(path)):
        problems.append(row) if isinstance(row, Problem) else objects.append(row)
    names = dict.fromkeys(name for row in objects for name in row.value)
    found, unmatched = _match(list(names), mapping, f"{path}:1")
    if not objects and not problems:
        problems.append(Problem(str(path), "holds no questions", "one object a question"))
    if problems or unmatched:
        raise InputError(at_most(problems or unmatched))
    rows = [
        Row(
            row.line,
            {
                name: _variable(name, value)
                for name, theirs in found.items()
                if (value := row.value.get(theirs)) not in (None, "")
            },
            "",
        )
        for row in objects
    ]
    return _imported(path, rows, found, names, "")


def _cell(name: str, text: str) -> Any:
    return _word(text) if name == "category" else csv_value(name, text)


def _word(text: str) -> str:
    """A category as the word it must be."""
    return re.sub(r"[^\w-]+", "_", text.strip()).strip("_")[:64] or "uncategorized"


# ---------------------------------------------------------------- promptfoo


def _from_promptfoo(path: Path, mapping: Mapping[str, str]) -> Imported:
    document = load_yaml(path)
    return _Promptfoo(path, document, mapping).read()


class _Promptfoo:
    """One promptfoo config: its ``tests`` become cases."""

    def __init__(self, path: Path, document: Document, mapping: Mapping[str, str]) -> None:
        self.path = path
        self.document = document
        self.mapping = mapping
        self.made = Imported()
        self.rows: list[Row] = []

    def read(self) -> Imported:
        """The cases; what is left behind, in the order of the file."""
        value = self.document.value
        tests: Any = value if isinstance(value, list) else _part(value, "tests")
        at: Loc = () if isinstance(value, list) else ("tests",)
        self._sections(value if isinstance(value, dict) else {})
        if not isinstance(tests, list):
            message, hint = "holds no list 'tests'", "a promptfoo config has tests: [{vars: …}]"
            if isinstance(tests, str):
                message, hint = f"'tests' names {json.dumps(tests)}", "import that file"
            raise InputError([Problem(self.document.where(at), message, hint)])
        self.made.read_as = self._names(tests, at)
        for index, test in enumerate(tests):
            self._test(test, (*at, index))
        self.made.cases = cases_of(self.path, _numbered(self.rows, "t"))
        return self.made

    def _leave(self, loc: Loc, what: str, why: str) -> None:
        self.made.left.append(Problem(self.document.where(loc), f"{what} is not taken over", why))

    def _sections(self, value: Mapping[str, Any]) -> None:
        reasons = {
            "prompts": "the bot under test has its own",
            "providers": "say in the config which bot is asked",
            "targets": "say in the config which bot is asked",
            "defaultTest": "write it into each test",
            "scenarios": "write them out as tests",
            "redteam": "evalrun redteam has attacks of its own",
        }
        for name, reason in reasons.items():
            if name in value:
                self._leave((name,), f"'{name}'", reason)

    def _names(self, tests: Sequence[Any], at: Loc) -> dict[str, str]:
        """Field → variable, over the variables of all tests."""
        names = dict.fromkeys(
            name for test in tests if isinstance(vars := _part(test, "vars"), dict) for name in vars
        )
        if len(names) == 1 and "question" not in self.mapping:
            return {"question": next(iter(names))}
        found, problems = _match(list(names), self.mapping, self.document.where(at))
        if problems:
            raise InputError(problems)
        return found

    def _test(self, test: Any, loc: Loc) -> None:
        variables = _part(test, "vars")
        if not isinstance(variables, dict):
            return self._leave(loc, "this test", "it has no 'vars' of its own")
        case: dict[str, Any] = {}
        names = {theirs: ours for ours, theirs in self.made.read_as.items()}
        for name, value in variables.items():
            if name in names:
                case[names[name]] = _variable(names[name], value)
            else:
                self._leave((*loc, "vars", name), f"variable '{name}'", "--map FIELD=VARIABLE takes it")
        if isinstance(case.get("question"), str) and case["question"].startswith("file://"):
            return self._leave((*loc, "vars"), "this test", "its question stands in another file")
        self._rest(test, loc, case)
        questions = case.get("question")
        for question in questions if isinstance(questions, list) else [questions]:
            self.rows.append(Row(self._line(loc), {**case, "question": question}, ""))
        return None

    def _rest(self, test: Mapping[str, Any], loc: Loc, case: dict[str, Any]) -> None:
        if isinstance(about := test.get("description"), str) and about.strip():
            case["metadata"] = {"description": about}
        checks = test.get("assert") or []
        if not isinstance(checks, list):
            self._leave((*loc, "assert"), "'assert'", "it is no list")
            checks = []
        for index, check in enumerate(checks):
            if reason := _take(check, case):
                kind = check.get("type") if isinstance(check, dict) else check
                self._leave((*loc, "assert", index), f"assert '{kind}'", reason)
        for name in ("options", "provider", "threshold"):
            if name in test:
                self._leave((*loc, name), f"'{name}'", "it is of promptfoo's own running")

    def _line(self, loc: Loc) -> int:
        return int(self.document.where(loc).rsplit(":", 2)[1])


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _variable(name: str, value: Any) -> Any:
    if name == "question":
        return value
    if name in CSV_LISTS:
        return value if isinstance(value, list) else _cell(name, str(value))
    return _word(str(value)) if name == "category" else value if isinstance(value, str) else json.dumps(value)


_WHY_NOT: Mapping[str, str] = {
    "llm-rubric": "a criterion in words: the judge reads by its rubric, the same for every question",
    "g-eval": "a criterion in words: the judge reads by its rubric, the same for every question",
    "model-graded-closedqa": "a criterion in words: the judge reads by its rubric",
    "answer-relevance": "scorer 'outcome' says whether a question was answered",
    "context-faithfulness": "it is of every question here: scorer 'faithful'",
    "context-recall": 'write the passages as relevant_ids: [{"quote": …}]; scorer recall@k',
    "context-relevance": 'write the passages as relevant_ids: [{"quote": …}]; scorer recall@k',
    "javascript": "code: write a scorer as a plugin",
    "python": "code: write a scorer as a plugin",
    "latency": "it is of every question here: scorer 'latency'",
    "cost": "it is of every question here: scorer 'tokens'",
}


def _take(check: Any, case: dict[str, Any]) -> str:
    """Take one assertion into ``case``, or say why not."""
    if not isinstance(check, dict) or not isinstance(check.get("type"), str):
        return "it has no 'type'"
    kind, value = check["type"], check.get("value")
    texts = value if isinstance(value, list) else [value]
    if any(isinstance(text, str) and ("{{" in text or text.startswith("file://")) for text in texts):
        return "its value is a template or stands in another file"
    if kind in ("contains", "icontains", "contains-all", "icontains-all"):
        if not all(isinstance(text, str) and text.strip() for text in texts):
            return "its value is no text"
        case["must_contain"] = [*case.get("must_contain", []), *texts]
        return ""
    if kind in ("equals", "similar", "factuality", "model-graded-factuality", "answer-similarity"):
        return _reference(value, case)
    if kind == "regex" and isinstance(value, str):
        case.setdefault("metadata", {})["regex"] = value
        return ""
    if kind == "is-refusal":
        case["expect"] = "refuse"
        return ""
    return _WHY_NOT.get(kind, "there is nothing here that it could become")


def _reference(value: Any, case: dict[str, Any]) -> str:
    if not isinstance(value, str) or not value.strip():
        return "its value is no text"
    if case.get("reference", value) != value:
        return "the question has another reference already"
    case["reference"] = value
    return ""
