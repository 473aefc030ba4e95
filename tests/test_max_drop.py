"""Gates on a drop since the baseline: a drop turns one red, no change does not, a wrong file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalrun.baseline import accept
from evalrun.beside import FILE, Baseline, Beside
from evalrun.cli import main
from evalrun.comparison import compare
from evalrun.comparison.measured import read_run
from evalrun.comparison.pairs import Row
from evalrun.drop_gates import decide, if_unchanged, infeasible
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.records import Gate, Metric
from evalrun.verify import verify_run
from fakes.project import REFUSAL, Outcome, Project
from paired_runs import Outcomes, passes, write_run

RATE = Metric(id="right", event="right", kind="rate", better="higher")
LOWER = RATE.model_copy(update={"better": "lower"})
BASELINE = "small.baseline.jsonl"


def gate(margin: float, **fields: Any) -> Gate:
    """A gate on a drop of the share of right answers."""
    return Gate(metric="right", max_drop=margin, **fields)


def rows(passed: int, failed: int) -> list[Row]:
    """So many questions with one draw each."""
    return [*((1.0,) for _ in range(passed)), *((0.0,) for _ in range(failed))]


def beside(folder: Path, old: Outcomes, new: Outcomes) -> Beside:
    """A run beside the baseline made of another."""
    folder.mkdir(exist_ok=True)
    config = folder / "quality.yaml"
    config.write_text("{}", "utf-8")
    path = accept(write_run(folder / "old", old, config_path=str(config))).path
    run = write_run(folder / "new", new)
    header = run.header
    return Beside.of(Baseline.read(path), header.metrics, list(run.cases()), run.scores(), header.draws)


# ---------------------------------------------------------------- the decision


def test_the_gate_decides_like_diff(tmp_path: Path) -> None:
    """One function: the verdict and its limits are those of ``evalrun diff --max-drop``, for every margin."""
    old, new = passes("ans", [[1, 1]] * 20 + [[1, 0]] * 6), passes("ans", [[1, 1]] * 12 + [[0, 0]] * 14)
    pair = beside(tmp_path, old, new)
    sides = read_run(RunFolder(tmp_path / "old")), read_run(RunFolder(tmp_path / "new"))
    seen = set()
    for margin in (0.0, 0.02, 0.1, 0.2, 0.4, 0.8):
        verdict = decide(gate(margin), pair.pairs("right", "all"))
        (drop,) = compare(*sides, {"right": margin}).drops
        assert (drop.decision, drop.change, drop.low, drop.high, drop.n) == (
            verdict.decision, verdict.value, verdict.low, verdict.high, verdict.n,
        )  # fmt: skip
        seen.add(verdict.decision)
    assert {"holds", "undecided", "fails"} == seen
    assert 23 / 26 == pytest.approx(pair.pairs("right", "all").old_mean)


def test_a_group_is_compared_alone(tmp_path: Path) -> None:
    """A drop among the unanswerable questions does not show in a gate on the answerable ones."""
    same = passes("ans", [[1]] * 20)
    pair = beside(tmp_path, same | passes("una", [[1]] * 20), same | passes("una", [[0]] * 20))
    expected = {"answerable": "holds", "unanswerable": "fails", "guardrail": "fails", "all": "fails"}
    for group, decision in expected.items():
        assert decision == decide(gate(0.25, group=group), pair.pairs("right", group)).decision, group


def test_this_list_compares_exactly(tmp_path: Path) -> None:
    """A deterministic metric infers nothing: the change itself is compared, down to no drop at all."""
    exact = gate(0.0, infer="this_set")
    same = beside(tmp_path / "a", passes("ans", [[1]] * 3), passes("ans", [[1]] * 3))
    less = beside(tmp_path / "b", passes("ans", [[1]] * 3), passes("ans", [[1], [1], [0]]))
    for pair, expected in ((same, ("holds", ".00 on this list")), (less, ("fails", "-.33 on this list"))):
        found = decide(exact, pair.pairs("right", "all"))
        assert expected == (found.decision, found.decided_by)


def test_lower_may_be_better(tmp_path: Path) -> None:
    """Of a rate that should be low, a rise is the drop."""
    pair = beside(tmp_path, passes("ans", [[1]] * 20), passes("ans", [[0]] * 20))
    found = decide(Gate(metric="unsupported", max_drop=0.3), pair.pairs("unsupported", "answerable"))
    assert ("fails", 1.0) == (found.decision, found.value)
    assert found.decided_by.startswith("at best +.")


def test_too_few_or_missing_decide_nothing(tmp_path: Path) -> None:
    """Fewer questions than ``min_n``, or too much without a score: undecided, and it says why."""
    few = beside(tmp_path / "a", passes("ans", [[1]] * 7), passes("ans", [[1]] * 7)).pairs("right", "all")
    assert "questions compared: 7, needs 8" == decide(gate(0.9), few).why
    assert "holds" == decide(gate(0.9, min_n=7), few).decision
    rows_lost = passes("ans", [[1]] * 18 + [[None]] * 2)
    lost = beside(tmp_path / "b", passes("ans", [[1]] * 20), rows_lost).pairs("right", "all")
    assert "coverage 0.90 in the new run, needs 0.95: not measured" == decide(gate(0.9), lost).why
    assert "holds" == decide(gate(0.9, min_coverage=0.9), lost).decision


def test_the_judge_may_have_to_be_measured(tmp_path: Path) -> None:
    """A judged drop says that its judge is unmeasured, and where that is demanded decides nothing."""
    pair = beside(tmp_path, passes("ans", [[1]] * 20), passes("ans", [[1]] * 20)).pairs("right", "all")
    assert ("holds", False) == ((found := decide(gate(0.3), pair)).decision, found.judge_measured)
    assert "undecided" == decide(gate(0.3, require_measured_judge=True), pair).decision
    assert "holds" == decide(gate(0.3, require_measured_judge=True), pair, judge_measured=True).decision


# ---------------------------------------------------------------- beforehand


@pytest.mark.parametrize("metric", [RATE, LOWER])
def test_what_cannot_hold_is_told_beforehand(metric: Metric) -> None:
    """Two perfect runs of 8 differ by 0 ± .324: .05 takes 73 questions, and 0 cannot be shown at all."""
    flawless = rows(8, 0) if metric is RATE else rows(0, 8)
    assert infeasible(gate(0.33), metric, flawless) is None
    why, what = infeasible(gate(0.05), metric, flawless) or ("", "")
    assert why.startswith("drop <= .05 cannot be shown with 8 questions even by a flawless run: ")
    assert 73 <= int(why.split()[-1]) <= 80
    assert what.startswith("add questions")
    assert "allow a larger drop" == (infeasible(gate(0.0), metric, flawless) or ("", ""))[1]
    assert (infeasible(gate(0.5), metric, flawless[:7]) or ("",))[0].endswith("a gate needs 8")
    assert infeasible(gate(0.0, infer="this_set"), metric, flawless) is None


def test_what_an_unchanged_bot_can_expect() -> None:
    """A gate that only a better run would hold says so; one that no change holds says nothing."""
    assert "" == if_unchanged(gate(0.3), RATE, rows(30, 6))
    told = if_unchanged(gate(0.01), RATE, rows(30, 6))
    assert told.startswith("gate 'right, all (drop)': a run that answers just like the baseline would be un")
    assert infeasible(gate(0.01), RATE, rows(30, 6)) is None


# ---------------------------------------------------------------- the whole way


def accepted(project: Project, margin: float = 0.4) -> Project:
    """A project with a baseline and one gate against it."""
    done = project.run("--live")
    assert ExitCode.OK == done.code, done.text
    result = CliRunner().invoke(main, ["accept", str(done.folder.path)])
    assert 0 == result.exit_code, result.output
    drop = {"metric": "grounded", "margin": margin, "baseline": BASELINE}
    project.config["gates"] = [{"max_drop": drop, "group": "answerable"}]
    return project


def verdict_of(done: Outcome) -> tuple[int, str]:
    """Exit code and the decision of the one gate."""
    assert done.code in (0, 1, 3), done.text
    return done.code, done.folder.header.verdicts[0].decision


def test_a_real_drop_turns_it_red_and_no_change_does_not(project: Project) -> None:
    """The seeded fault: the bot begins to refuse everything. Reports say so, and verify derives it again."""
    accepted(project)
    assert (ExitCode.OK, "holds") == verdict_of(project.run("--live"))
    project.model.say = lambda body: REFUSAL
    done = project.run("--live")
    assert (ExitCode.GATE_FAILED, "fails") == verdict_of(done)
    for words in ("grounded, answerable (drop)", "drop <= .40", "from 1.0 in the baseline"):
        assert words in done.text
    for name, expected in {
        "junit.xml": 'name="grounded, answerable (drop) drop &lt;= .40"',
        "summary.md": "grounded, answerable (drop)",
        "report.html": 'class="ghost"',
    }.items():
        assert expected in done.folder.path.joinpath(name).read_text("utf-8"), name
    assert [] == verify_run(done.folder.path)[0]
    kept = done.folder.path / FILE
    assert kept.read_bytes() == (project.folder / BASELINE).read_bytes()
    kept.write_bytes(kept.read_bytes().replace(b'"grounded"', b'"over_refused"', 1))
    assert [f"{FILE}: the file is not the one the run wrote"] == verify_run(done.folder.path)[0]


def test_a_forged_verdict_does_not_follow(project: Project) -> None:
    """Neither a verdict nor a baseline value edited in run.json follows from what stands below it."""
    done = accepted(project).run("--live")
    path = done.folder.path / "run.json"
    written = json.loads(path.read_text("utf-8"))
    written["verdicts"][0]["value"] = 0.5
    path.write_text(json.dumps(written), "utf-8")
    name = "grounded, answerable (drop)"
    assert [f"run.json: gate: {name} does not follow from its estimate"] == verify_run(done.folder.path)[0]
    written["baseline"]["values"][0]["value"] = 0.25
    path.write_text(json.dumps(written), "utf-8")
    assert verify_run(done.folder.path)[0][0].startswith("run.json: baseline: its values do not follow")


def test_a_wrong_baseline_is_refused_before_anything_is_asked(project: Project) -> None:
    """Another dataset, another judge, a metric it lacks, no file: exit 2, what to do, and no call made."""
    accepted(project)

    def refused(*words: str) -> None:
        project.model.bodies.clear()
        output = str(project.folder / "no")
        done = CliRunner().invoke(main, ["run", str(project.write()), "--live", "--output", output])
        for word in words:
            assert word in done.output + str(done.exception), done.output
        assert (True, []) == (done.exit_code != 0, project.model.bodies)

    project.config["judge"]["temperature"] = 0.5
    refused("the baseline was read by", "gates=[]")
    project.config["judge"]["temperature"] = 0
    project.cases.append({"id": "more", "question": "More?", "category": "known", "relevant_ids": ["talks"]})
    refused("config.yaml:", "the baseline is of another dataset", "evalrun accept RUN")
    project.cases.pop()
    project.config["gates"][0]["max_drop"]["metric"] = "refusal_rule"
    project.config["scorers"].append("refusal_rule")
    refused("config.yaml:", "the baseline does not measure 'refusal_rule'")
    project.config["gates"][0]["max_drop"]["baseline"] = "none.jsonl"
    refused("config.yaml:", "names no file", "evalrun accept RUN")


def test_a_baseline_is_renewed_as_the_hint_says(project: Project) -> None:
    """Without its gates a config runs whatever its baseline is, and that run can be accepted."""
    accepted(project)
    project.cases.append({"id": "more", "question": "More?", "category": "private", "expect": "refuse"})
    done = project.run("--live", "--set", "gates=[]")
    assert 0 == done.code, done.text
    assert 0 == CliRunner().invoke(main, ["accept", str(done.folder.path)]).exit_code
    assert (ExitCode.OK, "holds") == verdict_of(project.run("--live"))


def test_plan_tells_of_a_drop(project: Project) -> None:
    """``evalrun plan`` says what such a gate can show before anything is spent."""
    accepted(project, margin=0.05)
    done = CliRunner().invoke(main, ["plan", str(project.write())])
    assert (ExitCode.USAGE, True) == (done.exit_code, "CANNOT HOLD" in done.output), done.output
    project.config["gates"][0]["max_drop"]["margin"] = 0.4
    done = CliRunner().invoke(main, ["plan", str(project.write())])
    assert (0, True) == (done.exit_code, "8 questions, as in the baseline" in done.output), done.output
