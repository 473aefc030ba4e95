"""What a gate needs before it can hold: questions, or passes.

Owns the planning of gates, by the same limits that will decide them. Whether to refuse a gate that cannot
hold is the business of the gates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalrun.stats.decision import TOLERANCE, Method, uses_exact
from evalrun.stats.effective import exact_limits, normal_quantile, wilson_limits
from evalrun.stats.interval import check_count

_MOST = 10**9


def min_n_perfect(
    threshold: float, at_least: bool = True, confidence: float = 0.95, method: Method = "wilson"
) -> int | None:
    """Fewest questions with which a perfect score holds the gate; None where no number is enough (T = 1)."""
    return questions_needed(1.0 if at_least else 0.0, threshold, at_least, confidence, method)


def questions_needed(
    rate: float,
    threshold: float,
    at_least: bool = True,
    confidence: float = 0.95,
    method: Method = "wilson",
    per_question: float = 1.0,
) -> int | None:
    """Fewest questions with which a measured ``rate`` in [0, 1] would hold the gate; None if it never would.

    ``per_question`` is the observed n_eff/n: what a question with its draws counts for.

    Raises:
        ValueError: rate or threshold outside [0, 1], ``per_question`` not above 0.
    """
    _check_shares(rate, threshold)
    if not per_question > 0:
        raise ValueError(f"per_question must be above 0, not {per_question}")

    def holds(n: int) -> bool:
        return bool(_holds(rate, n * per_question, threshold, at_least, confidence, method))

    high = 1
    while not holds(high):
        high *= 2
        if high > _MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def n_eff_of(share: float, low: float, high: float, confidence: float = 0.95) -> float:
    """The effective number of questions of Wilson limits: (share - limit)² is z²·limit(1 - limit)/n there."""
    limit = low if low > 0 and low < share else high
    return normal_quantile(confidence) ** 2 * limit * (1 - limit) / (share - limit) ** 2


def min_passes(n: int, threshold: float, confidence: float = 0.95, method: Method = "wilson") -> int | None:
    """Fewest passes of ``n`` single-draw questions that hold "at least ``threshold``"; None if none do."""
    check_count("n", n)
    _check_shares(threshold)
    if n == 0:
        return None
    holding = _holds(np.arange(n + 1) / n, n, threshold, True, confidence, method)
    return int(holding.argmax()) if holding.any() else None


def chance_to_hold(
    n: int, threshold: float, rate: float, confidence: float = 0.95, method: Method = "wilson"
) -> float:
    """Probability that ``n`` single-draw questions hold "at least ``threshold``" at a true rate ``rate``.

    For "at most T" ask for the complements of both. With more draws a question it is about this or higher.
    """
    from evalrun.stats.special import bdtrc  # slow to import, and only plans need it

    _check_shares(rate)
    passes = min_passes(n, threshold, confidence, method)
    if passes is None:
        return 0.0
    return float(bdtrc(passes - 1, n, rate)) if passes else 1.0  # P(X >= passes), X binomial


def rate_to_hold(
    n: int, threshold: float, power: float = 0.8, confidence: float = 0.95, method: Method = "wilson"
) -> float | None:
    """The true rate with which ``n`` questions hold "at least ``threshold``" with probability ``power``.

    None where not even all passes hold it.
    """
    if not 0 < power < 1:
        raise ValueError(f"power lies between 0 and 1, not {power}")
    if min_passes(n, threshold, confidence, method) is None:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        enough = chance_to_hold(n, threshold, middle, confidence, method) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _holds(
    rate: ArrayLike,
    n: float,
    threshold: float,
    at_least: bool,
    confidence: float,
    method: Method,
) -> NDArray[np.bool_]:
    """Whether the pass limit of a rate from ``n`` questions reaches the threshold, elementwise."""
    normal_quantile(confidence)
    exact = method == "exact" or uses_exact(threshold, at_least)
    low, high = (exact_limits if exact else wilson_limits)(rate, n, confidence)
    return low >= threshold - TOLERANCE if at_least else high <= threshold + TOLERANCE


def _check_shares(*shares: float) -> None:
    for share in shares:
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is not in [0, 1]")
