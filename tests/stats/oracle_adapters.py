"""One table from the functions that the oracles name to the functions of the product.

Owns the translation of inputs and results only; it computes nothing that an oracle checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalrun import ranking, stats
from evalrun.stats.bootstrap import bca_mean_ci
from evalrun.stats.effective import normal_quantile
from evalrun.stats.interval import wilson_interval
from evalrun.stats.significance import holm, mcnemar_exact, mcnemar_midp, sign_flip_test

Result = dict[str, Any]
Adapter = Callable[..., Result]


def limits(interval: stats.Interval) -> Result:
    """What most oracles expect of an interval."""
    return dict(vars(interval))


def single(values: Sequence[float | None]) -> list[list[float | None]]:
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


def _unpaired(x1: int, n1: int, x2: int, n2: int, confidence: float) -> Result:
    return limits(stats.unpaired_ci(stats.wilson_ci(x1, n1, confidence), stats.wilson_ci(x2, n2, confidence)))


def _newcombe_paired(a: int, b: int, c: int, d: int, confidence: float) -> Result:
    """Both pass, only the first passes, only the second passes, neither passes."""
    first, second = [1.0] * (a + b) + [0.0] * (c + d), [1.0] * a + [0.0] * b + [1.0] * c + [0.0] * d
    return limits(stats.paired_rate_ci(single(first), single(second), confidence))


def _kappa(table: list[list[int]], confidence: float) -> Result:
    found = stats.cohen_kappa(table)
    assert found.kappa is not None
    assert found.se is not None
    z = normal_quantile(confidence)
    return {
        **vars(found),
        "low_wald": found.kappa - z * found.se,
        "high_wald": found.kappa + z * found.se,
    }


def _kappa_ci(table: list[list[int]], confidence: float) -> Result:
    found = stats.kappa_ci(table, confidence)
    return {**limits(found), "kappa": found.estimate}


def _ac1_raw(ratings: list[list[int | None]]) -> Result:
    used = sorted({label for unit in ratings for label in unit if label is not None})
    return dict(vars(stats.gwet_ac1_raw(ratings, used)))


def _judge_accuracy(**inputs: Any) -> Result:
    found = stats.judge_accuracy(**inputs)
    named = {"sensitivity": found.sensitivity, "specificity": found.specificity}
    return {
        **{name: interval.estimate for name, interval in named.items()},
        **{f"{name}_low": interval.low for name, interval in named.items()},
        **{f"{name}_high": interval.high for name, interval in named.items()},
    }


def _lang_reiczigel(human_positives: int, human_negatives: int, **inputs: Any) -> Result:
    return limits(
        stats.lang_reiczigel_ci(
            reference_positives=human_positives, reference_negatives=human_negatives, **inputs
        )
    )


def _ppi(human: list[int], lam: float | None, **inputs: Any) -> Result:
    return dict(vars(stats.ppi_mean(reference=human, weight=lam, **inputs)))


def _labelled_draw(**inputs: Any) -> Result:
    found = stats.labelled_draw_ci(**inputs)
    return {**limits(found), "lambda": found.judge_weight}


def _by_verdict(yes_human: int, no_human: int, **inputs: Any) -> Result:
    return limits(stats.by_verdict_ci(yes_reference=yes_human, no_reference=no_human, **inputs))


def _paired_score(a: list[float], b: list[float], confidence: float) -> Result:
    return limits(stats.paired_score_ci(single(a), single(b), confidence))


def _noninferiority(new: stats.Values, old: stats.Values, confidence: float) -> Result:
    return limits(stats.paired_rate_ci(new, old, confidence, purpose="noninferiority"))


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
    "newcombe_unpaired_ci": _unpaired,
    "newcombe_paired_ci": _newcombe_paired,
    "paired_rate_ci": lambda **inputs: limits(stats.paired_rate_ci(**inputs)),
    "paired_score_ci": _paired_score,
    "noninferiority_low": _noninferiority,
    "mcnemar_exact": lambda **inputs: {"pvalue": mcnemar_exact(**inputs)},
    "mcnemar_midp": lambda **inputs: {"pvalue": mcnemar_midp(**inputs)},
    "sign_flip_test": lambda **inputs: {"pvalue": sign_flip_test(**inputs)},
    "holm": lambda **inputs: {"adjusted": holm(**inputs)},
    "bca_mean_ci": lambda values, confidence: limits(bca_mean_ci(single(values), confidence)),
    "power_one_sample_exact": lambda **inputs: dict(vars(stats.power_one_sample_exact(**inputs))),
    "sample_size_two_proportions": lambda **inputs: {
        "n_per_group": stats.sample_size_two_proportions(**inputs)
    },
    "pass_at_k": lambda **inputs: {"value": stats.pass_at_k(**inputs)},
    "pass_hat_k": lambda **inputs: {"value": stats.pass_hat_k(**inputs)},
    "cohen_kappa": _kappa,
    "kappa_ci": _kappa_ci,
    "pabak": lambda table: dict(vars(stats.pabak(table))),
    "gwet_ac1": lambda table: dict(vars(stats.gwet_ac1(table))),
    "gwet_ac1_raw": _ac1_raw,
    "krippendorff_alpha": lambda **inputs: dict(vars(stats.krippendorff_alpha(**inputs))),
    "judge_accuracy": _judge_accuracy,
    "ppi_mean": _ppi,
    "labelled_draw_ci": _labelled_draw,
    "by_verdict_ci": _by_verdict,
    "lang_reiczigel_ci": _lang_reiczigel,
    "rogan_gladen_known": lambda **inputs: limits(stats.rogan_gladen_known(**inputs)),
}
