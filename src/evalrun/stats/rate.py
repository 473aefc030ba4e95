"""Intervals of a pass rate or of a bounded score from several draws on each of several questions.

Owns the default interval of every metric, its form for questions that share documents, the t interval for
quantities, and the diagnostics of repeated draws. Averages over categories stand in ``categories``, gates in
``decision``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalrun.stats.draws import Questions, Values, read
from evalrun.stats.effective import effective_n, nested_n_eff, normal_quantile
from evalrun.stats.interval import Interval, Reason, no_interval, wilson_interval

MIN_CLUSTERS = 8
"""Below so many documents, or questions of a category, an interval is shown but decides nothing."""


def rate_ci(values: Values | Questions, confidence: float = 0.95) -> Interval:
    """Interval of a pass rate: Wilson at the effective number of questions, between n and n·k.

    ``values`` hold 0 or 1 (a share in between is allowed). Plain Wilson for one draw a question, for draws
    that never disagree and for all pass or all fail. ``no_data`` without a scored draw.

    Raises:
        ValueError: a score is NaN or outside [0, 1]; confidence outside (0, 1).
    """
    normal_quantile(confidence)
    questions = read(values)
    if questions.n == 0:
        return no_interval("wilson-effective", "no_data")
    n_eff = rate_n_eff(questions, confidence)
    return wilson_interval(questions.mean, n_eff, questions.n, confidence, "wilson-effective")


def rate_n_eff(questions: Questions, confidence: float) -> float:
    """Effective number of questions of a rate; 1 for a single question, however often it was drawn."""
    if questions.n == 1:
        return 1.0
    variance = questions.variance / questions.n
    return float(effective_n(questions.mean, variance, questions.n, confidence, questions.most))


def score_ci(values: Values | Questions, confidence: float = 0.95) -> Interval:
    """Interval of a mean of scores in [0, 1] (recall@k, nDCG, MRR): :func:`rate_ci` without upper clamp.

    Sound because a variable in [0, 1] with mean p has variance at most p(1-p). One question: no interval,
    ``too_few_clusters``.

    Raises:
        ValueError: a score is NaN or outside [0, 1]; confidence outside (0, 1).
    """
    normal_quantile(confidence)
    questions = read(values)
    if questions.n < 2:
        return _too_few("wilson-effective", questions)
    n_eff = effective_n(questions.mean, questions.variance / questions.n, questions.n, confidence)
    return wilson_interval(questions.mean, float(n_eff), questions.n, confidence, "wilson-effective")


def mean_t_ci(values: Values | Questions, confidence: float = 0.95) -> Interval:
    """Student's t interval of a mean of any finite numbers, unclipped; for quantities such as seconds.

    Constant data give the estimate without limits (``no_variation``), one question ``too_few_clusters``.
    """
    normal_quantile(confidence)
    questions = read(values, -math.inf, math.inf)
    if questions.n < 2:
        return _too_few("t", questions)
    if np.ptp(questions.means) == 0:
        return no_interval("t", "no_variation", questions.mean, questions.n)
    from evalrun.stats.special import stdtrit  # slow to import, and only quantities need it

    half = float(stdtrit(questions.n - 1, 0.5 + confidence / 2)) * math.sqrt(questions.variance / questions.n)
    return Interval(questions.mean, questions.mean - half, questions.mean + half, "t", None, questions.n)


@dataclass(frozen=True)
class NestedInterval(Interval):
    """An interval of questions that share documents; the number of equally large documents they amount to."""

    documents_effective: float | None = None


def nested_rate_ci(
    values: Values | Questions, documents: Sequence[Hashable], confidence: float = 0.95
) -> NestedInterval:
    """Interval of a rate or bounded score where questions come from documents that stand for others.

    ``documents`` names the document of each question, in the order of ``values``. Fewer than 8 effective
    documents: the interval comes with ``too_few_clusters``; one document: no interval. One question a
    document: :func:`rate_ci`.

    Raises:
        ValueError: as :func:`rate_ci`, or ``documents`` is not as long as ``values``.
    """
    if not isinstance(values, Questions) and len(documents) != len(values):
        raise ValueError(f"{len(values)} questions but {len(documents)} documents")
    normal_quantile(confidence)
    questions = read(values)
    if questions.n == 0:
        return NestedInterval(None, None, None, "wilson-nested", "no_data")
    code: dict[Hashable, int] = {}
    codes = np.array([code.setdefault(documents[place], len(code)) for place in questions.places])
    sizes = np.bincount(codes)
    effective = documents_effective(sizes)
    if len(sizes) < 2:
        return NestedInterval(
            questions.mean, None, None, "wilson-nested", "too_few_clusters", questions.n, None, effective
        )
    squares = float((np.bincount(codes, questions.means - questions.mean) ** 2).sum())
    flat = rate_n_eff(questions, confidence)
    n_eff = float(nested_n_eff(questions.mean, squares, questions.n, len(sizes), effective, flat, confidence))
    reason: Reason | None = "too_few_clusters" if effective < MIN_CLUSTERS else None
    plain = wilson_interval(questions.mean, n_eff, questions.n, confidence, "wilson-nested", reason)
    return NestedInterval(**vars(plain), documents_effective=effective)


def documents_effective(sizes: Sequence[int] | NDArray[np.int64]) -> float:
    """How many equally large documents so many questions a document amount to: n²/Σ(size²)."""
    counts = np.asarray(sizes)
    return float(counts.sum() ** 2 / (counts**2).sum())


@dataclass(frozen=True)
class ClusteredMean:
    """Mean of question means with its standard error (n - 1 in it), and the form without n/(n - 1)."""

    mean: float | None
    se: float | None
    se_cr0: float | None
    reason: Reason | None = None


def clustered_mean(values: Values) -> ClusteredMean:
    """Standard error of a mean over questions (Liang & Zeger 1986; ``se_cr0`` as in Miller 2024)."""
    questions = read(values, -math.inf, math.inf)
    if questions.n < 2:
        found = _too_few("clustered", questions)
        return ClusteredMean(found.estimate, None, None, found.reason)
    se = math.sqrt(questions.variance / questions.n)
    return ClusteredMean(questions.mean, se, se * math.sqrt((questions.n - 1) / questions.n))


@dataclass(frozen=True)
class Icc:
    """How alike the draws of one question are (1: always the same) and what that costs in effective draws."""

    icc: float | None
    design_effect: float | None
    reason: Reason | None = None


def icc_oneway(values: Values | Questions) -> Icc:
    """ANOVA ICC(1,1) (Shrout & Fleiss 1979) and design effect 1 + (k - 1)·ICC (Kish 1965).

    With unequal draws k is (N - Σk²/N)/(n - 1). None where no question has two draws, where there is one
    question, or where all draws of all questions agree.
    """
    questions = read(values, -math.inf, math.inf)
    if questions.n < 2 or int(questions.sizes.max()) < 2:
        return Icc(None, None, "too_few_clusters" if questions.n else "no_data")
    total, n = int(questions.sizes.sum()), questions.n
    grand = math.fsum((questions.sizes * questions.means).tolist()) / total
    between = float((questions.sizes * (questions.means - grand) ** 2).sum()) / (n - 1)
    within = math.fsum(questions.within.tolist()) / (total - n)
    k = (total - float((questions.sizes**2).sum()) / total) / (n - 1)
    if between == within == 0:
        return Icc(None, None, "no_variation")
    icc = (between - within) / (between + (k - 1) * within)
    return Icc(icc, 1 + (k - 1) * icc)


def _too_few(method: str, questions: Questions) -> Interval:
    """No limits, because there is no question or only one."""
    if questions.n == 0:
        return no_interval(method, "no_data")
    return no_interval(method, "too_few_clusters", questions.mean, questions.n)
