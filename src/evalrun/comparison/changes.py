"""How much a metric changed from one run to the next, and whether that could be chance.

Owns one change with its interval and test, the family of tests, and the word for what they show. The formulas
are those of :mod:`evalrun.stats`; which questions are compared is decided by ``comparison``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import stdev
from typing import Literal

from evalrun import stats
from evalrun.comparison.pairs import Pairs, interval_of
from evalrun.records import Population, Record
from evalrun.summary import CONFIDENCE

SURE = 0.05
"""Better or worse: the interval excludes 0 and the p-value adjusted for the family is below this."""
LIKELY = 0.10
"""Likely better or worse: the p-value of the metric alone is below this."""
POWER = 0.80

MIRRORED = {"answered": "correctly_refused"}
"""The same event from the other side: one test, and one member of the family."""

Word = Literal["better", "worse", "likely better", "likely worse", "no evidence", "no change", ""]
Test = Literal["mcnemar-midp", "sign-flip"]


class Change(Record):
    """One metric in both runs, on the questions that have a scored draw in each.

    ``change`` is new less old and ``low``, ``high`` are its limits. ``better`` and ``worse`` count questions,
    whichever way is good. ``cells`` (one draw only): passed in both, in the old only, in the new only, in
    neither. ``p`` is this metric's own; ``p_holm`` is adjusted for all metrics in which any question changed.
    ``needed``: questions that would show this change with 80 % power. ``missing``: draws without a score,
    old and new. ``left_out``: questions that one run has no score for, or to which the metric applies in one
    run only.
    """

    metric: str
    event: str
    population: Literal["all", Population]
    kind: Literal["rate", "score"]
    good: Literal["higher", "lower"]
    per: Literal["case", "draw"]
    judged: bool
    n: int
    missing: tuple[int, int]
    left_out: int
    old: float | None = None
    new: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = CONFIDENCE
    method: str = ""
    reason: str | None = None
    better: int = 0
    worse: int = 0
    cells: tuple[int, int, int, int] | None = None
    sd: float | None = None
    test: Test | None = None
    p: float | None = None
    p_holm: float | None = None
    needed: int | None = None
    word: Word = ""


def change_of(pairs: Pairs) -> Change:
    """The change of one metric, without tests: those need all of the changes."""
    metric = pairs.metric
    found = interval_of(metric.kind)(pairs.new, pairs.old, CONFIDENCE)
    differences = [new - old for old, new in pairs.means]
    sign = 1 if metric.better == "higher" else -1
    sd = stdev(differences) if len(differences) > 1 else None
    return Change(
        metric=metric.id,
        event=metric.event,
        population=metric.population,
        kind="rate" if metric.kind == "rate" else "score",
        good=metric.better,
        per=metric.per,
        judged=metric.judged,
        n=len(differences),
        missing=pairs.missing,
        left_out=pairs.left_out,
        old=_mean([old for old, _ in pairs.means]),
        new=_mean([new for _, new in pairs.means]),
        change=found.estimate,
        low=found.low,
        high=found.high,
        method=found.method,
        reason=found.reason,
        better=sum(sign * difference > 0 for difference in differences),
        worse=sum(sign * difference < 0 for difference in differences),
        cells=_cells(pairs),
        sd=sd,
        needed=_needed(found.estimate, sd),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _cells(pairs: Pairs) -> tuple[int, int, int, int] | None:
    """The four counts of a metric that passes or fails once a question; None for any other."""
    once = all(len(row) == 1 for row in (*pairs.old, *pairs.new))
    if pairs.metric.kind != "rate" or not once:
        return None
    count = [pairs.means.count(cell) for cell in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0))]
    return (count[0], count[1], count[2], count[3])


def _needed(change: float | None, sd: float | None) -> int | None:
    if change is None or not sd:
        return None
    found = stats.paired_sample_size(change, sd, power=POWER)
    return math.ceil(found) if found is not None else None


# ---------------------------------------------------------------- the tests of all of them


def tested(changes: Sequence[Change], pairs: Mapping[str, Pairs]) -> tuple[Change, ...]:
    """The changes with their p-values, alone and as a family (Holm 1979), and the word for each.

    A metric in which no question changed could not have been significant, whatever its signs; it is no member
    (Tarone 1990), and its p-value is 1.
    """
    from evalrun.stats.significance import holm  # needs scipy.stats, for which a run must not wait

    own = {change.metric: _p_value(change, pairs[change.metric]) for change in changes}
    family = [c.metric for c in changes if c.better + c.worse and _test_of(c.metric, own) == c.metric]
    adjusted = dict(zip(family, holm([own[name][1] for name in family]), strict=True))
    return tuple(
        _with_word(change, *own[change.metric], adjusted.get(_test_of(change.metric, own)))
        for change in changes
    )


def _test_of(metric: str, known: Collection[str]) -> str:
    """The metric whose test is also that of ``metric``."""
    mirror = MIRRORED.get(metric, metric)
    return mirror if mirror in known else metric


def _p_value(change: Change, pairs: Pairs) -> tuple[Test, float | None]:
    from evalrun.stats.significance import mcnemar_midp, sign_flip_test

    test: Test = "mcnemar-midp" if change.cells else "sign-flip"
    if not change.n:
        return test, None
    if change.cells:
        return test, mcnemar_midp(change.cells[1], change.cells[2])
    return test, sign_flip_test([new - old for old, new in pairs.means])


def _with_word(change: Change, test: Test, p: float | None, adjusted: float | None) -> Change:
    if p is not None and not change.better + change.worse:
        adjusted = 1.0
    found = {"test": test if p is not None else None, "p": p, "p_holm": adjusted}
    return change.model_copy(update={**found, "word": _word(change, p, adjusted)})


def _word(change: Change, p: float | None, adjusted: float | None) -> Word:
    if p is None or change.change is None:
        return ""
    if not change.better + change.worse:
        return "no change"
    if change.low is None or change.high is None or adjusted is None:
        return "no evidence"
    good = (change.change > 0) == (change.good == "higher")
    if adjusted < SURE and not change.low <= 0 <= change.high:
        return "better" if good else "worse"
    if p < LIKELY and change.change:
        return "likely better" if good else "likely worse"
    return "no evidence"
