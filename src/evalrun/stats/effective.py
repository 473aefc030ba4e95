"""The formulas every interval of a rate or bounded score is made of, elementwise over arrays.

Owns Wilson's limits and the Clopper-Pearson limits at any, also fractional, number of questions, and the
effective number of questions that stands in for n when a question was drawn several times. What p, its
variance and n are is the business of the callers, who also name what is undefined.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
_NOISE = 1e-9  # p * n may miss 0 or n by rounding, and a beta quantile there would not be exactly 0 or 1


def normal_quantile(confidence: float) -> float:
    """z of a two-sided interval: 1.959964 at 0.95.

    Raises:
        ValueError: ``confidence`` is not strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, both excluded, not {confidence}")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson_limits(p: ArrayLike, n: ArrayLike, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limit of a share ``p`` in [0, 1] from ``n`` > 0 questions (Wilson 1927).

    Exactly 0 below at p = 0 and exactly 1 above at p = 1; ``n`` need not be whole (Korn & Graubard 1998).
    """
    z = normal_quantile(confidence)
    share, size = _floats(p), _floats(n)
    scale = 1 + z * z / size
    centre = (share + z * z / (2 * size)) / scale
    half = z * np.sqrt(share * (1 - share) / size + z * z / (4 * size * size)) / scale
    low = np.where(share <= 0, 0.0, np.clip(centre - half, 0, 1))
    high = np.where(share >= 1, 1.0, np.clip(centre + half, 0, 1))
    return low, high


def exact_limits(p: ArrayLike, n: ArrayLike, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Beta quantiles at p·n of n (Clopper & Pearson 1934); ``p`` in [0, 1], ``n`` > 0, whole or not."""
    # As slow to import as numpy, and not every command has an interval to make.
    from evalrun.stats.special import betaincinv

    normal_quantile(confidence)
    tail = (1 - confidence) / 2
    size = _floats(n)
    passes = _floats(p) * size
    none, all_ = passes <= _NOISE, passes >= size - _NOISE
    low = betaincinv(np.where(none, 1, passes), np.where(none, 1, size - passes + 1), tail)
    high = betaincinv(np.where(all_, 1, passes + 1), np.where(all_, 1, size - passes), 1 - tail)
    return np.where(none, 0.0, low), np.where(all_, 1.0, high)


def effective_n(
    p: ArrayLike, variance: ArrayLike, n: ArrayLike, confidence: float, top: ArrayLike = np.inf
) -> FloatArray:
    """How many single-draw questions carry as much: n(n·p(1-p) + a) / (n²·variance + a), a = z²/2.

    ``variance`` is the squared standard error of ``p``. The result lies between ``n`` and ``top``. Adding a
    to both sides pulls it towards n where there is little evidence, so that one wrong draw among many right
    ones never narrows the interval. A construct of this project; the simulation in the tests holds it.
    """
    shrink = normal_quantile(confidence) ** 2 / 2
    share, size = _floats(p), _floats(n)
    raw = size * (size * share * (1 - share) + shrink) / (size * size * _floats(variance) + shrink)
    return np.asarray(np.maximum(np.minimum(raw, _floats(top)), size))


def nested_n_eff(
    p: ArrayLike,
    squares: ArrayLike,
    n: int,
    documents: int,
    documents_effective: float,
    plain: ArrayLike,
    confidence: float,
) -> FloatArray:
    """n(n·p(1-p) + a) / (S + a·n/G): the effective number of ``n`` questions that share ``documents`` ≥ 2.

    ``squares`` is the sum over documents of the squared sum of deviations from ``p``; S is that times
    documents/(documents - 1); G is ``documents_effective``, n²/Σ(size²). The result lies between G and
    ``plain``, the effective number without documents. A construct of this project, held by simulation.
    """
    shrink = normal_quantile(confidence) ** 2 / 2
    share, spread = _floats(p), documents / (documents - 1) * _floats(squares)
    raw = n * (n * share * (1 - share) + shrink) / (spread + shrink * n / documents_effective)
    return np.asarray(np.maximum(np.minimum(raw, _floats(plain)), documents_effective))


def shrunk_variance(variance: ArrayLike, p: ArrayLike, n: ArrayLike, confidence: float) -> FloatArray:
    """A group's sample variance, pulled with weight a = z²/2 towards u(1-u) at Wilson's centre u.

    A group of one question has no variance of its own and gets u(1-u) alone.
    """
    shrink = normal_quantile(confidence) ** 2 / 2
    share, size = _floats(p), _floats(n)
    centre = (size * share + shrink) / (size + 2 * shrink)
    prior = centre * (1 - centre)
    pulled = (size * _floats(variance) + shrink * prior) / (size + shrink)
    return np.where(size > 1, pulled, prior)


def _floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)
