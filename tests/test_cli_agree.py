"""The command agree: which run it takes, what it prints, and the exit code."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from evalrun.cli import main
from evalrun.journal import RunFolder
from fakes.project import Project
from labelled_runs import header, labelled, write_all, write_labels
from paired_runs import write_run

REFUSED, ANSWERED = "over_refused", "grounded"
FILE = Path("data/labels/refusal.v1.jsonl")


def agree(*arguments: object, dimension: str = "refusal") -> Result:
    """Call ``evalrun agree`` in this process; a fault of ours is raised."""
    called = ["agree", "--dimension", dimension, *map(str, arguments)]
    result = CliRunner().invoke(main, called)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def story(here: Path) -> RunFolder:
    """A run of 64 questions with a table of 19/5/2/38, and its labels."""
    kinds = (
        [(REFUSED, True)] * 19 + [(REFUSED, False)] * 5 + [(ANSWERED, True)] * 2 + [(ANSWERED, False)] * 38
    )
    run = write_run(
        here / "runs" / "1209-quality", {f"q{n:02d}": [kind] for n, (kind, _) in enumerate(kinds)}
    )
    rows = labelled(run, {f"q{n:02d}": label for n, (_, label) in enumerate(kinds)})
    flipped = [(case, draw, label != (case in ("q03", "q40"))) for case, draw, label in rows]
    write_all(here / FILE, {"r1": rows, "r2": flipped, "adjudicated": rows})
    return run


def test_the_screen(story: RunFolder) -> None:
    """Table, both error rates, agreement beside always-majority, kappa beside the raters, lean and advice."""
    result = agree()
    assert 0 == result.exit_code
    for line in (
        "judge   judge-one, rubric claims@1, temperature 0",
        "judge: refused                  19          5",
        "judge: answered                  2         38",
        "finds refusals (sensitivity)       .90  [.70, .99]     19 of 21",
        "clears answers (specificity)       .88  [.75, .96]     38 of 43",
        'agreement                          .89  [.79, .95]     always "answered": .67',
        "kappa                              .76  [.57, .91]",
        "the two raters agree               .97  [.89, .99]     62 of 64",
        'leans towards "refused" by .05, p = .45: could be chance',
        "7 DISAGREEMENTS",
    ):
        assert line in result.output
    assert "it may misread up to 30% of" in result.output
    assert result.output.rstrip().endswith("exit 0")


def test_full(story: RunFolder) -> None:
    """--full adds kappa's relatives and shows every disagreement with question and answer."""
    short, full = agree().output, agree("--full").output
    assert "AC1" not in short
    for word in ("AC1", "PABAK", "prevalence index", "bias index", "kappa of the two raters"):
        assert word in full
    assert 3 == short.count(": judge ")
    assert 7 == full.count(": judge ")
    assert "asked   Question q19?" in full


def test_nothing_is_wider_than_the_screen(here: Path) -> None:
    """80 columns hold every line, whatever cases are called and answers say."""
    names = ["long name " * 20, "b", "寿司 " * 60]
    run = write_run(here / "run", {name: [REFUSED] for name in names}, answers={"b": "word " * 500})
    rows = labelled(run, dict.fromkeys(names, False))
    write_all(here / FILE, {"r1": rows, "r2": rows, "adjudicated": rows})
    for dimension in ("refusal", "faithful"):
        write_all(here / f"{dimension}.jsonl", {"r1": rows, "r2": rows}, dimension=dimension)
        arguments = (run.path, "--labels", here / f"{dimension}.jsonl", "--min-specificity", ".9")
        for more in ((), ("--full",)):
            lines = agree(*arguments, *more, dimension=dimension).output.splitlines()
            assert [] == [line for line in lines if cell_len(line) > 80 and str(here) not in line]


def test_json(story: RunFolder) -> None:
    """--json is one document with all of it, without NaN."""
    result = agree("--json", story.path)
    found = json.loads(result.output, parse_constant=lambda name: pytest.fail(name))
    assert ("agreement.v1", 64, 64, 7) == (
        found["format"],
        found["matched"],
        found["n"],
        len(found["disagreements"]),
    )


def test_another_rater(story: RunFolder) -> None:
    """--rater takes that rater's labels; one who labelled nothing is refused."""
    assert "r1" == json.loads(agree("--json", "--rater", "r1").output)["labels"]["rater"]
    assert "judge: refused                  18          6" in agree("--rater", "r2").output
    wrong = agree("--rater", "r9")
    assert 2 == wrong.exit_code
    assert "raters with labels: r1, r2, adjudicated" in wrong.output


@pytest.mark.parametrize(
    ("demands", "code", "word"),
    [
        (["--min-specificity", ".7"], 0, "holds"),
        (["--min-specificity", ".97"], 1, "FAILS"),
        (["--min-sensitivity", ".9"], 3, "UNDECIDED"),
        (["--min-sensitivity", ".9", "--min-specificity", ".97"], 1, "FAILS"),
    ],
)
def test_demands(story: RunFolder, demands: list[str], code: int, word: str) -> None:
    """Limits decide, and the worst verdict is the exit code."""
    result = agree(*demands)
    assert code == result.exit_code
    assert word in result.output
    assert f"exit {code}" in result.output


@pytest.mark.parametrize("share", ["0", "1", "1.2", "nan"])
def test_a_demand_that_is_none(story: RunFolder, share: str) -> None:
    """A share that everything or nothing can reach is refused."""
    assert 2 == agree("--min-sensitivity", share).exit_code


# ---------------------------------------------------------------- which run, which file


def test_the_newest_run_with_the_labelled_draws(story: RunFolder) -> None:
    """A newer run with other answers is passed over, and so is one that cannot be read."""
    other = write_run(Path("runs/1210-other"), {"q00": [REFUSED]}, answers={"q00": "another answer"})
    broken = write_run(Path("runs/1211-broken"), {"q00": [REFUSED]})
    broken.file("draws").write_text("no line of a journal\n", "utf-8")
    result = agree()
    assert 0 == result.exit_code
    assert f"run     {Path('runs/1209-quality')}" in result.output
    assert 2 == agree(broken.path).exit_code
    missed = agree(other.path)
    assert 2 == missed.exit_code
    assert "no label is of an answer in" in missed.output


def test_the_labels_are_those_that_the_runs_config_names(project: Project, here: Path) -> None:
    """Wherever they lie; the run says by which file it was measured."""
    done = project.run("--live")
    file = project.folder / "judged" / "mine.jsonl"
    rows = labelled(done.folder, {draw.case: False for draw in done.draws})
    write_labels(file, rows)
    project.config["labels"] = ["judged/mine.jsonl"]
    done = project.run("--live")
    assert str(file) in agree(done.folder.path, "--json").output


def test_no_label_file(here: Path) -> None:
    """The default path is told."""
    result = agree()
    assert 2 == result.exit_code
    assert str(FILE) in result.output


def test_a_file_of_another_dimension(story: RunFolder) -> None:
    """Labels of refusals are not read as labels of faithfulness."""
    result = agree("--labels", FILE, dimension="faithful")
    assert 2 == result.exit_code
    assert "labels of 'refusal', not of 'faithful'" in result.output


def test_no_run_and_no_config(here: Path) -> None:
    """Without a run and without a config to replay: exit 2, and what to do."""
    write_labels(FILE, [("a", "sha256:" + "0" * 64, True)])
    nowhere = agree()
    assert 2 == nowhere.exit_code
    assert "names no configs" in nowhere.output
    write_labels(FILE, [("a", "sha256:" + "0" * 64, True)], configs=["configs/gone.yaml"])
    gone = agree()
    assert 2 == gone.exit_code
    assert "gone.yaml is not here" in gone.output


def test_bad_labels(story: RunFolder) -> None:
    """A label twice, a label that is no category: every line is named, exit 2."""
    lines = FILE.read_text("utf-8").splitlines()
    odd = json.dumps({**json.loads(lines[2]), "label": "maybe"})
    FILE.write_text("\n".join([*lines[:2], odd, lines[1]]) + "\n", "utf-8")
    result = agree()
    assert 2 == result.exit_code
    assert f"{FILE}:3" in result.output
    assert f"{FILE}:4" in result.output
    FILE.write_text(json.dumps(header()) + "\n", "utf-8")
    assert "holds no labels" in agree().output


def test_stale_labels_and_one_class(here: Path) -> None:
    """A stale label is told on the screen; kappa of one class is undefined and not a number."""
    run = write_run(here / "run", {f"q{n}": [ANSWERED] for n in range(12)})
    rows = labelled(run, {f"q{n}": False for n in range(12)})
    write_labels(FILE, [*rows[:-1], ("q11", "sha256:" + "0" * 64, False)])
    result = agree(run.path)
    assert 0 == result.exit_code
    assert "11 compared, 1 stale" in " ".join(result.output.split())
    assert "kappa                             undefined (only one category)" in result.output
    assert "the labels hold no refusals" in " ".join(result.output.split())
    assert "nan" not in result.output.lower()


def test_hostile_answers_stay_text(here: Path) -> None:
    """Control characters of an answer are written out."""
    run = write_run(here / "run", {"a": [REFUSED]}, answers={"a": "\x1b[31mred [bold]x[/bold]"})
    write_labels(FILE, labelled(run, {"a": False}))
    result = agree(run.path, "--full")
    assert "\x1b" not in result.output
    assert r"\x1b[31mred [bold]x[/bold]" in result.output


def test_a_fresh_clone_replays_what_the_labels_name(here: Path, project: Project) -> None:
    """No run is there: the config of the label file is replayed once, and found the next time."""
    project.recorded().stop()
    run = RunFolder(here / "runs" / "1")
    cases = {case.id: case.expect == "refuse" for case in run.cases()}
    write_labels(FILE, labelled(run, cases), configs=["config.yaml"])
    shutil.rmtree("runs")
    first, second = agree("--json"), agree("--json")
    assert (0, 0) == (first.exit_code, second.exit_code)
    [made] = Path("runs").iterdir()
    found = json.loads(second.output)
    assert (str(made), 16, 1.0) == (found["run"], found["n"], found["agreement"]["value"])


# ---------------------------------------------------------------- the page


def test_the_page_of_all_disagreements(story: RunFolder) -> None:
    """In the run's folder: table, figures and every answer that was read differently."""
    result = agree()
    page = story.path / "agree-refusal.html"
    assert str(Path("runs/1209-quality/agree-refusal.html")) in " ".join(result.output.split())
    text = page.read_text("utf-8")
    assert 7 == text.count('<details class="flip"')
    for shown in ("7 disagreements", "Question q19?", ".90", "[.70, .99]", "judge refused, labels answered"):
        assert shown in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "<script" not in text


def test_the_page_holds_no_markup_of_answers(here: Path) -> None:
    """What a model wrote is text on the page, and so are case ids."""
    run = write_run(here / "run", {"a": [REFUSED]}, answers={"a": "</p><script>alert(1)</script>\x1b[0m"})
    write_labels(FILE, labelled(run, {"a": False}))
    assert 0 == agree(run.path).exit_code
    text = (run.path / "agree-refusal.html").read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text


def test_a_page_that_cannot_be_written(story: RunFolder) -> None:
    """The screen is shown all the same; exit 2."""
    (story.path / "agree-refusal.html.tmp").mkdir()
    result = agree()
    assert 2 == result.exit_code
    assert "kappa" in result.output
    assert "cannot be written" in result.output


def test_no_disagreement(here: Path) -> None:
    """The page says so, and the screen names no file."""
    run = write_run(here / "run", {"a": [REFUSED], "b": [ANSWERED]})
    write_labels(FILE, labelled(run, {"a": True, "b": False}))
    assert "agree-refusal.html" not in agree(run.path).output
    assert "say the same of every answer" in (run.path / "agree-refusal.html").read_text("utf-8")


def test_a_run_whose_journal_is_no_file_is_refused(story: RunFolder) -> None:
    """A folder or a pipe in its place is as good as gone; nothing waits for it."""
    story.file("draws").unlink()
    os.mkfifo(story.file("draws"))
    done = agree(story.path)
    assert (2, True) == (done.exit_code, "draws.jsonl is gone" in done.output)
