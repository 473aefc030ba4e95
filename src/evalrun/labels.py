"""Label files: a header on how the labels came about, then one label a line.

Owns what such a file may hold and tells every fault at once. Leaves to ``agreement`` which draws the labels
belong to and what they say of a judge.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from evalrun.digest import sha256_bytes
from evalrun.errors import InputError, Problem
from evalrun.records import Record
from evalrun.registry import nearest
from evalrun.textfile import Row, decode, json_lines, read_bytes
from evalrun.validation import Line, at_most, explain

R = TypeVar("R", bound=Record)
Design = Literal["random", "by_verdict", "external", "unknown"]


class Rater(Record):
    """Who read the answers and how. A language model's reading is ``model``, never ``human``."""

    kind: Literal["human", "model"]
    how: str = Field(min_length=1)


class LabelHeader(Record):
    """The first line. ``design`` says how the labelled draws were chosen, which decides what may be computed.

    ``configs``: names of the configs whose runs were labelled. ``raters``: name → who that is.
    """

    dimension: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    design: Design
    seed: int | None = None
    date: datetime.date
    configs: tuple[str, ...] = ()
    raters: dict[str, Rater] = Field(min_length=1)


class Label(Record):
    """One rater's reading of one draw: whether the dimension holds of the answer."""

    draw: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    case: str = Field(min_length=1)
    rater: str
    label: bool
    note: str | None = None


@dataclass(frozen=True)
class Labels:
    """One label file: at most one row for each rater, draw and case. ``digest`` is sha256 of its bytes."""

    header: LabelHeader
    rows: tuple[Label, ...]
    digest: str
    path: Path


def load_labels(path: Path) -> Labels:
    """The labels in ``path``: UTF-8 JSONL, the header first.

    Raises:
        InputError: every bad line with ``file:line``, a rater that the header does not name, a second label
            of one rater for one draw, or no label at all.
    """
    data = read_bytes(path)
    reader = _Reader(path)
    for row in json_lines(path, decode(path, data)):
        reader.take(row)
    if reader.problems:
        raise InputError(at_most(reader.problems))
    if reader.header is None or not reader.rows:
        hint = "first a header (dimension, design, date, raters), then one label a line"
        raise InputError([Problem(str(path), "holds no labels", hint)])
    return Labels(reader.header, tuple(reader.rows), sha256_bytes(data), path)


class _Reader:
    """Collects header, rows and problems of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: LabelHeader | None = None
        self.rows: list[Label] = []
        self.problems: list[Problem] = []
        self._begun = False
        self._lines: dict[tuple[str, str, str], int] = {}

    def take(self, row: Row | Problem) -> None:
        """The next line that is not blank."""
        first, self._begun = not self._begun, True
        if isinstance(row, Problem):
            self.problems.append(row)
        elif not first:
            self._take_label(row)
        elif "draw" in row.value and "dimension" not in row.value:
            hint = 'begin with {"dimension": …, "design": …, "date": …, "raters": {…}}'
            self.problems.append(
                Problem(f"{self.path}:{row.line}", "a label where the header should be", hint)
            )
        else:
            self.header = self._parsed(row, LabelHeader)

    def _parsed(self, row: Row, record: type[R]) -> R | None:
        try:
            return record.model_validate_json(row.source, strict=True)
        except ValidationError as fault:
            self.problems += explain(fault, record, Line(f"{self.path}:{row.line}"))
            return None

    def _take_label(self, row: Row) -> None:
        label = self._parsed(row, Label)
        if label is None:
            return
        where = f"{self.path}:{row.line}"
        if self.header is not None and label.rater not in self.header.raters:
            hint = nearest(label.rater, self.header.raters) or "say in the header who that is"
            self.problems.append(Problem(where, f"rater '{label.rater}' is not in the header", hint))
        line = self._lines.setdefault((label.draw, label.case, label.rater), row.line)
        if line != row.line:
            message = f"'{label.rater}' labels the same draw twice, on lines {line} and {row.line}"
            self.problems.append(Problem(where, message, "keep one of them"))
        self.rows.append(label)
