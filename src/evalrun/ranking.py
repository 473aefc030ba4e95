"""Ranking metrics on chunk ids: what share of the relevant chunks was retrieved, and how high.

Owns recall@k, nDCG@k, reciprocal rank and "all relevant in the first k" of one question. A repeated id counts
at its first rank and keeps the later ranks occupied. None where a question has no relevant chunk; averages
are the business of the summary.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

Gain = Literal["linear", "exponential"]


def recall_at_k(ranked: Sequence[str], relevant: Collection[str], k: int) -> float | None:
    """Share of the ``relevant`` ids among the first ``k`` retrieved, at most k/|relevant|.

    Raises:
        TypeError: an id is not text; a number would match nothing and look like a miss.
        ValueError: k below 1.
    """
    _check(k, ranked, relevant)
    wanted = set(relevant)
    return len(wanted.intersection(ranked[:k])) / len(wanted) if wanted else None


def all_relevant_at_k(ranked: Sequence[str], relevant: Collection[str], k: int) -> float | None:
    """1.0 where every relevant id is in the first ``k``, else 0.0; errors as :func:`recall_at_k`."""
    _check(k, ranked, relevant)
    return float(set(relevant).issubset(ranked[:k])) if relevant else None


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float | None:
    """1/rank of the first relevant id, 0.0 where none was retrieved; errors as :func:`recall_at_k`."""
    _check(1, ranked, relevant)
    wanted = set(relevant)
    if not wanted:
        return None
    return next((1 / rank for rank, name in enumerate(ranked, 1) if name in wanted), 0.0)


def ndcg_at_k(
    ranked: Sequence[str], grades: Mapping[str, float], k: int, gain: Gain = "linear"
) -> float | None:
    """Discounted gain of the first ``k``, over that of the best order of all judged ids (trec_eval ndcg_cut).

    Gain is the grade (Järvelin & Kekäläinen 2002), or 2^grade - 1 (``exponential``, Burges et al. 2005);
    discount log2(rank + 1). The ideal stays at ``k`` where fewer were retrieved.
    None without a positive grade.

    Raises:
        TypeError: an id is not text.
        ValueError: k below 1, or a grade that is negative or not finite.
    """
    _check(k, ranked, grades)
    bad = {name: grade for name, grade in grades.items() if not 0 <= grade < math.inf}
    if bad:
        raise ValueError(f"grades must be finite numbers from 0: {bad}")
    gains = {name: 2.0**grade - 1 if gain == "exponential" else grade for name, grade in grades.items()}
    ideal = _discounted(sorted(gains.values(), reverse=True)[:k])
    if ideal == 0:
        return None
    first = {name: rank for rank, name in reversed(list(enumerate(ranked[:k])))}
    found = [gains.get(name, 0.0) if first[name] == rank else 0.0 for rank, name in enumerate(ranked[:k])]
    return _discounted(found) / ideal


def _discounted(gains: Iterable[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _check(k: int, ranked: Iterable[str], judged: Iterable[str]) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    for name in (*ranked, *judged):
        if not isinstance(name, str):
            raise TypeError(f"ids are text; {name!r} is {type(name).__name__}")
