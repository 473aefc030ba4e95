"""What a gate needs is told before it is run, by the limits that will decide it."""

from __future__ import annotations

import pytest

from evalrun import stats
from evalrun.stats.interval import wilson_interval


@pytest.mark.parametrize(
    ("threshold", "method", "n"),
    [(0.9, "wilson", 35), (0.9, "exact", 36), (0.95, "wilson", 73), (0.99, "wilson", 381)],
)
def test_min_n_perfect(threshold: float, method: stats.Method, n: int) -> None:
    """A perfect score clears a threshold with so many questions and not with one fewer, either way round."""
    assert n == stats.min_n_perfect(threshold, method=method)
    assert n == stats.min_n_perfect(1 - threshold, at_least=False, method=method)
    assert "holds" == stats.gate_verdict([[1]] * n, threshold, method=method).decision
    assert "undecided" == stats.gate_verdict([[1]] * (n - 1), threshold, method=method).decision


def test_perfection_cannot_be_shown() -> None:
    """No number of questions shows a rate of 1, or of 0."""
    assert stats.min_n_perfect(1.0) is None
    assert stats.min_n_perfect(0.0, at_least=False) is None


@pytest.mark.parametrize(
    ("n", "needed"),
    [
        (8, (7, None, None, None)),
        (27, (19, 24, 26, None)),
        (35, (24, 30, 33, 35)),
        (100, (60, 79, 88, 96)),
        (200, (114, 153, 172, 189)),
    ],
)
def test_min_passes(n: int, needed: tuple[int | None, ...]) -> None:
    """The published table of passes needed at .5, .7, .8 and .9."""
    assert needed == tuple(stats.min_passes(n, threshold) for threshold in (0.5, 0.7, 0.8, 0.9))


def test_min_passes_agrees_with_the_gate() -> None:
    """The fewest passes hold the gate and one fewer does not, also below .5 where the exact limit decides."""
    for threshold in (0.2, 0.5, 0.8):
        x = stats.min_passes(40, threshold)
        assert x is not None
        assert "holds" == stats.gate_verdict([[1]] * x + [[0]] * (40 - x), threshold).decision
        assert stats.gate_verdict([[1]] * (x - 1) + [[0]] * (41 - x), threshold).decision != "holds"


def test_questions_needed() -> None:
    """At the same rate so many questions hold the gate, one fewer does not; flaky draws count more."""
    n = stats.questions_needed(0.9, 0.75)
    assert n is not None
    assert n == stats.questions_needed(0.1, 0.25, at_least=False)
    low = [wilson_interval(0.9, size, size, 0.95, "wilson").low for size in (n - 1, n)]
    assert low[0] is not None
    assert low[1] is not None
    assert low[0] < 0.75 <= low[1]
    assert -(-n // 2) == stats.questions_needed(0.9, 0.75, per_question=2.0)


def test_a_rate_at_the_threshold_never_clears_it() -> None:
    """More questions do not help a rate that is not better than what is asked."""
    assert stats.questions_needed(0.75, 0.75) is None
    assert stats.questions_needed(0.7, 0.75) is None


def test_planning_inputs() -> None:
    """Shares outside [0, 1], no questions and worthless questions are told apart from impossible gates."""
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="not in"):
            stats.questions_needed(0.5, bad)
        with pytest.raises(ValueError, match="not in"):
            stats.min_passes(5, bad)
    with pytest.raises(ValueError, match="per_question"):
        stats.questions_needed(0.5, 0.4, per_question=0)
    with pytest.raises(ValueError, match="n must"):
        stats.min_passes(-1, 0.5)
    assert stats.min_passes(0, 0.5) is None


@pytest.mark.parametrize(
    ("n", "rates"),
    [
        (8, (0.90, None, None, None)),
        (27, (0.75, 0.91, 0.97, None)),
        (35, (0.73, 0.89, 0.96, 0.99)),
        (100, (0.64, 0.82, 0.90, 0.97)),
        (200, (0.60, 0.79, 0.88, 0.96)),
    ],
)
def test_rate_to_hold(n: int, rates: tuple[float | None, ...]) -> None:
    """The published table of true rates that hold .5, .7, .8 and .9 with 80% power, and their chance."""
    for threshold, rate in zip((0.5, 0.7, 0.8, 0.9), rates, strict=True):
        found = stats.rate_to_hold(n, threshold)
        if rate is None:
            assert found is None
            assert 0.0 == stats.chance_to_hold(n, threshold, 1.0)
        else:
            assert rate == pytest.approx(found, abs=0.006)
            assert found is not None
            assert 0.8 == pytest.approx(stats.chance_to_hold(n, threshold, found), abs=1e-6)


def test_a_chance_needs_a_rate() -> None:
    """A rate outside [0, 1] and a power outside (0, 1) are refused."""
    with pytest.raises(ValueError, match="not in"):
        stats.chance_to_hold(10, 0.5, 1.5)
    with pytest.raises(ValueError, match="power"):
        stats.rate_to_hold(10, 0.5, power=1.0)
