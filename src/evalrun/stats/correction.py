"""A judge's rate, corrected by reference labels for the judge's errors.

Owns one method for each way labels are chosen; the way decides the method, and where it is unknown there is
no corrected rate (:func:`unknown_design`). All take the reference as right. What was labelled how, is read
from the label files by ``evalrun.agreement``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalrun.stats.effective import FloatArray, effective_n, nested_n_eff, normal_quantile, shrunk_variance
from evalrun.stats.interval import Interval, Reason, check_count, wilson_ci, wilson_interval
from evalrun.stats.paired import unpaired_ci
from evalrun.stats.rate import MIN_CLUSTERS, documents_effective


@dataclass(frozen=True)
class Corrected(Interval):
    """A corrected rate. ``raw`` is the value before it was clipped to [0, 1]; ``judge_weight`` in [0, 1] is
    how much the judge's verdicts count beside the labels, None where the method has no such weight.
    """

    raw: float | None = None
    judge_weight: float | None = None

    @property
    def clipped(self) -> bool:
        """Whether the correction left [0, 1]: the judge's accuracy does not fit this run."""
        return self.raw is not None and not 0 <= self.raw <= 1


def unknown_design() -> Corrected:
    """No rate: labels that were chosen in an unknown way correct nothing."""
    return _none("uncorrected", "not_a_random_sample")


# ---------------------------------------------------------------- labels drawn at random from this run


@dataclass(frozen=True)
class PpiMean:
    """Prediction-powered mean, unclipped, its standard error and the judge's weight."""

    estimate: float
    se: float
    weight: float


def ppi_mean(
    reference: Sequence[float],
    judge_labelled: Sequence[float],
    judge_unlabelled: Sequence[float],
    weight: float | None = None,
    ddof: int = 1,
) -> PpiMean:
    """PPI++ mean of a share (Angelopoulos, Bates et al. 2023; Angelopoulos, Duchi & Zrnic 2023).

    ``reference`` and ``judge_labelled`` are values in [0, 1] of the same units, more than ``ddof`` of them,
    ``judge_unlabelled`` of all others; units are independent. ``weight`` None: tuned to the least variance.

    Raises:
        ValueError: lengths differ, too few labels, or a value is NaN or outside [0, 1].
    """
    y, f = _shares("reference", reference), _shares("judge_labelled", judge_labelled)
    others = _shares("judge_unlabelled", judge_unlabelled)
    if len(y) != len(f) or len(y) <= ddof:
        raise ValueError(f"{len(y)} labels and {len(f)} verdicts on them; need the same number, above {ddof}")
    if len(others) <= ddof:
        others, weight = np.zeros(0), 0.0
    theta, variance, used = ppi_moments(y, f, others, weight, ddof)
    return PpiMean(float(theta), math.sqrt(float(variance)), float(used))


def ppi_moments(
    y: FloatArray, f: FloatArray, others: FloatArray, weight: float | None, ddof: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, squared standard error and weight along the last axis; mean(Y - λF) + λ·mean(F of the others)."""
    n, more = y.shape[-1], others.shape[-1]
    if more == 0:
        return y.mean(-1), y.var(-1, ddof=ddof) / n, np.zeros(y.shape[:-1])
    spread = np.concatenate((f, others), axis=-1).var(-1) * (1 + n / more)
    tuned = _slope(y, f, spread) if weight is None else np.full(y.shape[:-1], weight)
    residuals = y - tuned[..., None] * f
    theta = residuals.mean(-1) + tuned * others.mean(-1)
    variance = tuned**2 * others.var(-1, ddof=ddof) / more + residuals.var(-1, ddof=ddof) / n
    return theta, variance, tuned


def ppi_ci(
    reference: Sequence[float],
    judge_labelled: Sequence[float],
    judge_unlabelled: Sequence[float],
    confidence: float = 0.95,
    documents: Sequence[Hashable] | None = None,
) -> Corrected:
    """Interval of :func:`ppi_mean`, by the effective number of labels, between n and n + N.

    The papers' z interval covers far too seldom with few labels; this is the project's own. ``documents``
    names the document of each labelled question and then of each other one, where some share one: see
    :class:`_Shared`.
    """
    normal_quantile(confidence)
    n = len(reference)
    if n < 2:
        return _none("ppi", "too_few_clusters" if n else "no_data")
    found = ppi_mean(reference, judge_labelled, judge_unlabelled)
    residuals = _shares("reference", reference) - found.weight * _shares("judge_labelled", judge_labelled)
    others = found.weight * _shares("judge_unlabelled", judge_unlabelled)
    parts = [(one - one.mean()) / one.size for one in (residuals, others) if one.size]
    shared = _Shared.of(np.concatenate(parts), documents, n)
    return _effective(
        "ppi", found.estimate, found.se**2, n, n + len(judge_unlabelled), confidence, n, found.weight, shared
    )


def labelled_draw_ci(
    labels: Sequence[float],
    verdicts: Sequence[Sequence[float]],
    confidence: float = 0.95,
    documents: Sequence[Hashable] | None = None,
) -> Corrected:
    """Interval where each question has one labelled draw and the judge saw all its draws.

    ``verdicts`` hold the judge's values of each question in [0, 1], the labelled draw's first. With one draw
    a question these are the labels alone. The project's own, held by simulation. ``documents`` names the
    document of each question, where some share one: see :class:`_Shared`.

    Raises:
        ValueError: lengths differ, a question without verdicts, or a value that is NaN or outside [0, 1].
    """
    normal_quantile(confidence)
    y = _shares("labels", labels)
    if len(y) != len(verdicts):
        raise ValueError(f"{len(y)} labels but verdicts of {len(verdicts)} questions")
    seen = [_shares(f"verdicts of question {place}", draws) for place, draws in enumerate(verdicts)]
    if any(draws.size == 0 for draws in seen):
        raise ValueError("every labelled question needs the judge's verdict on its labelled draw")
    if len(y) < 2:
        return _none("labelled-draw", "too_few_clusters" if len(y) else "no_data")
    deviations = np.array([draws[0] - draws.mean() for draws in seen])
    most = len(y) ** 2 / sum(1 / draws.size for draws in seen)
    theta, variance, weight = labelled_draw_moments(y, deviations)
    shared = _Shared.of((y - float(weight) * deviations - float(theta)) / len(y), documents, len(y))
    n, used = len(y), float(weight)
    return _effective("labelled-draw", float(theta), float(variance), n, most, confidence, n, used, shared)


def labelled_draw_moments(y: FloatArray, deviations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, squared standard error and weight along the last axis.

    ``deviations``: the judge's verdict on the labelled draw less its mean over the question's draws.
    """
    weight = _slope(y, deviations, deviations.var(-1))
    residuals = y - weight[..., None] * deviations
    return residuals.mean(-1), residuals.var(-1, ddof=1) / y.shape[-1], weight


# ---------------------------------------------------------------- labels drawn among each verdict


def by_verdict_ci(
    judge_yes: int,
    units: int,
    yes_labelled: int,
    yes_reference: int,
    no_labelled: int,
    no_reference: int,
    confidence: float = 0.95,
) -> Corrected:
    """Interval where labels were drawn separately among the judge's yes and no.

    Of ``units`` the judge called ``judge_yes`` yes; of ``yes_labelled`` of these the reference calls
    ``yes_reference`` yes, of ``no_labelled`` of the others ``no_reference``. Fewer than two labels of a
    verdict that the judge gave: ``too_few_clusters``. The project's own, held by simulation.

    Raises:
        ValueError: counts that are negative, fractional or larger than what they are counted among.
    """
    normal_quantile(confidence)
    _check_parts(("judge_yes", judge_yes, units), ("yes_labelled", yes_labelled, judge_yes))
    _check_parts(("yes_reference", yes_reference, yes_labelled), ("no_reference", no_reference, no_labelled))
    _check_parts(("no_labelled", no_labelled, units - judge_yes))
    if units == 0:
        return _none("by-verdict", "no_data")
    if (judge_yes and yes_labelled < 2) or (judge_yes < units and no_labelled < 2):
        return _none("by-verdict", "too_few_clusters")
    theta, variance, n = by_verdict_moments(
        judge_yes, units, yes_labelled, yes_reference, no_labelled, no_reference, confidence
    )
    size, labelled = float(n), yes_labelled + no_labelled
    return _effective(
        "by-verdict", float(theta), float(variance), size, max(size, units), confidence, labelled
    )


def by_verdict_moments(
    judge_yes: ArrayLike,
    units: ArrayLike,
    yes_labelled: ArrayLike,
    yes_reference: ArrayLike,
    no_labelled: ArrayLike,
    no_reference: ArrayLike,
    confidence: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share, squared standard error and number of labels it is worth, elementwise.

    q·PPV + (1-q)·FOR with q the judge's yes share, PPV and FOR the reference's yes shares among each verdict.
    """
    total = np.asarray(units, dtype=np.float64)
    q = np.asarray(judge_yes, dtype=np.float64) / total
    ppv, ppv_variance, m1 = _part(yes_labelled, yes_reference, confidence)
    missed, missed_variance, m0 = _part(no_labelled, no_reference, confidence)
    theta = q * ppv + (1 - q) * missed
    variance = (
        q**2 * ppv_variance / m1
        + (1 - q) ** 2 * missed_variance / m0
        + (ppv - missed) ** 2 * q * (1 - q) / total
    )
    return theta, variance, 1 / (q**2 / m1 + (1 - q) ** 2 / m0)


def _part(
    labelled: ArrayLike, yes: ArrayLike, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share, pulled variance and size of one verdict's labels; a verdict never given has weight 0 anyway."""
    m = np.maximum(np.asarray(labelled, dtype=np.float64), 1)
    share = np.asarray(yes, dtype=np.float64) / m
    plain = share * (1 - share) * m / np.maximum(m - 1, 1)
    return share, shrunk_variance(plain, share, m, confidence), m


# ---------------------------------------------------------------- accuracy measured elsewhere


def rogan_gladen_known(
    positives: int, n: int, sensitivity: float, specificity: float, confidence: float = 0.95
) -> Corrected:
    """Rogan & Gladen 1978 with an accuracy known for certain; Wilson's limits go through the same line.

    ``judge_uninformative`` where sensitivity + specificity is not above 1.
    """
    observed = wilson_ci(positives, n, confidence)
    _shares("sensitivity and specificity", (sensitivity, specificity))
    if observed.estimate is None or observed.low is None or observed.high is None:
        return _none("rogan-gladen", "no_data")
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return _none("rogan-gladen", "judge_uninformative")
    raw, low, high = (
        (share + specificity - 1) / youden for share in (observed.estimate, observed.low, observed.high)
    )
    return Corrected(_clip(raw), _clip(low), _clip(high), "rogan-gladen", None, n, None, raw)


def lang_reiczigel_ci(
    positives: int,
    n: int,
    true_positives: int,
    reference_positives: int,
    true_negatives: int,
    reference_negatives: int,
    confidence: float = 0.95,
) -> Corrected:
    """Interval where sensitivity and specificity come from another labelled set (Lang & Reiczigel 2014).

    The judge called ``positives`` of ``n`` units yes. It assumes that the judge errs alike on both sets.
    ``judge_uninformative`` where sensitivity + specificity - 1, or its lower limit, is not above 0.

    Raises:
        ValueError: counts that are negative, fractional or larger than what they are counted among.
    """
    _check_parts(("positives", positives, n))
    return rogan_gladen_ci(
        positives / n if n else 0.0,
        n,
        true_positives,
        reference_positives,
        true_negatives,
        reference_negatives,
        confidence,
    )


def rogan_gladen_ci(
    share: float,
    n: float,
    true_positives: int,
    reference_positives: int,
    true_negatives: int,
    reference_negatives: int,
    confidence: float = 0.95,
) -> Corrected:
    """:func:`lang_reiczigel_ci` of a ``share`` in [0, 1] at ``n`` >= 0 units, whole or effective.

    With several draws a question: the share of :func:`~evalrun.stats.rate.rate_ci` and its effective n.
    """
    z = normal_quantile(confidence)
    _check_parts(
        ("true_positives", true_positives, reference_positives),
        ("true_negatives", true_negatives, reference_negatives),
    )
    _shares("share", (share,))
    if not (n and reference_positives and reference_negatives):
        return _none("lang-reiczigel", "no_data")
    if not _informative(true_positives, reference_positives, true_negatives, reference_negatives, confidence):
        return _none("lang-reiczigel", "judge_uninformative")
    sensitivity, specificity = true_positives / reference_positives, true_negatives / reference_negatives
    raw = (share + specificity - 1) / (sensitivity + specificity - 1)
    se = (true_positives + 1) / (reference_positives + 2)
    sp = (true_negatives + 1) / (reference_negatives + 2)
    se_part, sp_part = se * (1 - se) / (reference_positives + 2), sp * (1 - sp) / (reference_negatives + 2)
    size = n + z * z
    q = (share * n + z * z / 2) / size
    youden = se + sp - 1
    theta = (q + sp - 1) / youden
    shift = 2 * z * z * (theta * se_part - (1 - theta) * sp_part)
    variance = (q * (1 - q) / size + theta**2 * se_part + (1 - theta) ** 2 * sp_part) / youden**2
    half = z * math.sqrt(variance)
    low, high = _clip(theta + shift - half), _clip(theta + shift + half)
    return Corrected(_clip(raw), low, high, "lang-reiczigel", None, round(n), None, raw)


def _informative(tp: int, positives: int, tn: int, negatives: int, confidence: float) -> bool:
    """Whether the judge surely says yes more often where the reference does, by Newcombe's lower limit."""
    found = unpaired_ci(
        wilson_ci(tp, positives, confidence), wilson_ci(negatives - tn, negatives, confidence)
    )
    return found.low is not None and found.low > 0


# ---------------------------------------------------------------- shared by all


@dataclass(frozen=True)
class _Shared:
    """What questions that share documents add up to, a document at a time.

    ``squares`` is the sum over ``documents`` of the squared sum of what each question puts into the rate,
    ``effective`` the number of equally large documents that the labelled questions amount to. In place of
    the squares of single questions they make the interval of :func:`evalrun.stats.nested_rate_ci`. By
    simulation (tests/coverage_simulation.py, part ``shared``: 12 to 30 documents of 1 to 7 questions) it
    covers .91 at worst, where all questions of a document stand and fall together, with up to 5.4 % false
    passes there; elsewhere .93 and 3.8 %.
    """

    squares: float
    documents: int
    effective: float

    @classmethod
    def of(cls, parts: FloatArray, documents: Sequence[Hashable] | None, labelled: int) -> _Shared | None:
        """None where no two questions share a document; the first ``labelled`` questions are the labelled."""
        if documents is None:
            return None
        codes: dict[Hashable, int] = {}
        code = np.array([codes.setdefault(name, len(codes)) for name in documents[: len(parts)]])
        sizes = np.bincount(code[:labelled])
        return cls(float((np.bincount(code, parts) ** 2).sum()), len(codes), documents_effective(sizes))


def _effective(
    method: str,
    raw: float,
    variance: float,
    n: float,
    most: float,
    confidence: float,
    labelled: int,
    weight: float | None = None,
    shared: _Shared | None = None,
) -> Corrected:
    """Wilson at the effective number of labels."""
    p = _clip(raw)
    n_eff = float(effective_n(p, variance, n, confidence, most))
    if shared is not None:
        if shared.effective < MIN_CLUSTERS:
            return _none(method, "too_few_clusters")
        squares, documents = n**2 * shared.squares, shared.documents
        n_eff = float(nested_n_eff(p, squares, labelled, documents, shared.effective, n_eff, confidence))
        method = f"{method}-nested"
    plain = wilson_interval(p, n_eff, labelled, confidence, method)
    return Corrected(**vars(plain), raw=raw, judge_weight=weight)


def _slope(y: FloatArray, x: FloatArray, spread: FloatArray) -> FloatArray:
    """cov(Y, X)/spread along the last axis, clipped to [0, 1]; 0 where ``spread`` is 0."""
    products = (y * (x - x.mean(-1, keepdims=True))).mean(-1)
    return np.clip(np.where(spread > 1e-12, products / np.maximum(spread, 1e-12), 0.0), 0.0, 1.0)


def _shares(name: str, values: Sequence[float]) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    bad = np.flatnonzero(~((found >= 0) & (found <= 1)))
    if bad.size:
        raise ValueError(f"{name}, item {bad[0]}: {found[bad[0]]} is not a number in [0, 1]")
    return found


def _check_parts(*parts: tuple[str, int, int]) -> None:
    for name, part, whole in parts:
        check_count(name, part)
        if part > whole:
            raise ValueError(f"{name} ({part}) exceeds the {whole} it is counted among")


def _clip(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _none(method: str, reason: Reason) -> Corrected:
    return Corrected(None, None, None, method, reason)
