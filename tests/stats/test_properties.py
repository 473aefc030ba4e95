"""What holds for any scores, labels and runs, looked for with random ones."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalrun import stats
from evalrun.stats.decision import Estimator
from evalrun.stats.significance import holm, mcnemar_exact, sign_flip_test

BIT = st.sampled_from([0.0, 1.0])
SCORE = st.integers(0, 8).map(lambda eighths: eighths / 8)
CONFIDENCE = st.sampled_from([0.8, 0.9, 0.95, 0.99])
ESTIMATOR: st.SearchStrategy[Estimator] = st.sampled_from([stats.rate_ci, stats.score_ci])


def questions(
    score: st.SearchStrategy[float] = BIT, low: int = 2, high: int = 20
) -> st.SearchStrategy[list[list[float]]]:
    """Questions with 1 to 4 draws each."""
    return st.lists(st.lists(score, min_size=1, max_size=4), min_size=low, max_size=high)


def equal_draws(high: int = 12) -> st.SearchStrategy[list[list[float]]]:
    """Questions with the same number of draws."""
    return st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(BIT, min_size=k, max_size=k), min_size=2, max_size=high)
    )


def mirrored(values: list[list[float]]) -> list[list[float]]:
    """The scores of the opposite event."""
    return [[1 - score for score in draws] for draws in values]


def limits(interval: stats.Interval) -> tuple[float, float, float]:
    """Estimate, low and high of a defined interval."""
    assert interval.estimate is not None
    assert interval.low is not None
    assert interval.high is not None
    return interval.estimate, interval.low, interval.high


@given(questions(SCORE), CONFIDENCE, ESTIMATOR)
def test_interval_holds_its_estimate(
    values: list[list[float]], confidence: float, estimator: Estimator
) -> None:
    """Limits lie in [0, 1], around the estimate, and never on it both."""
    estimate, low, high = limits(estimator(values, confidence))
    assert 0 <= low <= estimate <= high <= 1
    assert low < high


@given(questions(), CONFIDENCE)
def test_effective_number_is_bounded(values: list[list[float]], confidence: float) -> None:
    """Repeated draws are worth at least their questions and at most independent draws."""
    n_eff = stats.rate_ci(values, confidence).n_eff
    assert n_eff is not None
    assert len(values) <= n_eff <= len(values) ** 2 / sum(1 / len(draws) for draws in values) + 1e-9


@given(questions(SCORE), ESTIMATOR)
def test_complement(values: list[list[float]], estimator: Estimator) -> None:
    """The opposite event has the opposite limits."""
    estimate, low, high = limits(estimator(values, 0.95))
    other = limits(estimator(mirrored(values), 0.95))
    assert (1 - estimate, 1 - high, 1 - low) == pytest.approx(other, abs=1e-12)


@given(questions(), st.integers(1, 15).map(lambda x: x / 16), st.booleans())
def test_a_gate_and_its_mirror_agree(values: list[list[float]], threshold: float, at_least: bool) -> None:
    """At least T of an event and at most 1 - T of its opposite are the same gate."""
    one = stats.gate_verdict(values, threshold, at_least)
    other = stats.gate_verdict(mirrored(values), 1 - threshold, not at_least)
    assert one.decision == other.decision


@given(questions(SCORE), st.randoms(use_true_random=False), ESTIMATOR)
def test_order_changes_no_bit(values: list[list[float]], rng: random.Random, estimator: Estimator) -> None:
    """The order of questions and of draws changes nothing, to the last bit."""
    shuffled = [rng.sample(draws, len(draws)) for draws in rng.sample(values, len(values))]
    assert repr(estimator(values, 0.95)) == repr(estimator(shuffled, 0.95))


@given(equal_draws(), CONFIDENCE, st.data())
def test_limits_are_monotone(values: list[list[float]], confidence: float, data: st.DataObject) -> None:
    """One more passing draw never lowers a limit."""
    question = data.draw(st.integers(0, len(values) - 1))
    draw = data.draw(st.integers(0, len(values[0]) - 1))
    worse, better = [list(draws) for draws in values], [list(draws) for draws in values]
    worse[question][draw], better[question][draw] = 0.0, 1.0
    below, above = limits(stats.rate_ci(worse, confidence)), limits(stats.rate_ci(better, confidence))
    assert below[1] <= above[1] + 1e-12
    assert below[2] <= above[2] + 1e-12


@given(equal_draws(8), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=4))
def test_bounds_hold_whatever_is_missing(values: list[list[float]], lost: list[tuple[int, int]]) -> None:
    """Whatever the missing draws would have been, the limits lie inside the bounds of the gate."""
    gaps = {(q, d) for q, d in lost if q < len(values) and d < len(values[0])}
    holed: stats.Values = [
        [None if (q, d) in gaps else score for d, score in enumerate(draws)] for q, draws in enumerate(values)
    ]
    bounds = stats.gate_bounds(holed)
    assert bounds is not None
    for filling in itertools.product((0.0, 1.0), repeat=len(gaps)):
        whole = [list(draws) for draws in values]
        for (q, d), score in zip(sorted(gaps), filling, strict=True):
            whole[q][d] = score
        _, low, high = limits(stats.rate_ci(whole))
        assert bounds.lower - 1e-12 <= low
        assert high <= bounds.upper + 1e-12


@given(questions(high=12))
def test_one_question_a_document_is_no_document(values: list[list[float]]) -> None:
    """Documents of one question each leave the interval as it is."""
    nested = stats.nested_rate_ci(values, list(range(len(values))))
    assert limits(stats.rate_ci(values)) == pytest.approx(limits(nested), abs=1e-12)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), CONFIDENCE)
def test_against_scipy(counts: tuple[int, int], confidence: float) -> None:
    """Wilson and Clopper-Pearson are those of scipy."""
    x, n = counts
    for found, method in ((stats.wilson_ci, "wilson"), (stats.clopper_pearson_ci, "exact")):
        other = binomtest(x, n).proportion_ci(confidence, method=method)  # type: ignore[arg-type]
        assert (other.low, other.high) == pytest.approx(limits(found(x, n, confidence))[1:], abs=1e-9)


@given(st.lists(st.tuples(BIT, BIT), min_size=2, max_size=30))
def test_a_change_and_its_reverse(pairs: list[tuple[float, float]]) -> None:
    """new - old and old - new have opposite limits, paired and unpaired; a limit for a gate is no nearer."""
    a, b = ([[pair[side]] for pair in pairs] for side in (0, 1))
    estimate, low, high = limits(stats.paired_rate_ci(a, b))
    assert (-estimate, -high, -low) == pytest.approx(limits(stats.paired_rate_ci(b, a)), abs=1e-12)
    assert limits(stats.paired_rate_ci(a, b, purpose="noninferiority"))[1] <= low + 1e-12
    forth = limits(stats.unpaired_ci(stats.rate_ci(a), stats.rate_ci(b)))
    back = limits(stats.unpaired_ci(stats.rate_ci(b), stats.rate_ci(a)))
    assert (-forth[0], -forth[2], -forth[1]) == pytest.approx(back, abs=1e-12)


TABLES = st.integers(2, 4).flatmap(
    lambda q: st.lists(st.lists(st.integers(0, 20), min_size=q, max_size=q), min_size=q, max_size=q)
)


@given(TABLES, st.randoms(use_true_random=False))
def test_names_of_categories_do_not_matter(table: list[list[int]], rng: random.Random) -> None:
    """Categories in another order, or the raters exchanged, leave kappa and AC1 as they are."""
    counts = np.array(table)
    order = rng.sample(range(len(table)), len(table))
    for other in (counts[np.ix_(order, order)], counts.T):
        for one, two in (
            (stats.cohen_kappa(counts), stats.cohen_kappa(other)),
            (stats.gwet_ac1(counts), stats.gwet_ac1(other)),
            (stats.kappa_ci(counts), stats.kappa_ci(other)),
        ):
            assert list(vars(one).values()) == pytest.approx(list(vars(two).values()), abs=1e-7, nan_ok=False)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=4), max_size=12))
def test_raters_are_exchangeable(ratings: list[list[str | None]]) -> None:
    """Alpha and AC1 know no order of raters or units, and no names."""
    other = [
        [{"a": "x", "b": "y", "c": "z"}.get(label or "") for label in unit[::-1]] for unit in ratings[::-1]
    ]
    alpha, renamed = stats.krippendorff_alpha(ratings), stats.krippendorff_alpha(other)
    assert (alpha.units, alpha.dropped, alpha.reason) == (renamed.units, renamed.dropped, renamed.reason)
    assert alpha.alpha == (renamed.alpha if renamed.alpha is None else pytest.approx(renamed.alpha))
    ac1 = stats.gwet_ac1_raw(ratings, "abc").coefficient
    assert ac1 == pytest.approx(stats.gwet_ac1_raw(other, "zyx").coefficient)


@given(st.lists(st.floats(0, 1), max_size=8), st.randoms(use_true_random=False))
def test_holm(pvalues: list[float], rng: random.Random) -> None:
    """Adjusting never lowers a p-value or its rank, and does not depend on the order of the questions."""
    adjusted = holm(pvalues)
    found = [value for value in adjusted if value is not None]
    assert len(pvalues) == len(found)
    assert all(p <= value <= 1 for p, value in zip(pvalues, found, strict=True))
    assert [value for _, value in sorted(zip(pvalues, found, strict=True))] == sorted(found)
    order = rng.sample(range(len(pvalues)), len(pvalues))
    assert [found[place] for place in order] == holm([pvalues[place] for place in order])


@given(st.integers(0, 7), st.integers(0, 7))
def test_sign_flips_of_equal_changes_are_mcnemar(up: int, down: int) -> None:
    """With changes of one size the sign-flip test is the exact McNemar test."""
    differences = [1.0] * up + [-1.0] * down + [0.0] * 3
    assert mcnemar_exact(up, down) == pytest.approx(sign_flip_test(differences))


@given(st.lists(st.tuples(BIT, BIT), min_size=2, max_size=40), st.lists(BIT, max_size=60))
def test_corrected_rates_stay_in_range(pairs: list[tuple[float, float]], others: list[float]) -> None:
    """A corrected rate lies in [0, 1] inside its limits; without a judge's help it is the labels'."""
    labels, verdicts = [a for a, _ in pairs], [b for _, b in pairs]
    found = stats.ppi_ci(labels, verdicts, others)
    estimate, low, high = limits(found)
    assert 0 <= low <= estimate <= high <= 1
    assert found.n_eff is not None
    assert len(pairs) <= found.n_eff <= len(pairs) + len(others) + 1e-9
    alone = limits(stats.rate_ci([[label] for label in labels]))
    assert alone == pytest.approx(limits(stats.ppi_ci(labels, verdicts, [])), abs=1e-12)
    assert alone == pytest.approx(limits(stats.labelled_draw_ci(labels, [[v] for v in verdicts])), abs=1e-12)


@given(st.integers(1, 12), st.data())
def test_pass_rates_of_one_question(n: int, data: st.DataObject) -> None:
    """pass@k grows with k, pass^k falls, both start at c/n and average over all choices of k draws."""
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = [True] * c + [False] * (n - c)
    chosen = list(itertools.combinations(draws, k)) if math.comb(n, k) <= 1000 else []
    if chosen:
        assert sum(map(any, chosen)) / len(chosen) == pytest.approx(stats.pass_at_k(n, c, k))
        assert sum(map(all, chosen)) / len(chosen) == pytest.approx(stats.pass_hat_k(n, c, k))
    assert c / n == pytest.approx(stats.pass_at_k(n, c, 1)) == pytest.approx(stats.pass_hat_k(n, c, 1))
    assert stats.pass_at_k(n, c, n + 1) is None
    assert stats.pass_hat_k(n, c, n + 1) is None
