"""Agreement that cannot be computed says so, and a million labels are no burden."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evalrun import stats
from known import known, lines_of


def interval(found: stats.Interval) -> tuple[float | None, float | None, float | None, str | None]:
    """Estimate, limits and reason."""
    return found.estimate, found.low, found.high, found.reason


ST_04 = [(row["human"], row["judge"]) for row in lines_of("st-04-single-class.jsonl")]


@known("ST-04", ST_04, [(True, True)], [(True, True)] * 500, [(False, False)] * 2)
def test_one_class_only(given: list[tuple[bool, bool]]) -> None:
    """Where both sides know one category only, agreement is 1 and kappa undefined, never NaN."""
    table = stats.contingency([judge for _, judge in given], [human for human, _ in given])
    found = stats.cohen_kappa(table)
    assert (None, None, 1.0, "single_category") == (found.kappa, found.se, found.observed, found.reason)
    assert (None, None, None, "single_category", len(given)) == (
        *interval(stats.kappa_ci(table)),
        stats.kappa_ci(table).n,
    )
    alpha = stats.krippendorff_alpha([[judge, human] for human, judge in given])
    assert (None, "single_category") == (alpha.alpha, alpha.reason)
    assert 1.0 == stats.gwet_ac1(table).coefficient


def test_one_constant_rater() -> None:
    """Kappa is 0 where one rater never varies: given, with a warning."""
    for table in ([[5, 3], [0, 0]], [[5, 0], [3, 0]], [[0, 8], [0, 0]]):
        found = stats.cohen_kappa(table)
        assert 0.0 == pytest.approx(found.kappa)
        assert "no_variation" == found.reason
        assert "no_variation" == stats.kappa_ci(table).reason


def test_perfect_agreement_is_not_certain() -> None:
    """26 and 9 agreements without an error give 1, and an interval with width."""
    estimate, low, high, reason = interval(stats.kappa_ci([[26, 0], [0, 9]]))
    assert (1.0, 1.0, None) == (estimate, high, reason)
    assert 0.80 == pytest.approx(low, abs=0.005)
    assert 0.0 == stats.cohen_kappa([[26, 0], [0, 9]]).se


def test_few_labels_decide_nothing() -> None:
    """The worked example of eight labels."""
    assert (0.5, -0.17, 0.97, None) == pytest.approx(interval(stats.kappa_ci([[3, 1], [1, 3]])), abs=0.005)


def test_no_labels() -> None:
    """Without labels everything is undefined."""
    empty = stats.contingency([], [])
    assert [[0, 0], [0, 0]] == empty.tolist()
    for found in (stats.cohen_kappa(empty), stats.kappa_ci(empty), stats.gwet_ac1(empty), stats.pabak(empty)):
        assert "no_data" == found.reason
    assert "no_data" == stats.krippendorff_alpha([[1], [None, None], []]).reason
    assert "no_data" == stats.gwet_ac1_raw([["a"]], "ab").reason
    assert 3 == stats.krippendorff_alpha([[1], [None, None], []]).dropped


def test_a_category_nobody_used_counts() -> None:
    """A third, unused category changes how many there are, and so the interval and AC1, not kappa."""
    two, three = [[18, 2], [3, 12]], [[18, 2, 0], [3, 12, 0], [0, 0, 0]]
    assert stats.cohen_kappa(two).kappa == pytest.approx(stats.cohen_kappa(three).kappa)
    assert stats.kappa_ci(two).low != pytest.approx(stats.kappa_ci(three).low)
    assert stats.gwet_ac1(two).coefficient != pytest.approx(stats.gwet_ac1(three).coefficient)


def test_unknown_categories() -> None:
    """A label that was not declared is an error that names it."""
    assert [1, 0] == stats.encode(["b", "a"], ["a", "b"]).tolist()
    with pytest.raises(ValueError, match=r"label 1: 'maybe'; label 2: None"):
        stats.encode(["yes", "maybe", None], ["no", "yes"])
    with pytest.raises(ValueError, match="not among the categories"):
        stats.gwet_ac1_raw([["a", "z"]], "ab")
    with pytest.raises(ValueError, match="two categories"):
        stats.gwet_ac1_raw([["a", "a"]], "a")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_codes_out_of_range(dtype: Any) -> None:
    """A code that is no category is refused with its place; so are fractions and unequal lengths."""
    bad = np.array([0, 1, 2 if dtype is np.uint8 else -1], dtype=dtype)
    with pytest.raises(ValueError, match=r"places \[2\]"):
        stats.contingency(bad, np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"places \[2\]"):
        stats.contingency(np.array([0, 1, 1]), bad)


def test_codes_of_other_kinds() -> None:
    """Fractions are no codes and every label needs its partner."""
    with pytest.raises(ValueError, match="whole numbers"):
        stats.contingency([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="2 labels of one rater and 3"):
        stats.contingency([0, 1], [0, 1, 1])


def test_contingency_counts() -> None:
    """Rows are the first rater, columns the second, with many categories too."""
    assert [[1, 2], [0, 1]] == stats.contingency(
        [False, False, False, True], [False, True, True, True]
    ).tolist()
    codes = np.arange(20, dtype=np.int8)
    assert np.array_equal(np.eye(20), stats.contingency(codes, codes, 20))


@pytest.mark.parametrize("table", [[[1, 2]], [[1]], [[1, -1], [0, 0]], [[1, float("nan")], [0, 0]], [1, 2]])
def test_bad_tables(table: Any) -> None:
    """A table is square and holds counts."""
    for function in (stats.cohen_kappa, stats.kappa_ci, stats.gwet_ac1, stats.pabak):
        with pytest.raises(ValueError, match=r"square|counts"):
            function(table)
    with pytest.raises(ValueError, match="2 x 2"):
        stats.pabak(np.eye(3))


def test_judge_without_positives() -> None:
    """Without a positive reference label sensitivity is undefined and specificity is not."""
    found = stats.judge_accuracy(0, 2, 0, 8)
    assert (None, "no_data") == (found.sensitivity.estimate, found.sensitivity.reason)
    assert 0.8 == found.specificity.estimate
    wilson = stats.judge_accuracy(0, 2, 0, 8, method="wilson").specificity
    assert stats.wilson_ci(8, 10).low == wilson.low
    with pytest.raises(ValueError, match="fn must"):
        stats.judge_accuracy(1, 1, -1, 1)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64])
def test_a_million_labels(dtype: Any) -> None:
    """Kappa of a million pairs costs at most three times a bare bincount of them."""
    rng = np.random.default_rng(5)
    judge, labels = (rng.integers(0, 2, 1_000_000).astype(dtype) for _ in range(2))
    cells = judge.astype(np.int64) * 2 + labels

    def bare() -> object:
        return np.bincount(cells, minlength=4)

    def kappa() -> object:
        return stats.cohen_kappa(stats.contingency(judge, labels))

    # Turn by turn, so that what slows the processor down slows both; the least of each is the undisturbed.
    turns = [(_seconds(kappa), _seconds(bare)) for _ in range(40)]
    assert min(ours for ours, _ in turns) <= 3 * min(theirs for _, theirs in turns)


def _seconds(function: Callable[[], object]) -> float:
    """Processor seconds of a call: other processes take time, not these seconds."""
    start = time.process_time()
    function()
    return time.process_time() - start
