"""Gates: a threshold on one estimate's interval, decided once, for console, JUnit, HTML and exit code alike.

Owns the decision and the words that explain it, and the refusal of gates that could not hold. Computes no
estimate: the limits come with it. Gates on a drop since a baseline are decided in ``drop_gates``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from evalrun import stats
from evalrun.records import Case, Correction, Estimate, Gate, Metric, Verdict
from evalrun.reports import words
from evalrun.reports.comparison.figures import about
from evalrun.stats.decision import TOLERANCE
from evalrun.stats.rate import MIN_CLUSTERS
from evalrun.summary import documents_of, groups_of


def threshold(gate: Gate) -> tuple[float, bool]:
    """(threshold, whether at least that much is demanded)."""
    if gate.min is not None:
        return gate.min, True
    assert gate.max is not None
    return gate.max, False


def number(value: float) -> str:
    """A share as it is printed: ``.81``, ``1.0``."""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text[:3] if text.startswith("1") else text


def infeasible(
    gate: Gate, metric: Metric, cases: Sequence[Case], applies: Callable[[Case], bool]
) -> tuple[str, str] | None:
    """Why a gate cannot hold as planned, and what to do; None if it can.

    Args:
        applies: whether the metric can be measured on a case.
    """
    members = groups_of(metric, cases).get(gate.group, [])
    n = sum(applies(case) for case in members)
    if gate.infer == "this_set":
        return None if n else (f"no question of group '{gate.group}' can be measured", "drop the gate")
    if n < gate.min_n:
        return (
            f"group '{gate.group}' has {n} {'question that counts' if n == 1 else 'questions that count'}; "
            f"a gate needs {gate.min_n}",
            f"add {words.count(gate.min_n - n, 'question')}, or gate on a larger group",
        )
    limit, at_least = threshold(gate)
    if few := _too_few_documents([case for case in members if applies(case)], gate):
        return few
    needed = stats.min_n_perfect(limit, at_least, method=gate.method)
    if needed is None:
        return (f"no number of questions can show {gate.needs}", "choose a threshold short of it")
    if n < needed:
        return (
            f"even a perfect score on {words.count(n, 'question')} cannot show {gate.needs}: "
            f"that takes {needed}",
            f"add {words.count(needed - n, 'question')} to '{gate.group}', or lower the threshold",
        )
    return None


def _too_few_documents(members: Sequence[Case], gate: Gate) -> tuple[str, str] | None:
    """Questions that share a document count together: a perfect score counts each document once."""
    documents = documents_of(members)
    if documents is None:
        return None
    effective = stats.documents_effective(list(Counter(documents).values()))
    told = f"the {len(members)} questions of '{gate.group}' are worth {effective:.3g} documents"
    hint = "add questions from other documents, or leave 'cluster' out where these are all there are"
    if effective < MIN_CLUSTERS:
        return f"{told}; a gate needs {MIN_CLUSTERS}", hint
    limit, at_least = threshold(gate)
    needed = stats.min_n_perfect(limit, at_least, method=gate.method)
    if needed is not None and math.ceil(effective) < needed:
        return f"{told}; to show {gate.needs} takes {needed}, were every answer perfect", hint
    return None


def decide(gate: Gate, estimates: Mapping[tuple[str, str], Estimate]) -> Verdict:
    """The verdict of one gate; of a judged rate it reads the corrected one, where there is one."""
    found = estimates.get((gate.metric, gate.group))
    if found is None or found.value is None:
        why = found.reason if found is not None and found.reason else "no_data"
        return Verdict(gate=gate, decision="undecided", why=f"nothing was measured ({why})")
    read = found.measured or found
    verdict = Verdict(
        gate=gate,
        decision="undecided",
        value=read.value,
        low=read.low,
        high=read.high,
        n=found.n,
        judge_measured=found.measured is not None if found.judged else None,
    )
    reason = _not_measured(gate, found)
    if reason:
        return verdict.model_copy(update={"why": reason})
    if gate.infer == "this_set":
        return verdict.model_copy(update=_exactly(gate, found.value))
    return verdict.model_copy(update=_by_limits(gate, found))


def _not_measured(gate: Gate, found: Estimate) -> str:
    coverage = found.coverage
    if coverage is not None and coverage < gate.min_coverage - TOLERANCE:
        lacking = f"coverage {number(coverage)}, needs {number(gate.min_coverage)}"
        return f"{lacking}: not measured ({words.lost(found.failures)})"
    if gate.infer == "population" and found.n < gate.min_n:
        return f"{words.count(found.n, 'question')} measured, needs {gate.min_n}"
    if found.judged and gate.require_measured_judge and found.measured is None:
        why = found.corrected.why if found.corrected else "no labels"
        return f"the judge is not measured against labels: {why}"
    return ""


def _exactly(gate: Gate, value: float) -> dict[str, str]:
    limit, at_least = threshold(gate)
    holds = value >= limit - TOLERANCE if at_least else value <= limit + TOLERANCE
    return {"decision": "holds" if holds else "fails", "decided_by": f"{number(value)} on this list"}


def _by_limits(gate: Gate, found: Estimate) -> dict[str, str]:
    limit, at_least = threshold(gate)
    bounds = (found.measured or found).bounds
    if bounds is None:
        return {"why": f"no interval ({found.reason or 'too few questions'})"}
    decision = stats.decide(bounds, limit, at_least, gate.method)
    passing = stats.pass_limit(bounds, limit, at_least, gate.method)
    failing = stats.fail_limit(bounds, at_least)
    if decision == "holds":
        word = "at least" if at_least else "at most"
        return {"decision": decision, "decided_by": f"{word} {number(passing)}"}
    word = "at most" if at_least else "at least"
    by = f"{word} {number(failing)} (exact limit)"
    if decision == "fails":
        return {"decision": decision, "decided_by": by}
    low, high = sorted((passing, failing))
    return {
        "decision": decision,
        "decided_by": f"between {number(low)} and {number(high)}",
        "advice": _advice(gate, found),
    }


def _advice(gate: Gate, found: Estimate) -> str:
    limit, at_least = threshold(gate)
    measured = found.measured
    value = measured.value if measured else found.value
    assert value is not None
    each = _worth(measured, measured.labels) if measured else _worth(found, found.n)
    needed = stats.questions_needed(value, limit, at_least, method=gate.method, per_question=each)
    if needed is None:
        side = "reaches" if at_least else "stays under"
        return f"at this rate no number of questions {side} the threshold"
    if measured is not None:
        told = f"takes about {about(needed)} labelled questions"
        told = f"to hold at this rate {told}; you have {measured.labels}"
        return told if needed > measured.labels and not measured.assumes else ""
    if needed <= found.n:
        return ""
    what = "questions from other documents" if each < 1 else "questions"
    return f"to hold at this rate takes {needed:,} questions; you have {found.n:,} (add {what}, not draws)"


def _worth(found: Estimate | Correction, questions: int) -> float:
    """What a question counts for: less than 1 where questions share documents. Draws are not counted on."""
    value, low, high = found.value, found.low, found.high
    if not found.method.endswith("-nested") or value is None or low is None or high is None:
        return 1.0
    return min(stats.n_eff_of(value, low, high) / questions, 1.0)
