"""Label files: a header on how the labels came about, then one label a line.

Owns what such a file may hold and tells every fault at once. Leaves to ``agreement`` which draws the labels
belong to and what they say of a judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from evalrun.digest import sha256_bytes
from evalrun.errors import InputError, Problem
from evalrun.records import Label, LabelHeader, Record
from evalrun.registry import nearest
from evalrun.textfile import Row, decode, json_lines, read_bytes
from evalrun.validation import Line, at_most, explain

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Labels:
    """One label file: at most one row for each rater, draw and case. ``digest`` is sha256 of its bytes."""

    header: LabelHeader
    rows: tuple[Label, ...]
    digest: str
    path: Path


def load_labels(path: Path, *, begun: bool = False) -> Labels:
    """The labels in ``path``: UTF-8 JSONL, the header first, which is enough where it may be only ``begun``.

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
    if reader.header is not None and not reader.rows and not begun:
        hint = (
            f"read answers into it: evalrun label RUN --dimension {reader.header.dimension} --output {path}"
        )
        raise InputError([Problem(str(path), "holds no labels yet", hint)])
    if reader.header is None:
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
