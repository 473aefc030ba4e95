"""One table from the functions that the oracles name to the functions of the product.

Owns the translation of inputs and results only; it computes nothing that an oracle checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalrun import ranking, stats
from evalrun.stats.interval import wilson_interval

Result = dict[str, Any]
Adapter = Callable[..., Result]


def limits(interval: stats.Interval) -> Result:
    """What most oracles expect of an interval."""
    return dict(vars(interval))


def single(values: list[float | None]) -> list[list[float | None]]:
    """One draw a question."""
    return [[value] for value in values]


def _clustered_mean(values: stats.Values) -> Result:
    return dict(vars(stats.clustered_mean(values)))


def _mean_t(values: list[float | None], confidence: float) -> Result:
    found = stats.mean_t_ci(single(values), confidence)
    return {"mean": found.estimate, "low": found.low, "high": found.high}


def _nested(values: stats.Values, documents: list[str], confidence: float) -> Result:
    found = stats.nested_rate_ci(values, documents, confidence)
    return {**limits(found), "documents_effective": found.documents_effective}


def _macro_micro(values: list[float | None], groups: list[str]) -> Result:
    return dict(vars(stats.macro_micro(single(values), groups)))


def _gate_verdict(**inputs: Any) -> Result:
    found = stats.gate_verdict(**inputs)
    code = {"holds": 1.0, "undecided": 0.0, "fails": -1.0}[found.decision]
    return {"verdict": code, "pass_limit": found.pass_limit, "fail_limit": found.fail_limit}


ADAPTERS: dict[str, Adapter] = {
    "wilson_ci": lambda **inputs: limits(stats.wilson_ci(**inputs)),
    "clopper_pearson_ci": lambda **inputs: limits(stats.clopper_pearson_ci(**inputs)),
    "wilson_effective_ci": lambda p, n_eff, confidence: limits(
        wilson_interval(p, n_eff, 0, confidence, "wilson")
    ),
    "rate_ci": lambda **inputs: limits(stats.rate_ci(**inputs)),
    "score_ci": lambda values, confidence: limits(stats.score_ci(single(values), confidence)),
    "mean_t_ci": _mean_t,
    "nested_rate_ci": _nested,
    "clustered_mean": _clustered_mean,
    "icc_oneway": lambda values: vars(stats.icc_oneway(values)),
    "macro_micro": _macro_micro,
    "macro_ci": lambda **inputs: limits(stats.macro_ci(**inputs)),
    "gate_verdict": _gate_verdict,
    "min_n_perfect": lambda **inputs: {"n": stats.min_n_perfect(**inputs)},
    "min_passes": lambda **inputs: {"passes": stats.min_passes(**inputs)},
    "recall_at_k": lambda **inputs: {"value": ranking.recall_at_k(**inputs)},
    "ndcg_at_k": lambda ranked, gains, k, gain: {"value": ranking.ndcg_at_k(ranked, gains, k, gain)},
    "reciprocal_rank": lambda **inputs: {"value": ranking.reciprocal_rank(**inputs)},
}
