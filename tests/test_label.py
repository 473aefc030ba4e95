"""Labelling: which answers are chosen, what a rater sees, and a file that is whole after each key."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalrun.cli import main
from evalrun.journal import RunFolder
from evalrun.labelling import choose_by_verdict, choose_random
from evalrun.labels import Labels, load_labels
from paired_runs import write_run

REFUSED, ANSWERED = "over_refused", "grounded"
SHIPPED = Path(__file__).parent.parent / "data" / "labels"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Twenty questions of three draws each; five are judged refusals, one has no verdict."""
    monkeypatch.chdir(tmp_path)
    outcomes: dict[str, list[str | None]] = {f"q{n:02d}": [REFUSED] * 3 for n in range(5)}
    outcomes |= {f"q{n:02d}": [ANSWERED] * 3 for n in range(5, 20)}
    outcomes["q19"] = [None] * 3
    return write_run(tmp_path / "run", outcomes)


def label(keys: str, *arguments: object) -> Result:
    """Call ``evalrun label`` with these keys; a fault of ours is raised."""
    called = ["label", "run", "--dimension", "refusal", *map(str, arguments)]
    result = CliRunner().invoke(main, called, input=keys)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def written(path: str = "data/labels/refusal.jsonl") -> Labels:
    """The label file."""
    return load_labels(Path(path))


def said(labels: Labels) -> dict[str, bool]:
    """Case → label."""
    return {row.case: row.label for row in labels.rows}


# ---------------------------------------------------------------- which answers


def test_random_takes_one_draw_a_question(run: RunFolder) -> None:
    """By seed, the same again; a larger number only adds some; another seed takes others."""
    chosen = choose_random(run, 7, 10)
    assert 10 == len({one.case.id for one in chosen})
    assert chosen == choose_random(run, 7, 10) == choose_random(run, 7, 15)[:10]
    assert [one.key for one in chosen] != [one.key for one in choose_random(run, 8, 10)]
    assert 20 == len(choose_random(run, 7, 99))
    assert 1 < len({one.draw.index for one in choose_random(run, 7, 99)})


def test_by_verdict_takes_as_many_of_each(run: RunFolder) -> None:
    """Answers that the judge called yes and no; one without a verdict is in neither group."""
    chosen = choose_by_verdict(run, 7, 3, "refusal")
    judged = {(one.case, one.index): one.refusal for one in run.judgements()}
    assert {True: 3, False: 3} == Counter(judged[one.draw.key] for one in chosen)
    every = choose_by_verdict(run, 7, 99, "refusal")
    assert {True: 5, False: 14} == Counter(judged[one.draw.key] for one in every)
    assert [one.key for one in every] == [
        one.key for one in choose_random(run, 7, 99) if one.case.id != "q19"
    ]


@pytest.mark.parametrize("twin", ["quality", "quality-weak"])
@pytest.mark.parametrize("dimension", ["refusal", "faithful"])
def test_the_shipped_labels(dimension: str, twin: str) -> None:
    """One draw of each question, read twice and decided where they differ; by a model, called so."""
    labels = load_labels(SHIPPED / f"{dimension}{'-weak' if twin == 'quality-weak' else ''}.v1.jsonl")
    head = labels.header
    assert (dimension, "random", 20261130) == (head.dimension, head.design, head.seed)
    assert (f"configs/{twin}.yaml",) == head.configs
    assert {"r1": "model", "r2": "model", "adjudicated": "model"} == {
        name: rater.kind for name, rater in head.raters.items()
    }
    for name in head.raters:
        rows = [row for row in labels.rows if row.rater == name]
        assert 64 == len(rows) == len({row.case for row in rows})


# ---------------------------------------------------------------- the terminal


def test_a_key_an_answer(run: RunFolder) -> None:
    """y and n are labels in the order shown, s leaves one out, other keys mean nothing."""
    result = label("y?nsY", "--random", 4, "--seed", 7)
    assert 0 == result.exit_code
    order = [one.case.id for one in choose_random(run, 7, 4)]
    labels = written()
    assert {order[0]: True, order[1]: False, order[3]: True} == said(labels)
    assert ("refusal", "random", 7) == (labels.header.dimension, labels.header.design, labels.header.seed)
    assert "human" == labels.header.raters["r1"].kind
    assert "3 of 4 labelled by r1" in result.output
    assert [one.draw.digest for one in choose_random(run, 7, 4) if one.case.id != order[2]] == [
        row.draw for row in labels.rows
    ]


def test_back(run: RunFolder) -> None:
    """b shows the answer before and takes another label for it; before the first there is none."""
    result = label("byyn", "--random", 3)
    order = [one.case.id for one in choose_random(run, 0, 3)]
    assert dict(zip(order, [True, True, False], strict=True)) == said(written())
    assert 0 == result.exit_code
    again = label("ybnq", "--random", 3, "--output", "again.jsonl")
    assert {order[0]: False} == said(written("again.jsonl"))
    assert "(so far: yes)" in again.output


def test_stop_and_resume(run: RunFolder) -> None:
    """q stops, and so does the end of the input; the next call goes on with what has no label."""
    label("ynq", "--random", 4)
    assert 2 == len(written().rows)
    first = Path("data/labels/refusal.jsonl").read_bytes()
    stopped = label("", "--random", 4)
    assert "3 of 4" in stopped.output
    assert first == Path("data/labels/refusal.jsonl").read_bytes()
    label("yy", "--random", 4)
    assert 4 == len(written().rows)
    done = label("", "--random", 4)
    assert "4 of 4 labelled" in done.output
    assert "y yes" not in done.output


def test_stop_before_the_first_label(run: RunFolder) -> None:
    """No file comes about, and none is needed to begin again."""
    result = label("q", "--random", 4)
    assert (0, False) == (result.exit_code, Path("data").exists())
    assert "0 of 4 labelled" in result.output


def test_a_rater_sees_nothing_of_the_judge(run: RunFolder) -> None:
    """Question and answer, for faithfulness the context; no verdict, no category, nobody else's label."""
    label("n", "--random", 1)
    shown = label("q", "--random", 1, "--rater", "r2", "--kind", "model").output
    asked = choose_random(run, 0, 1)[0]
    assert asked.case.question in shown
    assert str(asked.draw.answer) in shown
    assert "so far" not in shown
    assert asked.case.category not in shown
    assert "She spoke in Berlin." not in shown
    called = ["label", "run", "--dimension", "faithful", "--random", "1"]
    assert "She spoke in Berlin." in CliRunner().invoke(main, called, input="q").output


def test_a_second_rater_has_labels_of_their_own(run: RunFolder) -> None:
    """In the same file, for the same answers; the header names both."""
    label("yy", "--random", 2)
    label("nn", "--random", 2, "--rater", "r2", "--kind", "model")
    labels = written()
    assert {"r1": "human", "r2": "model"} == {name: who.kind for name, who in labels.header.raters.items()}
    assert {("r1", True): 2, ("r2", False): 2} == Counter((row.rater, row.label) for row in labels.rows)


def test_by_verdict_is_recorded(run: RunFolder) -> None:
    """The design decides later what may be computed, and by whose verdicts it was, whether it still may."""
    label("yynn", "--by-verdict", 2)
    judge = run.header.judge
    assert judge is not None
    assert ("by_verdict", judge.fingerprint) == (written().header.design, written().header.judge)
    assert 4 == len(written().rows)


def test_another_design_is_refused(run: RunFolder) -> None:
    """A file of one design takes no labels of another; nor of another seed or dimension."""
    label("y", "--random", 1)
    for arguments in (["--by-verdict", "2"], ["--random", "2", "--seed", "5"]):
        refused = label("y", *arguments)
        assert 2 == refused.exit_code
        assert "name another file with --output" in refused.output
    assert 1 == len(written().rows)


@pytest.mark.parametrize("arguments", [[], ["--random", "2", "--by-verdict", "2"], ["--random", "0"]])
def test_a_choice_is_needed(run: RunFolder, arguments: list[str]) -> None:
    """Exactly one way to choose."""
    assert 2 == label("y", *arguments).exit_code


def test_what_is_labelled_can_be_measured(run: RunFolder) -> None:
    """The file goes into agree as it is; an answer's control characters stay text on the way."""
    label("".join("y" if one.case.id < "q05" else "n" for one in choose_random(run, 0, 99)), "--random", 99)
    called = ["agree", "--dimension", "refusal", "--labels", "data/labels/refusal.jsonl", "run", "--json"]
    found = json.loads(CliRunner().invoke(main, called).output)
    assert (20, 19, 1.0) == (found["matched"], found["n"], found["agreement"]["value"])


def test_hostile_answers_stay_text(tmp_path: Path, run: RunFolder) -> None:
    """Control characters are written out, also where several lines are shown."""
    hostile = write_run(tmp_path / "hostile", {"a": [ANSWERED]}, answers={"a": "one\n\x1b[2Jtwo"})
    called = ["label", str(hostile.path), "--dimension", "refusal", "--random", "1"]
    shown = CliRunner().invoke(main, called, input="q").output
    assert "\x1b" not in shown
    assert "  \\x1b[2Jtwo" in shown


# ---------------------------------------------------------------- the page, and what it saves


def saved(run: RunFolder, *rows: dict[str, object], **fields: object) -> Path:
    """A file as the page saves it."""
    head = {
        "dimension": "refusal",
        "design": "random",
        "seed": 0,
        "date": "2026-11-30",
        "raters": {"r1": {"kind": "human", "how": "read"}},
    }
    path = run.path.parent / "saved.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [{**head, **fields}, *rows]), "utf-8")
    return path


def row(run: RunFolder, place: int, value: bool) -> dict[str, object]:
    """A label of one of the answers that seed 0 chooses."""
    case, draw = choose_random(run, 0, 99)[place].key
    return {"draw": draw, "case": case, "rater": "r1", "label": value}


def test_the_page_shows_what_the_terminal_shows(run: RunFolder) -> None:
    """Every chosen answer and nothing of the judge; no label file comes about."""
    result = label("", "--random", 3, "--html", "sheet.html")
    assert 0 == result.exit_code
    page = Path("sheet.html").read_text("utf-8")
    assert 3 == page.count('<section class="answer"')
    assert "--import FILE\n" in result.output
    named = label("", "--random", 3, "--html", "sheet.html", "--output", "my labels.jsonl").output
    assert "--import FILE --output 'my labels.jsonl'" in named
    for one in choose_random(run, 0, 3):
        assert str(one.draw.answer) in page
    assert "claims@1" not in page
    assert "single_chunk" not in page
    assert not Path("data").exists()


def test_the_page_holds_no_markup_of_answers(tmp_path: Path, run: RunFolder) -> None:
    """What a model wrote is text; case ids cannot leave the data block either."""
    nasty = "</script><script>alert(1)</script>"
    hostile = write_run(tmp_path / "hostile", {nasty: [ANSWERED]}, answers={nasty: nasty})
    called = ["label", str(hostile.path), "--dimension", "faithful", "--random", "1", "--html", "s.html"]
    assert 0 == CliRunner().invoke(main, called).exit_code
    assert 2 == Path("s.html").read_text("utf-8").count("</script>")


def test_what_is_saved_is_taken_in(run: RunFolder) -> None:
    """Into a new file, or beside the labels that are there; the terminal goes on from it."""
    source = saved(run, row(run, 0, True), row(run, 1, False))
    assert "2 labels taken into" in label("", "--import", source).output
    label("y", "--random", 3)
    assert [True, False, True] == [one.label for one in written().rows]
    turned = label("", "--import", saved(run, row(run, 1, True))).output
    assert (
        "1 label taken into data/labels/refusal.jsonl; 1 of them replaces one that said otherwise" in turned
    )
    assert [True, True, True] == [one.label for one in written().rows]


def test_a_run_of_which_a_part_is_gone_is_not_labelled(run: RunFolder) -> None:
    """Exit 2 with the name of the journal, before anything is asked."""
    run.file("cases").unlink()
    done = label("y", "--random", 3)
    assert 2 == done.exit_code
    assert "cases.jsonl is gone" in done.output


@pytest.mark.parametrize("journal", ["cases", "contexts"])
def test_a_run_that_lost_lines_is_not_labelled(run: RunFolder, journal: str) -> None:
    """Exit 2 with the journal that lacks them, in place of a traceback."""
    run.file(journal).write_bytes(b"")
    done = label("", "--random", 3, "--html", "sheet.html")
    assert (2, True) == (done.exit_code, f"{journal}.jsonl: holds no" in done.output)
    assert "evalrun verify" in done.output


def test_what_is_not_of_the_run_is_not_taken_in(run: RunFolder) -> None:
    """Another dimension, another answer, another design: exit 2, and nothing is written."""
    gone = {**row(run, 0, True), "draw": "sha256:" + "0" * 64}
    assert "1 label of no answer" in label("", "--import", saved(run, row(run, 1, True), gone)).output
    other = label("", "--import", saved(run, row(run, 0, True), dimension="faithful"))
    assert (2, False) == (other.exit_code, Path("data").exists())
    label("y", "--random", 1)
    assert 2 == label("", "--import", saved(run, row(run, 1, True), seed=5)).exit_code
    assert 1 == len(written().rows)
    assert 2 == label("", "--import", saved(run, row(run, 1, True)), "--random", 2).exit_code
