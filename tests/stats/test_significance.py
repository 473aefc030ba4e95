"""p-values at the edges, and the same from the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from evalrun import stats
from evalrun.stats.bootstrap import bca_mean_ci
from evalrun.stats.significance import holm, mcnemar_exact, mcnemar_midp, sign_flip_test


def test_nothing_changed() -> None:
    """No change is no evidence: p is 1 in every test."""
    assert 1.0 == mcnemar_exact(0, 0) == mcnemar_midp(0, 0)
    assert 1.0 == sign_flip_test([]) == sign_flip_test([0.0] * 5) == sign_flip_test([0.3, 0.0])


def test_zero_differences_change_nothing() -> None:
    """Questions that did not change neither add nor take evidence."""
    assert sign_flip_test([0.5, 0.25, -0.125, 0.5]) == sign_flip_test([0.0, 0.5, 0.25, 0.0, -0.125, 0.5])


def test_many_differences_are_sampled() -> None:
    """Above 16 changes p comes from seeded patterns: the same again, near the exact one, never 0."""
    changes = [1.0] * 14 + [-1.0] * 6
    assert sign_flip_test(changes) == sign_flip_test(changes)
    assert mcnemar_exact(14, 6) == pytest.approx(sign_flip_test(changes), abs=0.02)
    assert sign_flip_test([1.0] * 60) == pytest.approx(2e-4, abs=1.5e-4)


def test_bad_inputs() -> None:
    """Impossible counts, differences and p-values are refused."""
    for test in (mcnemar_exact, mcnemar_midp):
        with pytest.raises(ValueError, match="b must"):
            test(-1, 2)
    with pytest.raises(ValueError, match="finite"):
        sign_flip_test([float("nan"), 1.0])
    with pytest.raises(ValueError, match="p-values"):
        holm([0.5, 1.5])


def test_holm_leaves_out_what_is_missing() -> None:
    """A missing p-value is no member of the family; equal ones keep their order."""
    assert [0.02, None, 0.5] == holm([0.01, None, 0.5])
    assert [0.06, 0.06, 0.06] == holm([0.02, 0.02, 0.02])
    assert [] == holm([])


def test_bootstrap_edges() -> None:
    """Constant data have no bootstrap interval; the same seed gives the same one, another seed another."""
    assert "no_variation" == bca_mean_ci([[0.5]] * 9).reason
    assert "too_few_clusters" == bca_mean_ci([[0.5]]).reason
    assert "no_data" == bca_mean_ci([[None]]).reason
    values: stats.Values = [[score] for score in np.linspace(0, 1, 30).tolist()]
    assert bca_mean_ci(values, resamples=500) == bca_mean_ci(values, resamples=500)
    assert bca_mean_ci(values, resamples=500) != bca_mean_ci(values, seed=1, resamples=500)
