"""Two runs, paired: what may be compared, what changed and how surely, and what may not get worse."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalrun import stats
from evalrun.comparison import Change, Comparison, Drop, compare
from evalrun.comparison.changes import MIRRORED
from evalrun.comparison.drops import decide_drop, read_drops
from evalrun.comparison.measured import Measured, case_digest, read_run
from evalrun.comparison.pairs import Pairs
from evalrun.errors import UserError
from evalrun.journal import HEADER, META, RunFolder
from evalrun.records import Chunk, Context, Message, Metric
from evalrun.stats.significance import holm, mcnemar_midp, sign_flip_test
from paired_runs import Outcomes, case, passes, write_run

ORACLES = json.loads((Path(__file__).parent / "oracles.json").read_text("utf-8"))
MEASURE = Callable[..., Measured]
RATE = Metric(id="right", event="right", kind="rate", better="higher")


@pytest.fixture
def measure(tmp_path: Path) -> MEASURE:
    """Writes a run of some outcomes and reads it as one side of a comparison."""

    def made(outcomes: Outcomes, **fields: Any) -> Measured:
        name = f"run-{len(list(tmp_path.iterdir()))}"
        return read_run(write_run(tmp_path / name, outcomes, **fields))

    return made


def change(found: Comparison, metric: str) -> Change:
    """The change of one metric."""
    return next(one for one in found.changes if one.metric == metric)


def cells(both: int, old: int, new: int, neither: int) -> tuple[list[list[int]], list[list[int]]]:
    """Single-draw passes of the old and of the new run with these four counts."""
    old_rows = [[1]] * (both + old) + [[0]] * (new + neither)
    return old_rows, [[1]] * both + [[0]] * old + [[1]] * new + [[0]] * neither


def pairs(old: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]], better: str = "higher") -> Pairs:
    """The values of one rate, paired by their place."""
    names = [f"q{place}" for place in range(len(old))]

    def side(rows: Sequence[Sequence[Any]]) -> Any:
        return dict(zip(names, map(tuple, rows), strict=True))

    return Pairs.of(RATE.model_copy(update={"better": better}), names, side(old), side(new))


def refusal(old: Measured, new: Measured, **options: Any) -> UserError:
    """The error that a comparison ends with."""
    with pytest.raises(UserError) as caught:
        compare(old, new, **options)
    return caught.value


# ---------------------------------------------------------------- what changed


@pytest.mark.parametrize("draws", [1, 3])
def test_a_run_against_itself(measure: MEASURE, draws: int) -> None:
    """Nothing changed: all changes 0, every p-value 1, no interval of width 0, no question listed."""
    rows = [[place % 5 and 1] * draws for place in range(20)]
    run = measure(passes("ans", rows) | passes("una", rows[:12]))
    found = compare(run, run, {"right": 0.2})
    assert {0.0} == {one.change for one in found.changes}
    assert {1.0} == {one.p for one in found.changes} | {one.p_holm for one in found.changes}
    assert all(one.low is not None and one.high is not None for one in found.changes)
    assert all((one.low or 0) < 0 < (one.high or 0) for one in found.changes)
    assert {"no change"} == {one.word for one in found.changes}
    assert ((), 32, ()) == (found.flips, found.paired, found.unpaired)
    assert "holds" == found.drops[0].decision


@pytest.mark.parametrize(
    "oracle", [one for one in ORACLES if one["function"] == "newcombe_paired_ci"], ids=lambda one: one["name"]
)
def test_one_draw_is_newcombe_and_mcnemar(measure: MEASURE, oracle: dict[str, Any]) -> None:
    """With one draw the interval is Newcombe's and the p-value McNemar's mid-p (b: new only, c: old only)."""
    a, b, c, d = (oracle["inputs"][name] for name in "abcd")
    old, new = cells(a, c, b, d)
    found = change(compare(measure(passes("ans", old)), measure(passes("ans", new))), "right")
    expected = [oracle["expected"][name] for name in ("estimate", "low", "high")]
    assert expected == pytest.approx([found.change, found.low, found.high], abs=1e-6)
    assert (a, c, b, d) == found.cells
    assert (mcnemar_midp(c, b), "mcnemar-midp") == (found.p, found.test)
    assert (b, c) == (found.better, found.worse)


def test_several_draws_count_by_their_mean(measure: MEASURE) -> None:
    """With several draws a question counts by its mean, the interval is 7.2's, and signs are flipped."""
    old = [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]]
    new = [[1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1]]
    found = change(compare(measure(passes("ans", old)), measure(passes("ans", new))), "right")
    expected = stats.paired_rate_ci(new, old)
    assert (expected.estimate, expected.low, expected.high) == (found.change, found.low, found.high)
    assert (None, "sign-flip", 5, 1) == (found.cells, found.test, found.better, found.worse)
    means = [sum(b) / 3 - sum(a) / 3 for a, b in zip(old, new, strict=True)]
    assert sign_flip_test(means) == found.p


def test_unequal_draws_are_said(measure: MEASURE) -> None:
    """Runs with different numbers of draws are compared by question means, and a note says so."""
    old, new = measure(passes("ans", [[1], [0]] * 5)), measure(passes("ans", [[1, 0], [0, 0]] * 5))
    found = compare(old, new)
    assert (0.5, 0.25, "sign-flip") == (found.headline.old, found.headline.new, found.headline.test)
    assert "1 and 2 draws a question: each question counts by its mean" in found.notes


def test_family(measure: MEASURE) -> None:
    """Holm runs over the metrics in which a question changed, an outcome and its mirror image once."""
    old = passes("ans", [[1]] * 14 + [[0]] * 6) | passes("una", [[1]] * 9 + [[0]] * 3)
    new = passes("ans", [[1]] * 19 + [[0]] * 1) | passes("una", [[1]] * 6 + [[0]] * 6)
    found = compare(measure(old), measure(new))
    family = [c for c in found.changes if c.better + c.worse and c.metric not in MIRRORED]
    assert ["right", "grounded", "unsupported", "correctly_refused", "faithful"] == [c.metric for c in family]
    assert holm([one.p for one in family]) == [one.p_holm for one in family]
    assert change(found, "correctly_refused").p_holm == change(found, "answered").p_holm
    assert (1.0, 1.0, "no change") == (
        change(found, "recall@5").p, change(found, "recall@5").p_holm, change(found, "recall@5").word,
    )  # fmt: skip


def test_words(measure: MEASURE) -> None:
    """Better and worse need interval and adjusted p-value, "likely" the own p-value below .10."""
    old = passes("ans", [[0]] * 14 + [[1]] * 26) | passes("una", [[1]] * 20)
    new = passes("ans", [[1]] * 38 + [[0]] * 2) | passes("una", [[1]] * 16 + [[0]] * 4)
    found = compare(measure(old), measure(new))
    words = {one.metric: one.word for one in found.changes}
    assert ("better", "better") == (words["grounded"], words["unsupported"])
    assert ("likely worse", "likely worse") == (words["correctly_refused"], words["answered"])
    assert "no change" == words["over_refused"]
    assert "no evidence" == change(compare(measure(cells_run(1)), measure(cells_run(2))), "right").word


def cells_run(wrong: int) -> dict[str, list[str | None]]:
    """Twenty questions, some of them wrong."""
    return passes("ans", [[0]] * wrong + [[1]] * (20 - wrong))


def test_retrieval(measure: MEASURE) -> None:
    """Retrieval is compared by the intervals of scores, over the questions that have something relevant."""
    lost = Context.of((Chunk(id="other", text="Nothing."),))
    rows = passes("ans", [[1]] * 10) | passes("una", [[1]] * 10)
    found = change(compare(measure(rows), measure(rows, context=lost)), "recall@5")
    expected = stats.paired_score_ci([[0]] * 10, [[1]] * 10)
    assert (10, -1.0, expected.low, expected.high) == (found.n, found.change, found.low, found.high)
    assert ("worse", 10, "sign-flip") == (found.word, found.worse, found.test)


def test_lower_is_better(measure: MEASURE) -> None:
    """Where less is better, a fall is an improvement."""
    found = compare(measure(cells_run(12)), measure(cells_run(1)))
    invented = change(found, "unsupported")
    assert (11, 0, "better") == (invented.better, invented.worse, invented.word)
    assert -0.55 == pytest.approx(invented.change)


def test_one_question_and_none(measure: MEASURE) -> None:
    """One paired question has a difference and no interval; none has neither; both have a reason."""
    one = compare(measure(passes("ans", [[1]])), measure(passes("ans", [[0]])), {"right": 0.1})
    right = one.headline
    assert (-1.0, None, None, "too_few_clusters") == (right.change, right.low, right.high, right.reason)
    assert ("undecided", "questions compared: 1, needs 8") == (one.drops[0].decision, one.drops[0].why)
    none = compare(measure(passes("ans", [[1], [None]])), measure(passes("ans", [[None], [1]]))).headline
    assert (0, None, None, "no_data", None) == (none.n, none.change, none.p, none.reason, none.p_holm)


def test_what_has_no_score(measure: MEASURE) -> None:
    """A question without a score in one run is left out and counted; a lost draw is counted."""
    old = passes("ans", [[1, 1]] * 8 + [[None, None], [1, None]])
    new = passes("ans", [[1, 1]] * 9 + [[1, 0]])
    found = compare(measure(old), measure(new)).headline
    assert (9, 1, (3, 0)) == (found.n, found.left_out, found.missing)
    assert (1.0, 17 / 18) == pytest.approx((found.old, found.new))


def test_needed_questions(measure: MEASURE) -> None:
    """The number of questions that would show the change comes from the spread of the changes seen."""
    old, new = cells(15, 2, 4, 9)
    found = change(compare(measure(passes("ans", old)), measure(passes("ans", new))), "right")
    assert found.sd is not None
    assert found.change is not None
    size = stats.paired_sample_size(found.change, found.sd)
    assert size is not None
    assert found.needed is not None
    assert 0 <= found.needed - size < 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=20))
def test_swapping_the_runs(rows: list[tuple[int, int]]) -> None:
    """Swapped runs give the same change the other way round, and each verdict its mirror image."""
    old, new = [[a] for a, _ in rows], [[b] for _, b in rows]
    there, back = pairs(old, new), pairs(new, old, better="lower")
    a, b = decide_drop(there, 0.1), decide_drop(back, 0.1)
    assert a.decision == b.decision
    assert [a.low, a.high] == pytest.approx([-(b.high or 0), -(b.low or 0)])


# ---------------------------------------------------------------- questions that flipped


def test_flips(measure: MEASURE) -> None:
    """Every question that changed is listed with both answers, the worst first."""
    old = {"ans-a": ["grounded", "grounded"], "ans-b": ["unsupported", "grounded"], "una-c": ["answered"] * 2}
    new = {
        "ans-a": ["grounded", "unsupported"],
        "ans-b": ["unsupported", "grounded"],
        "una-c": ["correctly_refused"] * 2,
    }
    found = compare(measure(old), measure(new)).flips
    assert [("ans-a", 1.0, 0.5, False), ("una-c", 0.0, 1.0, True)] == [
        (one.case, one.old, one.new, one.better) for one in found
    ]
    assert [("grounded answer to ans-a, draw 2", "grounded")] == [
        (one.text, one.outcome) for one in found[0].old_answers[1:]
    ]
    assert [("unsupported answer to ans-a, draw 2", "unsupported")] == [
        (one.text, one.outcome) for one in found[0].new_answers[1:]
    ]
    assert ("Question una-c?", "guardrail") == (found[1].question, found[1].category)


def test_what_else_differs(measure: MEASURE) -> None:
    """Keys of config and bot that differ are named with both values."""
    rows = passes("ans", [[1]] * 3)
    other = {"bot": {"kind": "ragbot", "model": "large"}, "config": {"name": "quality", "target": {"k": 3}}}
    found = compare(measure(rows), measure(rows, **other)).differences
    assert [
        ("bot.model", '"small"', '"large"'),
        ("target", "null", '{"k":3}'),
        ("temperature", "0.7", "null"),
    ] == [(one.key, one.old, one.new) for one in found]


# ---------------------------------------------------------------- what may be compared


def test_another_dataset(measure: MEASURE) -> None:
    """Another dataset is refused unless the common questions are asked for; the others are listed."""
    rows = [[1]] * 20
    old = measure(passes("ans", rows))
    new = measure(passes("ans", [*rows, [1]]), cases={"ans-003": case("ans-003", question="Another?")})
    assert "--common-cases" in refusal(old, new).hint
    found = compare(old, new, common_cases=True)
    assert (19, False) == (found.paired, found.same_dataset)
    assert [("ans-003", "not the same question any more"), ("ans-020", "only in the new run")] == [
        (one.case, one.why) for one in found.unpaired
    ]


def test_too_many_lost(measure: MEASURE) -> None:
    """A comparison that loses more than one question in ten is refused, exactly one in ten is not."""
    old = measure(passes("ans", [[1]] * 10))
    assert 9 == compare(old, measure(passes("ans", [[1]] * 9)), common_cases=True).paired
    error = refusal(old, measure(passes("ans", [[1]] * 8)), common_cases=True)
    assert "2 of 10 questions without a partner" in error.message
    assert "ans-008 (only in the old run), ans-009 (only in the old run)" in error.message
    assert (
        "3 of 3"
        in refusal(
            measure(passes("ans", [[1]])), measure(passes("una", [[1]] * 2)), common_cases=True
        ).message
    )


def test_another_judge(measure: MEASURE) -> None:
    """Readings of another judge are refused unless asked for, and then a note says so."""
    rows = passes("ans", [[1]] * 10)
    old, new = measure(rows), measure(rows, judge="two")
    error = refusal(old, new)
    assert "judge-one, rubric claims@1" in error.message
    assert "judge-two" in error.message
    assert "--any-judge" in error.hint
    found = compare(old, new, any_judge=True)
    assert found.same_judge is False
    assert any(note.startswith("the judges differ") for note in found.notes)


def test_metrics_of_one_run(measure: MEASURE) -> None:
    """A metric of one run only, or of another meaning, is left out and named; none in common is refused."""
    rows = passes("ans", [[1]] * 10)
    old = measure(rows, scorers=["recall@5", "mrr"], judge=None)
    new = measure(rows, scorers=["recall@5", "outcome"])
    found = compare(old, new)
    assert (["recall@5"], None) == ([one.metric for one in found.changes], found.same_judge)
    assert any("left out: " in note and "mrr" in note and "grounded" in note for note in found.notes)
    other = tuple(m.model_copy(update={"better": "lower"}) for m in old.metrics.values())
    assert (
        "in common"
        in refusal(old, measure(rows, scorers=["recall@5", "mrr"], judge=None, metrics=other)).message
    )


def test_checks_of_the_judge_are_no_results(measure: MEASURE) -> None:
    """A check that corrects the judge's reading is no metric of its own where both runs have a judge."""
    rows, scorers = passes("ans", [[1]] * 10), ["refusal_rule", "novel_terms", "outcome"]
    judged = compare(measure(rows, scorers=scorers), measure(rows, scorers=scorers))
    assert "refusal_rule" not in [one.metric for one in judged.changes]
    assert "novel_terms" in [one.metric for one in judged.changes]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"partial": "--case ans-001"}, r"a partial run \(--case ans-001\)"),
        ({"complete": False}, "stopped before its end"),
        ({"exit_code": 4, "errors": ("3 answers are stale",)}, "exit 4: nothing can be concluded"),
        ({"exit_code": 5}, "exit 5: nothing can be concluded"),
    ],
)
def test_inconclusive_runs(measure: MEASURE, fields: dict[str, Any], message: str) -> None:
    """A run that is partial, incomplete or without conclusion is no side of a comparison."""
    with pytest.raises(UserError, match=message):
        measure(passes("ans", [[1]] * 3), **fields)


def test_red_runs_can_be_compared(measure: MEASURE) -> None:
    """A failed or undecided gate does not keep a run from being compared."""
    for code in (1, 3):
        assert 3 == len(measure(passes("ans", [[1]] * 3), exit_code=code).digests)


def test_unfinished_and_changed_files(tmp_path: Path) -> None:
    """A run without an end, a folder without a run and a file that was changed are told apart."""
    folder = write_run(tmp_path / "run", passes("ans", [[1]] * 3))
    with (folder.path / "scores.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(UserError, match=r"scores\.jsonl: not the file that the run wrote"):
        read_run(folder)
    for name in (HEADER, META):
        (folder.path / name).unlink()
    with pytest.raises(UserError, match="has not come to its end"):
        read_run(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no run\.json here"):
        read_run(RunFolder(tmp_path / "empty"))


def test_case_digest() -> None:
    """A case's digest is of what it asks and expects: not of its id, category, cluster or tags."""
    plain = case("ans-1")
    same = plain.model_copy(update={"id": "x", "category": "y", "cluster": "z", "tags": ("t",)})
    assert "sha256:f7410ed5c03a768a49a993a557ae0d6ae386312ce2b645518a5d87401399712d" == case_digest(plain)
    assert case_digest(plain) == case_digest(same)
    for field, value in {
        "question": "Q", "expect": "refuse", "reference": "R", "must_contain": ("m",),
        "metadata": {"regex": "r"}, "history": (Message(role="user", content="h"),),
        "relevant_ids": {"talks": 2.0},
    }.items():  # fmt: skip
        assert case_digest(plain) != case_digest(plain.model_copy(update={field: value})), field


def test_clusters_are_said(measure: MEASURE) -> None:
    """Questions that share a cluster were taken as unrelated, and a note says so."""
    rows = passes("ans", [[1]] * 3)
    two = {name: case(name, cluster="one document") for name in list(rows)[:2]}
    found = compare(measure(rows, cases=two), measure(rows, cases=two))
    assert any("one cluster" in note for note in found.notes)
    assert not any("cluster" in note for note in compare(measure(rows), measure(rows)).notes)


# ---------------------------------------------------------------- what may not get worse


@pytest.mark.parametrize(
    "oracle", [one for one in ORACLES if one["function"] == "noninferiority_low"], ids=lambda one: one["name"]
)
def test_noninferiority(oracle: dict[str, Any]) -> None:
    """A drop holds exactly where the lower limit of 6.7 is above minus the margin."""
    old, new = oracle["inputs"]["old"], oracle["inputs"]["new"]
    low = oracle["expected"]["low"]
    assert low == pytest.approx(decide_drop(pairs(old, new), 0.5).low, abs=1e-6)
    assert "holds" == decide_drop(pairs(old, new), -low + 1e-4).decision
    assert "holds" != decide_drop(pairs(old, new), -low - 1e-4).decision


def test_drop_verdicts() -> None:
    """Holds where a larger drop is excluded, fails where a smaller one is, else undecided with advice."""

    def decided(both: int, old: int, new: int, neither: int, margin: float) -> Drop:
        return decide_drop(pairs(*cells(both, old, new, neither)), margin)

    assert "holds" == decided(180, 5, 6, 9, 0.05).decision
    assert "fails" == decided(100, 80, 2, 18, 0.05).decision
    undecided = decided(30, 4, 3, 3, 0.05)
    assert ("undecided", True) == (undecided.decision, (undecided.needed or 0) > 40)
    assert undecided.low is not None
    assert undecided.high is not None
    assert undecided.low < -0.05 < undecided.high
    exact = decided(30, 2, 0, 8, 0.05)  # the change is the margin itself: no number of questions decides
    assert ("undecided", None) == (exact.decision, exact.needed)


def test_needed_decides() -> None:
    """As many questions as the advice names, with the same shares, do decide."""
    found = decide_drop(pairs(*cells(30, 4, 3, 3)), 0.05)
    assert found.needed is not None
    times = -(-found.needed // 40) * 1.1
    larger = decide_drop(pairs(*cells(*(round(times * count) for count in (30, 4, 3, 3)))), 0.05)
    assert "undecided" != larger.decision


def test_missing_counts_against() -> None:
    """Draws without a score count against the new run for "holds" and for it for "fails"."""
    whole = pairs([[1, 1]] * 60, [[1, 1]] * 60)
    some = pairs([[1, 1]] * 60, [[1, 1]] * 56 + [[1, None]] * 4)
    assert "holds" == decide_drop(whole, 0.1).decision
    assert (decide_drop(some, 0.1).low or 0) < (decide_drop(whole, 0.1).low or 0)
    assert decide_drop(some, 0.1).change == 0.0
    old = pairs([[1, 1]] * 56 + [[1, None]] * 4, [[1, 1]] * 60)
    assert (decide_drop(old, 0.1).high or 0) > (decide_drop(whole, 0.1).high or 0)


def test_too_little_was_measured() -> None:
    """Below eight questions, or below 95 % of the draws scored in either run, nothing is decided."""
    few = decide_drop(pairs([[1]] * 7, [[1]] * 7), 0.9)
    assert ("undecided", "questions compared: 7, needs 8") == (few.decision, few.why)
    gone = decide_drop(pairs([[1, 1]] * 20, [[1, None]] * 3 + [[1, 1]] * 17), 0.9)
    assert ("undecided", "coverage 0.93 in the new run, needs 0.95: not measured") == (
        gone.decision,
        gone.why,
    )


def test_exit_codes(measure: MEASURE) -> None:
    """1 where a drop is too large, 3 where one is undecided, 0 where all hold or none is asked for."""
    good, bad = measure(passes("ans", [[1]] * 60)), measure(passes("ans", [[1]] * 20 + [[0]] * 40))
    some = measure(passes("ans", [[1]] * 56 + [[0]] * 4))
    assert 0 == compare(good, bad).exit_code
    assert 0 == compare(good, good, {"right": 0.1}).exit_code
    assert 1 == compare(good, bad, {"right": 0.1, "recall@5": 0.001}).exit_code
    assert 3 == compare(good, some, {"right": 0.05, "recall@5": 0.2}).exit_code
    assert 0 == compare(bad, good, {"right": 0.0}).exit_code


def test_a_bot_that_refuses_more_is_found(measure: MEASURE) -> None:
    """A bot that begins to refuse what it could answer fails by that; the refusals it owes still hold."""
    old = passes("ans", [[1]] * 40) | passes("una", [[1]] * 40)
    new = passes("una", [[1]] * 40) | {
        f"ans-{place:03d}": ["over_refused" if place < 20 else "grounded"] for place in range(40)
    }
    drops = {"grounded": 0.1, "over_refused": 0.1, "correctly_refused": 0.1}
    found = compare(measure(old), measure(new), drops)
    assert {"grounded": "fails", "over_refused": "fails", "correctly_refused": "holds"} == {
        drop.metric: drop.decision for drop in found.drops
    }
    assert "no change" == change(found, "faithful").word


def test_judged_drops_say_whether_the_judge_is_measured(measure: MEASURE) -> None:
    """A judged metric says that its judge is not measured; a deterministic one has no judge."""
    run = measure(passes("ans", [[1]] * 10))
    found = compare(run, run, {"right": 0.5, "recall@5": 0.5})
    assert [False, None] == [drop.judge_measured for drop in found.drops]


def test_drops_as_they_are_written(measure: MEASURE) -> None:
    """METRIC=MARGIN, each metric once; an unknown metric gets the nearest name, a quantity is none."""
    assert {"right": 0.05, "recall@5": 0.0} == read_drops(["right=.05", "recall@5=0"])
    for wrong in ("right", "right=", "=.1", "right=five", "right=-.1", "right=1", "right=nan", "right=inf"):
        with pytest.raises(UserError, match="not METRIC=MARGIN"):
            read_drops([wrong])
    with pytest.raises(UserError, match="given twice"):
        read_drops(["right=.1", "right=.2"])
    run = measure(passes("ans", [[1]] * 10), scorers=["outcome", "latency"])
    assert "did you mean 'right'?" == refusal(run, run, max_drops={"rihgt": 0.1}).hint
    assert "not a rate or score" in refusal(run, run, max_drops={"latency": 0.1}).message


def test_same_runs_same_bytes(measure: MEASURE) -> None:
    """The same two runs give the same record, without NaN, whatever the number of resamples."""
    old = passes("ans", [[1, 0, place % 2] for place in range(30)])
    new = passes("ans", [[place % 3 > 0, place % 2, 1] for place in range(30)])
    a, b = measure(old), measure(new)
    first, second = compare(a, b), compare(a, b)
    assert first == second
    assert "NaN" not in first.model_dump_json()
