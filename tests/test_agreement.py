"""Judge against labels: what is matched, which figures follow, and what is never called a no."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalrun.agreement import Agreement, agree, raters_agree, reference
from evalrun.errors import ExitCode, UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import pretty_json
from evalrun.labels import load_labels
from known import known, lines_of
from labelled_runs import Row, labelled, write_all, write_labels
from paired_runs import Outcomes, case, write_run

REFUSED, ANSWERED = "over_refused", "grounded"
GONE = "sha256:" + "0" * 64


def measured(
    folder: Path, outcomes: Outcomes, labels: dict[str, bool], *more: Row, **fields: Any
) -> Agreement:
    """A run with these outcomes against these labels of the first draws, and ``more`` rows."""
    run = write_run(folder / "run", outcomes)
    path = write_labels(folder / "labels.jsonl", [*labelled(run, labels), *more], **fields)
    return agree(run, load_labels(path))


def counted(folder: Path, a: int, b: int, c: int, d: int, **fields: Any) -> Agreement:
    """A run whose table is judge yes (a, b), judge no (c, d); columns: label yes, label no."""
    outcomes: dict[str, list[str | None]] = {}
    labels: dict[str, bool] = {}
    for count, outcome, label in ((a, REFUSED, True), (b, REFUSED, False), (c, ANSWERED, True)):
        for _ in range(count):
            outcomes[f"q{len(outcomes)}"] = [outcome]
            labels[f"q{len(labels)}"] = label
    for _ in range(d):
        outcomes[f"q{len(outcomes)}"] = [ANSWERED]
        labels[f"q{len(labels)}"] = False
    return measured(folder, outcomes, labels, **fields)


def numbers(value: Any) -> Iterator[float]:
    """Every number in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value


# ---------------------------------------------------------------- matching


def answered(*rows: tuple[str, str]) -> list[dict[str, Any]]:
    """Lines of a run: id and answer, all of which were refused."""
    return [{"id": name, "answer": text, "judge": {"correctly_refused": True}} for name, text in rows]


def read_by_people(*rows: tuple[str, str]) -> list[dict[str, Any]]:
    """Lines of labels: id and the answer that was read, all refused."""
    return [{"id": name, "answer": text, "correctly_refused": True} for name, text in rows]


@known(
    "ST-05",
    (lines_of("st-05-run.jsonl"), lines_of("st-05-labels.jsonl"), ["q3"], ["q8", "q9"], ["q7"], 2),
    (
        answered(("q1", "A"), ("q2", "B."), ("q3", "c")),
        read_by_people(("q1", "A"), ("q2", "B"), ("q3", "C")),
        ["q2", "q3"], [], [], 1,
    ),
    (
        answered(("q1", "caf\u00e9"), ("q2", "B"), ("q4", "D")),
        read_by_people(("q1", "cafe\u0301"), ("q2", "B"), ("q9", "B"), ("q10", "D")),
        ["q1"], ["q9", "q10"], ["q4"], 1,
    ),
)  # fmt: skip
def test_labels_and_run_of_different_ages(given: Any, tmp_path: Path) -> None:
    """Labels meet their question; one that was made for another answer is left out, by one letter too."""
    run_lines, label_lines, stale, only_in_labels, only_in_run, n = given
    asked = {f"q{number}": case(f"q{number}") for number in range(1, 11)}
    said = {True: REFUSED, False: ANSWERED}
    run = write_run(
        tmp_path / "run",
        {line["id"]: [said[line["judge"]["correctly_refused"]]] for line in run_lines},
        answers={line["id"]: line["answer"] for line in run_lines},
    )
    old = write_run(
        tmp_path / "old",
        {line["id"]: [ANSWERED] for line in label_lines},
        answers={line["id"]: line["answer"] for line in label_lines},
        cases=asked,
    )
    labels = {line["id"]: line["correctly_refused"] for line in label_lines}
    found = agree(run, load_labels(write_labels(tmp_path / "l.jsonl", labelled(old, labels))))
    matched = len(label_lines) - len(only_in_labels)
    assert (len(label_lines), matched, n) == (found.labelled, found.matched, found.n)
    assert stale == [one.case for one in found.stale]
    assert only_in_labels == [one.case for one in found.only_in_labels]
    assert tuple(only_in_run) == found.only_in_run
    assert n == found.agreement.count
    many = f"left out, made for another answer of its question: {len(stale)} of {len(label_lines)} labels"
    assert any(many in note for note in found.notes)


def test_nothing_matches(tmp_path: Path) -> None:
    """Without one label of an answer of the run there is no agreement: exit 2, and why."""
    run = write_run(tmp_path / "run", {"a": [REFUSED]})
    path = write_labels(tmp_path / "l.jsonl", [("a", GONE, True), ("b", GONE, True)])
    with pytest.raises(UserError, match=r"1 made for another answer .* 1 of cases") as caught:
        agree(run, load_labels(path))
    assert ExitCode.USAGE == caught.value.exit_code


def test_an_unreadable_verdict_is_no_no(tmp_path: Path) -> None:
    """An answer without a verdict is listed as missing and stands in no cell."""
    found = measured(tmp_path, {"a": [REFUSED], "b": [None]}, {"a": True, "b": False})
    assert (2, 1) == (found.matched, found.n)
    [missing] = found.judge_missing
    assert ("b", None, "no verdict in the reply") == (missing.case, missing.judge, missing.why)
    assert 1 == found.table.total


def test_no_verdict_at_all(tmp_path: Path) -> None:
    """n = 0: every figure is undefined with a reason; the JSON holds nulls."""
    found = measured(tmp_path, {"a": [None]}, {"a": True})
    assert (1, 0) == (found.matched, found.n)
    for figure in (found.agreement, found.majority, found.kappa, found.sensitivity, found.specificity):
        assert (None, None, None, "no_data") == (figure.value, figure.low, figure.high, figure.reason)
    assert (None, None) == (found.bias.value, found.bias.p)
    assert found.majority_label is None
    assert b"NaN" not in pretty_json(found)


def test_the_other_dimension_reads_the_other_field(tmp_path: Path) -> None:
    """Faithful labels meet the judge's word on faithfulness."""
    outcomes: Outcomes = {"a": ["grounded"], "b": ["unsupported"]}
    found = measured(tmp_path, outcomes, {"a": True, "b": True}, dimension="faithful")
    assert ((1, 0), (1, 0)) == found.table.rows
    [wrong] = found.disagreements
    assert ("b", ("c",)) == (wrong.case, wrong.unsupported)


def test_equal_answers_share_a_label(tmp_path: Path) -> None:
    """A label is of words: of two draws with the same words one counts, if possible one with a verdict."""
    found = measured(tmp_path, {"a": [None, REFUSED]}, {"a": True})
    assert (0, 1) == (found.n, len(found.judge_missing))
    run = write_run(tmp_path / "same", {"a": [None, REFUSED]}, answers={"a": "the same"})
    path = write_labels(tmp_path / "same.jsonl", labelled(run, {"a": True}))
    assert 1 == agree(run, load_labels(path)).n


def test_several_labelled_draws_of_a_question_are_noted(tmp_path: Path) -> None:
    """They are no independent evidence: the note says so, and no demand is decided."""
    run = write_run(tmp_path / "run", {f"q{n}": [REFUSED, REFUSED] for n in range(30)})
    rows = [(draw.case, draw.digest or "", True) for draw in run.draws()]
    labels = load_labels(write_labels(tmp_path / "l.jsonl", rows))
    found = agree(run, labels, demands={"sensitivity": 0.5})
    assert any("several answers to one question" in note for note in found.notes)
    assert ["undecided"] == [verdict.decision for verdict in found.verdicts]


# ---------------------------------------------------------------- figures


def test_the_story(tmp_path: Path) -> None:
    """19/5/2/38: every figure of the screen this was designed by."""
    found = counted(tmp_path, 19, 5, 2, 38)
    assert 64 == found.n
    assert (19, 21, 38, 43) == (
        found.sensitivity.count,
        found.sensitivity.n,
        found.specificity.count,
        found.specificity.n,
    )
    shown = [found.sensitivity, found.specificity, found.agreement, found.kappa]
    values = [(figure.value, figure.low, figure.high) for figure in shown]
    assert [(0.90, 0.70, 0.99), (0.88, 0.75, 0.96), (0.89, 0.79, 0.95), (0.76, 0.57, 0.91)] == [
        tuple(round(part, 2) for part in row if part is not None) for row in values
    ]
    assert pytest.approx(43 / 64) == found.majority.value
    assert found.majority_label is False
    assert found.bias.value == pytest.approx(3 / 64)
    assert 0.453125 == found.bias.p


def test_one_class_only(tmp_path: Path) -> None:
    """ST-04: twelve equal labels on both sides agree fully, kappa is undefined, no NaN anywhere."""
    rows = lines_of("st-04-single-class.jsonl")
    said = {True: REFUSED, False: ANSWERED}
    found = measured(
        tmp_path,
        {row["id"]: [said[row["judge"]]] for row in rows},
        {row["id"]: row["human"] for row in rows},
    )
    assert (12, 1.0) == (found.n, found.agreement.value)
    assert (None, None, None, "single_category") == (
        found.kappa.value,
        found.kappa.low,
        found.kappa.high,
        found.kappa.reason,
    )
    assert (None, "no_data") == (found.sensitivity.value, found.sensitivity.reason)
    written = json.loads(pretty_json(found))
    assert written["kappa"]["value"] is None
    assert all(number == number for number in numbers(written))


def test_one_label(tmp_path: Path) -> None:
    """n = 1: a share with its wide limits, no kappa."""
    found = counted(tmp_path, 1, 0, 0, 0)
    assert (1.0, 1) == (found.agreement.value, found.n)
    assert "single_category" == found.kappa.reason
    assert found.agreement.low is not None
    assert found.agreement.low < 0.21


def test_a_judge_that_never_varies(tmp_path: Path) -> None:
    """Kappa is 0 whatever the labels say, and comes with a warning."""
    found = counted(tmp_path, 0, 0, 4, 8)
    assert (0.0, "no_variation") == (found.kappa.value, found.kappa.reason)


def test_relatives_of_kappa(tmp_path: Path) -> None:
    """80/10/5/5: the same agreement as 40/9/6/45, kappa far lower, PABAK the same."""
    found = counted(tmp_path, 80, 10, 5, 5)
    assert found.kappa.value == pytest.approx(0.32, abs=0.005)
    other = found.relatives
    assert (0.70, 0.75, 0.05) == (other.pabak, other.prevalence_index, other.bias_index)
    assert other.ac1 is not None
    assert 0.80 < other.ac1 < 0.82


def test_labels_chosen_by_verdict(tmp_path: Path) -> None:
    """Of such a sample only the shares by verdict are sound; the rest is withheld and says why."""
    found = counted(tmp_path, 9, 1, 2, 8, design="by_verdict")
    assert found.by_verdict is not None
    assert [(9, 10), (2, 10)] == [(figure.count, figure.n) for figure in found.by_verdict]
    assert (None, "not_a_random_sample") == (found.kappa.value, found.kappa.reason)
    assert found.agreement.value is found.sensitivity.value is found.specificity.value is None


# ---------------------------------------------------------------- raters


def test_two_raters_and_the_adjudicated_one(tmp_path: Path) -> None:
    """The adjudicated labels count; the two readings are compared where both labelled."""
    run = write_run(tmp_path / "run", {name: [REFUSED] for name in "abcd"})
    rows = labelled(run, dict.fromkeys("abcd", True))
    split = [(name, draw, name != "a") for name, draw, _ in rows[:3]]
    labels = load_labels(write_all(tmp_path / "l.jsonl", {"r1": rows, "r2": split, "adjudicated": rows}))
    assert "adjudicated" == reference(labels)
    both = raters_agree(labels)
    assert both is not None
    assert ("r1", "r2", 3, 2) == (both.first, both.second, both.n, both.agreement.count)
    assert (2, 3) == (agree(run, labels, "r2").agreement.count, agree(run, labels, "r2").labelled)
    with pytest.raises(UserError, match="no label by rater 'r3'"):
        agree(run, labels, "r3")


def test_one_rater_has_no_ceiling(tmp_path: Path) -> None:
    """Nor have two who labelled nothing in common."""
    rows: list[Row] = [("a", GONE, True)]
    assert raters_agree(load_labels(write_labels(tmp_path / "1.jsonl", rows))) is None
    apart: list[Row] = [("b", GONE, True)]
    assert raters_agree(load_labels(write_all(tmp_path / "2.jsonl", {"r1": rows, "r2": apart}))) is None


# ---------------------------------------------------------------- demands


@pytest.mark.parametrize(
    ("cells", "decision", "code"),
    [((40, 0, 0, 10), "holds", 0), ((4, 0, 36, 10), "fails", 1), ((32, 0, 8, 10), "undecided", 3)],
)
def test_demands(tmp_path: Path, cells: tuple[int, int, int, int], decision: str, code: int) -> None:
    """Limits decide a demand, and the exit code follows."""
    run_and_labels(tmp_path, cells)
    found = agree(
        RunFolder(tmp_path / "run"), load_labels(tmp_path / "labels.jsonl"), demands={"sensitivity": 0.8}
    )
    assert (decision, code) == (found.verdicts[0].decision, found.exit_code)


def run_and_labels(folder: Path, cells: tuple[int, int, int, int]) -> None:
    """The run and the labels of a table."""
    counted(folder, *cells)


def test_few_labels_decide_no_demand(tmp_path: Path) -> None:
    """Seven of seven are too few; without any such label nothing was measured."""
    run_and_labels(tmp_path, (7, 0, 0, 0))
    found = agree(
        RunFolder(tmp_path / "run"),
        load_labels(tmp_path / "labels.jsonl"),
        demands={"sensitivity": 0.5, "specificity": 0.5},
    )
    assert ["undecided", "undecided"] == [verdict.decision for verdict in found.verdicts]
    assert ["7 answers labelled yes; a verdict needs 8", "nothing was measured (no_data)"] == [
        verdict.why for verdict in found.verdicts
    ]
    assert 3 == found.exit_code


def test_missing_verdicts_count_against_a_demand(tmp_path: Path) -> None:
    """More than one in twenty without a verdict: not measured."""
    outcomes: dict[str, list[str | None]] = {f"q{n}": [REFUSED] for n in range(40)}
    outcomes |= {f"lost{n}": [None] for n in range(4)}
    run = write_run(tmp_path / "run", outcomes)
    path = write_labels(tmp_path / "l.jsonl", labelled(run, dict.fromkeys(outcomes, True)))
    found = agree(run, load_labels(path), demands={"sensitivity": 0.8})
    assert "undecided" == found.verdicts[0].decision
    assert "coverage .91" in found.verdicts[0].why


@pytest.mark.parametrize("design", ["by_verdict", "unknown"])
def test_labels_that_do_not_speak_for_the_run_decide_nothing(tmp_path: Path, design: str) -> None:
    """However good they look."""
    counted(tmp_path, 40, 0, 0, 40, design=design)
    found = agree(
        RunFolder(tmp_path / "run"), load_labels(tmp_path / "labels.jsonl"), demands={"specificity": 0.5}
    )
    assert ("undecided", "the labels are not a random sample") == (
        found.verdicts[0].decision,
        found.verdicts[0].why,
    )


# ---------------------------------------------------------------- what cannot be compared


def test_a_run_without_a_judge(tmp_path: Path) -> None:
    """There is nothing to measure."""
    run = write_run(tmp_path / "run", {"a": [REFUSED]}, judge=None)
    labels = load_labels(write_labels(tmp_path / "l.jsonl", labelled(run, {"a": True})))
    with pytest.raises(UserError, match="no judge read these answers"):
        agree(run, labels)


def test_a_dimension_that_no_judge_reads(tmp_path: Path) -> None:
    """A typing error gets the nearest name."""
    run = write_run(tmp_path / "run", {"a": [REFUSED]})
    path = write_labels(tmp_path / "l.jsonl", labelled(run, {"a": True}), dimension="refusals")
    with pytest.raises(UserError, match="'refusals'") as caught:
        agree(run, load_labels(path))
    assert "refusal" in caught.value.hint
