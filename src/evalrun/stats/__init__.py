"""Pure statistics: intervals, gates, planning, and the comparison and correction of runs.

Owns every formula; knows nothing of cases, files or reports. A question is the unit of sampling, a draw a
repeated measurement of it. What is undefined is None plus a reason code, never 0, 1 or NaN. Modules that need
``scipy.stats`` (slow to import) are not imported here.
"""

from __future__ import annotations

from evalrun.stats.categories import MacroMicro, macro_ci, macro_micro
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
from evalrun.stats.feasibility import min_n_perfect, min_passes, questions_needed
from evalrun.stats.interval import Interval, Reason, clopper_pearson_ci, wilson_ci
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

__all__ = [
    "ClusteredMean",
    "Decision",
    "GateBounds",
    "GateResult",
    "Icc",
    "Interval",
    "Limits",
    "MacroMicro",
    "Method",
    "NestedInterval",
    "Reason",
    "Values",
    "bounds_between",
    "clopper_pearson_ci",
    "clustered_mean",
    "decide",
    "fail_limit",
    "gate_bounds",
    "gate_verdict",
    "icc_oneway",
    "macro_ci",
    "macro_micro",
    "mean_t_ci",
    "min_n_perfect",
    "min_passes",
    "nested_rate_ci",
    "pass_limit",
    "questions_needed",
    "rate_ci",
    "score_ci",
    "wilson_ci",
]
