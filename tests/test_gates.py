"""A threshold on one estimate's interval: what holds, fails or stays undecided, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalrun.gates import decide, infeasible, number
from evalrun.records import Bounds, Case, Correction, Estimate, Gate, Metric, Score, Verdict
from evalrun.stats.interval import wilson_interval
from evalrun.summary import summarise

CASES = Path(__file__).parent / "cases"
RATE = Metric(id="m", event="m", kind="rate", better="higher")
SCORE = RATE.model_copy(update={"kind": "score", "deterministic": True})
JUDGED = RATE.model_copy(update={"judged": True})


def asked(n: int, expect: str = "answer", category: str = "a") -> list[Case]:
    """So many cases."""
    lines = [
        {"id": f"{category}{i}", "question": "?", "category": category, "expect": expect} for i in range(n)
    ]
    return [Case.model_validate(value) for value in lines]


def estimate(
    passed: int, failed: int, lost: int = 0, not_applicable: int = 0, metric: Metric = RATE
) -> dict[tuple[str, str], Estimate]:
    """Estimates of a run with one draw each that ended so."""
    statuses = ["pass"] * passed + ["fail"] * failed + ["error"] * lost + ["not_applicable"] * not_applicable
    cases = asked(len(statuses))
    lines = [
        Score.model_validate(
            {
                "case": case.id,
                "index": 0,
                "metric": "m",
                "status": status,
                "reason": "service: x" if status == "error" else None,
            }
        )
        for case, status in zip(cases, statuses, strict=True)
    ]
    return {(one.metric, one.group): one for one in summarise([metric], cases, lines, 1)}


def scores(*values: float) -> dict[tuple[str, str], Estimate]:
    """Estimates of scores."""
    cases = asked(len(values))
    lines = [
        Score(case=case.id, index=0, metric="m", status="number", value=value)
        for case, value in zip(cases, values, strict=True)
    ]
    return {(one.metric, one.group): one for one in summarise([SCORE], cases, lines, 1)}


def gate(**fields: Any) -> Gate:
    """A gate on the metric."""
    return Gate.model_validate({"metric": "m"} | fields)


# ---------------------------------------------------------------- limits decide


@pytest.mark.parametrize(
    ("passed", "failed", "bound", "decision"),
    [
        (27, 0, {"min": 0.87}, "holds"),
        (27, 0, {"min": 0.88}, "undecided"),
        (24, 3, {"min": 0.7}, "holds"),
        (23, 4, {"min": 0.7}, "undecided"),
        (8, 19, {"min": 0.7}, "fails"),
        (0, 27, {"max": 0.13}, "holds"),
        (3, 24, {"max": 0.1}, "undecided"),
        (19, 8, {"max": 0.3}, "fails"),
        (7, 1, {"min": 0.5}, "holds"),
        (6, 2, {"min": 0.5}, "undecided"),
    ],
)
def test_the_interval_decides_and_not_the_number(passed: int, failed: int, bound: Any, decision: str) -> None:
    """The table of 6.3: 24 of 27 for .7, 7 of 8 for .5; one less leaves it open."""
    verdict = decide(gate(**bound), estimate(passed, failed))
    assert decision == verdict.decision
    assert "" == verdict.why
    assert verdict.decided_by


def test_the_line_prints_the_limit_that_decided() -> None:
    """For the threshold, in words; an open one says how many questions at this rate would do."""
    assert "at least .88" == decide(gate(min=0.87), estimate(27, 0)).decided_by
    assert "at most .50 (exact limit)" == decide(gate(min=0.7), estimate(8, 19)).decided_by
    open_one = decide(gate(min=0.8), estimate(24, 3))
    assert "between .72 and .98" == open_one.decided_by
    assert "questions; you have 27" in open_one.advice
    below = decide(gate(min=0.7), estimate(17, 10))
    assert "undecided" == below.decision
    assert "at this rate no number of questions reaches the threshold" == below.advice


def test_missing_draws_count_against_it_where_it_would_hold() -> None:
    """Lost because they fail? 33 of 33 hold .87; with 2 of 35 lost the same 33 do not hold .89."""
    assert "holds" == decide(gate(min=0.89), estimate(33, 0)).decision
    lost = decide(gate(min=0.89, min_coverage=0.9), estimate(33, 0, lost=2))
    assert "undecided" == lost.decision
    assert 1.0 == lost.value


def test_missing_draws_count_for_it_where_it_would_fail() -> None:
    """What was lost might have passed: it takes more to say that a gate fails."""
    assert "fails" == decide(gate(min=0.5), estimate(4, 16)).decision
    assert "undecided" == decide(gate(min=0.5, min_coverage=0.5), estimate(4, 16, lost=6)).decision


def test_exact_limits_are_stricter() -> None:
    """27 of 27 reach .87 by Wilson's limit and .87 not by Clopper and Pearson's."""
    assert "holds" == decide(gate(min=0.875), estimate(27, 0)).decision
    assert "undecided" == decide(gate(min=0.875, method="exact"), estimate(27, 0)).decision


# ---------------------------------------------------------------- exactly this list


def test_equality_holds_on_this_list() -> None:
    """TH-03: 8 of 10 against .8, 7 of 10 against .7, ten times .1 against .1, though the sum falls short."""
    for known in json.loads((CASES / "th-03-equality.json").read_text("utf-8"))["cases"]:
        found = (
            scores(*known["scores"])
            if "scores" in known
            else estimate(
                known["passes"],
                known["n"] - known["passes"],
                metric=RATE.model_copy(update={"deterministic": True}),
            )
        )
        assert "holds" == decide(gate(min=known["min"], infer="this_set"), found).decision
    assert "holds" == decide(gate(min=0.8 + 5e-10, infer="this_set"), estimate(8, 2)).decision
    assert "fails" == decide(gate(min=0.8 + 5e-9, infer="this_set"), estimate(8, 2)).decision
    assert "holds" == decide(gate(max=0.8 - 5e-10, infer="this_set"), estimate(8, 2)).decision
    assert "fails" == decide(gate(max=0.8 - 5e-9, infer="this_set"), estimate(8, 2)).decision


def test_one_rule_decides_and_says_which() -> None:
    """TH-04: the mean is compared, .91 against .8, not each case; by its interval it is still open."""
    known = json.loads((CASES / "th-04-mean-vs-case.json").read_text("utf-8"))
    found = scores(*known["scores"])
    exact = decide(gate(min=known["gate"]["mean_min"], infer="this_set"), found)
    assert ("holds", ".91 on this list") == (exact.decision, exact.decided_by)
    inferred = decide(gate(min=known["gate"]["mean_min"]), found)
    assert inferred.decided_by.startswith(("at least", "between"))


def test_a_small_list_is_enough_for_itself() -> None:
    """A regression check needs no number of questions; it needs each of them."""
    assert "holds" == decide(gate(min=1.0, infer="this_set"), estimate(2, 0)).decision
    assert "undecided" == decide(gate(min=1.0, infer="this_set"), estimate(2, 0, lost=1)).decision


# ---------------------------------------------------------------- not measured


def test_too_little_coverage_is_not_measured() -> None:
    """SE-02: 8 of 10 scored: undecided, with the count of what was lost and why."""
    verdict = decide(gate(min=0.5), estimate(6, 2, lost=2))
    assert "undecided" == verdict.decision
    assert "coverage .80, needs .95: not measured (2: no answer came)" == verdict.why
    assert verdict.red
    assert not decide(gate(min=0.5, on_undecided="warn"), estimate(6, 2, lost=2)).red
    assert "holds" == decide(gate(min=0.5), estimate(40, 0, lost=2)).decision


def test_coverage_is_of_what_applies() -> None:
    """Ten that do not apply are not missing."""
    assert "holds" == decide(gate(min=0.5), estimate(20, 0, not_applicable=10)).decision


def test_too_few_questions_are_not_measured() -> None:
    """Below ``min_n`` nothing is decided, however clear it looks."""
    verdict = decide(gate(min=0.1), estimate(7, 0))
    assert ("undecided", "7 questions measured, needs 8") == (verdict.decision, verdict.why)
    assert "holds" == decide(gate(min=0.1, min_n=7), estimate(7, 0)).decision


def test_nothing_measured_is_undecided() -> None:
    """SE-05: all errors, or no such group: no verdict out of nothing."""
    for found in (estimate(0, 0, lost=3), {}):
        verdict = decide(gate(min=0.5), found)
        assert ("undecided", "nothing was measured (no_data)") == (verdict.decision, verdict.why)
        assert verdict.red
        assert None is verdict.value


def test_a_judge_that_was_not_measured_is_said_and_may_be_refused() -> None:
    """Judged metrics say whether their judge is known; a gate may demand it."""
    found = estimate(27, 0, metric=JUDGED)
    assert False is decide(gate(min=0.5), found).judge_measured
    assert None is decide(gate(min=0.5), estimate(27, 0)).judge_measured
    strict = decide(gate(min=0.5, require_measured_judge=True), found)
    why = "the judge is not measured against labels: no labels"
    assert ("undecided", why) == (strict.decision, strict.why)


def test_a_gate_reads_the_corrected_rate_where_there_is_one() -> None:
    """27 of 27 by the judge, half of it by the labels: value, limits and advice are those of the labels."""
    found = estimate(27, 0, metric=JUDGED)["m", "all"]
    bounds = Bounds(lower=0.3, upper=0.7, lower_exact=0.29, upper_exact=0.71)
    correction = Correction(value=0.5, low=0.3, high=0.7, method="ppi", labels=12, bounds=bounds)
    estimates = {("m", "all"): found.model_copy(update={"corrected": correction})}
    strict = decide(gate(min=0.75, require_measured_judge=True), estimates)
    assert ("fails", 0.5, 0.7, True) == (strict.decision, strict.value, strict.high, strict.judge_measured)
    assert "at most .71 (exact limit)" == strict.decided_by
    open_gate = decide(gate(min=0.4), estimates)
    assert "undecided" == open_gate.decision
    assert open_gate.advice.endswith("labelled questions; you have 12")


def test_only_a_failure_and_an_undecided_one_that_is_not_waved_through_are_red() -> None:
    """``on_undecided: warn`` lets an open gate pass, never a failed one."""
    red = [
        Verdict(gate=gate(min=0.5, on_undecided=on), decision=decision).red
        for on in ("fail", "warn")
        for decision in ("holds", "undecided", "fails")
    ]
    assert [False, True, True, False, False, True] == red


# ---------------------------------------------------------------- before anything is spent


@pytest.mark.parametrize(
    ("n", "fields", "message"),
    [
        (27, {"min": 0.87}, None),
        (27, {"min": 0.9}, "even a perfect score on 27 questions cannot show >= .90: that takes 35"),
        (35, {"min": 0.9}, None),
        (35, {"min": 0.9, "method": "exact"}, "that takes 36"),
        (72, {"min": 0.95}, "that takes 73"),
        (20, {"max": 0.1}, "even a perfect score on 20 questions cannot show <= .10: that takes 35"),
        (7, {"min": 0.1}, "group 'all' has 7 questions that count; a gate needs 8"),
        (500, {"min": 1.0}, "no number of questions can show >= 1.00"),
        (2, {"min": 1.0, "infer": "this_set"}, None),
        (0, {"min": 1.0, "infer": "this_set"}, "no question of group 'all' can be measured"),
    ],
)
def test_a_gate_that_cannot_hold_is_refused_with_the_number_it_needs(
    n: int, fields: Any, message: str | None
) -> None:
    """6.3: .9 takes 35 perfect answers (exact: 36), .95 takes 73; a regression check takes one."""
    found = infeasible(gate(**fields), RATE, asked(n), lambda case: True)
    assert (message is None) == (found is None)
    if message is not None:
        assert found is not None
        assert message in found[0]
        assert found[1]


def test_only_questions_that_can_be_measured_count() -> None:
    """Twenty questions of which five have what the scorer needs are five."""
    cases = asked(20)
    found = infeasible(gate(min=0.5), RATE, cases, lambda case: case.id in {f"a{i}" for i in range(5)})
    assert found is not None
    assert "5 questions that count" in found[0]
    answerable = RATE.model_copy(update={"population": "answerable"})
    mixed = [*asked(5), *asked(20, "refuse", "b")]
    found = infeasible(gate(min=0.5, group="answerable"), answerable, mixed, lambda case: True)
    assert found is not None
    assert "5 questions that count" in found[0]


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, ".00"), (0.814, ".81"), (0.999, "1.0"), (1.0, "1.0"), (0.05, ".05")]
)
def test_shares_are_printed_short(value: float, text: str) -> None:
    """Two digits and no zero before the point."""
    assert text == number(value)


def test_questions_that_share_documents_may_be_too_few_for_a_gate() -> None:
    """Thirty questions from four documents decide nothing; from ten they show what ten show."""
    gate = Gate(metric="m", min=0.5)

    def shared(documents: int) -> list[Case]:
        cases = enumerate(asked(30))
        return [case.model_copy(update={"cluster": f"d{i % documents}"}) for i, case in cases]

    few = infeasible(gate, RATE, shared(4), lambda case: True)
    assert few is not None
    assert "are worth 3.98 documents; a gate needs 8" in few[0]
    assert infeasible(gate, RATE, shared(10), lambda case: True) is None
    steep = infeasible(Gate(metric="m", min=0.8), RATE, shared(10), lambda case: True)
    assert steep is not None
    assert "were every answer perfect" in steep[0]
    assert infeasible(Gate(metric="m", min=0.8), RATE, asked(30), lambda case: True) is None
    exempt = Gate(metric="m", min=0.8, infer="this_set")
    assert infeasible(exempt, RATE.model_copy(update={"deterministic": True}), shared(4), bool) is None


def test_questions_of_shared_documents_count_for_less_in_the_advice() -> None:
    """What would hold is told in questions like these, and not in questions of documents of their own."""
    found = estimate(12, 8)["m", "all"]

    def told(method: str, size: float) -> str:
        limits = wilson_interval(0.6, size, 20, 0.95, method)
        asked = found.model_copy(update={"method": method, "low": limits.low, "high": limits.high})
        return decide(gate(min=0.5), {("m", "all"): asked}).advice

    alone = told("wilson", 20)
    assert "to hold at this rate takes 97 questions; you have 20 (add questions, not draws)" == alone
    nested = told("wilson-nested", 10)
    assert nested.startswith("to hold at this rate takes 193 questions; you have 20")
    assert nested.endswith("(add questions from other documents, not draws)")
