"""How many questions a comparison needs, and what a number of questions can show.

Owns the planning of comparisons and single-rate tests. The planning of gates stands in ``feasibility``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evalrun.stats.interval import check_count


def paired_mde(n: int, sd: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """Smallest true change that ``n`` ≥ 1 paired questions show with ``power``; ``sd`` of their differences.

    With one draw a question sd² is the share of changed questions less the squared change.
    """
    if n < 1 or sd < 0:
        raise ValueError(f"n must be at least 1 and sd not negative, not {n} and {sd}")
    return _quantiles(alpha, power) * sd / math.sqrt(n)


def paired_sample_size(change: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Paired questions that show a true ``change`` with ``power``; round up. None for a change of 0."""
    if sd < 0:
        raise ValueError(f"sd must not be negative, not {sd}")
    needed = _quantiles(alpha, power) * sd
    return (needed / change) ** 2 if change else None


def sample_size_two_proportions(
    p1: float, p2: float, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Questions per group that tell two rates apart without common questions (Fleiss); round up.

    Two-sided normal approximation without continuity correction. None where the rates are equal.
    """
    _check_shares(p1, p2)
    _quantiles(alpha, power)
    if p1 == p2:
        return None
    mean = (p1 + p2) / 2
    pooled = NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(2 * mean * (1 - mean))
    apart = NormalDist().inv_cdf(power) * math.sqrt(p1 * (1 - p1) + p2 * (1 - p2))
    return ((pooled + apart) / (p1 - p2)) ** 2


@dataclass(frozen=True)
class ExactPower:
    """Fewest passes that reject p0, the real size of that test and its power; critical None: none rejects."""

    critical: int | None
    size: float
    power: float


def power_one_sample_exact(n: int, p0: float, p1: float, alpha: float = 0.05) -> ExactPower:
    """The one-sided exact binomial test of "at most p0" with ``n`` questions, when the rate is ``p1``."""
    from evalrun.stats.special import bdtrc  # slow to import, and only plans need it

    check_count("n", n)
    _check_shares(p0, p1, alpha)
    passes = np.arange(n + 1)

    def tails(p: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.concatenate(([1.0], bdtrc(passes[:-1], n, p)))  # P(X >= c) for c = 0, …, n

    size = tails(p0)
    rejecting = np.flatnonzero(size <= alpha)
    if rejecting.size == 0:
        return ExactPower(None, 0.0, 0.0)
    critical = int(rejecting[0])
    return ExactPower(critical, float(size[critical]), float(tails(p1)[critical]))


def _quantiles(alpha: float, power: float) -> float:
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError(f"alpha and power lie between 0 and 1, not {alpha} and {power}")
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)


def _check_shares(*shares: float) -> None:
    for share in shares:
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is not in [0, 1]")
