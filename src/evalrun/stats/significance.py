"""Tests of a change between two runs, and the correction for asking many such questions at once.

Owns p-values; needs ``scipy.stats`` and is therefore imported only where runs or raters are compared. How
large a change is, is the business of ``paired``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, permutation_test

from evalrun.stats.interval import check_count

EXACT_UP_TO = 16
"""So many nonzero differences, 65 536 sign patterns, are counted out in full; more are sampled."""
RESAMPLES = 9_999
BATCH = 1_000_000
"""Numbers in memory at once while resampling; how they are cut changes no result."""


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided exact p of ``b`` changes one way against ``c`` the other; 1 where nothing changed."""
    check_count("b", b)
    check_count("c", c)
    return float(binomtest(b, b + c).pvalue) if b + c else 1.0


def mcnemar_midp(b: int, c: int) -> float:
    """The exact p less the probability of what was seen (Fagerland, Lydersen & Laake 2013).

    1 - P(X = b)/2 where b = c, X binomial with b + c and ½; 1 where nothing changed.
    """
    exact = mcnemar_exact(b, c)
    if b + c == 0:
        return 1.0
    seen = math.comb(b + c, b) / (1 << (b + c))
    return 1 - seen / 2 if b == c else exact - seen


def sign_flip_test(differences: Sequence[float], seed: int = 0) -> float:
    """Two-sided p of a mean difference of 0: share of sign patterns with a sum at least as far from 0.

    ``differences`` are finite, one a question (Fisher 1935). Exact up to 16 nonzero ones, else from 9 999
    seeded patterns. 1 where all are 0 or there are none.

    Raises:
        ValueError: a difference is not finite.
    """
    changes = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(changes).all():
        raise ValueError("differences must be finite numbers")
    nonzero = changes[changes != 0]  # a zero has the same sum under either sign, so the share is the same
    if nonzero.size < 2:
        return 1.0  # one change is as far from 0 under either sign
    resamples = 1 << nonzero.size if nonzero.size <= EXACT_UP_TO else RESAMPLES
    found = permutation_test(
        (nonzero,),
        _total,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, BATCH // nonzero.size),
        random_state=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def holm(pvalues: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in input order (Holm 1979); None stays None and is no member of the family.

    Raises:
        ValueError: a p-value outside [0, 1].
    """
    family = [(p, place) for place, p in enumerate(pvalues) if p is not None]
    if any(not 0 <= p <= 1 for p, _ in family):
        raise ValueError("p-values lie in [0, 1]")
    adjusted: list[float | None] = [None] * len(pvalues)
    worst = 0.0
    for rank, (p, place) in enumerate(sorted(family)):
        worst = max(worst, min(1.0, (len(family) - rank) * p))
        adjusted[place] = worst
    return adjusted


def _total(values: Any, axis: int) -> Any:
    return values.sum(axis)
