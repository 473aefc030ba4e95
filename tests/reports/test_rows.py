"""The journals of a run joined per question."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path

from evalrun.journal import RunFolder
from evalrun.jsonl import to_line, write_lines
from evalrun.records import Case, Score, Status
from evalrun.reports.rows import Detail, Result, Results, Row, because, read_details, read_rows, share


def test_worst_first_by_right(quality: RunFolder) -> None:
    """The order goes by the share of right answers, and every question stays in it."""
    rows = read_rows(quality)
    shares = [row.results["right"].value for row in rows.worst()]
    known = [value for value in shares if value is not None]
    assert 64 == len(rows.worst())
    assert "right" == (rows.lead and rows.lead.id)
    assert known == sorted(known)


def test_every_answer_has_one_state(quality: RunFolder) -> None:
    """Outcomes, errors and nothing else: 192 answers, the lost one and the unreadable one are errors."""
    states = [state for row in read_rows(quality).rows for state in row.states]
    assert 192 == len(states)
    assert 2 == states.count("error")
    assert 0 == states.count("none")


def test_because_names_the_invention(quality: RunFolder) -> None:
    """A question that was answered from nothing shows the claim that stands in no context."""
    rows = read_rows(quality)
    worst = next(row for row in rows.worst() if "answered" in row.states)
    detail = read_details(quality, [worst.id])[worst.id]
    assert because(worst, detail, {}).startswith('invented: "')
    assert share(worst, rows.lead).startswith("0/")


def test_lost_draw_is_not_counted_as_wrong(quality: RunFolder) -> None:
    """A question with a lost draw is scored on the draws it has."""
    row = next(row for row in read_rows(quality).rows if row.id == "out-of-corpus-05")
    assert 2 == row.results["right"].scored
    assert 1 == row.results["right"].failed


def test_among_equals_the_plainly_invented_comes_first(quality: RunFolder) -> None:
    """Of two questions that are equally wrong, the one with a name or number out of nowhere leads."""
    rows = read_rows(quality)
    order = [
        (result.value, row.invented)
        for row in rows.worst()
        if (result := row.results["right"]).value is not None and not result.failed
    ]
    assert any(count for _, count in order)
    assert order == sorted(order, key=lambda pair: (pair[0], -pair[1]))


def test_results_are_those_of_the_scores_whatever_is_kept_once(quality: RunFolder, tmp_path: Path) -> None:
    """Passes, fails, losses and sums of each question and metric, as a loop over the scores counts them."""
    chance = random.Random(5)
    statuses: tuple[Status, ...] = ("pass", "fail", "number", "not_applicable", "error")
    folder = RunFolder(shutil.copytree(quality.path, tmp_path / "run"))
    cases = [case.id for case in folder.cases()]
    scores = [
        Score(
            case=case,
            index=index,
            metric=metric,
            status=(status := chance.choice(statuses if metric == "a" else statuses[2:])),
            value=chance.choice([0.0, 1.0, 0.25, chance.random()]) if status == "number" else None,
            reason=chance.choice(["x", "y"]) if status == "error" else None,
        )
        for case in cases
        for index in range(3)
        for metric in ("a", "b")
    ]
    write_lines(folder.file("scores"), map(to_line, scores))
    header = json.loads((folder.path / "run.json").read_text())
    header["journals"]["scores.jsonl"] = "sha256:other"
    (folder.path / "run.json").write_text(json.dumps(header))
    for row in read_rows(folder).rows:
        assert {"a", "b"} == set(row.results)
        for metric, found in row.results.items():
            own = [score for score in scores if (score.case, score.metric) == (row.id, metric)]
            counts = Counter(score.status for score in own)
            assert counts["pass"] == found.passed
            assert counts["pass"] + counts["fail"] + counts["number"] == found.scored
            assert (counts["error"], counts["not_applicable"]) == (found.failed, found.not_applicable)
            assert sum(score.value or 0.0 for score in own) == found.total
            assert next((score.reason for score in own if score.reason), "") == found.reason


def test_because_says_what_an_answer_lacks_before_what_else_was_not_scored() -> None:
    """One scorer had nothing to go by; what sank the answer is what another one missed."""
    lost = Results({"recall@2": Result(failed=1, reason="ids: none"), "contains": Result(scored=1)})
    row = Row("a", "Where?", "x", "answerable", ["unmet"], results=lost)
    case = Case(id="a", question="Where?", category="x", must_contain=("ten",))
    assert 'lacks: "ten"' == because(row, Detail(case, reasons={0: {"contains": 'lacks: "ten"'}}), {})
    assert "not met" == because(row, Detail(case), {})
    unscored = Row("a", "Where?", "x", "answerable", ["none"], results=lost)
    assert "not scored: ids: none" == because(unscored, Detail(case), {})


def test_reasons_of_scores_reach_the_question(quality: RunFolder, tmp_path: Path) -> None:
    """A failing score that says why is kept by draw and metric; one that says nothing is not."""
    folder = RunFolder(shutil.copytree(quality.path, tmp_path / "run"))
    first = Case(id="a", question="Where?", category="x", must_contain=("ten",))
    write_lines(folder.file("cases"), [to_line(first)])
    scores = [
        Score(case="a", index=0, metric="contains", status="fail", reason='lacks: "ten"'),
        Score(case="a", index=1, metric="contains", status="fail"),
        Score(case="a", index=2, metric="contains", status="error", reason="service: gone"),
        Score(case="a", index=2, metric="attack_success", status="pass", reason="contains: 775"),
    ]
    write_lines(folder.file("scores"), map(to_line, scores))
    detail = read_details(folder, ["a"])["a"]
    assert {0: {"contains": 'lacks: "ten"'}, 2: {"attack_success": "contains: 775"}} == detail.reasons
    assert ([['lacks: "ten"'], [], []], "contains: 775") == ([*map(detail.amiss, range(3))], detail.found(2))
