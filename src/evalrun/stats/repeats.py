"""One question drawn several times: passed once, or passed always.

Owns the unbiased estimates for one question; averages over questions get ``score_ci``.
"""

from __future__ import annotations

import math

from evalrun.stats.interval import check_count


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Chance that at least one of ``k`` draws passes, from ``c`` passes in ``n`` (Chen et al. 2021).

    1 - C(n-c, k)/C(n, k); None with fewer than ``k`` draws.
    """
    _check(n, c, k)
    return 1 - math.comb(n - c, k) / math.comb(n, k) if n >= k else None


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Chance that all of ``k`` draws pass: C(c, k)/C(n, k) (Yao et al. 2024); None with fewer draws."""
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k) if n >= k else None


def _check(n: int, c: int, k: int) -> None:
    check_count("n", n)
    check_count("c", c)
    check_count("k", k)
    if k == 0 or c > n:
        raise ValueError(f"k must be at least 1 and c at most n, not k={k}, c={c}, n={n}")
