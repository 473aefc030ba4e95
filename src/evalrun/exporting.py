"""A run as a table: one row a draw, for spreadsheets and data frames.

Owns the columns, and that no text in a CSV is read as a formula. What stands in the cells was decided by the
run; nothing is computed here.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Literal

from evalrun.digest import utf8
from evalrun.journal import RunFolder
from evalrun.records import Case, Context, Draw, Judgement, Score

Format = Literal["csv", "jsonl"]
COLUMNS = (
    "case", "draw", "category", "expect", "question", "answer", "error", "level", "seconds", "prompt_tokens",
    "completion_tokens", "context_ids", "contexts", "reference", "refusal", "faithful", "correct",
    "unsupported", "judge_error",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MOST = 32_000
"""Characters of a cell: spreadsheets hold 32,767 and lose the rest, or break the row."""


def export(folder: RunFolder, form: Format) -> bytes:
    """All draws of a run. CSV: RFC 4180 with a heading and a byte order mark; JSONL: an object a line.

    In CSV a text that begins like a formula gets an apostrophe before it, lists stand as JSON, and a text
    longer than a cell may hold is cut, with a word that it was.
    """
    rows = _rows(folder)
    metrics = [metric.id for metric in folder.header.metrics]
    if form == "jsonl":
        return b"".join(utf8(json.dumps(row, ensure_ascii=False)) + b"\n" for row in rows)
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([*COLUMNS, *(f"score:{name}" for name in metrics)])
    for row in rows:
        cells = [row[name] for name in COLUMNS] + [row["scores"].get(name) for name in metrics]
        writer.writerow([_cell(value) for value in cells])
    return b"\xef\xbb\xbf" + utf8(out.getvalue())


def _rows(folder: RunFolder) -> Iterator[dict[str, Any]]:
    cases = folder.cases_of_draws()
    contexts = {(case, context.digest): context for case, context in folder.contexts()}
    judgements = {(one.case, one.index): one for one in folder.judgements()}
    scores: dict[tuple[str, int | None], dict[str, Any]] = {}
    for score in folder.scores():
        scores.setdefault((score.case, score.index), {})[score.metric] = _scored(score)
    for draw in folder.draws():
        if draw.absent:
            continue
        row = _row(
            cases[draw.case],
            draw,
            contexts.get((draw.case, draw.context or "")),
            judgements.get(draw.key),
        )
        yield row | {"scores": scores.get((draw.case, None), {}) | scores.get(draw.key, {})}


def _scored(score: Score) -> bool | float | str | None:
    """True or false of a rate, a number of a score, ``error: …`` of none, None where it does not apply."""
    if score.status == "error":
        return f"error: {score.reason}"
    if score.status == "not_applicable":
        return None
    return score.value if score.status == "number" else score.status == "pass"


def _row(case: Case, draw: Draw, context: Context | None, judged: Judgement | None) -> dict[str, Any]:
    return {
        "case": case.id,
        "draw": draw.index + 1,
        "category": case.category,
        "expect": case.expect,
        "question": case.question,
        "answer": draw.answer,
        "error": draw.error,
        "level": draw.level,
        "seconds": draw.seconds,
        "prompt_tokens": draw.usage.prompt_tokens,
        "completion_tokens": draw.usage.completion_tokens,
        "context_ids": context.ids if context else None,
        "contexts": [chunk.text for chunk in context.chunks] if context else None,
        "reference": case.reference,
        "refusal": judged.refusal if judged else None,
        "faithful": judged.faithful if judged else None,
        "correct": judged.correct if judged else None,
        "unsupported": list(judged.unsupported) if judged else None,
        "judge_error": judged.error if judged else None,
    }


def _cell(value: Any) -> str | int | float:
    """A value as a cell: true and false as words, lists as JSON, no text that is a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace("\0", "")
    if text.lstrip(" ").startswith(_FORMULA):
        text = "'" + text
    return text if len(text) <= _MOST else f"{text[:_MOST]}… (cut: {len(text):,} characters)"
