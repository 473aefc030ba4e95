"""The change between two runs: on the same questions, or on questions they do not share.

Owns the intervals of a difference of rates or bounded scores. Which questions are the same is the business of
the comparison; p-values stand in ``significance``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from evalrun.stats.draws import Questions, Values, read
from evalrun.stats.effective import FloatArray, effective_n, normal_quantile, wilson_limits
from evalrun.stats.interval import Interval, no_interval
from evalrun.stats.rate import rate_n_eff

Purpose = Literal["display", "noninferiority"]
Limits = tuple[FloatArray, FloatArray]


def unpaired_ci(a: Interval, b: Interval) -> Interval:
    """Interval of a - b for two groups without common questions (Newcombe 1998b, method 10).

    ``a`` and ``b`` are intervals at the same confidence, of rates or of scores in [0, 1]. ``no_data`` if
    either is undefined.
    """
    if a.estimate is None or a.low is None or a.high is None:
        return no_interval("newcombe-unpaired", a.reason or "no_data")
    if b.estimate is None or b.low is None or b.high is None:
        return no_interval("newcombe-unpaired", b.reason or "no_data")
    low, high = difference_limits(
        np.array(a.estimate),
        (np.array(a.low), np.array(a.high)),
        np.array(b.estimate),
        (np.array(b.low), np.array(b.high)),
        np.array(0.0),
    )
    return Interval(a.estimate - b.estimate, float(low), float(high), "newcombe-unpaired", None, a.n + b.n)


def paired_rate_ci(a: Values, b: Values, confidence: float = 0.95, purpose: Purpose = "display") -> Interval:
    """Interval of a - b for two runs of the same questions in the same order.

    With one draw a question this is Newcombe 1998c, method 10. For a non-inferiority gate ask for that
    purpose: the correction of the correlation doubles, because the display interval lets too much pass when
    few questions change, all in one direction. Questions without a draw in either run are left out.

    Raises:
        ValueError: lengths differ; a score is NaN or outside [0, 1]; confidence outside (0, 1).
    """
    normal_quantile(confidence)
    x, y = _common(a, b)
    if x.n < 2:
        return _too_few("newcombe-paired", x, y)
    sizes = rate_n_eff(x, confidence), rate_n_eff(y, confidence)
    return _combined("newcombe-paired", x, y, sizes, x.n / min(sizes), confidence, purpose)


def paired_score_ci(a: Values, b: Values, confidence: float = 0.95, purpose: Purpose = "display") -> Interval:
    """The same for scores in [0, 1], such as recall@k; arguments and errors as :func:`paired_rate_ci`."""
    normal_quantile(confidence)
    x, y = _common(a, b)
    if x.n < 2:
        return _too_few("newcombe-scores", x, y)
    sizes = _score_n_eff(x, confidence), _score_n_eff(y, confidence)
    return _combined("newcombe-scores", x, y, sizes, 1.0, confidence, purpose)


def difference_limits(
    a: FloatArray, a_limits: Limits, b: FloatArray, b_limits: Limits, r: FloatArray
) -> Limits:
    """Limits of a - b from each one's own limits and their correlation ``r``, elementwise (Newcombe 1998)."""

    def side(s: FloatArray, t: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(np.maximum(s * s - 2 * r * s * t + t * t, 0.0)))

    low = a - b - side(a - a_limits[0], b_limits[1] - b)
    high = a - b + side(a_limits[1] - a, b - b_limits[0])
    return np.maximum(low, -1.0), np.minimum(high, 1.0)


def shrunk_correlation(x: FloatArray, y: FloatArray, correction: FloatArray | float) -> FloatArray:
    """Correlation of question means along the last axis; a positive sum of products is first made smaller
    by ``correction``, down to 0. 0 where either run never varies.
    """
    dx, dy = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    products = (dx * dy).sum(-1)
    products = np.where(products > 0, np.maximum(products - correction, 0.0), products)
    norm = np.sqrt((dx**2).sum(-1) * (dy**2).sum(-1))
    return np.where(norm > 1e-12, products / np.maximum(norm, 1e-12), 0.0)


def _common(a: Values, b: Values) -> tuple[Questions, Questions]:
    """Both runs, reduced to the questions that have a draw in each."""
    if len(a) != len(b):
        raise ValueError(f"the runs have {len(a)} and {len(b)} questions; pair them first")
    x, y = read(a), read(b)
    both = sorted(set(x.places) & set(y.places))
    return x.only(both), y.only(both)


def _score_n_eff(questions: Questions, confidence: float) -> float:
    return float(effective_n(questions.mean, questions.variance / questions.n, questions.n, confidence))


def _combined(
    method: str,
    x: Questions,
    y: Questions,
    sizes: tuple[float, float],
    spread: float,
    confidence: float,
    purpose: Purpose,
) -> Interval:
    """Newcombe's limits; the covariance loses ``spread`` for non-inferiority, half of it for display."""
    r = shrunk_correlation(x.means, y.means, spread if purpose == "noninferiority" else spread / 2)
    a, b = np.array(x.mean), np.array(y.mean)
    a_limits, b_limits = (
        wilson_limits(mean, size, confidence) for mean, size in zip((a, b), sizes, strict=True)
    )
    low, high = difference_limits(a, a_limits, b, b_limits, r)
    return Interval(x.mean - y.mean, float(low), float(high), method, None, x.n)


def _too_few(method: str, x: Questions, y: Questions) -> Interval:
    if x.n == 0:
        return no_interval(method, "no_data")
    return no_interval(method, "too_few_clusters", x.mean - y.mean, 1)
