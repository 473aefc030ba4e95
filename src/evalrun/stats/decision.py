"""How a threshold is decided by limits alone: holds, fails or undecided.

Owns the limits a gate reads, with missing draws counted against it, and the comparison; the point estimate
never decides. Minimum n and coverage are checked by :func:`gate_verdict`; what a gate is called and what its
verdict costs is the business of the gates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from evalrun.stats.draws import Questions, Values, filled, read, share_scored
from evalrun.stats.effective import exact_limits
from evalrun.stats.interval import Interval, Reason
from evalrun.stats.rate import rate_ci

Decision = Literal["holds", "fails", "undecided"]
Method = Literal["wilson", "exact"]
Estimator = Callable[[Values, float], Interval]
OfQuestions = Callable[[Questions, float], Interval]
TOLERANCE = 1e-9
"""A limit that misses the threshold by less has only lost bits in a sum: 10 × 0.1 is not below 1."""


class Limits(Protocol):
    """The four limits a gate may read."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def lower_exact(self) -> float: ...
    @property
    def upper_exact(self) -> float: ...


@dataclass(frozen=True)
class GateBounds:
    """Wilson and Clopper-Pearson limits at the effective number of questions.

    Every missing draw counts as 0 in the lower limits and as 1 in the upper ones.
    """

    lower: float
    upper: float
    lower_exact: float
    upper_exact: float


def gate_bounds(
    values: Values, confidence: float = 0.95, estimator: Estimator = rate_ci
) -> GateBounds | None:
    """The limits of ``estimator`` (``rate_ci``, ``score_ci``, …) for a gate; None where it gives none.

    None also where the estimator says that its limits decide nothing (``too_few_clusters``).
    """
    worst, best = (estimator(filled(values, missing), confidence) for missing in (0.0, 1.0))
    return bounds_between(worst, best, confidence)


def bounds_of(
    filled: Callable[[float], Questions], confidence: float, estimator: OfQuestions
) -> GateBounds | None:
    """:func:`gate_bounds` of questions that are read already; ``filled`` gives them with every lost draw as
    0 or as 1.
    """
    worst, best = (estimator(filled(missing), confidence) for missing in (0.0, 1.0))
    return bounds_between(worst, best, confidence)


def bounds_between(worst: Interval, best: Interval, confidence: float = 0.95) -> GateBounds | None:
    """The lower limits of ``worst`` and the upper limits of ``best``; None if either has a ``reason``."""
    if worst.reason is not None or best.reason is not None:
        return None
    low, exact_low = worst.low, _exact(worst, confidence)[0]
    high, exact_high = best.high, _exact(best, confidence)[1]
    if low is None or high is None or exact_low is None or exact_high is None:
        return None
    return GateBounds(low, high, exact_low, exact_high)


def _exact(interval: Interval, confidence: float) -> tuple[float | None, float | None]:
    """Clopper-Pearson at ``n_eff``; a method without one has no other limits than its own."""
    if interval.estimate is None or interval.n_eff is None:
        return interval.low, interval.high
    low, high = exact_limits(interval.estimate, interval.n_eff, confidence)
    return float(low), float(high)


def pass_limit(bounds: Limits, threshold: float, at_least: bool, method: Method = "wilson") -> float:
    """The limit that must reach ``threshold`` for the gate to hold.

    The exact one also where Wilson errs on the wrong side: at least T below .5, at most T above .5.
    """
    exact = method == "exact" or uses_exact(threshold, at_least)
    if at_least:
        return bounds.lower_exact if exact else bounds.lower
    return bounds.upper_exact if exact else bounds.upper


def fail_limit(bounds: Limits, at_least: bool) -> float:
    """The limit that must stay short of the threshold for the gate to fail: always the exact one."""
    return bounds.upper_exact if at_least else bounds.lower_exact


def uses_exact(threshold: float, at_least: bool) -> bool:
    """Whether the exact limit decides ``holds`` although Wilson's was asked for."""
    return threshold < 0.5 if at_least else threshold > 0.5


def decide(bounds: Limits, threshold: float, at_least: bool, method: Method = "wilson") -> Decision:
    """``holds`` where the pass limit is on the right side of ``threshold`` or on it, ``fails`` where the fail
    limit is on the wrong side, else ``undecided``; both with a tolerance of 1e-9.
    """
    sign = 1 if at_least else -1
    if sign * (pass_limit(bounds, threshold, at_least, method) - threshold) >= -TOLERANCE:
        return "holds"
    if sign * (fail_limit(bounds, at_least) - threshold) < -TOLERANCE:
        return "fails"
    return "undecided"


@dataclass(frozen=True)
class GateResult:
    """A decision, the two limits it was taken by, and why there is none."""

    decision: Decision
    pass_limit: float | None = None
    fail_limit: float | None = None
    reason: Reason | None = None


def gate_verdict(
    values: Values,
    threshold: float,
    at_least: bool = True,
    confidence: float = 0.95,
    min_n: int = 8,
    method: Method = "wilson",
    estimator: Estimator = rate_ci,
    min_coverage: float = 0.95,
) -> GateResult:
    """Decide a gate from scores. Fewer than ``min_n`` questions with a draw, or fewer than ``min_coverage``
    of the planned draws scored: ``undecided``.
    """
    n, covered = read(values).n, share_scored(values)
    bounds = gate_bounds(values, confidence, estimator)
    if n == 0 or covered is None:
        return GateResult("undecided", reason="no_data")
    if bounds is None:
        return GateResult("undecided", reason="too_few_clusters")
    limits = pass_limit(bounds, threshold, at_least, method), fail_limit(bounds, at_least)
    if n < min_n:
        return GateResult("undecided", *limits, "too_few_clusters")
    if covered < min_coverage:
        return GateResult("undecided", *limits)
    return GateResult(decide(bounds, threshold, at_least, method), *limits)
