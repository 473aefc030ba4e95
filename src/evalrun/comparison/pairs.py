"""The values of one metric in two runs, question by question in the same order.

Owns which questions count for a metric and what is missing on either side; a question counts by the mean of
its draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evalrun import stats
from evalrun.comparison.measured import Values
from evalrun.records import Metric

Row = tuple[float | None, ...]


@dataclass(frozen=True)
class Pairs:
    """The values of one metric in both runs, question by question in the same order.

    ``means`` are of the questions with a scored draw in each run, (old, new); ``cases`` names these.
    ``missing`` counts draws without a score, old and new; ``left_out`` counts questions.
    """

    metric: Metric
    cases: tuple[str, ...]
    means: list[tuple[float, float]]
    old: list[Row]
    new: list[Row]
    missing: tuple[int, int]
    left_out: int

    @classmethod
    def of(cls, metric: Metric, paired: Sequence[str], a: Values, b: Values) -> Pairs:
        """Pair the values of ``metric`` in the old and the new run on the questions ``paired``."""
        both = [case for case in paired if case in a and case in b]
        scored = [(case, _mean(a[case]), _mean(b[case])) for case in both]
        known = [(case, x, y) for case, x, y in scored if x is not None and y is not None]
        one_sided = sum((case in a) != (case in b) for case in paired)
        return cls(
            metric=metric,
            cases=tuple(case for case, _, _ in known),
            means=[(x, y) for _, x, y in known],
            old=[a[case] for case in both],
            new=[b[case] for case in both],
            missing=(_missing(a[case] for case in both), _missing(b[case] for case in both)),
            left_out=one_sided + len(both) - len(known),
        )

    @property
    def old_mean(self) -> float | None:
        """The mean of the old run; None without a question that both have a score for."""
        return _mean([old for old, _ in self.means])


def _mean(row: Sequence[float | None]) -> float | None:
    known = [value for value in row if value is not None]
    return math.fsum(known) / len(known) if known else None


def _missing(rows: Iterable[Row]) -> int:
    return sum(value is None for row in rows for value in row)


def interval_of(kind: str) -> Callable[..., stats.Interval]:
    """The interval of a difference that fits a kind of metric."""
    return stats.paired_rate_ci if kind == "rate" else stats.paired_score_ci
