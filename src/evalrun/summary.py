"""Scores to estimates: who is counted, what is missing, and the interval that fits.

Owns the way from the scores of draws to one number a metric and group, draws reduced per case first. The
formulas are those of :mod:`evalrun.stats`; whether a number is good enough is decided by the gates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from evalrun import stats
from evalrun.dataset import GROUPS
from evalrun.records import Bounds, Case, Estimate, Metric, Score
from evalrun.reducers import reduce, split
from evalrun.stats import Interval
from evalrun.stats.blas import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE = 0.95


Draws = tuple[float | None, ...]
"""What a case's draws came to, None for each that was lost."""
Reduced = tuple[float, int, int, float, int]
"""Sum of a case's scored draws, how many, how many were lost, their spread, how many did not apply."""
_ALIKE = 6
"""Up to so many passes and fails a case are kept once for all cases that have the same."""


class Table:
    """All scores of a run, reduced to what the estimates need.

    By metric and case: a value a draw, None where it was lost; and, where there are any, how many draws did
    not apply, and why others were lost. Most cases came to one of a few tuples, since a large run has a
    million scores.
    """

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Draws]] = {}
        self._not_applicable: dict[str, dict[str, int]] = {}
        self._reasons: dict[tuple[str, str], list[str]] = {}
        self._alike: dict[Draws, Draws] = {}
        self._reduced: tuple[str, dict[str, Reduced]] = ("", {})

    def add(self, score: Score) -> None:
        """Take in one score, in any order."""
        status = score.status
        self._reduced = ("", {})
        if status == "pass":
            self._append(score, 1.0)
        elif status == "fail":
            self._append(score, 0.0)
        elif status == "number":
            self._append(score, score.value)
        elif status == "not_applicable":
            counts = self._not_applicable.setdefault(score.metric, {})
            counts[score.case] = counts.get(score.case, 0) + 1
        else:
            self._append(score, None)
            reason = (score.reason or "unknown").partition(":")[0]
            self._reasons.setdefault((score.metric, score.case), []).append(reason)

    def _append(self, score: Score, value: float | None) -> None:
        known = self._values.setdefault(score.metric, {})
        values = (*known.get(score.case, ()), value)
        if len(values) <= _ALIKE and value in (0.0, 1.0, None):
            values = self._alike.setdefault(values, values)
        known[score.case] = values

    def draws(self, metric: str, case: str) -> Draws:
        """The draws of a case in the order in which they came, None for each that was lost to an error."""
        return self._values.get(metric, {}).get(case, ())

    def sums(
        self, metric: str, members: Sequence[Case], planned: int
    ) -> tuple[stats.Sums, NDArray[np.int64]]:
        """``members`` as intervals take them, and of each how many draws did not apply."""
        if self._reduced[0] != metric:  # one metric's at a time: its groups are asked for one after the other
            self._reduced = (metric, {})
        known = self._reduced[1]
        values, others = self._values.get(metric, {}), self._not_applicable.get(metric, {})
        for case in members:
            if case.id not in known:
                known[case.id] = _reduce(values.get(case.id, ()), others.get(case.id, 0), planned)
        columns = np.array([known[case.id] for case in members], dtype=np.float64).reshape(-1, 5).T
        scored, lost, not_applicable = (columns[at].astype(np.int64) for at in (1, 2, 4))
        return stats.Sums(columns[0], scored, lost, columns[3]), not_applicable

    def failures(self, metric: str, cases: Iterable[str], planned: int) -> Counter[str]:
        """Reason → how many draws it cost; a planned draw without a score was not asked."""
        failures: Counter[str] = Counter()
        for case in cases:
            failures.update(self._reasons.get((metric, case), ()))
            not_applicable = self._not_applicable.get(metric, {}).get(case, 0)
            missing = planned - len(self.draws(metric, case)) - not_applicable
            if missing > 0:
                failures["not asked"] += missing
        return failures


@lru_cache(maxsize=4096)
def _reduce(values: Draws, not_applicable: int, planned: int) -> Reduced:
    passes, missing = values.count(1.0), values.count(None)
    scored = len(values) - missing
    lost = max(planned - not_applicable, len(values)) - scored
    if passes + values.count(0.0) == scored:  # most scores are 0 or 1, which need no exact sum
        spread = passes * (scored - passes) / scored if scored else 0.0
        return float(passes), scored, lost, spread, not_applicable
    known = [value for value in values if value is not None]
    return math.fsum(known), scored, lost, stats.spread(known), not_applicable


def groups_of(metric: Metric, cases: Sequence[Case]) -> dict[str, list[Case]]:
    """The groups a metric is estimated in: its population (``all`` too if it counts all), and finer ones."""
    coarse = GROUPS if metric.population == "all" else (metric.population,)
    found: dict[str, list[Case]] = {name: [] for name in coarse}
    for case in cases:
        if metric.population in ("all", case.population):
            for name in case.groups:
                if name in found or name not in GROUPS:
                    found.setdefault(name, []).append(case)
    return {name: members for name, members in found.items() if members}


def summarise(
    metrics: Sequence[Metric],
    cases: Sequence[Case],
    scores: Iterable[Score],
    draws: int,
    *,
    gated: bool = True,
) -> tuple[Estimate, ...]:
    """Every estimate of a run.

    Args:
        metrics: what was measured.
        cases: what was asked, in dataset order.
        scores: in any order; a planned score that is not among them is missing.
        draws: planned draws a case.
        gated: whether gates may be held against them; without, they have no bounds.
    """
    table = Table()
    for score in scores:
        table.add(score)
    groups: dict[str, dict[str, list[Case]]] = {}
    for metric in metrics:
        if metric.population not in groups:
            groups[metric.population] = groups_of(metric, cases)
    return tuple(
        estimate(metric, group, members, table, draws, gated=gated)
        for metric in metrics
        for group, members in groups[metric.population].items()
    )


def estimate(
    metric: Metric, group: str, members: Sequence[Case], table: Table, draws: int, *, gated: bool = True
) -> Estimate:
    """One metric in one group."""
    per_case = draws if metric.per == "draw" else 1
    base, reducer = split(metric.id)
    every, not_applicable = table.sums(base, members, per_case)
    counted = np.flatnonzero(every.scored + every.lost)
    sums, counting = every.only(counted), [members[place] for place in counted.tolist()]
    found = _Questions.of(sums)
    if reducer:
        rows = [table.draws(base, case.id) for case in counting]
        asked = (sums.scored + sums.lost).tolist()
        found = _reduced(
            metric, [[*row, *[None] * (n - len(row))] for row, n in zip(rows, asked, strict=True)]
        )
    lost = [members[place].id for place in np.flatnonzero(every.lost).tolist()]
    return _estimate(
        metric,
        group,
        found,
        documents=documents_of(counting),
        planned=per_case * len(members),
        not_applicable=int(not_applicable.sum()),
        failures=table.failures(base, lost, per_case),
        draws=per_case,
        gated=gated,
    )


def estimate_of(
    metric: Metric,
    group: str,
    values: list[list[float | None]],
    *,
    failures: Counter[str],
    interval: Interval | None = None,
) -> Estimate:
    """The estimate that follows from the one value of each question, None where it has none.

    Args:
        failures: reason → how many values are missing for it.
        interval: another one than the metric's own.
    """
    found = _reduced(metric, values)
    return _estimate(metric, group, found, planned=len(values), failures=failures, interval=interval)


@dataclass(frozen=True)
class _Questions:
    """The questions of an estimate as intervals take them: as scored, and with every lost draw filled in.

    ``scored`` counts draws. ``alike``: how alike the draws of a question are, where they are not reduced.
    """

    read: stats.Questions
    filled: Callable[[float], stats.Questions]
    scored: int
    alike: Callable[[], float | None] = lambda: None

    @classmethod
    def of(cls, sums: stats.Sums) -> _Questions:
        """Questions that count with the mean of their draws."""
        read = sums.read()
        return cls(read, sums.filled, int(sums.scored.sum()), lambda: stats.icc_oneway(read).icc)


def _reduced(metric: Metric, values: stats.Values) -> _Questions:
    """Questions that count with what the metric's reducer makes of their draws."""

    def filled(missing: float) -> stats.Questions:
        # Missing draws are filled in first: a question that lost one may or may not have passed them all.
        full = [[missing if value is None else value for value in draws] or [missing] for draws in values]
        return stats.read(reduce(metric, full))

    scored = sum(value is not None for draws in values for value in draws)
    return _Questions(stats.read(reduce(metric, values)), filled, scored)


def _estimate(
    metric: Metric,
    group: str,
    found: _Questions,
    *,
    planned: int,
    failures: Counter[str],
    documents: Sequence[Hashable] | None = None,
    not_applicable: int = 0,
    draws: int = 1,
    interval: Interval | None = None,
    gated: bool = True,
) -> Estimate:
    estimator = _estimator(metric, documents)
    interval = interval or estimator(found.read, CONFIDENCE)
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
        n=found.read.n,
        draws=draws,
        planned=planned,
        scored=found.scored,
        not_applicable=not_applicable,
        failed=planned - not_applicable - found.scored,
        numerator=_numerator(metric, found.read),
        value=interval.estimate,
        low=interval.low,
        high=interval.high,
        confidence=CONFIDENCE,
        method=interval.method,
        reason=interval.reason,
        documents=interval.documents_effective if isinstance(interval, stats.NestedInterval) else None,
        icc=found.alike() if draws > 1 and found.scored else None,
        bounds=_bounds(metric, found, estimator) if gated and planned > not_applicable else None,
        failures=dict(sorted(failures.items())),
    )


def documents_of(members: Sequence[Case]) -> list[Hashable] | None:
    """The document of each question, one without a ``cluster`` being its own; None where no two share one."""
    if not any(case.cluster for case in members):
        return None
    documents: list[Hashable] = [
        ("cluster", case.cluster) if case.cluster is not None else ("case", case.id) for case in members
    ]
    return documents if len(set(documents)) < len(documents) else None


Estimator = Callable[[stats.Questions, float], Interval]


def _estimator(metric: Metric, documents: Sequence[Hashable] | None) -> Estimator:
    """The interval that fits; questions that share a document count together."""
    if metric.kind == "quantity":
        return _quantity
    if documents is not None:
        return lambda questions, confidence: stats.nested_rate_ci(questions, documents, confidence)
    return stats.rate_ci if metric.kind == "rate" else stats.score_ci


def _quantity(questions: stats.Questions, confidence: float) -> Interval:
    found = stats.mean_t_ci(questions, confidence)
    # Seconds and tokens: with few questions the symmetric interval reaches below what can be.
    return found if found.low is None else replace(found, low=max(found.low, 0.0))


def _numerator(metric: Metric, questions: stats.Questions) -> float | None:
    if metric.kind != "rate":
        return None
    return round(math.fsum((questions.means * questions.sizes).tolist()), 9)


def _bounds(metric: Metric, found: _Questions, estimator: Estimator) -> Bounds | None:
    if metric.kind == "quantity":
        return None
    bounds = stats.bounds_of(found.filled, CONFIDENCE, estimator)
    if bounds is None:
        return None
    return Bounds(
        lower=bounds.lower,
        upper=bounds.upper,
        lower_exact=bounds.lower_exact,
        upper_exact=bounds.upper_exact,
    )
