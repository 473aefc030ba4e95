"""A threshold is decided by limits, and what is missing counts against the gate."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from evalrun import stats
from known import json_of, known


def passes(x: int, n: int) -> list[list[float | None]]:
    """x passes of n, one draw each."""
    return [[1.0 if place < x else 0.0] for place in range(n)]


def bounds(low: float, high: float) -> stats.GateBounds:
    """Limits that agree in both methods."""
    return stats.GateBounds(low, high, low, high)


@pytest.mark.parametrize(
    ("low", "high", "threshold", "at_least", "expected"),
    [
        (0.7, 0.9, 0.7, True, "holds"),
        (0.5, 0.69, 0.7, True, "fails"),
        (0.5, 0.7, 0.7, True, "undecided"),
        (0.1, 0.3, 0.3, False, "holds"),
        (0.31, 0.5, 0.3, False, "fails"),
        (0.3, 0.5, 0.3, False, "undecided"),
    ],
)
def test_decide(low: float, high: float, threshold: float, at_least: bool, expected: str) -> None:
    """On the threshold is on the right side of it; short of it on both sides is a failure."""
    assert expected == stats.decide(bounds(low, high), threshold, at_least)


def test_which_limit_decides() -> None:
    """Failing takes the exact limit; so does holding where Wilson errs on the wrong side, or on demand."""
    limits = stats.GateBounds(lower=0.2, upper=0.8, lower_exact=0.1, upper_exact=0.9)
    assert (0.2, 0.9) == (stats.pass_limit(limits, 0.5, True), stats.fail_limit(limits, True))
    assert (0.8, 0.1) == (stats.pass_limit(limits, 0.5, False), stats.fail_limit(limits, False))
    assert 0.1 == stats.pass_limit(limits, 0.49, True)
    assert 0.9 == stats.pass_limit(limits, 0.51, False)
    assert (0.1, 0.9) == (
        stats.pass_limit(limits, 0.7, True, "exact"),
        stats.pass_limit(limits, 0.3, False, "exact"),
    )


@known(
    "TH-03",
    json_of("th-03-equality.json")["cases"],
    [{"passes": x, "n": n, "min": x / n} for n in (3, 7, 13, 30, 49, 97) for x in range(n + 1)],
    [{"scores": [0.7, 0.8, 0.9], "min": 0.8}, {"scores": [0.3] * 3 + [0.1] * 7, "min": 0.16}],
    [{"scores": [1 / 3] * 30, "min": 1 / 3}, {"scores": [0.1, 0.2] * 15, "min": 0.15}],
)
def test_equality_holds(given: list[dict[str, Any]]) -> None:
    """A value that is the threshold but for rounding holds, from below and from above."""
    for case in given:
        scores = case.get("scores") or [1.0] * case["passes"] + [0.0] * (case["n"] - case["passes"])
        value = sum(scores) / len(scores)
        for at_least in (True, False):
            assert "holds" == stats.decide(bounds(value, value), case["min"], at_least)


TH_04 = json_of("th-04-mean-vs-case.json")


@known(
    "TH-04",
    (TH_04["scores"], TH_04["gate"]["mean_min"], 0.91, "undecided"),
    ([0.79] * 40 + [1.0] * 40, 0.8, 0.895, "holds"),
    ([1.0] * 60 + [0.0] * 20, 0.8, 0.75, "undecided"),
    ([0.81] * 40 + [0.0] * 40, 0.8, 0.405, "fails"),
)
def test_mean_decides_not_the_count(given: tuple[list[float], float, float, str]) -> None:
    """Scores are compared by the limit of their mean, not by how many of them reach the threshold."""
    scores, least, mean, decision = given
    values = [[score] for score in scores]
    found = stats.gate_verdict(values, least, estimator=stats.score_ci)
    assert decision == found.decision
    assert mean == pytest.approx(stats.score_ci(values).estimate)
    assert stats.score_ci(values).low == pytest.approx(found.pass_limit)


def test_missing_counts_against_the_gate() -> None:
    """A missing draw is a fail in the lower limits and a pass in the upper ones, question by question."""
    values: stats.Values = [[1, 1], [1, None], [None, None], [], *[[1, 1]] * 10]
    found = stats.gate_bounds(values)
    worst, best = stats.rate_ci([[1, 1], [1, 0], [0, 0], [0]] + [[1, 1]] * 10), stats.rate_ci([[1, 1]] * 14)
    assert found is not None
    assert (worst.low, best.high) == (found.lower, found.upper)


def test_denominator() -> None:
    """Eight of ten scored is no measurement at a coverage of .95; without that, the planned ten decide."""
    outcomes = json_of("se-02-denominator.json")["outcomes"]
    values: stats.Values = [[{"pass": 1.0, "fail": 0.0}.get(outcome)] for outcome in outcomes]
    assert "undecided" == stats.gate_verdict(values, 0.1).decision
    loose = stats.gate_verdict(values, 0.1, min_coverage=0)
    assert "holds" == loose.decision
    assert stats.clopper_pearson_ci(6, 10).low == pytest.approx(loose.pass_limit)
    assert 8 == stats.rate_ci(values).n


def test_nothing_to_decide() -> None:
    """A category without rows, or with errors only, is undecided; two questions are too few."""
    case = json_of("se-05-empty-category.json")
    found = {
        name: stats.gate_verdict(
            [[{"pass": 1.0, "fail": 0.0}.get(outcome)] for outcome in outcomes], case["gates"][name]
        )
        for name, outcomes in case["categories"].items()
    }
    assert {"undecided"} == {result.decision for result in found.values()}
    assert "no_data" == found["awards"].reason == found["phone"].reason
    assert "too_few_clusters" == found["work"].reason


def test_shared_documents_decide() -> None:
    """Bounds follow the estimator; too few documents decide nothing."""
    documents = [f"d{i // 4}" for i in range(40)]
    nested = partial(stats.nested_rate_ci, documents=documents)

    def by_document(values: stats.Values, confidence: float) -> stats.Interval:
        return nested(values, confidence=confidence)

    values = passes(30, 40)
    found, plain = stats.gate_bounds(values, 0.95, by_document), stats.gate_bounds(values)
    assert found is not None
    assert plain is not None
    assert stats.nested_rate_ci(values, documents).low == found.lower < plain.lower
    documents[:] = ["d"] * 40
    assert stats.gate_bounds(values, 0.95, by_document) is None
    assert "undecided" == stats.gate_verdict(values, 0.1, estimator=by_document).decision


def test_curtailment_is_sound() -> None:
    """With draws to come counted as missing, what is decided now stays decided whatever they bring."""
    done = passes(20, 20)
    early = stats.gate_bounds([*done, *[[None]] * 4])
    assert early is not None
    assert "holds" == stats.decide(early, 0.6, True)
    for more in range(5):
        assert "holds" == stats.gate_verdict([*done, *passes(more, 4)], 0.6).decision
