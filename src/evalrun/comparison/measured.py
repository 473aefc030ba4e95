"""What a run measured, question by question: the form in which two runs can be compared.

Owns the reading of a finished run into values per question and draw, the digest of what a question asks, and
the refusal of runs that conclude nothing. What is made of two of them belongs to ``comparison``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evalrun.digest import sha256_bytes, tagged
from evalrun.errors import ExitCode, UserError
from evalrun.journal import HEADER, RunFolder
from evalrun.jsonl import content
from evalrun.outcomes import OUTCOMES, event_of, read_for
from evalrun.records import Case, Expect, Metric, Record, RunHeader, Score
from evalrun.reducers import reduce, split

Values = Mapping[str, tuple[float | None, ...]]
"""Case id → a value a draw; None: planned, not scored. A case to which a metric does not apply is absent."""

LABELLED = ("faithful", "grounded", "correctly_refused")
"""What labels decide without a judge, where they are of the dimensions that it takes."""
BY_LABELS = " (labels)"
"""Ends the name of a metric that labels decide and not the judge."""

_READ = ("cases.jsonl", "draws.jsonl", "scores.jsonl")
_INCONCLUSIVE = (ExitCode.UNAVAILABLE, ExitCode.PROVENANCE)


class Source(Record):
    """Where the values come from, and what has to be the same for a comparison to mean anything."""

    path: str
    kind: Literal["run", "baseline"]
    name: str
    config_digest: str
    dataset: str
    dataset_digest: str
    cases: int
    draws: int
    judge: str | None = None
    judge_name: str = ""
    judge_measured: bool = False


class Answer(Record):
    """One answer: its text, where it is kept, and its outcome."""

    text: str | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class Measured:
    """One side of a comparison: digests of its cases, values by metric, outcomes by draw.

    ``checks`` names what corrects the judge's readings. ``cases``, ``facts`` (config and bot) and ``folder``
    are empty where only a baseline is left of a run.
    """

    source: Source
    metrics: Mapping[str, Metric]
    digests: Mapping[str, str]
    values: Mapping[str, Values]
    outcomes: Mapping[str, tuple[str | None, ...]]
    cases: Mapping[str, Case] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    checks: frozenset[str] = frozenset()
    folder: RunFolder | None = None

    def answers(self, cases: Collection[str]) -> dict[str, tuple[Answer, ...]]:
        """The answers to some cases, by draw."""
        found = {case: [Answer(outcome=outcome) for outcome in self.outcomes.get(case, ())] for case in cases}
        for draw in self.folder.draws() if self.folder else ():
            if draw.case in found:
                answers = found[draw.case]
                answers += [Answer()] * (draw.index + 1 - len(answers))
                answers[draw.index] = answers[draw.index].model_copy(update={"text": draw.answer})
        return {case: tuple(answers) for case, answers in found.items()}


def case_digest(case: Case) -> str:
    """Digest of what a case asks and expects. Its id, category, cluster and tags are no part of it."""
    parts = case.model_dump(mode="json", exclude={"id", "category", "cluster", "tags"})
    names = ("question", "history", "expect", "relevant_ids", "reference", "must_contain", "metadata")
    attack = [parts["attack"]] if case.attack else []
    return tagged("case", [*(parts[name] for name in names), *attack])


def read_run(folder: RunFolder) -> Measured:
    """What a finished run measured.

    Raises:
        UserError: the run is unfinished, partial or without conclusion, or its files are not those it wrote.
    """
    header = _conclusive(folder)
    cases = {case.id: case for case in folder.cases()}
    values = values_of(header.metrics, header.draws, cases.values(), folder.scores())
    metrics = {metric.id: metric for metric in header.metrics if metric.kind != "quantity"}
    for metric, labelled in _by_labels(folder, header, cases):
        metrics[metric.id], values[metric.id] = metric, labelled
    return Measured(
        source=_source(folder, header),
        metrics=metrics,
        digests={name: case_digest(case) for name, case in cases.items()},
        values=values,
        outcomes=_outcomes(values),
        cases=cases,
        facts={**header.config, "bot": header.bot},
        checks=frozenset(header.judge.checks if header.judge else ()),
        folder=folder,
    )


def _by_labels(
    folder: RunFolder, header: RunHeader, cases: Mapping[str, Case]
) -> Iterator[tuple[Metric, Values]]:
    """What the reference labels themselves say of the labelled draws: no judge's error is in it.

    Only labels of draws that were chosen at random, and of both dimensions where an outcome takes both; and
    none where certificates are void: labels whose answers changed would leave the unchanged ones only.
    """
    sound = {one.dimension for one in header.certificates if not one.void and one.design == "random"}
    here = {(draw.case, draw.digest) for draw in folder.draws()}
    read: dict[str, dict[str, bool]] = defaultdict(dict)
    for file in header.labels:
        if file.header.dimension in sound and file.header.design == "random":
            for row in file.rows:
                if (row.case, row.draw) in here and row.case in cases:
                    read[row.case][file.header.dimension] = row.label
    for metric in header.metrics:
        if metric.id not in LABELLED:
            continue
        values: dict[str, tuple[float | None, ...]] = {
            case: (float(_happened(metric.id, cases[case].expect, said)),)
            for case, said in read.items()
            if said.keys() >= read_for(metric.id) and metric.population in ("all", cases[case].population)
        }
        if values:
            update = {"id": metric.id + BY_LABELS, "event": metric.event + BY_LABELS, "judged": False}
            yield metric.model_copy(update=update), values


def _happened(metric: str, expect: Expect, said: Mapping[str, bool]) -> bool:
    return event_of(metric, expect, said.get("refusal", False), said["faithful"])


def _conclusive(folder: RunFolder) -> RunHeader:
    """The header of a run from which something can be concluded."""
    path = folder.path
    if not (path / HEADER).is_file() and folder.file("cases").is_file():
        raise UserError(f"{path}: this run has not come to its end: there is no {HEADER}", "let it finish")
    header = folder.header
    if header.partial:
        again = "run it again without --case, --category and --limit"
        raise UserError(f"{path}: a partial run ({header.partial}) stands for no dataset", again)
    if not header.complete:
        raise UserError(
            f"{path}: this run stopped before its end", "; ".join(header.errors) or "run it again"
        )
    if header.exit_code in _INCONCLUSIVE:
        why = f"{path}: this run ended with exit {header.exit_code}: nothing can be concluded from it"
        raise UserError(why, "; ".join(header.errors) or f"see why: evalrun report {path}")
    for name in _READ:
        file = path / name
        data = content(file)
        if data is None or sha256_bytes(data) != header.journals.get(name):
            raise UserError(f"{file}: not the file that the run wrote", f"see: evalrun verify {path}")
    return header


def _source(folder: RunFolder, header: RunHeader) -> Source:
    judge = header.judge
    return Source(
        path=folder.path.as_posix(),
        kind="run",
        name=header.name,
        config_digest=header.config_digest,
        dataset=header.dataset.name,
        dataset_digest=header.dataset.digest,
        cases=header.dataset.cases,
        draws=header.draws,
        judge=judge.fingerprint if judge else None,
        judge_name=f"{judge.model}, rubric {judge.rubric}" if judge else "",
        judge_measured=any(verdict.judge_measured for verdict in header.verdicts),
    )


def same_meaning(metric: Metric, other: Metric) -> bool:
    """Whether two metrics of one name measure the same."""
    return all(
        getattr(metric, name) == getattr(other, name) for name in ("kind", "better", "population", "per")
    )


def values_of(
    metrics: Iterable[Metric], draws: int, cases: Iterable[Case], scores: Iterable[Score]
) -> dict[str, Values]:
    """Metric → values of every rate and score.

    A planned draw without a score is missing; one the metric does not apply to is out.
    """
    asked = list(cases)
    found: dict[tuple[str, str], dict[int, Score]] = defaultdict(dict)
    for score in scores:
        found[score.metric, score.case][score.index or 0] = score
    table: dict[str, Values] = {}
    for metric in metrics:
        if metric.kind == "quantity":
            continue
        planned = range(draws if metric.per == "draw" else 1)
        base = split(metric.id)[0]
        rows = {
            case.id: _row(found.get((base, case.id), {}), planned)
            for case in asked
            if metric.population in ("all", case.population)
        }
        kept = {name: row for name, row in rows.items() if row}
        table[metric.id] = dict(zip(kept, map(tuple, reduce(metric, list(kept.values()))), strict=True))
    return table


def _row(scores: Mapping[int, Score], planned: range) -> tuple[float | None, ...]:
    kept = (scores.get(index) for index in planned)
    return tuple(_value(score) for score in kept if score is None or score.status != "not_applicable")


def _value(score: Score | None) -> float | None:
    if score is None or score.status == "error":
        return None
    return score.value if score.status == "number" else float(score.status == "pass")


def _outcomes(values: Mapping[str, Values]) -> dict[str, tuple[str | None, ...]]:
    """Case → the outcome of each draw; empty where outcomes were not measured."""
    found: dict[str, list[str | None]] = {}
    for outcome in OUTCOMES:
        for case, row in values.get(outcome, {}).items():
            draws = found.setdefault(case, [None] * len(row))
            for place, value in enumerate(row):
                draws[place] = outcome if value == 1 else draws[place]
    return {case: tuple(draws) for case, draws in found.items()}
