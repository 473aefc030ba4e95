"""Gates on a drop: whether a metric got worse since the baseline by more than is allowed.

Owns the verdict of such a gate in words, and the refusal of those that could not hold. The decision is that
of ``comparison.drops``, the same as of ``evalrun diff --max-drop``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalrun.comparison.drops import Drop, decide_drop
from evalrun.comparison.pairs import Pairs, Row
from evalrun.records import Gate, Metric, Verdict
from evalrun.reports.comparison.figures import about
from evalrun.reports.comparison.words import left_out
from evalrun.reports.words import count, rate, signed
from evalrun.stats.decision import TOLERANCE
from evalrun.stats.draws import share_scored

_MOST_ROWS = 20_000


def infeasible(gate: Gate, metric: Metric, old: Sequence[Row]) -> tuple[str, str] | None:
    """Why a gate on a drop cannot hold against this baseline, and what to do; None if it can.

    ``old``: the baseline's values, a row a question. It cannot hold where not even a flawless run would.
    """
    if gate.infer == "this_set":
        return None if old else (f"no question of group '{gate.group}' is in the baseline", "drop the gate")
    if len(old) < gate.min_n:
        return (
            f"the baseline has {count(len(old), 'question')} of '{gate.group}'; a gate needs {gate.min_n}",
            f"add {count(gate.min_n - len(old), 'question')}, or gate on a larger group",
        )
    covered = share_scored(old)
    if covered is not None and covered < gate.min_coverage:
        why = f"coverage {covered:.2f} in the baseline, needs {gate.min_coverage:g}"
        return why, "accept a run in which less is missing"
    needed = _questions_to_hold(gate, metric, old)
    if needed == len(old):
        return None
    shown = f"{gate.needs} cannot be shown with {count(len(old), 'question')} even by a flawless run"
    if needed is None:
        return shown, "allow a larger drop"
    return (
        f"{shown}: that takes about {about(needed)}",
        f"add questions to '{gate.group}', or allow a larger drop",
    )


def if_unchanged(gate: Gate, metric: Metric, old: Sequence[Row]) -> str:
    """What to expect of a gate on a drop where nothing changes; empty where it would hold."""
    if gate.infer == "this_set" or _held(gate, metric, old, old).decision == "holds":
        return ""
    needed = _held(gate, metric, old, old).needed
    takes = f"; about {about(needed)} questions would decide" if needed else ""
    return f"gate '{gate.name}': a run that answers just like the baseline would be undecided{takes}"


def decide(gate: Gate, pairs: Pairs, *, judge_measured: bool = False) -> Verdict:
    """The verdict of one gate on a drop: the decision of ``evalrun diff --max-drop`` on the gate's group."""
    found = _drop(gate, pairs, judge_measured)
    exactly = gate.infer == "this_set"
    verdict = Verdict(
        gate=gate,
        decision=found.decision,
        value=found.change,
        low=found.change if exactly else found.low,
        high=found.change if exactly else found.high,
        baseline=pairs.old_mean,
        n=found.n,
        why=found.why,
        judge_measured=found.judge_measured,
    )
    if found.change is None:
        return verdict.model_copy(update={"decision": "undecided", "why": "nothing was measured (no_data)"})
    if found.judge_measured is False and gate.require_measured_judge:
        why = "the judge is not measured against labels"
        return verdict.model_copy(update={"decision": "undecided", "why": why})
    if exactly:
        return verdict.model_copy(update=_drop_exactly(gate, found))
    if found.low is None or found.high is None or (found.why and not found.needed):
        return verdict
    advice = f"about {about(found.needed)} questions would decide; you have {found.n}" if found.needed else ""
    if found.left_out:
        advice = "; ".join(filter(None, [advice, left_out(found.left_out)]))
    return verdict.model_copy(update={"decided_by": _drop_limit(found, pairs.old_mean), "advice": advice})


def _drop(gate: Gate, pairs: Pairs, judge_measured: bool) -> Drop:
    assert gate.max_drop is not None
    return decide_drop(
        pairs, gate.max_drop, measured=judge_measured, min_n=gate.min_n, min_coverage=gate.min_coverage
    )


def _drop_exactly(gate: Gate, found: Drop) -> dict[str, str]:
    assert gate.max_drop is not None
    assert found.change is not None
    worse = -found.change if found.good == "higher" else found.change
    holds = worse <= gate.max_drop + TOLERANCE
    by = f"{signed(found.change)} on this list"
    return {"decision": "holds" if holds else "fails", "decided_by": by, "why": ""}


def _drop_limit(found: Drop, old: float | None) -> str:
    since = f" from {rate(old)} in the baseline"
    worst, best = (found.low, found.high) if found.good == "higher" else (found.high, found.low)
    if found.decision == "holds":
        return f"at worst {signed(worst)}{since}"
    if found.decision == "fails":
        return f"at best {signed(best)}{since}"
    return f"between {signed(found.low)} and {signed(found.high)}{since}"


def _held(gate: Gate, metric: Metric, old: Sequence[Row], new: Sequence[Row]) -> Drop:
    """The decision if a run came out as ``new``."""
    names = [str(place) for place in range(len(old))]
    a, b = (dict(zip(names, rows, strict=True)) for rows in (old, new))
    return _drop(gate, Pairs.of(metric, names, a, b), judge_measured=True)


def _questions_to_hold(gate: Gate, metric: Metric, old: Sequence[Row]) -> int | None:
    """About how many questions like the baseline's let a flawless run hold; None beyond a limit."""
    best = 1.0 if metric.better == "higher" else 0.0

    def holds(times: float) -> bool:
        rows = (list(old) * math.ceil(times))[: round(len(old) * times)]
        return _held(gate, metric, rows, [(best,) * len(row) for row in rows]).decision == "holds"

    high = 1.0
    while not holds(high):
        high *= 2
        if high * len(old) > _MOST_ROWS:
            return None
    low = high / 2
    while high > 1 and high - low > 0.05 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return round(len(old) * high)
