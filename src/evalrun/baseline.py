"""The baseline of a config: what was accepted last, one line a case, small enough to be reviewed.

Owns the file ``NAME.baseline.jsonl``: outcomes and scores by draw and the digest of each case, no text of a
bot or a model. A pull request that renews it shows which cases flipped; ``diff`` reads it in place of a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from evalrun.comparison.measured import Measured, Source, read_run
from evalrun.errors import InputError, Problem, UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import first_fault, to_line, whole_lines, write_atomically
from evalrun.outcomes import OUTCOMES
from evalrun.records import Expect, Metric, Record
from evalrun.reports.words import count

R = TypeVar("R", bound=Record)
SUFFIX = ".baseline.jsonl"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_POPULATION = {"answer": "answerable", "refuse": "unanswerable"}


class BaselineHeader(Record):
    """The first line: which run was accepted, and what its metrics mean."""

    format: Literal["baseline.v1"]
    name: str
    config_digest: str
    dataset: str
    dataset_digest: str
    draws: int
    judge: str | None = None
    judge_name: str = ""
    checks: tuple[str, ...] = ()
    metrics: tuple[Metric, ...]


class BaselineLine(Record):
    """One case: the outcome of each draw, and every other metric's values. null: not scored."""

    case: str
    digest: str
    expect: Expect = "answer"
    outcomes: tuple[str | None, ...] = ()
    scores: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class Accepted:
    """A baseline that was written: how many lines are new, changed or gone since the one before."""

    path: Path
    cases: int
    draws: int
    changed: int | None

    @property
    def told(self) -> str:
        """What changed, in words."""
        if self.changed is None:
            return "the first baseline: commit it, for gates with max_drop and for diff"
        return f"{count(self.changed, 'line')} changed since the one before" if self.changed else "unchanged"


def accept(folder: RunFolder) -> Accepted:
    """Make a finished run the baseline of its config: ``NAME.baseline.jsonl`` beside the config.

    Raises:
        UserError: the run concludes nothing, or its config is not there.
    """
    measured = read_run(folder)
    path = _beside(Path(folder.meta.config_path), measured.source.name, folder.path)
    lines = [to_line(record).rstrip(b"\n") for record in _records(measured)]
    before = set(whole_lines(path)[0]) if path.is_file() else None
    write_atomically(path, b"".join(line + b"\n" for line in lines))
    changed = None if before is None else _changed(before, set(lines))
    return Accepted(path, len(measured.digests), measured.source.draws, changed)


def _beside(config: Path, name: str, run: Path) -> Path:
    if not _NAME.match(name):
        raise UserError(f"{run}: '{name}' cannot be the name of a file", "was run.json changed by hand?")
    if not config.is_file():
        raise UserError(
            f"{run}: its config {config} is not here", "call from the folder the run was started in"
        )
    return config.with_name(name + SUFFIX)


def _changed(before: set[bytes], after: set[bytes]) -> int:
    return max(len(after - before), len(before - after))


def _records(measured: Measured) -> Iterable[Record]:
    source = measured.source
    yield BaselineHeader(
        format="baseline.v1",
        name=source.name,
        config_digest=source.config_digest,
        dataset=source.dataset,
        dataset_digest=source.dataset_digest,
        draws=source.draws,
        judge=source.judge,
        judge_name=source.judge_name,
        checks=tuple(sorted(measured.checks)),
        metrics=tuple(measured.metrics.values()),
    )
    kept = [name for name in measured.metrics if name not in OUTCOMES]
    for case, digest in measured.digests.items():
        yield BaselineLine(
            case=case,
            digest=digest,
            expect=measured.cases[case].expect,
            outcomes=measured.outcomes.get(case, ()),
            scores={name: row for name in kept if (row := measured.values[name].get(case))},
        )


def read_baseline(path: Path) -> Measured:
    """What a baseline holds, as one side of a comparison.

    Raises:
        InputError: a line that is not of such a file, or a case twice.
    """
    raw, torn = whole_lines(path)
    problems = [Problem(str(path), "its last line is torn", "restore the file")] if torn else []
    header = _parsed(path, 1, raw[0] if raw else b"", BaselineHeader, problems)
    lines = [_parsed(path, at, line, BaselineLine, problems) for at, line in enumerate(raw[1:], start=2)]
    known = [line for line in lines if line is not None]
    first = dict.fromkeys(line.case for line in known)
    if len(first) < len(known):
        problems.append(Problem(str(path), "holds a case twice", "restore the file"))
    if problems or header is None:
        raise InputError(problems)
    return _measured(path, header, known)


def _parsed(path: Path, number: int, line: bytes, record: type[R], problems: list[Problem]) -> R | None:
    try:
        return record.model_validate_json(line)
    except ValidationError as error:
        what = f"not a line of a baseline: {first_fault(error)}"
        problems.append(Problem(f"{path}:{number}", what, "restore it, or write it anew: evalrun accept RUN"))
        return None


def _measured(path: Path, header: BaselineHeader, lines: list[BaselineLine]) -> Measured:
    metrics = {metric.id: metric for metric in header.metrics}
    values = {
        metric.id: {line.case: row for line in lines if (row := _row(metric, line))}
        for metric in header.metrics
    }
    return Measured(
        source=Source(
            path=path.as_posix(),
            kind="baseline",
            name=header.name,
            config_digest=header.config_digest,
            dataset=header.dataset,
            dataset_digest=header.dataset_digest,
            cases=len(lines),
            draws=header.draws,
            judge=header.judge,
            judge_name=header.judge_name,
        ),
        metrics=metrics,
        digests={line.case: line.digest for line in lines},
        values=values,
        outcomes={line.case: line.outcomes for line in lines if line.outcomes},
        checks=frozenset(header.checks),
    )


def _row(metric: Metric, line: BaselineLine) -> tuple[float | None, ...]:
    """The values of a metric; those of an outcome follow from the outcomes."""
    if metric.id not in OUTCOMES:
        return line.scores.get(metric.id, ())
    if metric.population != _POPULATION[line.expect]:
        return ()
    return tuple(None if outcome is None else float(outcome == metric.id) for outcome in line.outcomes)
