"""The one shape in which every interval leaves this package, and the intervals of plain counts.

Owns :class:`Interval`, the reason codes, and Wilson and Clopper-Pearson for x passes of n questions with one
draw each. Several draws a question are the business of ``rate``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalrun.stats.effective import exact_limits, normal_quantile, wilson_limits

Reason = Literal[
    "no_data",
    "single_category",
    "no_variation",
    "too_few_clusters",
    "all_missing",
    "judge_uninformative",
    "not_a_random_sample",
]


@dataclass(frozen=True)
class Interval:
    """An estimate and its two-sided limits.

    What is undefined is None and ``reason`` says why. A ``reason`` beside limits (``too_few_clusters``)
    means: show them, decide nothing by them. ``n`` counts questions with at least one draw;
    ``n_eff`` is the number of single-draw questions the limits were computed for, None where there is none.
    """

    estimate: float | None
    low: float | None
    high: float | None
    method: str
    reason: Reason | None = None
    n: int = 0
    n_eff: float | None = None


def no_interval(method: str, reason: Reason, estimate: float | None = None, n: int = 0) -> Interval:
    """An interval without limits."""
    return Interval(estimate, None, None, method, reason, n)


def wilson_interval(
    p: float, n_eff: float, n: int, confidence: float, method: str, reason: Reason | None = None
) -> Interval:
    """Wilson's interval of a share ``p`` at ``n_eff``."""
    low, high = wilson_limits(p, n_eff, confidence)
    return Interval(float(p), float(low), float(high), method, reason, n, float(n_eff))


def wilson_ci(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Interval of a share of ``n`` questions (Wilson 1927, no continuity correction); ``no_data`` at n = 0.

    Raises:
        ValueError: negative or fractional counts, more successes than n, confidence outside (0, 1).
    """
    _check_counts(successes, n, confidence)
    if n == 0:
        return no_interval("wilson", "no_data")
    return wilson_interval(successes / n, n, n, confidence, "wilson")


def clopper_pearson_ci(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Exact interval of a share of ``n`` questions (Clopper & Pearson 1934); ``no_data`` at n = 0.

    Raises:
        ValueError: negative or fractional counts, more successes than n, confidence outside (0, 1).
    """
    _check_counts(successes, n, confidence)
    if n == 0:
        return no_interval("clopper-pearson", "no_data")
    low, high = exact_limits(successes / n, n, confidence)
    return Interval(successes / n, float(low), float(high), "clopper-pearson", None, n, float(n))


def check_count(name: str, value: int) -> None:
    """Raise ValueError unless ``value`` is a whole number from 0."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be a whole number from 0, not {value!r}")


def _check_counts(successes: int, n: int, confidence: float) -> None:
    normal_quantile(confidence)
    check_count("successes", successes)
    check_count("n", n)
    if successes > n:
        raise ValueError(f"successes ({successes}) cannot exceed n ({n})")
