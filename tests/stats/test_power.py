"""Planning a comparison: the published figures, and what no number of questions can show."""

from __future__ import annotations

import pytest

from evalrun import stats


@pytest.mark.parametrize(("sd", "change"), [(0.3, 0.14), (0.45, 0.21), (0.6, 0.28)])
def test_what_35_questions_show(sd: float, change: float) -> None:
    """The change that 35 pairs show with 80% power, and back again."""
    found = stats.paired_mde(35, sd)
    assert change == pytest.approx(found, abs=0.005)
    assert 35 == pytest.approx(stats.paired_sample_size(found, sd))


def test_two_groups() -> None:
    """.74 against .85 needs 211 questions a group; equal rates cannot be told apart."""
    needed = stats.sample_size_two_proportions(0.74, 0.85)
    assert needed is not None
    assert 210 < needed <= 211
    assert stats.sample_size_two_proportions(0.5, 0.5) is None
    assert stats.paired_sample_size(0.0, 0.4) is None


def test_nothing_rejects() -> None:
    """With too few questions no number of passes rejects."""
    assert (None, 0.0, 0.0) == tuple(vars(stats.power_one_sample_exact(3, 0.9, 0.99)).values())


def test_bad_plans() -> None:
    """Impossible rates, levels and sizes are refused."""
    for call in (
        lambda: stats.sample_size_two_proportions(1.2, 0.5),
        lambda: stats.sample_size_two_proportions(0.2, 0.5, power=1.0),
        lambda: stats.paired_mde(0, 0.3),
        lambda: stats.paired_mde(10, 0.3, alpha=0.0),
        lambda: stats.paired_sample_size(0.1, -1),
        lambda: stats.power_one_sample_exact(-1, 0.5, 0.6),
        lambda: stats.pass_at_k(3, 4, 1),
        lambda: stats.pass_hat_k(3, 2, 0),
    ):
        with pytest.raises(ValueError, match=r"must|not in|between"):
            call()
