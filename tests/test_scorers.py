"""What can be measured of a draw, who is counted, and that what is missing is a reason and never a number."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from evalrun.errors import UserError
from evalrun.outcomes import outcome_of
from evalrun.records import Case, Chunk, Context, Draw, Judgement, Metric, Quote, Sample, Score, Usage
from evalrun.registry import UnknownName
from evalrun.scorers import SCORERS, Scorer, all_metrics, build, score
from evalrun.scorers.outcome import EVENTS
from known import json_of, known

CONTEXT = Context.of(
    (Chunk(id="talks", text="I spoke in Lyon in 2023."), Chunk(id="city", text="I live in Graz."))
)
KNOWN = Case(id="q", question="Where did you speak?", category="known", relevant_ids=("talks",))
UNKNOWN = Case(id="n", question="What do you earn?", category="private", expect="refuse")


def sample(
    case: Case = KNOWN, answer: str = "In Lyon.", judgement: Judgement | None = None, **draw: object
) -> Sample:
    """A draw of a case, judged or not."""
    made = Draw.model_validate({"case": case.id, "index": 0, "seed": 1, "answer": answer} | draw)
    return Sample(case=case, draw=made, context=CONTEXT, judgement=judgement)


def judged(refusal: bool, faithful: bool, correct: bool | None = None) -> Judgement:
    """A reading of the judge."""
    return Judgement(case="q", index=0, digest="d", refusal=refusal, faithful=faithful, correct=correct)


def measured(spec: str, of: Sample, per: str = "draw") -> dict[str, object]:
    """Metric → its status, or its number."""
    lines = score(build(spec), of, per=per)
    return {line.metric: line.value if line.status == "number" else line.status for line in lines}


# ---------------------------------------------------------------- the rules for all


def test_each_scorer_has_names_and_words_of_its_own() -> None:
    """Every registered scorer can be built, and its metrics are told apart by id and event."""
    built = [factory(5 if name in ("recall", "ndcg", "all_relevant") else None) for name, factory in SCORERS]
    metrics = [metric for scorer in built for metric in scorer.metrics]
    assert len(metrics) == len({metric.id for metric in metrics})
    assert all(metric.event for metric in metrics)
    assert {"recall", "ndcg", "mrr", "all_relevant", "contains", "regex", "latency", "tokens"} <= {
        *SCORERS.names()
    }
    assert {"refusal_rule", "novel_terms", "outcome", "faithful", "correct"} <= {*SCORERS.names()}


@pytest.mark.parametrize(
    "spec", ["recall", "ndcg", "mrr@5", "outcome@1", "latency@2", "all_relevant", "recall@0"]
)
def test_a_depth_that_is_missing_or_makes_no_sense_is_refused(spec: str) -> None:
    """With the form that would be right."""
    with pytest.raises(UserError):
        build(spec)


def test_an_unknown_scorer_is_named_with_the_nearest() -> None:
    """A slip of the pen costs no search."""
    with pytest.raises(UnknownName) as caught:
        build("recal@5")
    assert "did you mean 'recall'?" == caught.value.hint


def test_each_metric_is_listed_once() -> None:
    """In the order of the scorers."""
    ids = [metric.id for metric in all_metrics([build("mrr"), build("recall@2"), build("mrr")])]
    assert ["mrr", "recall@2"] == ids


def one_value(value: object, kind: str = "score") -> Scorer:
    """A scorer that measures always the same."""
    metric = Metric.model_validate({"id": "m", "event": "m", "kind": kind, "better": "higher"})
    values: Mapping[str, object] = {"m": value}
    return Scorer("m", (metric,), lambda of: values)  # type: ignore[arg-type, return-value]


def only(lines: list[Score]) -> Score:
    """The one score."""
    assert 1 == len(lines)
    return lines[0]


@pytest.mark.parametrize(
    ("value", "status", "number"),
    [
        (True, "pass", None),
        (False, "fail", None),
        (0.25, "number", 0.25),
        (0, "number", 0.0),
        (None, "not_applicable", None),
        (math.nan, "error", None),
        (math.inf, "error", None),
        (1.5, "error", None),
        (-1, "error", None),
        ("yes", "error", None),
        ([], "error", None),
    ],
)
def test_a_value_becomes_a_status(value: object, status: str, number: float | None) -> None:
    """SE-04: what is no number in [0, 1] is an error with its reason, not a fail and not a 0."""
    line = only(score(one_value(value), sample(), per="draw"))
    assert (status, number) == (line.status, line.value)
    assert (status == "error") == (line.reason is not None)


def test_a_quantity_may_be_any_number_but_must_be_one() -> None:
    """Seconds go beyond 1; infinity is no number of seconds."""
    assert 12.5 == only(score(one_value(12.5, "quantity"), sample(), per="draw")).value
    for value in (math.inf, math.nan):
        assert "error" == only(score(one_value(value, "quantity"), sample(), per="draw")).status


SE_04 = json_of("se-04-nan.json")


@known(
    "SE-04",
    (SE_04["scores"], SE_04["expect"]["mean"], SE_04["expect"]["n"]),
    ([math.inf, 0.5, -math.inf, 0.7, math.nan], 0.6, 2),
    ([math.nan, True, 1.5, -0.5, 0.2], 0.6, 2),
    ([math.nan, 10.0**300, 0.0, 1.0], 0.5, 2),
)
def test_a_scorer_that_returns_nan_spoils_no_mean(given: tuple[list[float], float, int]) -> None:
    """What is no number in [0, 1] is an error of that score; the mean is of the rest."""
    from evalrun.summary import summarise

    values, mean, n = given
    cases = [KNOWN.model_copy(update={"id": f"q{i}"}) for i in range(len(values))]
    lines = [
        only(score(one_value(value), sample(case), per="draw"))
        for case, value in zip(cases, values, strict=True)
    ]
    found = summarise(one_value(0).metrics, cases, lines, 1)[0]
    assert found.value == pytest.approx(mean)
    assert (n, len(values) - n) == (found.n, found.failed)
    assert {"scorer": len(values) - n} == found.failures


def test_a_scorer_that_fails_loses_its_own_score_only() -> None:
    """A fault of a plugin is a missing score with the fault as its reason."""

    def broken(of: Sample) -> dict[str, bool]:
        raise KeyError("x")

    metric = Metric(id="m", event="m", kind="rate", better="higher")
    line = only(score(Scorer("m", (metric,), broken), sample(), per="draw"))
    assert ("error", "scorer: KeyError: 'x'") == (line.status, line.reason)


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (lambda _: None, "scorer: it gives a NoneType, not metric → value"),
        (lambda _: True, "scorer: it gives a bool, not metric → value"),
        (lambda _: {"other": True}, "scorer: it gives 'other', which is none of its metrics"),
        (lambda _: sys.exit(3), "scorer: SystemExit: 3"),
    ],
)
def test_what_a_plugin_gives_in_the_wrong_shape_is_a_missing_score(measured: Any, reason: str) -> None:
    """It neither ends a run that was paid for nor goes by unseen."""
    metric = Metric(id="m", event="m", kind="rate", better="higher")
    line = only(score(Scorer("m", (metric,), measured), sample(), per="draw"))
    assert ("error", reason) == (line.status, line.reason)


def test_a_plugin_that_makes_no_scorer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked, with what went wrong."""
    for factory, said in ((lambda k: 5, "that is a int"), (lambda: 5, "TypeError: .*takes 0 positional")):
        monkeypatch.setattr(SCORERS, "get", lambda name, factory=factory: factory)
        with pytest.raises(UserError, match=f"scorer 'odd' cannot be made: {said}"):
            build("odd")


def test_what_has_no_answer_or_no_verdict_has_no_score() -> None:
    """The reason of the draw or of the judge is the reason of the score."""
    failed = sample(error="service: HTTP 500", answer="")
    assert {"service: HTTP 500"} == {
        line.reason for line in score(build("contains"), _holding(failed), per="draw")
    }
    assert {"judge: no verdict"} == {line.reason for line in score(build("faithful"), sample(), per="draw")}
    unread = Judgement(case="q", index=0, digest="d", error="cut: stopped at length")
    stale = unread.model_copy(update={"error": "recording: no recording"})
    assert (
        "judge: cut: stopped at length"
        == only(score(build("faithful"), sample(judgement=unread), per="draw")).reason
    )
    assert (
        "recording: no recording"
        == only(score(build("faithful"), sample(judgement=stale), per="draw")).reason
    )
    without = sample().model_copy(update={"context": None})
    assert "context: the bot returns none" == only(score(build("novel_terms"), without, per="draw")).reason


def _holding(of: Sample) -> Sample:
    return of.model_copy(update={"case": of.case.model_copy(update={"must_contain": ("Lyon",)})})


def test_who_does_not_belong_to_a_population_has_no_line_at_all() -> None:
    """Shares of the answerable have no scores of the unanswerable, and the other way round."""
    read = judged(refusal=True, faithful=True)
    assert {"right", "grounded", "unsupported", "over_refused"} == set(
        measured("outcome", sample(judgement=read))
    )
    assert {"right", "correctly_refused", "answered"} == set(
        measured("outcome", sample(UNKNOWN, judgement=read))
    )


# ---------------------------------------------------------------- outcomes


@pytest.mark.parametrize(
    ("case", "refusal", "faithful", "outcome"),
    [
        (KNOWN, False, True, "grounded"),
        (KNOWN, False, False, "unsupported"),
        (KNOWN, True, True, "over_refused"),
        (KNOWN, True, False, "unsupported"),
        (UNKNOWN, True, True, "correctly_refused"),
        (UNKNOWN, True, False, "answered"),
        (UNKNOWN, False, True, "answered"),
        (UNKNOWN, False, False, "answered"),
    ],
)
def test_each_draw_has_exactly_one_outcome(case: Case, refusal: bool, faithful: bool, outcome: str) -> None:
    """A refusal that also makes an unsupported claim counts as an answer."""
    read = judged(refusal, faithful)
    assert outcome == outcome_of(case.expect, refusal, faithful)
    values = measured("outcome", sample(case, judgement=read))
    assert [outcome] == [name for name in EVENTS if values.get(name) == "pass"]
    assert ("pass" if outcome in ("grounded", "correctly_refused") else "fail") == values["right"]


def test_right_asks_for_the_reference_where_there_is_one() -> None:
    """Grounded but not what the reference says is not right; a refusal is not held against a reference."""
    case = KNOWN.model_copy(update={"reference": "Lyon"})
    refused = UNKNOWN.model_copy(update={"reference": "nothing"})
    wrong = judged(refusal=False, faithful=True, correct=False)
    assert "fail" == measured("outcome", sample(case, judgement=wrong))["right"]
    assert "pass" == measured("outcome", sample(case, judgement=wrong))["grounded"]
    assert {"correct": "fail"} == measured("correct", sample(case, judgement=wrong))
    assert {"correct": "not_applicable"} == measured("correct", sample(KNOWN, judgement=wrong))
    held = judged(refusal=True, faithful=True, correct=False)
    assert "pass" == measured("outcome", sample(refused, judgement=held))["right"]


def test_a_refusal_is_faithful() -> None:
    """It makes no claim; counted over all questions."""
    assert {"faithful": "pass"} == measured("faithful", sample(UNKNOWN, judgement=judged(True, True)))
    assert {"faithful": "fail"} == measured("faithful", sample(judgement=judged(False, False)))


# ---------------------------------------------------------------- text and cost


def test_words_and_patterns_are_looked_for_where_the_case_names_some() -> None:
    """Whatever the case of letters; without any named, not applicable."""
    case = KNOWN.model_copy(update={"must_contain": ("lyon", "Fair"), "metadata": {"regex": r"\bLyon\b"}})
    assert {"contains": "pass"} == measured("contains", sample(case, "At the FAIR in Lyon."))
    assert {"contains": "fail"} == measured("contains", sample(case, "In Lyon."))
    assert {"regex": "pass"} == measured("regex", sample(case, "In Lyon."))
    assert {"regex": "fail"} == measured("regex", sample(case, "In Lyons."))
    assert ["not_applicable"] * 2 == [
        *measured("contains", sample()).values(),
        *measured("regex", sample()).values(),
    ]
    odd = KNOWN.model_copy(update={"metadata": {"regex": "("}})
    assert {"regex": "error"} == measured("regex", sample(odd))


def test_a_pattern_that_takes_for_ever_is_stopped() -> None:
    """Nothing else would end it, not even Ctrl-C: the draw is not scored, and the run goes on."""
    endless = KNOWN.model_copy(update={"metadata": {"regex": "(a|a)*b"}})
    assert {"regex": "error"} == measured("regex", sample(endless, "a" * 40))


def test_a_failing_text_scorer_says_what_decided_it() -> None:
    """What the answer lacks, which pattern it does not match, what is new in it; nothing where it passes."""
    case = KNOWN.model_copy(update={"must_contain": ("lyon", "Fair"), "metadata": {"regex": r"\bLyon\b"}})

    def why(name: str, answer: str) -> str | None:
        return score(build(name), sample(case, answer), per="draw")[0].reason

    assert ('lacks: "Fair"', None) == (why("contains", "In Lyon."), why("contains", "The fair in Lyon."))
    assert (r"no match of: \bLyon\b", None) == (why("regex", "In Lyons."), why("regex", "In Lyon."))
    assert 'new: "1987"' == why("novel_terms", "In 1987.")


def test_rules_read_refusals_and_new_names() -> None:
    """A plain refusal passes the rule; a number that stands nowhere is new, one of the question is not."""
    assert {"refusal_rule": "pass"} == measured(
        "refusal_rule", sample(answer="I don't have information about that.")
    )
    assert {"refusal_rule": "fail"} == measured("refusal_rule", sample(answer="I spoke in Lyon in 2023."))
    assert {"novel_terms": "pass"} == measured("novel_terms", sample(answer="I spoke in Lyon in 2023."))
    assert {"novel_terms": "fail"} == measured("novel_terms", sample(answer="I spoke in Paris in 2019."))


def test_cost_is_what_the_server_said() -> None:
    """Seconds and tokens are quantities; where the server counts no tokens there are none."""
    assert {"latency": 1.5} == measured("latency", sample(seconds=1.5))
    assert {"tokens": 12.0} == measured("tokens", sample(usage=Usage(completion_tokens=12)))
    assert {"tokens": "not_applicable"} == measured("tokens", sample())


# ---------------------------------------------------------------- retrieval


def test_retrieval_is_measured_once_a_case_on_what_the_model_was_given() -> None:
    """By ids, by grades or by quotes; without any named, not applicable; never per draw."""
    assert {"recall@1": 1.0} == measured("recall@1", sample(), per="case")
    assert {} == measured("recall@1", sample(), per="draw")
    assert {"mrr": 0.5} == measured(
        "mrr", sample(KNOWN.model_copy(update={"relevant_ids": ("city",)})), "case"
    )
    assert {"recall@2": "not_applicable"} == measured("recall@2", sample(UNKNOWN), per="case")
    graded = KNOWN.model_copy(update={"relevant_ids": {"city": 2.0, "talks": 0.0}})
    assert {"recall@1": 0.0} == measured("recall@1", sample(graded), per="case")
    quoted = KNOWN.model_copy(update={"relevant_ids": (Quote(quote="in Lyon"), Quote(quote="in Rome"))})
    assert {"recall@2": 0.5} == measured("recall@2", sample(quoted), per="case")
    assert {"all_relevant@2": "fail"} == measured("all_relevant@2", sample(quoted), per="case")
    both = KNOWN.model_copy(update={"relevant_ids": ("city", "talks")})
    assert {"all_relevant@2": "pass"} == measured("all_relevant@2", sample(both), per="case")
    assert {"ndcg@2": 1.0} == measured("ndcg@2", sample(both), per="case")
    assert [None] == [line.index for line in score(build("mrr"), sample(), per="case")]


def test_ids_that_are_only_places_in_a_list_are_measured_by_quotes_alone() -> None:
    """A bot without ids: a dataset's id "1" is not its first chunk."""
    numbered = CONTEXT.model_copy(update={"numbered": True})
    by_id = sample(KNOWN.model_copy(update={"relevant_ids": ("1",)})).model_copy(update={"context": numbered})
    [missing] = score(build("recall@1"), by_id, per="case")
    assert "ids: the bot's contexts have none; name what is relevant by quotes" == missing.reason
    quoted = KNOWN.model_copy(update={"relevant_ids": (Quote(quote="in Lyon"),)})
    by_quote = sample(quoted).model_copy(update={"context": numbered})
    assert {"recall@1": 1.0} == measured("recall@1", by_quote, per="case")
