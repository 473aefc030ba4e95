"""Scores to estimates: who is counted, what is missing, and the interval that fits.

Owns the way from the scores of draws to one number a metric and group, draws reduced per case first. The
formulas are those of :mod:`evalrun.stats`; whether a number is good enough is decided by the gates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from evalrun import stats
from evalrun.dataset import GROUPS
from evalrun.records import Bounds, Case, Estimate, Metric, Score
from evalrun.reducers import reduce, split
from evalrun.stats import Interval

CONFIDENCE = 0.95


@dataclass
class _Row:
    """The scores of one metric of one case: a value or None (missing) each draw, and what did not apply."""

    values: list[float | None] = field(default_factory=list)
    not_applicable: int = 0
    reasons: list[str] = field(default_factory=list)


class Table:
    """All scores of a run, reduced to what the estimates need."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, _Row]] = {}

    def add(self, score: Score) -> None:
        """Take in one score, in any order."""
        row = self._rows.setdefault(score.metric, {}).setdefault(score.case, _Row())
        if score.status == "not_applicable":
            row.not_applicable += 1
        elif score.status == "error":
            row.values.append(None)
            row.reasons.append((score.reason or "unknown").partition(":")[0])
        else:
            row.values.append(score.value if score.status == "number" else float(score.status == "pass"))

    def row(self, metric: str, case: str) -> _Row:
        """What is known of one metric of one case."""
        return self._rows.get(metric, {}).get(case, _Row())


def groups_of(metric: Metric, cases: Sequence[Case]) -> dict[str, list[Case]]:
    """The groups a metric is estimated in: its population (``all`` too if it counts all), and finer ones."""
    members = [case for case in cases if metric.population in ("all", case.population)]
    names: list[str] = list(GROUPS) if metric.population == "all" else [metric.population]
    names += dict.fromkeys(group for case in members for group in case.groups if group not in GROUPS)
    return {name: [case for case in members if name in case.groups] for name in names}


def summarise(
    metrics: Sequence[Metric], cases: Sequence[Case], scores: Iterable[Score], draws: int
) -> tuple[Estimate, ...]:
    """Every estimate of a run.

    Args:
        metrics: what was measured.
        cases: what was asked, in dataset order.
        scores: in any order; a planned score that is not among them is missing.
        draws: planned draws a case.
    """
    table = Table()
    for score in scores:
        table.add(score)
    return tuple(
        estimate(metric, group, members, table, draws)
        for metric in metrics
        for group, members in groups_of(metric, cases).items()
        if members
    )


def estimate(metric: Metric, group: str, members: Sequence[Case], table: Table, draws: int) -> Estimate:
    """One metric in one group."""
    per_case = draws if metric.per == "draw" else 1
    values: list[list[float | None]] = []
    not_applicable, failures = 0, Counter[str]()
    base = split(metric.id)[0]
    for case in members:
        row = table.row(base, case.id)
        missing = per_case - len(row.values) - row.not_applicable
        not_applicable += row.not_applicable
        failures.update(row.reasons)
        if missing > 0:
            failures["not asked"] += missing
        if row.values or missing > 0:
            # Sorted, so that the order in which draws finish changes no bit of a sum.
            known = sorted(value for value in row.values if value is not None)
            lost = len(row.values) - len(known) + max(missing, 0)
            values.append([*known, *[None] * lost])
    planned = per_case * len(members)
    return estimate_of(
        metric,
        group,
        values,
        planned=planned,
        not_applicable=not_applicable,
        failures=failures,
        draws=per_case,
    )


def estimate_of(
    metric: Metric,
    group: str,
    values: list[list[float | None]],
    *,
    planned: int | None = None,
    not_applicable: int = 0,
    failures: Counter[str],
    draws: int = 1,
    interval: Interval | None = None,
) -> Estimate:
    """The estimate that follows from the values of each question, None where a draw has none.

    Args:
        planned: draws, of which ``not_applicable`` are not among the values; default: the values there are.
        failures: reason → how many draws are missing for it.
        interval: another one than the metric's own.
    """
    scored = sum(value is not None for question in values for value in question)
    planned = sum(map(len, values)) if planned is None else planned
    per_question = reduce(metric, values)
    interval = interval or _interval(metric, per_question)
    return Estimate(
        metric=metric.id,
        event=metric.event,
        group=group,
        kind=metric.kind,
        better=metric.better,
        per=metric.per,
        deterministic=metric.deterministic,
        judged=metric.judged,
        unit=metric.unit,
        n=sum(any(value is not None for value in question) for question in per_question),
        draws=draws,
        planned=planned,
        scored=scored,
        not_applicable=not_applicable,
        failed=planned - not_applicable - scored,
        numerator=_numerator(metric, per_question),
        value=interval.estimate,
        low=interval.low,
        high=interval.high,
        confidence=CONFIDENCE,
        method=interval.method,
        reason=interval.reason,
        icc=stats.icc_oneway(values).icc if draws > 1 and scored and per_question is values else None,
        bounds=_bounds(metric, values),
        failures=dict(sorted(failures.items())),
    )


def _interval(metric: Metric, values: stats.Values) -> Interval:
    if metric.kind == "rate":
        return stats.rate_ci(values, CONFIDENCE)
    if metric.kind == "score":
        return stats.score_ci(values, CONFIDENCE)
    found = stats.mean_t_ci(values, CONFIDENCE)
    # Seconds and tokens: with few questions the symmetric interval reaches below what can be.
    return found if found.low is None else replace(found, low=max(found.low, 0.0))


def _numerator(metric: Metric, values: stats.Values) -> float | None:
    if metric.kind != "rate":
        return None
    return sum(value for question in values for value in question if value is not None)


def _bounds(metric: Metric, values: stats.Values) -> Bounds | None:
    if metric.kind == "quantity":
        return None
    estimator = stats.rate_ci if metric.kind == "rate" else stats.score_ci

    def reduced(filled: stats.Values, confidence: float) -> Interval:
        # Missing draws are filled in first: a question that lost one may or may not have passed them all.
        return estimator(reduce(metric, filled), confidence)

    found = stats.gate_bounds(values, CONFIDENCE, reduced) if values else None
    if found is None:
        return None
    return Bounds(
        lower=found.lower, upper=found.upper, lower_exact=found.lower_exact, upper_exact=found.upper_exact
    )
