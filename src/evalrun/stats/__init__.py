"""Pure statistics: intervals, gates, planning, and the comparison and correction of runs.

Owns every formula; knows nothing of cases, files or reports. A question is the unit of sampling, a draw a
repeated measurement of it. What is undefined is None plus a reason code, never 0, 1 or NaN. Modules that need
``scipy.stats`` (slow to import) are not imported here.
"""

from __future__ import annotations

from evalrun.stats.agreement import (
    Ac1,
    Alpha,
    JudgeAccuracy,
    Kappa,
    Pabak,
    cohen_kappa,
    contingency,
    encode,
    gwet_ac1,
    gwet_ac1_raw,
    judge_accuracy,
    kappa_ci,
    krippendorff_alpha,
    pabak,
)
from evalrun.stats.categories import MacroMicro, macro_ci, macro_micro
from evalrun.stats.correction import (
    Corrected,
    PpiMean,
    by_verdict_ci,
    labelled_draw_ci,
    lang_reiczigel_ci,
    ppi_ci,
    ppi_mean,
    rogan_gladen_known,
    unknown_design,
)
from evalrun.stats.decision import (
    Decision,
    GateBounds,
    GateResult,
    Limits,
    Method,
    bounds_between,
    decide,
    fail_limit,
    gate_bounds,
    gate_verdict,
    pass_limit,
)
from evalrun.stats.draws import Values
from evalrun.stats.feasibility import (
    chance_to_hold,
    min_n_perfect,
    min_passes,
    questions_needed,
    rate_to_hold,
)
from evalrun.stats.interval import Interval, Reason, clopper_pearson_ci, wilson_ci
from evalrun.stats.paired import paired_rate_ci, paired_score_ci, unpaired_ci
from evalrun.stats.power import (
    ExactPower,
    paired_mde,
    paired_sample_size,
    power_one_sample_exact,
    sample_size_two_proportions,
)
from evalrun.stats.rate import (
    ClusteredMean,
    Icc,
    NestedInterval,
    clustered_mean,
    icc_oneway,
    mean_t_ci,
    nested_rate_ci,
    rate_ci,
    score_ci,
)
from evalrun.stats.repeats import pass_at_k, pass_hat_k

__all__ = [
    "Ac1",
    "Alpha",
    "ClusteredMean",
    "Corrected",
    "Decision",
    "ExactPower",
    "GateBounds",
    "GateResult",
    "Icc",
    "Interval",
    "JudgeAccuracy",
    "Kappa",
    "Limits",
    "MacroMicro",
    "Method",
    "NestedInterval",
    "Pabak",
    "PpiMean",
    "Reason",
    "Values",
    "bounds_between",
    "by_verdict_ci",
    "chance_to_hold",
    "clopper_pearson_ci",
    "clustered_mean",
    "cohen_kappa",
    "contingency",
    "decide",
    "encode",
    "fail_limit",
    "gate_bounds",
    "gate_verdict",
    "gwet_ac1",
    "gwet_ac1_raw",
    "icc_oneway",
    "judge_accuracy",
    "kappa_ci",
    "krippendorff_alpha",
    "labelled_draw_ci",
    "lang_reiczigel_ci",
    "macro_ci",
    "macro_micro",
    "mean_t_ci",
    "min_n_perfect",
    "min_passes",
    "nested_rate_ci",
    "pabak",
    "paired_mde",
    "paired_rate_ci",
    "paired_sample_size",
    "paired_score_ci",
    "pass_at_k",
    "pass_hat_k",
    "pass_limit",
    "power_one_sample_exact",
    "ppi_ci",
    "ppi_mean",
    "questions_needed",
    "rate_ci",
    "rate_to_hold",
    "rogan_gladen_known",
    "sample_size_two_proportions",
    "score_ci",
    "unknown_design",
    "unpaired_ci",
    "wilson_ci",
]
