"""The contract at the edges: nothing, one, all, and what is not a score."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from evalrun import stats
from known import json_of, known

Estimator = Callable[[stats.Values, float], stats.Interval]
ESTIMATORS: list[Estimator] = [stats.rate_ci, stats.score_ci, stats.mean_t_ci]


def interval(found: stats.Interval) -> tuple[float | None, float | None, float | None, str | None]:
    """Estimate, limits and reason."""
    return found.estimate, found.low, found.high, found.reason


def test_import_leaves_scipy_alone() -> None:
    """Importing the package costs neither scipy.stats nor scipy.special."""
    code = (
        "import sys, evalrun.stats; print([m for m in ('scipy.stats', 'scipy.special') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout


def test_a_gate_never_imports_scipy_stats() -> None:
    """Intervals and gates of a run are made without scipy.stats."""
    code = (
        "import sys; from evalrun import stats; stats.gate_verdict([[1]] * 9, 0.5); "
        "stats.mean_t_ci([[1], [2]]); print('scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False\n" == done.stdout


@known(
    "ST-01",
    [(case["x"], case["n"], *case["expect"]) for case in json_of("st-01-wilson-bounds.json")["cases"]],
    [(0, 1, 0, 0.7935), (2, 2, 0.3424, 1), (0, 3, 0, 0.5615)],
    [(1, 1000, 0.0002, 0.0056), (999, 1000, 0.9944, 0.9998), (500, 1000, 0.4691, 0.5309)],
    [(0, 10**9, 0, 0), (10**9, 10**9, 1, 1)],
)
def test_wilson_values(given: list[tuple[int, int, float, float]]) -> None:
    """Counts have the limits of the textbook, none of them a hair outside of [0, 1]."""
    for x, n, low, high in given:
        found = stats.wilson_ci(x, n)
        assert [low, high] == pytest.approx([found.low, found.high], abs=5e-5)
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.high <= 1


def test_wilson_stays_inside() -> None:
    """No rounding pushes a limit out of [0, 1], and the estimate lies between the limits."""
    for n in range(1, 201):
        for x in range(n + 1):
            found = stats.wilson_ci(x, n)
            assert found.low is not None
            assert found.high is not None
            assert 0 <= found.low <= x / n <= found.high <= 1


@known(
    "ST-02",
    [(case["x"], case["n"], case["expect"]) for case in json_of("st-02-wilson-zero.json")["cases"]],
    [(6, 5, "error"), (0, -1, "error"), (-1, -1, "error"), (10**9 + 1, 10**9, "error")],
    [(0.5, 2, "error"), (1, 2.0, "error"), (float("nan"), 2, "error"), (1, float("inf"), "error")],
)
def test_wilson_of_nothing(given: list[tuple[Any, Any, str | None]]) -> None:
    """No questions give no interval; impossible counts, and what is no count, are refused."""
    for x, n, expected in given:
        for method in (stats.wilson_ci, stats.clopper_pearson_ci):
            if expected == "error":
                with pytest.raises(ValueError, match=r"successes|n must"):
                    method(x, n)
            else:
                assert (None, None, None, "no_data") == interval(method(x, n))


@known(
    "ST-03",
    [(case["x"], case["n"], *case["expect"]) for case in json_of("st-03-degenerate-ends.json")["cases"]],
    [(0, 2, 0, 0.6576), (2, 2, 0.3424, 1), (0, 20, 0, 0.1611)],
    [(0, 200, 0, 0.0188), (200, 200, 0.9812, 1), (0, 100, 0, 0.0370)],
)
def test_degenerate_ends(given: list[tuple[int, int, float, float]]) -> None:
    """None or all of n is not certainty, and fewer questions are less certain."""
    width = {}
    for x, n, low, high in given:
        for method in (stats.wilson_ci, lambda x, n: stats.rate_ci([[float(i < x)] for i in range(n)])):
            found = method(x, n)
            assert found.low is not None
            assert found.high is not None
            assert [low, high] == pytest.approx([found.low, found.high], abs=5e-5)
            width[n] = found.high - found.low
    assert sorted(width.values(), reverse=True) == [width[n] for n in sorted(width)]


@pytest.mark.parametrize("n", [1, 2, 7, 35, 1000])
def test_ends_are_exact(n: int) -> None:
    """At 0 of n the lower limit is 0 to the bit, at n of n the upper one is 1, in every method."""
    for method in (stats.wilson_ci, stats.clopper_pearson_ci):
        assert (0.0, 1.0) == (method(0, n).low, method(n, n).high)
    assert (0.0, 1.0) == (stats.rate_ci([[0, 0]] * n).low, stats.rate_ci([[1, 1]] * n).high)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("values", [[], [[None], [None, None]], [[], []]])
def test_no_data(estimator: Estimator, values: stats.Values) -> None:
    """No questions, or all scores missing: everything is None, with its reason."""
    assert (None, None, None, "no_data") == interval(estimator(values, 0.95))
    assert (None, None, "no_data") == (
        stats.clustered_mean(values).mean,
        stats.clustered_mean(values).se,
        stats.clustered_mean(values).reason,
    )
    assert (None, "no_data") == (stats.icc_oneway(values).icc, stats.icc_oneway(values).reason)
    assert (None, None, None, "no_data") == interval(stats.macro_ci(values, ["a"] * len(values)))
    assert (None, None, None, "no_data") == interval(stats.nested_rate_ci(values, ["a"] * len(values)))


def test_one_question() -> None:
    """A rate of one question has Wilson's limits at n = 1 whatever its draws; scores have none."""
    one = stats.wilson_ci(1, 1)
    assert (one.low, one.high) == (stats.rate_ci([[1, 1, 1]]).low, stats.rate_ci([[1, 1, 1]]).high)
    assert 1.0 == stats.rate_ci([[1, 0, 1]]).n_eff
    for estimator in (stats.score_ci, stats.mean_t_ci):
        assert (0.5, None, None, "too_few_clusters") == interval(estimator([[0.5]]))
    assert (0.5, None) == (stats.clustered_mean([[0.5]]).mean, stats.clustered_mean([[0.5]]).se)
    assert (None, "too_few_clusters") == (stats.icc_oneway([[1, 0]]).icc, stats.icc_oneway([[1, 0]]).reason)


def test_missing_draws_are_left_out() -> None:
    """A missing draw lowers its question's k; a question without draws is no question."""
    assert stats.rate_ci([[1, None, 0], [1, 1, 1]]) == stats.rate_ci([[1, 0], [1, 1, 1]])
    assert stats.score_ci([[0.5], [None], [1.0], []]) == stats.score_ci([[0.5], [1.0]])
    assert 2 == stats.rate_ci([[1], [None], [0]]).n


def test_missing_scores_are_not_zero() -> None:
    """The mean over three scores and a failed judge call is over three."""
    case = json_of("se-03-error-score.json")
    found = stats.score_ci([[score] for score in case["scores"]])
    assert (case["expect"]["mean"], case["expect"]["n"]) == (pytest.approx(found.estimate), found.n)


def test_not_a_number_is_refused() -> None:
    """NaN names its question and draw; without it the mean is that of the rest."""
    case = json_of("se-04-nan.json")
    values = [[score] for score in case["scores"]]
    with pytest.raises(ValueError, match="question 2, draw 0: nan is not a number"):
        stats.score_ci(values)
    assert case["expect"]["mean"] == pytest.approx(stats.score_ci([values[i] for i in (0, 1, 3, 4)]).estimate)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1])
def test_bad_scores(score: float) -> None:
    """A score outside [0, 1] is refused by every rate and score, with its place."""
    values = [[1.0], [0.0, score]]
    for estimator in (stats.rate_ci, stats.score_ci, stats.gate_bounds):
        with pytest.raises(ValueError, match="question 1, draw 1"):
            estimator(values)
    with pytest.raises(ValueError, match="question 1, draw 1"):
        stats.macro_ci(values, ["a", "a"])


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_bad_quantities(score: float) -> None:
    """A quantity may be any number, but a number."""
    with pytest.raises(ValueError, match="question 0, draw 0"):
        stats.mean_t_ci([[score], [1.0]])


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_bad_confidence(confidence: float) -> None:
    """A confidence outside (0, 1) is refused even where there are no data."""
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="confidence"):
            estimator([], confidence)
    for method in (stats.wilson_ci, stats.clopper_pearson_ci):
        with pytest.raises(ValueError, match="confidence"):
            method(0, 0, confidence)
    for grouped in (stats.macro_ci, stats.nested_rate_ci):
        with pytest.raises(ValueError, match="confidence"):
            grouped([], [], confidence)
    with pytest.raises(ValueError, match="confidence"):
        stats.gate_bounds([[1]], confidence)
    with pytest.raises(ValueError, match="confidence"):
        stats.min_n_perfect(0.9, confidence=confidence)


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (1, 0), (0.5, 2), (0, -1), (1, 2.0)])
def test_bad_counts(successes: Any, n: Any) -> None:
    """Negative or fractional counts and more successes than questions are refused."""
    for method in (stats.wilson_ci, stats.clopper_pearson_ci):
        with pytest.raises(ValueError, match=r"successes|n must"):
            method(successes, n)


def test_lengths_must_match() -> None:
    """A document or a category is needed for every question."""
    with pytest.raises(ValueError, match="2 questions but 1 documents"):
        stats.nested_rate_ci([[1], [0]], ["d"])
    with pytest.raises(ValueError, match="2 questions but 1 groups"):
        stats.macro_micro([[1], [0]], ["a"])


def test_constant_quantities() -> None:
    """Quantities that never vary have no t interval rather than one without width."""
    assert (3.0, None, None, "no_variation") == interval(stats.mean_t_ci([[3.0], [3.0]]))


def test_icc_without_variation() -> None:
    """ICC is undefined where all draws agree, and 1 where only questions differ."""
    assert (None, "no_variation") == (
        stats.icc_oneway([[1, 1], [1, 1]]).icc,
        stats.icc_oneway([[1, 1], [1, 1]]).reason,
    )
    assert 1.0 == stats.icc_oneway([[1, 1], [0, 0]]).icc
    assert "too_few_clusters" == stats.icc_oneway([[1], [0]]).reason


def test_a_category_without_scores_is_absent() -> None:
    """A category that lost all its draws has no mean, is no 0, and makes a macro interval decide nothing."""
    values: stats.Values = [[1], [1], [None]]
    found = stats.macro_micro(values, ["a", "a", "b"])
    assert (1.0, {"a": 1.0, "b": None}, {"a": 2, "b": 0}) == (found.macro, found.means, found.sizes)
    assert "too_few_clusters" == stats.macro_ci([*values, *[[1]] * 20], ["a", "a", "b", *["a"] * 20]).reason


def test_same_input_same_bytes() -> None:
    """The same scores give the same numbers to the last bit."""
    values: stats.Values = [[1, 0, 1], [0.25, None], [1 / 3]] * 5
    assert repr(stats.rate_ci(values)) == repr(stats.rate_ci(values))
