"""One question as data for the drawer of the page."""

from __future__ import annotations

from evalrun.records import Case, Chunk, Context, Draw, Metric
from evalrun.reports.detail import case_data
from evalrun.reports.rows import Detail, Result, Results, Row

CASE = Case(id="a", question="Where?", category="x")
ONE, TWO = (Context.of((Chunk(id=name, text=f"{name}."),)) for name in ("one", "two"))


def test_each_context_stands_with_the_draws_it_served() -> None:
    """A bot that retrieves for each answer: none is shown as what another draw was given."""
    draws = [
        Draw(case="a", index=index, seed=1, context=context.digest if context else None)
        for index, context in enumerate((TWO, ONE, TWO, None))
    ]
    detail = Detail(CASE, {ONE.digest: ONE, TWO.digest: TWO}, draws)
    row = Row("a", "Where?", "x", "answerable", ["none"] * 4)
    data, _ = case_data(row, detail, ())
    shown = [(one["draws"], [chunk[0] for chunk in one["chunks"]]) for one in data["contexts"]]
    assert [([0, 2], ["two"]), ([1], ["one"])] == shown


def test_a_question_whose_answers_were_lost_is_of_the_metric_too() -> None:
    """A gate counts what is missing against itself: its questions on the page hold the lost ones."""
    metric = Metric(id="contains", event="contains what it must", kind="rate", better="higher")
    row = Row("a", "Where?", "x", "answerable", ["error"], results=Results({"contains": Result(failed=1)}))
    data, _ = case_data(row, Detail(CASE), [metric])
    assert {"contains": [None, "–", None]} == data["metrics"]


def test_what_a_scorer_says_is_amiss_stands_with_the_answer() -> None:
    """Not only that it was not met: what the answer lacks. What is found of an attack is told elsewhere."""
    draw = Draw(case="a", index=0, seed=1, answer="No.")
    reasons = {0: {"contains": 'lacks: "ten"', "attack_success": "contains: 775"}}
    data, _ = case_data(
        Row("a", "Where?", "x", "answerable", ["unmet"]), Detail(CASE, draws=[draw], reasons=reasons), ()
    )
    assert ['lacks: "ten"'] == data["draws"][0]["amiss"]


def test_numbers_in_the_place_of_ids_are_not_taken_for_ids() -> None:
    """Where the bot names no ids, the first chunk is not the relevant one because a dataset says "1"."""
    context = Context.of((Chunk(id="1", text="Ten to six."),)).model_copy(update={"numbered": True})
    draws = [Draw(case="a", index=0, seed=1, context=context.digest)]
    for wanted, known in ((["1"], [False, False]), ([{"quote": "Ten to six"}], [True, True])):
        case = Case.model_validate(CASE.model_dump() | {"relevant_ids": wanted})
        data, _ = case_data(
            Row("a", "Where?", "x", "answerable", ["none"]),
            Detail(case, {context.digest: context}, draws),
            (),
        )
        [shown] = data["contexts"]
        assert known == [shown["known"], shown["chunks"][0][3]]
