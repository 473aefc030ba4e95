"""Bootstrap intervals for what has no formula, by resampling questions.

Owns the seeded BCa interval; needs ``scipy.stats`` and is therefore imported only on demand. Never the
default for a rate or a bounded score: near 0 or 1 it collapses to a point.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import bootstrap

from evalrun.stats.draws import Values, read
from evalrun.stats.effective import normal_quantile
from evalrun.stats.interval import Interval, no_interval


def bca_mean_ci(values: Values, confidence: float = 0.95, seed: int = 0, resamples: int = 9_999) -> Interval:
    """BCa interval of the mean over questions of any finite numbers (Efron 1987); sensible from 50 questions.

    Constant data give no interval (``no_variation``), one question neither (``too_few_clusters``).
    """
    normal_quantile(confidence)
    questions = read(values, -math.inf, math.inf)
    if questions.n == 0:
        return no_interval("bca", "no_data")
    if questions.n == 1:
        return no_interval("bca", "too_few_clusters", questions.mean, 1)
    if np.ptp(questions.means) == 0:
        return no_interval("bca", "no_variation", questions.mean, questions.n)
    found = bootstrap(
        (questions.means,),
        np.mean,
        n_resamples=resamples,
        confidence_level=confidence,
        method="BCa",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(questions.mean, float(found.low), float(found.high), "bca", None, questions.n)
