"""Scores to estimates: who is counted, what is missing, and the interval that fits.

Owns the way from the scores of draws to one number a metric and group, draws reduced per case first. The
formulas are those of :mod:`evalrun.stats`; whether a number is good enough is decided by the gates.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

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
Kind = tuple[Any, ...]
"""How many draws of a case did not apply, and then its :data:`Draws`."""
Reduced = tuple[float, int, int, float, int]
"""Sum of a case's scored draws, how many, how many were lost, their spread, how many did not apply."""
_ALIKE = 6
"""Up to so many passes and fails a case are kept once for all cases that have the same."""
_NOT_APPLICABLE = "not_applicable"


class _Column:
    """One metric: of each case by its place what it came to, which of most is one of a few kinds.

    ``at`` holds the index of a kind; a case with numbers like no other has its own, counted from -1 down.
    """

    def __init__(self, cases: int) -> None:
        self.at = array("l", [0]) * cases
        self.kinds: list[Kind] = [(0,)]
        self.own: list[Kind] = []
        self._next: dict[tuple[int, float | str | None], int] = {}

    def add(self, place: int, value: float | str | None) -> None:
        """Take in one draw of a case: its value, None where it was lost, or that it did not apply."""
        kind = self.at[place]
        following = self._next.get((kind, value))
        self.at[place] = self._after(kind, value) if following is None else following

    def _after(self, kind: int, value: float | str | None) -> int:
        known = self.of(kind)
        made = (known[0] + 1, *known[1:]) if value == _NOT_APPLICABLE else (*known, value)
        if kind < 0:
            self.own[~kind] = made
            return kind
        if len(made) <= _ALIKE + 1 and value in (0.0, 1.0, None, _NOT_APPLICABLE):
            self.kinds.append(made)
            self._next[kind, value] = len(self.kinds) - 1
            return len(self.kinds) - 1
        self.own.append(made)
        return -len(self.own)

    def of(self, index: int) -> Kind:
        """The kind of an index."""
        return self.kinds[index] if index >= 0 else self.own[~index]

    def reduced(self, planned: int) -> NDArray[np.float64]:
        """A row of :data:`Reduced` a kind, at its index."""
        kinds = chain(self.kinds, reversed(self.own))
        rows = (_reduce(kind[1:], kind[0], planned) for kind in kinds)
        return np.fromiter(rows, np.dtype((np.float64, 5)), len(self.kinds) + len(self.own))


@dataclass(frozen=True)
class _Members:
    """A group: its cases, their places in the table, whether any has a cluster."""

    cases: Sequence[Case]
    places: NDArray[np.int64]
    clustered: bool


class Table:
    """All scores of ``cases``, reduced to what the estimates need.

    By metric and case: a value a draw, None where it was lost; how many draws did not apply, and why others
    were lost. A large run has a million scores, of which most cases have one of a few kinds.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._places = {case.id: place for place, case in enumerate(cases)}
        self._columns: dict[str, _Column] = {}
        self._reasons: dict[tuple[str, str], list[str]] = {}
        self._groups: dict[int, _Members] = {}
        self._reduced: tuple[str, int, NDArray[np.float64]] | None = None

    def add(self, score: Score) -> None:
        """Take in one score, in any order; one of another case is let go."""
        place = self._places.get(score.case)
        if place is None:
            return
        self._reduced = None
        status = score.status
        if status == "pass":
            value: float | str | None = 1.0
        elif status == "fail":
            value = 0.0
        elif status == "number":
            value = score.value
        elif status == "not_applicable":
            value = _NOT_APPLICABLE
        else:
            value = None
            reason = (score.reason or "unknown").partition(":")[0]
            self._reasons.setdefault((score.metric, score.case), []).append(reason)
        column = self._columns.get(score.metric)
        if column is None:
            column = self._columns[score.metric] = _Column(len(self._places))
        column.add(place, value)

    def _kind(self, metric: str, case: str) -> Kind:
        column, place = self._columns.get(metric), self._places[case]
        return column.of(column.at[place]) if column is not None else (0,)

    def draws(self, metric: str, case: str) -> Draws:
        """The draws of a case in the order in which they came, None for each that was lost to an error."""
        return self._kind(metric, case)[1:]

    def members(self, cases: Sequence[Case]) -> _Members:
        """A group, whose cases are looked up once."""
        found = self._groups.get(id(cases))
        if found is None:
            places = np.fromiter((self._places[case.id] for case in cases), np.int64, len(cases))
            clustered = any(case.cluster for case in cases)
            found = self._groups[id(cases)] = _Members(cases, places, clustered)
        return found

    def sums(
        self, metric: str, members: Sequence[Case], planned: int
    ) -> tuple[stats.Sums, NDArray[np.int64]]:
        """``members`` as intervals take them, and of each how many draws did not apply."""
        column = self._columns.get(metric) or _Column(len(self._places))
        if self._reduced is None or self._reduced[:2] != (metric, planned):
            # one metric's at a time: its groups are asked for one after the other
            self._reduced = (metric, planned, column.reduced(planned))
        kinds = np.array(column.at)[self.members(members).places]
        columns = self._reduced[2][kinds].T
        scored, lost, not_applicable = (columns[at].astype(np.int64) for at in (1, 2, 4))
        return stats.Sums(columns[0], scored, lost, columns[3]), not_applicable

    def failures(self, metric: str, cases: Iterable[str], planned: int) -> Counter[str]:
        """Reason → how many draws it cost; a planned draw without a score was not asked."""
        failures: Counter[str] = Counter()
        for case in cases:
            failures.update(self._reasons.get((metric, case), ()))
            not_applicable, *draws = self._kind(metric, case)
            missing = planned - len(draws) - not_applicable
            if missing > 0:
                failures["not asked"] += missing
        return failures


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
    table = Table(cases)
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
    sums, found, counting = every.only(counted), None, list[Case]()
    if reducer or table.members(members).clustered:
        counting = [members[place] for place in counted.tolist()]
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
        found or _Questions.of(sums),
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
