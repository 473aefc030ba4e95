"""Workflow commands for GitHub Actions: one line a gate that does not hold, an error, a question gone wrong.

Owns the form, and that no text can end its own command or begin another. GitLab shows ``junit.xml`` instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from evalrun.journal import RunFolder
from evalrun.records import RunHeader, Verdict
from evalrun.reports import words
from evalrun.reports.rows import because, read_details, read_rows, share

Level = Literal["error", "warning", "notice"]
MOST = 10
"""GitHub shows ten of each level a step and drops the rest."""
_TEXT_MOST = 1000


def workflow_commands(folder: RunFolder) -> list[str]:
    """The commands of a run, at most ten of each level; the tenth says how many more there are."""
    header = folder.header
    told = [*_gates(header), *_errors(header), *_worst(folder, header)]
    levels: tuple[Level, ...] = ("error", "warning", "notice")
    return [line for level in levels for line in _lines(level, [one[1:] for one in told if one[0] == level])]


def command(level: Level, title: str, message: str) -> str:
    """``::error title=…::…`` on one line, escaped as the runner unescapes it.

    https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
    """
    name = _escaped(words.one_line(title, 200)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{_escaped(words.one_line(message, _TEXT_MOST))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _lines(level: Level, told: list[tuple[str, str]]) -> Iterator[str]:
    shown = told if len(told) <= MOST else told[: MOST - 1]
    yield from (command(level, *one) for one in shown)
    if more := len(told) - len(shown):
        yield command(level, "evalrun", f"and {more} more: see the run's report.html")


def _gates(header: RunHeader) -> Iterator[tuple[Level, str, str]]:
    for verdict in header.verdicts:
        if verdict.decision != "holds":
            level: Level = "error" if verdict.red else "warning"
            yield level, f"gate {verdict.gate.name}: {words.decision_word(verdict)}", _why(verdict, header)


def _why(verdict: Verdict, header: RunHeader) -> str:
    measured = f"needs {verdict.gate.needs}, measured {words.gate_measured(verdict, header)}"
    return "; ".join(text for text in (measured, verdict.decided_by, verdict.why, verdict.advice) if text)


def _errors(header: RunHeader) -> Iterator[tuple[Level, str, str]]:
    yield from (("error", "evalrun", text) for text in header.errors)


def _worst(folder: RunFolder, header: RunHeader) -> Iterator[tuple[Level, str, str]]:
    rows = read_rows(folder)
    unmet = rows.unmet()
    details = read_details(folder, [row.id for row in unmet[:MOST]])
    events = {metric.id: metric.event for metric in header.metrics}
    for row in unmet:
        why = because(row, details[row.id], events) if row.id in details else ""
        yield "notice", f"{row.id} {share(row, rows.lead)}", f"{row.question}{' → ' + why if why else ''}"
