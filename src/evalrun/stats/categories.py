"""Averages over categories: every question alike, or every category alike.

Owns macro and micro means and the interval of the macro mean. Categories of different populations are never
to be pooled; who pools what is the business of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalrun.stats.draws import Questions, Values, read
from evalrun.stats.effective import FloatArray, effective_n, normal_quantile, shrunk_variance
from evalrun.stats.interval import Interval, Reason, no_interval, wilson_interval
from evalrun.stats.rate import MIN_CLUSTERS


@dataclass(frozen=True)
class MacroMicro:
    """``micro``: mean over questions. ``macro``: mean of category means. ``sizes``: questions per category.

    A category whose draws are all missing has size 0, no mean, and no part in ``macro``.
    """

    macro: float | None
    micro: float | None
    sizes: dict[str, int]
    means: dict[str, float | None]
    reason: Reason | None = None


def macro_micro(values: Values, groups: Sequence[str]) -> MacroMicro:
    """Both averages, never one under the other's name. ``groups`` names the category of each question."""
    questions = read(values)
    split = _by_group(questions, groups, len(values))
    means = {name: float(part.mean()) if part.size else None for name, part in split.items()}
    known = [mean for mean in means.values() if mean is not None]
    sizes = {name: int(part.size) for name, part in split.items()}
    if not known:
        return MacroMicro(None, None, sizes, means, "no_data")
    return MacroMicro(sum(known) / len(known), questions.mean, sizes, means)


def macro_ci(values: Values, groups: Sequence[str], confidence: float = 0.95) -> Interval:
    """Interval of the macro mean of rates or scores in [0, 1]; the project's own, held by simulation.

    A category with fewer than 8 questions, or with none left: ``too_few_clusters`` beside the limits, because
    a gate would hold too often.

    Raises:
        ValueError: a score is NaN or outside [0, 1]; lengths differ; confidence outside (0, 1).
    """
    normal_quantile(confidence)
    questions = read(values)
    split = _by_group(questions, groups, len(values))
    parts = [part for part in split.values() if part.size]
    if not parts:
        return no_interval("wilson-macro", "no_data")
    means = np.array([part.mean() for part in parts])
    variances = np.array([part.var(ddof=1) if part.size > 1 else 0.0 for part in parts])
    p, n_eff = macro_n_eff(means, variances, [part.size for part in parts], confidence)
    few = min(part.size for part in split.values()) < MIN_CLUSTERS
    return wilson_interval(
        float(p), float(n_eff), questions.n, confidence, "wilson-macro", "too_few_clusters" if few else None
    )


def macro_n_eff(
    means: FloatArray, variances: FloatArray, sizes: Sequence[int], confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Macro mean and its effective number of questions, from C categories along the first axis."""
    size = np.array(sizes, dtype=np.float64).reshape(-1, *[1] * (means.ndim - 1))
    count = len(sizes)
    variance = (shrunk_variance(variances, means, size, confidence) / size).sum(0) / count**2
    p = np.asarray(means.mean(0))
    return p, effective_n(p, variance, count**2 / float((1 / size).sum()), confidence)


def _by_group(questions: Questions, groups: Sequence[str], count: int) -> dict[str, FloatArray]:
    """Question means of each category, in order of first appearance; empty for one without a scored draw."""
    if len(groups) != count:
        raise ValueError(f"{count} questions but {len(groups)} groups")
    split: dict[str, list[float]] = {name: [] for name in groups}
    for place, mean in zip(questions.places, questions.means, strict=True):
        split[groups[place]].append(float(mean))
    return {name: np.array(part, dtype=np.float64) for name, part in split.items()}
