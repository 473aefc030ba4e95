"""The commands ci, plan, diff and accept: what they print, what they write, and the exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalrun.cli import main
from evalrun.comparison import Comparison
from paired_runs import case, passes, write_run


def call(*arguments: object) -> Result:
    """Call ``evalrun`` in this process; a fault of ours is raised."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: an old one, a better one, one that refuses less, and some that cannot be compared."""
    folder = tmp_path_factory.mktemp("runs")
    config = folder / "configs" / "quality.yaml"
    config.parent.mkdir()
    config.touch()
    old = passes("ans", [[1]] * 70 + [[0]] * 20) | passes("una", [[1]] * 36 + [[0]] * 4)
    better = passes("ans", [[1]] * 88 + [[0]] * 2) | passes("una", [[1]] * 38 + [[0]] * 2)
    mixed = passes("ans", [[1]] * 85 + [[0]] * 5) | passes("una", [[1]] * 20 + [[0]] * 20)
    for name, rows in {"old": old, "better": better, "mixed": mixed}.items():
        write_run(folder / name, rows, config_path=str(config))
    write_run(folder / "judged-otherwise", old, judge="two")
    write_run(folder / "partial", old, partial="--limit 130")
    other = {"ans-001": case("ans-001", question="Another?")}
    write_run(folder / "other-data", old | passes("more", [[1]]), cases=other)
    return folder


# ---------------------------------------------------------------- ci


def test_one_rate() -> None:
    """One rate is one line: counts, rate, interval, level, method."""
    result = call("ci", "26/35")
    assert (0, "26 of 35: .74 [.58, .86]  95%, Wilson\n") == (result.exit_code, result.output)
    assert "4 of 8: .50 [.22, .78]  95%, Wilson\n" == call("ci", "4/8").output


def test_two_rates() -> None:
    """Two rates are followed by their unpaired difference and the hint that pairs are narrower."""
    lines = call("ci", "123/150", "129/150").output.splitlines()
    assert [
        "123 of 150: .82 [.75, .87]  95%, Wilson",
        "129 of 150: .86 [.80, .91]  95%, Wilson",
        "difference, second less first: +.04 [-.04, +.12]  95%, Newcombe, unpaired",
        "on the same questions? a paired comparison is narrower: evalrun diff OLD NEW",
    ] == lines


@pytest.mark.parametrize("wrong", ["27/20", "a/b", "26", "2.5/10", "26/35/1", "1/", "²/3", "१/3", "0/0"])
def test_bad_counts(wrong: str) -> None:
    """What is not PASSES/N, more passes than questions, or no question at all is exit 2 with a message."""
    result = call("ci", wrong)
    assert 2 == result.exit_code
    assert wrong in result.output


def test_other_counts() -> None:
    """Ends have limits; a negative count is no option; three rates are too many; one without questions
    stops the other too.
    """
    assert "no questions, so there is no rate" in call("ci", "1/2", "0/0").output
    assert 2 == call("ci", "1/2", "0/0").exit_code
    assert "0 of 8: .00 [.00, .32]" in call("ci", "0/8").output
    assert "8 of 8: 1.0 [.68, 1.0]" in call("ci", "8/8").output
    assert 2 == call("ci", "--", "-1/8").exit_code
    assert 2 == call("ci", "1/2", "1/2", "1/2").exit_code
    assert 2 == call("ci").exit_code


# ---------------------------------------------------------------- plan


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config of 40 questions with one gate."""
    lines = [
        {"id": f"q{place}", "question": "Q?", "category": "single", "must_contain": ["x"]}
        for place in range(40)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    path = tmp_path / "c.yaml"
    path.write_text(
        "name: q\ndataset: d.jsonl\ntarget: {kind: ragbot, url: http://127.0.0.1:9}\n"
        "scorers: [contains]\ngates: [{metric: contains, min: 0.7}]\n",
        "utf-8",
    )
    return path


def test_plan(config: Path) -> None:
    """A plan says calls and gates, and takes a true rate and overrides."""
    result = call("plan", config, "--rate", ".85", "--set", "draws=5")
    assert 0 == result.exit_code
    assert "40 questions × 5 draws" in result.output
    assert "200 to the bot" in result.output
    assert "at .85: how often" in result.output


def test_plan_as_json(config: Path) -> None:
    """With --json the forecast is one JSON document."""
    found = json.loads(call("plan", config, "--json").output)
    assert ("forecast.v1", 40, 40) == (found["format"], found["cases"], found["bot"]["planned"])


def test_plan_of_gates_that_cannot_hold(config: Path) -> None:
    """Exit 2 with the whole plan where a gate cannot hold, and with a message where the config is wrong."""
    result = call("plan", config, "--set", "gates.0.min=.99")
    assert 2 == result.exit_code
    assert "CANNOT HOLD" in result.output
    assert "did you mean 'contains'?" in call("plan", config, "--set", "gates.0.metric=contain").output
    for no_share in ("1.5", "nan"):
        assert 2 == call("plan", config, "--rate", no_share).exit_code


# ---------------------------------------------------------------- diff


def test_diff(runs: Path) -> None:
    """Without --max-drop a comparison only tells, exit 0."""
    result = call("diff", runs / "old", runs / "better")
    assert 0 == result.exit_code
    assert "same dataset, same judge, 130 of 130 questions paired, 1 draw each" in result.output
    assert "nothing was asked of this comparison" in result.output


def test_diff_exit_codes(runs: Path) -> None:
    """0 where every drop holds, 3 where one is undecided, 1 where one is too large."""
    assert 0 == call("diff", runs / "old", runs / "better", "--max-drop", "right=.05").exit_code
    undecided = call("diff", runs / "old", runs / "mixed", "--max-drop", "right=.05")
    assert 3 == undecided.exit_code
    assert "undecided: do not call this an improvement yet" in undecided.output
    failed = call(
        "diff", runs / "old", runs / "mixed", "--max-drop", "right=.2", "--max-drop", "correctly_refused=.05"
    )
    assert 1 == failed.exit_code
    assert "1 of 2 drops larger than allowed: it got worse" in failed.output


@pytest.mark.parametrize(
    ("new", "options", "said"),
    [
        ("other-data", (), "--common-cases"),
        ("judged-otherwise", (), "--any-judge"),
        ("partial", (), "a partial run (--limit 130)"),
        ("better", ("--max-drop", "right"), "not METRIC=MARGIN"),
        ("better", ("--max-drop", "wright=.1"), "did you mean 'right'?"),
        ("configs", (), "no run.json here"),
        ("nowhere", (), "does not exist"),
    ],
)
def test_diff_refuses(runs: Path, new: str, options: tuple[str, ...], said: str) -> None:
    """What cannot be compared is exit 2 and a message that says what to do."""
    result = call("diff", runs / "old", runs / new, *options)
    assert 2 == result.exit_code
    assert said in result.output


def test_diff_on_request(runs: Path) -> None:
    """Other data and other judges are compared when asked for, and the screen says so."""
    assert "DIFFERENT datasets" in call("diff", runs / "old", runs / "other-data", "--common-cases").output
    assert "DIFFERENT judges" in call("diff", runs / "old", runs / "judged-otherwise", "--any-judge").output


def test_diff_as_json(runs: Path) -> None:
    """With --json the comparison is one document that reads back, without NaN."""
    result = call("diff", runs / "old", runs / "mixed", "--json", "--max-drop", "right=.05")
    assert 3 == result.exit_code
    assert "NaN" not in result.output
    found = Comparison.model_validate_json(result.output)
    assert ("right", 130, 3) == (found.lead, found.paired, found.exit_code)
    assert len(found.flips) == found.headline.better + found.headline.worse


def test_diff_files(runs: Path, tmp_path: Path) -> None:
    """Markdown and page are written; one that cannot be is exit 2, after the other and the screen."""
    text, page = tmp_path / "d.md", tmp_path / "d.html"
    assert 0 == call("diff", runs / "old", runs / "better", "--markdown", text, "--html", page).exit_code
    assert text.read_text("utf-8").startswith("## ")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    page.unlink()
    result = call(
        "diff", runs / "old", runs / "better", "--markdown", tmp_path / "no" / "d.md", "--html", page
    )
    assert 2 == result.exit_code
    assert "cannot be written" in result.output
    assert "same judge" in result.output
    assert page.is_file()


# ---------------------------------------------------------------- accept


def test_accept_and_diff(runs: Path) -> None:
    """An accepted run is a baseline that diff takes in its place."""
    result = call("accept", runs / "old")
    baseline = runs / "configs" / "quality.baseline.jsonl"
    assert 0 == result.exit_code
    assert f"{baseline}: 130 cases × 1 draw, the first baseline: commit it, " in result.output
    by_file = call("diff", baseline, runs / "mixed", "--max-drop", "correctly_refused=.05")
    assert 1 == by_file.exit_code
    assert "a baseline keeps no answers" in by_file.output
    baseline.write_text("no baseline", "utf-8")
    assert 2 == call("diff", baseline, runs / "mixed").exit_code


def test_accept_refuses(runs: Path) -> None:
    """A partial run is no baseline."""
    assert 2 == call("accept", runs / "partial").exit_code


# ---------------------------------------------------------------- cost


def test_help_imports_little() -> None:
    """--help needs neither numpy nor pydantic; the plain commands do without scipy.stats."""
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom evalrun.cli import main\n"
        "CliRunner().invoke(main, ['--help'])\n"
        "assert not {'numpy', 'pydantic', 'rich', 'scipy'} & set(sys.modules)\n"
        "CliRunner().invoke(main, ['ci', '26/35'])\n"
        "import evalrun.reports\nevalrun.reports.report.load()\nimport evalrun.forecast, evalrun.comparison\n"
        "assert 'scipy.stats' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
