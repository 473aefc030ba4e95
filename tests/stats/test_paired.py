"""A change between runs: what cannot be paired is left out, and no change is not certainty."""

from __future__ import annotations

import pytest

from evalrun import stats


def interval(found: stats.Interval) -> tuple[float | None, float | None, float | None, str | None]:
    """Estimate, limits and reason."""
    return found.estimate, found.low, found.high, found.reason


def test_two_perfect_runs() -> None:
    """Two perfect runs of 8 questions differ by 0 ± .324, whatever their draws."""
    for k in (1, 3):
        found = interval(stats.paired_rate_ci([[1] * k] * 8, [[1] * k] * 8))
        assert (0.0, -0.324, 0.324, None) == pytest.approx(found, abs=5e-4)


def test_all_against_none() -> None:
    """10 of 10 against 0 of 10, paired or not, stays within 1."""
    found = interval(stats.unpaired_ci(stats.wilson_ci(10, 10), stats.wilson_ci(0, 10)))
    assert (1.0, 0.608, 1.0, None) == pytest.approx(found, abs=5e-4)
    assert 1.0 == stats.paired_rate_ci([[1]] * 10, [[0]] * 10).high


@pytest.mark.parametrize("pair", [stats.paired_rate_ci, stats.paired_score_ci])
def test_questions_of_one_run_only(pair: type[stats.Interval]) -> None:
    """A question that one run has no draw for is left out of both."""
    a: stats.Values = [[1], [1], [None], [0], [1]]
    b: stats.Values = [[0], [1], [1], [None], [1]]
    assert pair(a, b) == pair([[1], [1], [1]], [[0], [1], [1]])  # type: ignore[arg-type, call-arg]


def test_too_few_to_compare() -> None:
    """No common question gives nothing, one gives its difference without limits."""
    for pair in (stats.paired_rate_ci, stats.paired_score_ci):
        assert (None, None, None, "no_data") == interval(pair([], []))
        assert (None, None, None, "no_data") == interval(pair([[1], [None]], [[None], [1]]))
        assert (1.0, None, None, "too_few_clusters") == interval(pair([[1]], [[0]]))
        with pytest.raises(ValueError, match="2 and 1 questions"):
            pair([[1], [0]], [[1]])
        with pytest.raises(ValueError, match="confidence"):
            pair([], [], 1.5)
        with pytest.raises(ValueError, match="question 0, draw 1"):
            pair([[1, 1]], [[1, float("nan")]])


def test_unpaired_without_data() -> None:
    """A group without data has no difference to another."""
    for a, b in ((0, 5), (5, 0)):
        found = stats.unpaired_ci(stats.wilson_ci(0, a), stats.wilson_ci(0, b))
        assert (None, None, None, "no_data") == interval(found)


def test_noninferiority_is_stricter() -> None:
    """Where a few questions change, all in one direction, the limit for a gate lies lower."""
    new, old = [[1, 1, 1]] * 30 + [[0, 0, 0]] * 3, [[1, 1, 1]] * 32 + [[0, 0, 0]]
    shown = stats.paired_rate_ci(new, old)
    gate = stats.paired_rate_ci(new, old, purpose="noninferiority")
    assert shown.estimate == gate.estimate
    assert shown.low is not None
    assert gate.low is not None
    assert gate.low < shown.low - 0.005
