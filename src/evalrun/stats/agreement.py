"""How far two or more raters agree on categories: kappa and its relatives, sensitivity and specificity.

Owns the formulas, on tables of counts (rows: first rater, the judge; columns: second, the reference) or on
raw labels with gaps. Categories are declared, so that one nobody used counts. Which labels belong to which
answer is the business of ``evalrun.agreement``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalrun.stats.draws import Values
from evalrun.stats.effective import FloatArray, normal_quantile
from evalrun.stats.interval import Interval, Reason, check_count, clopper_pearson_ci, no_interval, wilson_ci

Ratings = Sequence[Sequence[Hashable | None]]
"""One sequence of labels a unit, None where a rater gave none."""


_BLOCK = 1 << 15  # what is made of so many labels stays in the cache


def encode(labels: Sequence[Hashable], categories: Sequence[Hashable]) -> NDArray[np.int64]:
    """The place of each label among the declared ``categories``.

    Raises:
        ValueError: labels that are no category; all of them are named with their places.
    """
    code = {category: i for i, category in enumerate(categories)}
    unknown = [f"label {place}: {label!r}" for place, label in enumerate(labels) if label not in code]
    if unknown:
        raise ValueError(f"not among the categories {list(categories)}: " + "; ".join(unknown))
    return np.array([code[label] for label in labels], dtype=np.int64)


def contingency(first: ArrayLike, second: ArrayLike, categories: int = 2) -> NDArray[np.int64]:
    """Table of counts of two raters' codes 0 … ``categories`` - 1 (or booleans), in one pass of bincount.

    Raises:
        ValueError: lengths differ, a code is no category, or codes are not whole numbers.
    """
    a, b = _codes(first), _codes(second)
    if a.shape != b.shape:
        raise ValueError(f"{a.size} labels of one rater and {b.size} of the other")
    counts = np.zeros(categories**2, dtype=np.int64)
    cells = np.empty(
        min(a.size, _BLOCK), dtype=np.int64
    )  # one for all blocks: fresh memory costs more than sums
    for start in range(0, a.size, _BLOCK):
        one, two = (_in_range(codes, start, categories) for codes in (a, b))
        cell = cells[: one.size]
        np.multiply(one, categories, out=cell, casting="unsafe", dtype=np.int64)
        np.add(cell, two, out=cell, casting="unsafe", dtype=np.int64)
        counts += np.bincount(cell, minlength=categories**2)
    return counts.reshape(categories, categories)


@dataclass(frozen=True)
class Kappa:
    """Chance-corrected agreement with its standard error, and the one that holds where kappa is 0."""

    kappa: float | None
    se: float | None
    se_null: float | None
    observed: float | None
    expected: float | None
    reason: Reason | None = None


def cohen_kappa(table: ArrayLike) -> Kappa:
    """Cohen 1960 with the standard error of Fleiss, Cohen & Everitt 1969; q × q counts.

    None with ``single_category`` where both raters used one and the same category only. Where one of them
    never varies kappa is 0 whatever the other said: it comes with ``no_variation``.
    """
    counts = _counts(table)
    if counts.sum() == 0:
        return Kappa(None, None, None, None, None, "no_data")
    observed, expected = _agreement(counts)
    if expected == 1:
        return Kappa(None, None, None, observed, expected, "single_category")
    kappa, se, se_null = _kappa(counts)
    constant = (counts.sum(0) > 0).sum() == 1 or (counts.sum(1) > 0).sum() == 1
    return Kappa(kappa, se, se_null, observed, expected, "no_variation" if constant else None)


def kappa_ci(table: ArrayLike, confidence: float = 0.95) -> Interval:
    """Kappa of the table, with limits from the table plus 2/q² in every cell (½ at q = 2), at most 1.

    The plain limits cover far too seldom with few labels; this is the project's own, held by simulation for
    2 to 4 categories. Reasons as :func:`cohen_kappa`.
    """
    z = normal_quantile(confidence)
    counts = _counts(table)
    found, n = cohen_kappa(table), int(counts.sum())
    if found.kappa is None:
        return no_interval("kappa", found.reason or "no_data", None, n)
    centre, se, _ = _kappa(counts + 2 / counts.shape[0] ** 2)
    return Interval(found.kappa, centre - z * se, min(centre + z * se, 1.0), "kappa", found.reason, n)


@dataclass(frozen=True)
class Pabak:
    """Agreement as if both categories were equally frequent, and what made kappa differ from it."""

    pabak: float | None
    prevalence_index: float | None
    bias_index: float | None
    reason: Reason | None = None


def pabak(table: ArrayLike) -> Pabak:
    """2·observed - 1, (a - d)/n and (b - c)/n of a 2 × 2 table (Byrt, Bishop & Carlin 1993)."""
    counts = _counts(table)
    if counts.shape != (2, 2):
        raise ValueError(f"these indices are for 2 x 2 tables, not {counts.shape}")
    n = float(counts.sum())
    if n == 0:
        return Pabak(None, None, None, "no_data")
    (a, b), (c, d) = counts.tolist()
    return Pabak(2 * (a + d) / n - 1, (a - d) / n, (b - c) / n)


@dataclass(frozen=True)
class Ac1:
    """Gwet's AC1; its standard error is None for raw labels."""

    coefficient: float | None
    se: float | None = None
    reason: Reason | None = None


def gwet_ac1(table: ArrayLike) -> Ac1:
    """Gwet 2008: expected agreement Σπ(1-π)/(q-1), π the mean of both raters' shares; q × q counts, q ≥ 2."""
    counts = _counts(table)
    n, q = float(counts.sum()), counts.shape[0]
    if n == 0:
        return Ac1(None, None, "no_data")
    p = counts / n
    pi = (p.sum(0) + p.sum(1)) / 2
    observed, expected = float(np.trace(p)), float((pi * (1 - pi)).sum()) / (q - 1)
    gamma = (observed - expected) / (1 - expected)
    weight = 2 * (1 - gamma) / (q - 1) * (1 - (pi[:, None] + pi[None, :]) / 2)
    squares = float((p * (np.eye(q) - weight) ** 2).sum()) - (observed - 2 * (1 - gamma) * expected) ** 2
    return Ac1(gamma, math.sqrt(max(squares, 0.0) / n) / (1 - expected))


def gwet_ac1_raw(ratings: Ratings, categories: Sequence[Hashable]) -> Ac1:
    """AC1 of any number of raters with gaps (Gwet 2014).

    Observed agreement over units with two labels or more; π is the mean over labelled units of each unit's
    share of a category.

    Raises:
        ValueError: a label that is no category, or fewer than two categories.
    """
    if len(categories) < 2:
        raise ValueError("agreement by chance needs two categories or more")
    counts = _unit_counts(ratings, categories)
    sizes = counts.sum(1)
    paired = counts[sizes >= 2]
    if not paired.size:
        return Ac1(None, None, "no_data")
    pairs = paired.sum(1) * (paired.sum(1) - 1)
    observed = float(((paired * (paired - 1)).sum(1) / pairs).mean())
    labelled = sizes >= 1
    pi = (counts[labelled] / sizes[labelled, None]).mean(0)
    expected = float((pi * (1 - pi)).sum()) / (len(categories) - 1)
    return Ac1((observed - expected) / (1 - expected))


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha, from so many units; ``dropped`` had fewer than two labels."""

    alpha: float | None
    units: int
    dropped: int
    reason: Reason | None = None


def krippendorff_alpha(ratings: Ratings | Values, level: Literal["nominal", "interval"] = "nominal") -> Alpha:
    """Agreement of any number of raters with gaps, from the coincidence matrix (Krippendorff 2011).

    ``interval`` takes numbers and weighs a disagreement by its square. None with ``single_category`` where
    one value only was ever given.
    """
    values = list(dict.fromkeys(label for unit in ratings for label in unit if label is not None))
    counts = _unit_counts(ratings, values)
    kept = counts[counts.sum(1) >= 2]
    dropped = len(counts) - len(kept)
    if not kept.size:
        return Alpha(None, 0, dropped, "no_data")
    each = kept / (kept.sum(1, keepdims=True) - 1)
    coincidences = each.T @ kept - np.diag(each.sum(0))
    apart = _distances(values, level)
    totals = coincidences.sum(0)
    expected = float((np.outer(totals, totals) * apart).sum())
    if expected == 0:
        return Alpha(None, len(kept), dropped, "single_category")
    disagreement = (float(totals.sum()) - 1) * float((coincidences * apart).sum())
    return Alpha(1 - disagreement / expected, len(kept), dropped)


@dataclass(frozen=True)
class JudgeAccuracy:
    """What share of the reference's yes the judge finds, and what share of its no the judge clears."""

    sensitivity: Interval
    specificity: Interval


def judge_accuracy(
    tp: int,
    fp: int,
    fn: int,
    tn: int,
    confidence: float = 0.95,
    method: Literal["exact", "wilson"] = "exact",
) -> JudgeAccuracy:
    """Sensitivity tp/(tp + fn) and specificity tn/(tn + fp); ``no_data`` without such a reference."""
    for name, count in (("tp", tp), ("fp", fp), ("fn", fn), ("tn", tn)):
        check_count(name, count)
    interval = clopper_pearson_ci if method == "exact" else wilson_ci
    return JudgeAccuracy(interval(tp, tp + fn, confidence), interval(tn, tn + fp, confidence))


def _codes(labels: ArrayLike) -> NDArray[np.integer]:
    codes = np.asarray(labels)
    if codes.dtype == np.bool_:
        return codes.view(np.int8)
    if codes.size == 0:
        return np.zeros(0, dtype=np.int8)
    if not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(f"codes are whole numbers or booleans, not {codes.dtype}")
    return codes


def _in_range(codes: NDArray[np.integer], start: int, categories: int) -> NDArray[np.integer]:
    """One block of codes, all of them known categories."""
    block = codes[start : start + _BLOCK]
    # seen as unsigned, a negative code is a huge one: one pass checks both ends
    if int(block.view(f"u{block.dtype.itemsize}").max()) >= categories:
        bad = np.flatnonzero((block < 0) | (block >= categories))[:5] + start
        raise ValueError(f"codes outside 0 … {categories - 1} at places {bad.tolist()}")
    return block


def _counts(table: ArrayLike) -> FloatArray:
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.shape[0] < 2:
        raise ValueError(f"a table is square with two categories or more, not {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("a table holds counts from 0")
    return counts


def _agreement(counts: FloatArray) -> tuple[float, float]:
    """Observed and expected agreement."""
    p = counts / counts.sum()
    return float(np.trace(p)), float(p.sum(0) @ p.sum(1))


def _kappa(counts: FloatArray) -> tuple[float, float, float]:
    """Kappa, its standard error and its null standard error; expected agreement below 1."""
    n, p = float(counts.sum()), counts / counts.sum()
    rows, columns = p.sum(1), p.sum(0)
    observed, expected = _agreement(counts)
    kappa = (observed - expected) / (1 - expected)
    chance = columns[:, None] + rows[None, :]
    same = np.eye(len(counts))
    squares = float((p * (same - (1 - kappa) * chance) ** 2).sum()) - (kappa - expected * (1 - kappa)) ** 2
    null = float((np.outer(rows, columns) * (same - chance) ** 2).sum()) - expected**2
    scale = math.sqrt(n) * (1 - expected)
    return kappa, math.sqrt(max(squares, 0.0)) / scale, math.sqrt(max(null, 0.0)) / scale


def _unit_counts(ratings: Ratings | Values, categories: Sequence[Hashable]) -> FloatArray:
    """How often each unit got each category."""
    rows = [encode([label for label in unit if label is not None], categories) for unit in ratings]
    counts = [np.bincount(row, minlength=len(categories)) for row in rows]
    return np.array(counts, dtype=np.float64).reshape(len(rows), len(categories))


def _distances(values: Sequence[Hashable], level: Literal["nominal", "interval"]) -> FloatArray:
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    numbers = np.array(values, dtype=np.float64)
    return np.asarray((numbers[:, None] - numbers[None, :]) ** 2)
