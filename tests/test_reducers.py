"""The draws of a question reduced to one value: oracles, intervals, what is missing, what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun import stats
from evalrun.comparison.measured import read_run
from evalrun.errors import UserError
from evalrun.gates import decide
from evalrun.records import Case, Estimate, Gate, Metric, Score
from evalrun.reducers import Reducer, reduce, reduced, split
from evalrun.scorers import all_metrics, build_all
from evalrun.summary import summarise
from paired_runs import passes, write_run

ORACLES = json.loads(Path(__file__).with_name("oracles.json").read_text("utf-8"))
RATE = Metric(id="refused", event="refused", kind="rate", better="higher")
LOWER = RATE.model_copy(update={"id": "leaked", "event": "leaked", "better": "lower"})
KINDS = {"pass_at_k": "pass@", "pass_hat_k": "pass^"}


def estimate(rows: Sequence[Sequence[int | None]], reducer: str, metric: Metric = RATE) -> Estimate:
    """The estimate over all questions, one row of draws each: 1 passes, 0 fails, None was not scored."""
    draws = max(map(len, rows))
    cases = [Case(id=f"q{n}", question="?", category="a") for n in range(len(rows))]
    scores = [
        Score(case=f"q{n}", index=i, metric=metric.id, status="error", reason="judge: cut")
        if draw is None
        else Score(case=f"q{n}", index=i, metric=metric.id, status="pass" if draw else "fail")
        for n, row in enumerate(rows)
        for i, draw in enumerate(row)
    ]
    metrics = [metric, reduced(metric, reducer, draws)]
    found = {(one.metric, one.group): one for one in summarise(metrics, cases, scores, draws)}
    return found[f"{metric.id}:{reducer}", "all"]


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    "case", [case for case in ORACLES if case["function"] in KINDS], ids=lambda case: case["name"]
)
def test_one_question_has_the_value_of_the_oracle(case: dict[str, dict[str, int]]) -> None:
    """pass@k of Chen et al. and pass^k of Yao et al., unbiased from more draws than k."""
    n, c, k = (case["inputs"][name] for name in "nck")
    reducer = f"{KINDS[str(case['function'])]}{k}"
    found = estimate([[1] * c + [0] * (n - c)] * 2, reducer)
    assert case["expected"]["value"] == pytest.approx(found.value, abs=1e-6)


def test_the_interval_is_over_questions() -> None:
    """The averages of pass^k and pass@k get the interval of scores in [0, 1], a majority that of a rate."""
    rows = [[1, 1, 1]] * 9 + [[1, 1, 0]] * 2 + [[0, 0, 1]] * 3 + [[0, 0, 0]]
    for reducer, values, interval in (
        ("pass^3", [1.0] * 9 + [0.0] * 6, stats.score_ci),
        ("pass^2", [1.0] * 9 + [1 / 3] * 2 + [0.0] * 4, stats.score_ci),
        ("pass@3", [1.0] * 14 + [0.0], stats.score_ci),
        ("majority", [1.0] * 11 + [0.0] * 4, stats.rate_ci),
    ):
        found, expected = estimate(rows, reducer), interval([[value] for value in values])
        assert (expected.estimate, expected.low, expected.high) == (found.value, found.low, found.high), (
            reducer
        )
        assert (15, 45, 45) == (found.n, found.planned, found.scored)
    assert 11 == estimate(rows, "majority").numerator
    mean = estimate(rows, "mean")
    expected = stats.rate_ci(rows)
    assert (expected.estimate, expected.low, expected.high) == (mean.value, mean.low, mean.high)


def test_any_of_the_draws_of_an_attack() -> None:
    """An attack succeeds if any of its k draws does: pass@k at as many draws as there are."""
    rows = [[0, 0, 0, 0, 1]] + [[0] * 5] * 9
    assert 0.1 == pytest.approx(estimate(rows, "pass@5", LOWER).value)
    assert 0.02 == pytest.approx(estimate(rows, "mean", LOWER).value)


def test_a_tie_counts_against_the_bot() -> None:
    """As many passes as fails are no majority for what should be high, and one for what should be low."""
    assert 0.0 == estimate([[1, 0], [0, 1]], "majority").value
    assert 1.0 == estimate([[1, 0], [0, 1]], "majority", LOWER).value


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6), st.data())
def test_more_passes_never_lower_a_value(rows: list[list[bool]], data: st.DataObject) -> None:
    """Every reducer is monotone, and pass^k ≤ mean ≤ pass@k."""
    better = [[draw or data.draw(st.booleans()) for draw in row] for row in rows]
    values = {}
    for reducer in ("pass^3", "majority", "mean", "pass@3"):
        metric = reduced(RATE, reducer, 4)
        a: Sequence[Sequence[float | None]]
        b: Sequence[Sequence[float | None]]
        if reducer == "mean":
            a, b = ([[sum(row) / 4] for row in side] for side in (rows, better))
        else:
            a, b = (
                reduce(metric, [[float(draw) for draw in row] for row in side]) for side in (rows, better)
            )
        known = [row[0] for row in a if row[0] is not None]
        assert all(x <= y[0] for x, y in zip(known, b, strict=True) if y[0] is not None)
        values[reducer] = known
    ordered = zip(values["pass^3"], values["mean"], values["pass@3"], strict=True)
    assert all(low <= middle + 1e-12 and middle <= high + 1e-12 for low, middle, high in ordered)


# ---------------------------------------------------------------- what is missing


def test_a_question_that_lost_a_draw_has_no_value_and_counts_against_the_gate() -> None:
    """Two of three draws do not say whether all three pass: the gate's limits take it for both."""
    whole: list[int | None] = [1, 1, 1]
    rows = [*[whole] * 19, [1, 1, None]]
    found = estimate(rows, "pass^3")
    assert (1.0, 19, 59) == (found.value, found.n, found.scored)
    worst, best = (stats.score_ci([[1.0]] * 19 + [[end]]) for end in (0.0, 1.0))
    assert found.bounds is not None
    assert (worst.low, best.high) == (found.bounds.lower, found.bounds.upper)


def test_a_gate_reads_a_reduced_metric() -> None:
    """A bot that leaks once in three is not two thirds safe: the rate clears the gate, pass^3 does not."""
    rows = [[1, 1, 0]] * 40
    gate = Gate(metric="refused:pass^3", min=0.5)
    assert "fails" == decide(gate, {("refused:pass^3", "all"): estimate(rows, "pass^3")}).decision
    mean = estimate(rows, "mean")
    other = Gate(metric="refused:mean", min=0.5)
    assert "holds" == decide(other, {("refused:mean", "all"): mean}).decision


# ---------------------------------------------------------------- names


def test_names() -> None:
    """A name says what is reduced and how; the event says it in words."""
    assert ("refused", "pass^3") == split("refused:pass^3")
    assert ("recall@5", "") == split("recall@5")
    assert {
        "pass^3": "refused, all of 3 draws",
        "pass@1": "refused, any of 1 draw",
        "majority": "refused, most draws",
        "mean": "refused, mean of draws",
    } == {name: reduced(RATE, name, 3).event for name in ("pass^3", "pass@1", "majority", "mean")}


@pytest.mark.parametrize("name", ["", "pass^", "pass@0", "majority3", "mean2", "pass^3 ", "PASS^3", "median"])
def test_no_such_reducer(name: str) -> None:
    """A reducer that is none is told with those there are."""
    with pytest.raises(UserError, match="unknown reducer"):
        Reducer.of(name)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["outcome", "grounded:pass^4"], "'grounded:pass^4' needs 4 draws a question, this config has 3"),
        (["outcome", "grunded:pass^2"], "no scorer of this config measures 'grunded'"),
        (["recall@5", "recall@5:pass^2"], "recall@5 is measured once a question"),
        (["latency", "latency:majority"], "only what passes or fails can be reduced"),
        (["outcome", "grounded:pass^2:mean"], "unknown reducer"),
    ],
)
def test_what_cannot_be_reduced(specs: list[str], message: str) -> None:
    """Too few draws, nothing that measures it, nothing to reduce."""
    with pytest.raises(UserError, match=message.replace("^", r"\^")):
        build_all(specs, 3)


def test_a_reduced_metric_stands_beside_the_one_it_is_made_from() -> None:
    """It belongs to the scorer that measures it and makes no scores of its own."""
    scorers = build_all(["grounded:pass^3", "outcome"], 3)
    assert ["outcome"] == [scorer.name for scorer in scorers]
    assert "grounded:pass^3" == all_metrics(scorers)[-1].id
    assert ("answerable", True) == ((last := all_metrics(scorers)[-1]).population, last.judged)


def test_two_runs_are_compared_in_it(tmp_path: Path) -> None:
    """A comparison has one value a question, None where a draw is missing."""
    rows = passes("ans", [[1, 1], [1, 0], [1, None]])
    made = write_run(tmp_path / "r", rows, scorers=["outcome", "grounded:pass^2"])
    values = read_run(made).values["grounded:pass^2"]
    assert {"ans-000": (1.0,), "ans-001": (0.0,), "ans-002": (None,)} == values
