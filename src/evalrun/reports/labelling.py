"""The screen of ``evalrun label``: one answer, what it was answered from, and the keys.

Owns the layout. Of the judge nothing is shown, nor of any other rater.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.text import Text

from evalrun.labelling import Question
from evalrun.records import Dimension
from evalrun.relevance import Pooled
from evalrun.reports.screen import columns_of, print_lines, wrapped

ASKED: dict[Dimension, str] = {
    "refusal": "Does the answer as a whole say that it cannot or will not tell, and give no information?",
    "faithful": "Is every statement of the answer carried by the context? A refusal states nothing: yes.",
}
KEYS = "y yes   n no   s skip   b back   q stop"


def print_question(
    question: Question,
    dimension: Dimension,
    at: str,
    before: bool | None,
    stream: TextIO,
    width: int | None = None,
) -> None:
    """Show one answer; ``at`` says which (``3 of 12``), ``before`` is this rater's own label so far."""
    columns = columns_of(stream, width)
    lines = [Text(at, "dim")]
    if dimension == "faithful":
        lines += _context(question, columns)
    for turn in question.case.history:
        lines += _part(turn.role, turn.content, columns)
    lines += _part("question", question.case.question, columns)
    lines += _part("answer", question.draw.answer or "", columns, "bold")
    lines += [Text(), *wrapped(ASKED[dimension], columns)]
    said = "" if before is None else f"   (so far: {'yes' if before else 'no'})"
    print_lines([*lines, Text(KEYS + said, "dim")], stream, columns)


def print_chunk(
    one: Pooled,
    passages: Sequence[str],
    at: str,
    before: bool | None,
    stream: TextIO,
    width: int | None = None,
) -> None:
    """Show one chunk of the pool and the passages that may stand for it, the likeliest as 1."""
    columns = columns_of(stream, width)
    lines = [Text(at, "dim"), *_part("question", one.case.question, columns)]
    lines += _part("reference", one.case.reference, columns) if one.case.reference else []
    lines += _part("passage", one.chunk.text, columns, "bold")
    lines += [
        Text(),
        *wrapped("Does this passage help to answer the question? Then by which of its lines:", columns),
    ]
    for number, passage in enumerate(passages, start=1):
        lines += wrapped(f"{number} {passage}", columns, 2)
    said = "" if before is None else f"   (so far: {'yes' if before else 'no'})"
    keys = f"y yes, by 1   2-{len(passages)} yes, by that" if len(passages) > 1 else "y yes"
    print_lines([*lines, Text(f"{keys}   n no   s skip   b back   q stop{said}", "dim")], stream, columns)


def _context(question: Question, columns: int) -> Iterator[Text]:
    if question.context is None:
        yield Text("no context is known", "yellow")
        return
    for chunk in question.context.chunks:
        yield from _part(chunk.id, chunk.text, columns, "dim")


def _part(name: str, text: str, columns: int, style: str = "") -> Iterator[Text]:
    yield from wrapped(name, columns, style="bold underline")
    for line in text.split("\n"):
        yield from wrapped(line, columns, 2, style)
