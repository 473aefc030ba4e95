"""Logged answers in a CSV, JSON or JSONL file → cases and draws, every fault of the file told at once.

Owns what a row may hold and which rows are answers to one question. Says at load time what a column that is
not there leaves unmeasured. What a case may hold is decided by ``dataset``.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evalrun.answers import Answers
from evalrun.dataset import CSV_FIELDS, UNCATEGORIZED, Dataset, csv_value, folded_id, read_case
from evalrun.digest import draw_digest, read_json, sha256_bytes, tagged, utf8
from evalrun.errors import InputError, Problem, UserError
from evalrun.records import ABSENT, Case, Chunk, Context, Draw, Origin, Record
from evalrun.registry import nearest
from evalrun.reports.words import count
from evalrun.settings import DatasetConfig, RunConfig, TargetConfig, is_folder_name
from evalrun.textfile import Cells, Row, csv_rows, decode, is_table, json_rows, read_bytes
from evalrun.validation import at_most

KIND = "logged"
OF_AN_ANSWER = ("answer", "contexts", "draw")
FIELDS = (*CSV_FIELDS, *OF_AN_ANSWER)
_NEEDED = ("question", "answer")
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "question": ("user_input", "input"),
    "answer": ("response", "actual_output"),
    "contexts": ("retrieved_contexts", "retrieval_context"),
    "reference": ("ground_truth", "expected_output"),
}
"""Field → what ragas and deepeval call it: taken where it stands under no other name, and said."""
_PYTHON_TEXT = r"""'(?:[^'\\\n]|\\[\\'"nrtxuU])*'|"(?:[^"\\\n]|\\[\\'"nrtxuU])*\""""
_PYTHON_LIST = re.compile(rf"\[\s*(?:{_PYTHON_TEXT})\s*(?:,\s*(?:{_PYTHON_TEXT})\s*)*\]")
_NO_ANSWER = "log: no answer was logged"
_ASKED_LESS = f"{ABSENT} the log answers this question less often than others"


class LoggedOptions(Record):
    """``target`` of a run that scores a file: there is no bot, and nothing to say of it."""

    kind: Literal["logged"]


# ---------------------------------------------------------------- columns


def read_columns(texts: Iterable[str]) -> dict[str, str]:
    """``question=Q,answer=A`` → field → column.

    Raises:
        UserError: not of this form, a field that is none, or one that is named twice.
    """
    columns: dict[str, str] = {}
    for part in (part for text in texts for part in text.split(",")):
        name, equals, column = (text.strip() for text in part.partition("="))
        if not equals or not name or not column:
            raise UserError(f"--map: '{part}' is not FIELD=COLUMN", "write --map question=Q,answer=A")
        if name not in FIELDS:
            raise UserError(
                f"--map: '{name}' is no field", nearest(name, FIELDS) or f"fields: {', '.join(FIELDS)}"
            )
        if name in columns:
            raise UserError(f"--map: '{name}' stands twice", "name one column for it")
        columns[name] = column
    return columns


def _chosen(
    where: str, headings: Sequence[str], columns: Mapping[str, str], problems: list[Problem]
) -> dict[str, str]:
    """Field → column that is there: as mapped, else of the field's own name, else of one well-known name."""
    chosen = {name: name for name in FIELDS if name in headings and name not in columns}
    for name, others in _ELSEWHERE.items():
        there = [other for other in others if other in headings and other not in columns.values()]
        if name not in chosen and name not in columns and len(there) == 1:
            chosen[name] = there[0]
    for name, column in columns.items():
        if column in headings:
            chosen[name] = column
        else:
            hint = nearest(column, headings) or f"columns: {', '.join(headings)}"
            problems.append(Problem(where, f"no column '{column}' for '{name}'", hint))
    for name in _NEEDED:
        if name not in chosen and name not in columns:
            hint = f"say which it is: --map {name}=COLUMN; columns: {', '.join(headings)}"
            problems.append(Problem(where, f"no column '{name}'", hint))
    return {name: chosen[name] for name in FIELDS if name in chosen}


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class _Entry:
    """One row: where it stands, what it holds by field, and where each field stands."""

    line: int
    value: Mapping[str, Any]
    places: Mapping[str, str]


def _csv_entries(
    path: Path, text: str, columns: Mapping[str, str], problems: list[Problem]
) -> tuple[list[_Entry], dict[str, str]]:
    try:
        headings, rows = csv_rows(path, text)
    except InputError as error:
        problems += error.problems
        return [], {}
    twice = next((name for name, count in Counter(headings).items() if name and count > 1), None)
    if twice is not None:
        problems.append(Problem(f"{path}:1", f"two columns are called '{twice}'", "rename one of them"))
    chosen = _chosen(f"{path}:1", headings, columns, problems)
    at = {name: headings.index(column) for name, column in chosen.items()}
    entries: list[_Entry] = []
    for row in rows:
        problems.append(row) if isinstance(row, Problem) else entries.append(_csv_entry(path, row, at))
    return entries, chosen


def _csv_entry(path: Path, row: Cells, at: Mapping[str, int]) -> _Entry:
    value: dict[str, Any] = {}
    for name, column in at.items():
        if row.values[column].strip():
            value[name] = csv_value(name, row.values[column])
    places = {name: f"{path}:{row.places[column][0]}:{row.places[column][1]}" for name, column in at.items()}
    return _Entry(row.line, value, places)


def _json_entries(
    path: Path, text: str, columns: Mapping[str, str], problems: list[Problem]
) -> tuple[list[_Entry], dict[str, str]]:
    rows: list[Row] = []
    for found in json_rows(path, text):
        problems.append(found) if isinstance(found, Problem) else rows.append(found)
    headings = list(dict.fromkeys(key for row in rows for key in row.value))
    if not rows:
        return [], {}
    chosen = _chosen(f"{path}:1", headings, columns, problems)
    entries = []
    for row in rows:
        value = {name: row.value[key] for name, key in chosen.items() if row.value.get(key) is not None}
        places = {name: "{}:{}:{}".format(path, *row.place(key)) for name, key in chosen.items()}
        entries.append(_Entry(row.line, value, places))
    return entries, chosen


# ---------------------------------------------------------------- rows → cases and draws


@dataclass
class _Question:
    """One case and the rows that answer it."""

    case: Case
    line: int
    answers: list[tuple[int, str, Context | None, str]] = field(default_factory=list)
    """(draw, answer, context, where)."""


class _Reader:
    """Collects the questions and the problems of one file."""

    def __init__(
        self, path: Path, chosen: Mapping[str, str], problems: list[Problem], *, apart: bool
    ) -> None:
        self.path = path
        self.chosen = chosen
        self.problems = problems
        self.apart = apart
        self.questions: dict[str, _Question] = {}

    def take(self, entry: _Entry) -> None:
        """One row: its question, and its answer to it."""
        before = len(self.problems)
        question = self._question(entry)
        answer = self._answer(entry)
        context = self._context(entry)
        number = self._draw(entry)
        if question is None or len(self.problems) > before:
            return
        number = len(question.answers) if number is None else number
        where = entry.places.get("draw", f"{self.path}:{entry.line}")
        if (first := next((at for known, _, _, at in question.answers if known == number), None)) is not None:
            message = f"a second draw {number} of '{question.case.id}', the first is at {first}"
            self.problems.append(Problem(where, message, "number the answers to a question"))
            return
        question.answers.append((number, answer, context, where))

    def _fault(self, entry: _Entry, name: str, message: str, hint: str) -> None:
        self.problems.append(Problem(entry.places.get(name, f"{self.path}:{entry.line}"), message, hint))

    def _question(self, entry: _Entry) -> _Question | None:
        """The question of a row; rows of the same id, or without ids of the same question, share one.

        Unless they are to stay apart: then each has one of its own.
        """
        value = {name: item for name, item in entry.value.items() if name not in OF_AN_ANSWER}
        text = value.get("question")
        if not isinstance(text, str):
            self._fault(entry, "question", "'question' is not text" if text else "no question", "write it")
            return None
        if "id" in self.chosen and "id" not in value:
            self._fault(entry, "id", "no id", "give every row one, or map no id at all")
            return None
        key = folded_id(str(value["id"])) if "id" in value else text
        known = self.questions.get(key) if not self.apart else None
        named = {"id": known.case.id if known else f"q{len(self.questions) + 1}", **value}
        case = self._case(entry, {"category": UNCATEGORIZED, **named})
        if case is None:
            return None
        if known is None:
            known = _Question(case, entry.line)
            self.questions[case.id if self.apart else key] = known
        elif known.case != case:
            self._not_the_same(entry, known, case)
            return None
        return known

    def _case(self, entry: _Entry, value: dict[str, Any]) -> Case | None:
        case, found = read_case(Row(entry.line, value, json.dumps(value)), f"{self.path}:{entry.line}")
        for problem in found:
            named = re.match(r"'(\w+)", problem.message)
            where = entry.places.get(named[1], problem.where) if named else problem.where
            self.problems.append(Problem(where, problem.message, problem.hint))
        return case if not found else None

    def _not_the_same(self, entry: _Entry, known: _Question, case: Case) -> None:
        name = next(name for name in Case.model_fields if getattr(known.case, name) != getattr(case, name))
        same = "ids" if "id" in self.chosen else "question"
        message = f"another '{name}' than in line {known.line}, which has the same {same.removesuffix('s')}"
        hint = (
            "answers to one question share all but answer, contexts and draw; another question has another id"
        )
        self._fault(entry, name, message, hint)

    def _answer(self, entry: _Entry) -> str:
        answer = entry.value.get("answer", "")
        if not isinstance(answer, str):
            self._fault(entry, "answer", "'answer' is not text", "write what the bot said")
            return ""
        return utf8(answer).decode()

    def _draw(self, entry: _Entry) -> int | None:
        number = entry.value.get("draw")
        if number is None and "draw" not in self.chosen:
            return None
        if isinstance(number, str) and re.fullmatch(r"\s*[0-9]{1,6}\s*", number):
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            self._fault(entry, "draw", "'draw' is not a whole number", "number the answers to a question")
            return None
        return number

    def _context(self, entry: _Entry) -> Context | None:
        """None where nothing is said; ``[]``: nothing was retrieved."""
        if (found := entry.value.get("contexts")) is None:
            return None
        try:
            items = _listed(found)
            return Context.of(tuple(_chunk(number, item) for number, item in enumerate(items, start=1)))
        except ValueError as fault:
            hint = 'write one text, ["text", …] or [{"id": "…", "text": "…"}, …]'
            self._fault(entry, "contexts", f"'contexts' {fault}", hint)
            return None


def _listed(found: Any) -> list[Any]:
    """The items of a contexts column: of a JSON list, or one of texts as Python and so pandas writes it; else
    the one text that stands there.
    """
    if isinstance(found, list):
        return found
    if not isinstance(found, str):
        raise ValueError("is neither text nor a list")
    text = found.strip()
    if not text.startswith("["):
        return [found]
    try:
        value = read_json(text)
    except ValueError as fault:
        if (listed := _python_list(text)) is not None:
            return listed
        if re.match(r'\[\s*["{]', text) or "too deeply" in str(fault):
            raise ValueError(f"is not valid JSON: {fault}") from None
        return [found]  # a text that begins with a bracket, as "[1] …"
    return value if all(isinstance(item, str | dict) for item in value) else [found]


def _python_list(text: str) -> list[Any] | None:
    if _PYTHON_LIST.fullmatch(text) is None:
        return None
    try:
        listed: list[Any] = ast.literal_eval(text)
    except (ValueError, SyntaxError):  # half an escape
        return None
    return listed


def _chunk(number: int, item: Any) -> Chunk:
    if isinstance(item, str):
        return Chunk(id=str(number), text=utf8(item).decode())
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        name = item.get("id", number)
        if isinstance(name, str | int) and not isinstance(name, bool):
            return Chunk(id=utf8(str(name)).decode(), text=utf8(item["text"]).decode())
    raise ValueError(f"holds at {number} neither a text nor an object with a text")


# ---------------------------------------------------------------- the whole file


def read_answers(path: Path, columns: Mapping[str, str], *, apart: bool = False) -> Answers:
    """The answers in ``path``: JSONL, a list in JSON, or a table by its suffix. ``columns``: field → column.

    Rows with the same id, or without ids with the same question, are draws of one case, ordered by ``draw``
    where there is such a column. A question may have fewer answers than another one. A blank answer is a draw
    that failed. ``apart``: rows with the same question are cases of their own, of one cluster.

    Raises:
        InputError: everything that is wrong with the file.
        UserError: rows that have ids are to stay apart.
    """
    if path.suffix in (".yaml", ".yml"):
        hint = f"evalrun score RUN --config {path}, or name a file of logged answers"
        raise InputError([Problem(str(path), "a config, and no answers", hint)])
    data = read_bytes(path)
    problems: list[Problem] = []
    entries_of = _csv_entries if is_table(path) else _json_entries
    entries, chosen = entries_of(path, decode(path, data), columns, problems)
    empty = [name for name in ("id", "draw") if not any(name in entry.value for entry in entries)]
    chosen = {name: column for name, column in chosen.items() if name not in empty or name in columns}
    if apart and (named := [name for name in ("id", "draw") if name in chosen]):
        raise UserError(
            f"--apart: {path} says by '{chosen[named[0]]}' which answers belong together",
            "leave out --apart, or rename that column",
        )
    reader = _Reader(path, chosen, problems, apart=apart)
    for entry in entries if set(_NEEDED) <= set(chosen) else ():
        reader.take(entry)
    questions = list(reader.questions.values())
    if not problems and not questions:
        problems.append(Problem(str(path), "holds no answers", "one answer a row"))
    if problems:
        raise InputError(at_most(problems))
    questions = _clustered(questions) if apart else questions
    elsewhere = [
        f"{column} as {name}" for name, column in chosen.items() if column not in (name, columns.get(name))
    ]
    notes = (f"read {', '.join(elsewhere)}; --map FIELD=COLUMN says otherwise",) if elsewhere else ()
    return _answers(path, sha256_bytes(data), questions, chosen, notes, apart=apart)


def _clustered(questions: Sequence[_Question]) -> list[_Question]:
    """Cases that ask the same are one cluster, named by the first of them, unless the file names clusters."""
    first: dict[str, str] = {}
    for question in questions:
        first.setdefault(question.case.question, question.case.id)
    counts = Counter(question.case.question for question in questions)
    return [
        replace(question, case=case.model_copy(update={"cluster": first[case.question]}))
        if counts[(case := question.case).question] > 1 and case.cluster is None
        else question
        for question in questions
    ]


def _answers(
    path: Path,
    digest: str,
    questions: Sequence[_Question],
    chosen: Mapping[str, str],
    notes: tuple[str, ...],
    *,
    apart: bool,
) -> Answers:
    draws: dict[tuple[str, int], Draw] = {}
    contexts: dict[tuple[str, str], Context] = {}
    most = max(len(question.answers) for question in questions)
    for question in questions:
        for index in range(most):  # but the answers that there are
            draws[question.case.id, index] = Draw(case=question.case.id, index=index, error=_ASKED_LESS)
        ordered = sorted(question.answers, key=lambda answer: answer[0])
        for index, (_, text, context, _) in enumerate(ordered):
            draws[question.case.id, index] = _logged(question.case, index, text, context)
            if context is not None:
                contexts[question.case.id, context.digest] = context
    cases = tuple(question.case for question in questions)
    lines = {question.case.id: question.line for question in questions}
    notes = (*notes, *unmeasured(cases, list(draws.values()), chosen, apart=apart))
    return Answers(
        origin=Origin(kind="file", name=path.name, digest=digest),
        cases=cases,
        draws=draws,
        contexts=contexts,
        about={"kind": KIND},
        per_case=most,
        dataset=Dataset(path.stem, cases, questions_digest(cases), path, lines, notes),
    )


def questions_digest(cases: Iterable[Case]) -> str:
    """Digest of what a log asks, in any order: logs of the same questions are one dataset."""
    lines = [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
    return tagged("questions", sorted(lines, key=lambda line: str(line["id"])))


def _logged(case: Case, index: int, text: str, context: Context | None) -> Draw:
    found = context.digest if context else None
    if not text.strip():
        return Draw(case=case.id, index=index, error=_NO_ANSWER)
    return Draw(
        case=case.id,
        index=index,
        digest=draw_digest(case.question, case.history, found, text),
        answer=text,
        context=found,
        level="claimed" if context is not None else "none",
    )


def unmeasured(
    cases: Sequence[Case], draws: Sequence[Draw], chosen: Mapping[str, str], *, apart: bool = False
) -> Iterator[str]:
    """What cannot be measured with these columns, in words."""
    absent = Counter(draw.case for draw in draws if draw.absent)
    draws = [draw for draw in draws if not draw.absent]
    without = sum(draw.level == "none" and draw.error is None for draw in draws)
    blank = sum(draw.error is not None for draw in draws)
    if without == len(draws) - blank:
        yield (
            "no contexts: nothing shows what the model was given (proof: none); whatever is read against the "
            "context (outcomes, faithful, correct, novel_terms, retrieval) is not measured"
        )
    elif without:
        yield f"{without} of {count(len(draws), 'answer')} without contexts: nothing is read against one"
    if blank:
        yield f"{blank} of {count(len(draws), 'answer')} blank: counted as failed"
    if not any(case.expect == "refuse" for case in cases):
        yield "no question expects a refusal ('expect'): correctly_refused and answered are not measured"
    if not any(case.reference for case in cases):
        yield "no references: whether an answer is correct is not measured, and 'right' does not ask for it"
    if not any(case.relevant_ids for case in cases):
        yield "no relevant_ids: retrieval is not measured"
    if not any(case.category != UNCATEGORIZED for case in cases):
        yield "no categories: all questions are one group"
    if "id" not in chosen:
        yield "no ids: cases are named q1, q2, …" + (
            "" if apart else "; rows with the same question are answers to one case (--apart: to one each)"
        )
    if absent:
        yield (
            f"{len(absent)} of {count(len(cases), 'question')} with fewer answers than the others: "
            "each counts by the mean of those it has"
        )


# ---------------------------------------------------------------- the config of such a run


def overrides_for(path: Path) -> tuple[str, ...]:
    """What a config becomes that scores a file: its bot and its questions are those of the file."""
    return (f"target={{kind: {KIND}}}", f"dataset={json.dumps({'path': str(path.resolve())})}")


def code_only(path: Path, answers: Answers) -> RunConfig:
    """A config for a file without one: the scorers by code that have something to measure there."""
    contexts = bool(answers.contexts)
    relevant = contexts and any(case.relevant_ids for case in answers.cases)
    contains = any(case.must_contain for case in answers.cases)
    wanted = {
        "refusal_rule": True,
        "novel_terms": contexts,
        "contains": contains,
        "recall@5": relevant,
        "mrr": relevant,
    }
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-_")[:64].strip("-_")
    return RunConfig(
        name=name if is_folder_name(name) else "answers",
        dataset=DatasetConfig(path=path),
        target=TargetConfig(kind=KIND),
        scorers=tuple(spec for spec, measurable in wanted.items() if measurable),
        provenance="claimed" if contexts else "none",
    )
