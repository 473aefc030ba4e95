"""Logged answers in CSV and JSONL: what a row may hold, and every fault with its place."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from evalrun.answers import Answers
from evalrun.cli import main
from evalrun.digest import sha256_bytes
from evalrun.errors import ExitCode, InputError, Problem, UserError
from evalrun.journal import RunFolder
from evalrun.logged import _listed, read_answers, read_columns
from evalrun.textfile import Cells, csv_cells
from evalrun.verify import verify_run
from fakes.project import REFUSAL, TOPICS, UNKNOWN, Outcome, Project

HEAD = "Q,A,C,Gold"
MAP = "question=Q,answer=A,contexts=C,reference=Gold"


def read(folder: Path, text: str, columns: str = MAP, name: str = "answers.csv") -> Answers:
    """The answers of a file with this text."""
    path = folder / name
    path.write_text(text, "utf-8")
    return read_answers(path, read_columns([columns] if columns else []))


def faults(folder: Path, text: str, columns: str = MAP, name: str = "answers.csv") -> list[str]:
    """``line:col message`` of every problem of a file."""
    with pytest.raises(InputError) as caught:
        read(folder, text, columns, name)
    cut = f"{folder / name}:"
    return [f"{one.where.removeprefix(cut)} {one.message}" for one in caught.value.problems]


def score(source: Path, *args: str) -> Outcome:
    """``evalrun score`` in this process."""
    output = source.parent / "scored"
    done = CliRunner().invoke(main, ["score", str(source), "--output", str(output), *args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Outcome(done.exit_code, done.output, RunFolder(output))


# ---------------------------------------------------------------- what a row says


def test_columns_become_cases_draws_and_contexts(tmp_path: Path) -> None:
    """Contexts are one text, a JSON list of texts, or of objects with ids; claimed, since nobody saw them."""
    found = read(
        tmp_path,
        f"{HEAD}\n"
        "Where?,In Graz.,Home is Graz.,Graz\n"
        'What?,Physics.,"[""one"", ""two""]",\n'
        'Who?,Me.,"[{""id"": ""a"", ""text"": ""x""}, {""text"": ""y""}]",\n'
        "When?,Now.,[1] a footnote,\n"
        "Why?,So.,,\n"
        "How?,Well.,[],\n",
    )
    assert ["q1", "q2", "q3", "q4", "q5", "q6"] == [case.id for case in found.cases]
    assert ["Graz", None] == [case.reference for case in found.cases[:2]]
    levels = [found.draws[case.id, 0].level for case in found.cases]
    assert ["claimed", "claimed", "claimed", "claimed", "none", "claimed"] == levels
    texts = {
        case: [(chunk.id, chunk.text) for chunk in one.chunks] for (case, _), one in found.contexts.items()
    }
    assert [("1", "Home is Graz.")] == texts["q1"]
    assert [("1", "one"), ("2", "two")] == texts["q2"]
    assert [("a", "x"), ("2", "y")] == texts["q3"]
    assert [("1", "[1] a footnote")] == texts["q4"]
    assert "q5" not in texts
    assert [] == texts["q6"]


def test_a_column_of_the_fields_name_needs_no_map_and_others_are_left_alone(tmp_path: Path) -> None:
    """Logs have more columns than we read."""
    found = read(tmp_path, "id,question,answer,latency\ntalks,Where?,Lyon.,3\n", "")
    assert ("talks", "Where?") == (found.cases[0].id, found.cases[0].question)
    assert "Lyon." == found.draws["talks", 0].answer


@pytest.mark.parametrize(
    ("names", "read_as"),
    [
        (
            "user_input,response,retrieved_contexts,reference",
            "user_input as question, response as answer, retrieved_contexts as contexts",
        ),
        (
            "input,actual_output,retrieval_context,expected_output",
            "input as question, expected_output as reference, actual_output as answer, "
            "retrieval_context as contexts",
        ),
        ("question,answer,contexts,ground_truth", "ground_truth as reference"),
    ],
)
def test_what_ragas_and_deepeval_call_a_field_needs_no_map_and_is_said(
    tmp_path: Path, names: str, read_as: str
) -> None:
    """A table that they export is read as it stands; the first note says which column was taken for what."""
    found = read(tmp_path, f"{names}\nWhy?,Because.,It is so.,So.\n", "")
    (case,) = found.cases
    assert ("Why?", "So.") == (case.question, case.reference)
    assert "Because." == found.draws[case.id, 0].answer
    assert ["It is so."] == [chunk.text for context in found.contexts.values() for chunk in context.chunks]
    assert found.dataset is not None
    assert f"read {read_as}; --map FIELD=COLUMN says otherwise" == found.dataset.notes[0]


def test_two_names_for_one_field_are_not_chosen_between(tmp_path: Path) -> None:
    """Nobody knows which of them is meant; an own name, or --map, goes before any of them."""
    two = "input,user_input,answer\nWhy?,How?,So.\n"
    assert ["1 no column 'question'"] == faults(tmp_path, two, "")
    assert ("How?",) == tuple(case.question for case in read(tmp_path, two, "question=user_input").cases)
    own = read(tmp_path, "question,input,answer\nWhy?,How?,So.\n", "")
    assert ("Why?",) == tuple(case.question for case in own.cases)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1), min_size=1
    )
)
def test_contexts_are_read_as_pandas_writes_them(texts: list[str]) -> None:
    """A table written by Python holds the list as Python writes it."""
    assert texts == _listed(repr(texts))


@pytest.mark.parametrize(
    "text", ["['a' 'b']", "['a', 1]", "['a'", "[['a']]", "['\\u12']", "['a'] and more", "[1] so"]
)
def test_a_text_that_only_begins_like_a_list_is_one_text(text: str) -> None:
    """Nothing is guessed: what is no list of texts is the text that stands there."""
    assert [text] == _listed(text)


def test_rows_of_one_question_are_its_draws(tmp_path: Path) -> None:
    """By id where there are ids, else by the question; ordered by ``draw``; a blank answer is a lost draw."""
    found = read(tmp_path, "question,answer,draw\nA?,second,2\nB?,x,1\nA?,first,1\nB?,,7\n", "")
    assert 2 == found.per_case
    assert ["first", "second"] == [found.draws["q1", index].answer for index in (0, 1)]
    assert "log: no answer was logged" == found.draws["q2", 1].error
    by_id = read(tmp_path, "id,question,answer\n1,A?,x\n2,A?,y\n", "")
    assert (["1", "2"], 1) == ([case.id for case in by_id.cases], by_id.per_case)


def test_a_column_of_ids_or_draws_that_is_empty_is_none(tmp_path: Path) -> None:
    """As a spreadsheet leaves it; one that is named with --map must hold something."""
    text = "id,question,answer,draw\n,A?,x,\n,A?,y,\n"
    found = read(tmp_path, text, "")
    assert (["q1"], 2) == ([case.id for case in found.cases], found.per_case)
    assert ["2:1 no id", "3:1 no id"] == faults(tmp_path, text, "id=id")


@pytest.mark.parametrize("name", ["nul.csv", "con.csv", "---.csv", "ä.csv"])
def test_a_log_may_be_called_what_no_folder_may(tmp_path: Path, name: str) -> None:
    """The run is then called answers."""
    (tmp_path / name).write_text("question,answer\nA?,x\n", "utf-8")
    done = score(tmp_path / name)
    assert (ExitCode.OK, "answers") == (done.code, done.folder.header.name)


def test_a_question_that_was_asked_again_counts_by_the_mean_of_its_answers(tmp_path: Path) -> None:
    """The others have fewer draws: what was never asked is not missing."""
    path = tmp_path / "log.csv"
    path.write_text("question,answer,must_contain\nA?,No.,yes\nB?,No.,yes\nA?,Yes.,yes\n", "utf-8")
    done = score(path)
    header = done.folder.header
    assert (2, 2, 0) == (header.draws, header.dataset.cases, done.code)
    [found] = [one for one in header.estimates if (one.metric, one.group) == ("contains", "all")]
    assert (3, 1, 0, 0.25) == (found.scored, found.not_applicable, found.failed, found.value)
    assert any(note.startswith("1 of 2 questions with fewer answers") for note in header.notes)
    assert ([], True) == (verify_run(done.folder.path)[0], done.folder.header.complete)


def test_rows_kept_apart_are_cases_of_one_cluster(tmp_path: Path) -> None:
    """--apart says that each row was a question of its own; that they ask the same is not forgotten."""
    (tmp_path / "log.csv").write_text("question,answer\nA?,x\nB?,x\nA?,y\n", "utf-8")
    found = read_answers(tmp_path / "log.csv", {}, apart=True)
    assert [("q1", "q1"), ("q2", None), ("q3", "q1")] == [(case.id, case.cluster) for case in found.cases]
    assert (1, "y") == (found.per_case, found.draws["q3", 0].answer)
    (tmp_path / "log.csv").write_text("Nr,question,answer\n1,A?,x\n", "utf-8")
    with pytest.raises(UserError, match="says by 'Nr' which answers belong together"):
        read_answers(tmp_path / "log.csv", {"id": "Nr"}, apart=True)


def test_logs_that_ask_the_same_are_one_dataset(tmp_path: Path) -> None:
    """Whatever was answered, in whatever order and form; another expectation is another dataset."""
    first = read(tmp_path, "id,question,answer,reference\na,A?,x,r\nb,B?,y,\n", "")
    later = read(tmp_path, "id;question;answer;reference\nb;B?;z;\na;A?;w;r\n", "", "later.csv")
    other = read(tmp_path, "id,question,answer,reference\na,A?,x,s\nb,B?,y,\n", "", "other.csv")
    digests = [found.dataset.digest for found in (first, later, other) if found.dataset]
    assert digests[0] == digests[1] != digests[2]
    assert first.origin.digest != later.origin.digest


def test_two_logs_of_the_same_questions_are_compared(tmp_path: Path) -> None:
    """As two runs of a bot are."""
    for name, said in (("old", "I do not know."), ("new", "In Graz.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.csv").write_text(
            f"question,answer,must_contain\nWhere?,{said},Graz\n", "utf-8"
        )
        score(tmp_path / name / "log.csv")
    done = CliRunner().invoke(main, ["diff", *(str(tmp_path / name / "scored") for name in ("old", "new"))])
    assert "same dataset" in done.output
    assert 0 == done.exit_code


@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
@pytest.mark.parametrize("divider", [";", "\t"])
def test_semicolons_and_tabs_divide_where_they_divide_the_headings(
    tmp_path: Path, name: str, divider: str
) -> None:
    """As a spreadsheet saves them; in .tsv a tab alone."""
    text = divider.join(("question", "answer", "must_contain")) + "\n"
    text += divider.join(("A, or; B?".replace(";", ""), '"a;b"', '"x;y"')) + "\n"
    if name == "log.tsv" and divider == ";":
        assert "1 no column 'question'" == faults(tmp_path, text, "", name)[0]
        return
    found = read(tmp_path, text, "", name)
    assert [("A, or B?", ("x", "y"))] == [(case.question, case.must_contain) for case in found.cases]
    assert "a;b" == found.draws["q1", 0].answer


def test_json_lines(tmp_path: Path) -> None:
    """The same in JSONL, with lists as lists; a lone surrogate does no harm."""
    rows = [
        {"Q": "Where?", "A": "Graz \ud800", "C": ["x", {"id": "b", "text": "y"}], "Gold": None, "other": 1},
        {"Q": "What?", "A": "It.", "C": "one"},
    ]
    found = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), MAP, "answers.jsonl")
    assert "Graz \ufffd" == found.draws["q1", 0].answer
    assert ["1", "b"] == found.contexts["q1", found.draws["q1", 0].context or ""].ids
    assert ["1"] == found.contexts["q2", found.draws["q2", 0].context or ""].ids


# ---------------------------------------------------------------- faults


def test_a_list_in_json_is_read_as_its_lines(tmp_path: Path) -> None:
    """Many a log is one list; a fault in it has line and column, too."""
    rows = [{"question": "Why?", "answer": "So."}, {"question": "How?", "answer": "Thus."}]
    listed = read(tmp_path, json.dumps(rows, indent=2), "", "answers.json")
    lines = read(tmp_path, "\n".join(map(json.dumps, rows)), "", "answers.jsonl")
    assert (lines.cases, dict(lines.draws)) == (listed.cases, dict(listed.draws))
    rows[1]["answer"] = 5  # type: ignore[assignment]
    assert ["8:5 'answer' is not text"] == faults(tmp_path, json.dumps(rows, indent=2), "", "answers.json")


def test_every_fault_is_told_at_once_where_it_stands(tmp_path: Path) -> None:
    """Line and column of the cell, in CSV."""
    text = (
        "id,question,answer,contexts,expect,draw\n"
        "a,Where?,x,,perhaps,1\n"
        'b,"What,\nelse?",y,"[""a""",answer,1\n'
        "c,,z,,,1\n"
        "d,Who?,z,,,one\n"
        "e,Why?,z\n"
        "f,How?,z,,,1\n"
        "f,How?,z,,,1\n"
        "F,So?,z,,,2\n"
    )
    found = faults(tmp_path, text, "")
    assert [
        "2:13 'expect' should be 'answer' or 'refuse' (it is \"perhaps\")",
        "4:10 'contexts' is not valid JSON: Expecting ',' delimiter: line 1 column 5 (char 4)",
        "5:3 no question",
        "6:12 'draw' is not a whole number",
        "7 3 cells under 6 headings",
        f"9:12 a second draw 1 of 'f', the first is at {tmp_path / 'answers.csv'}:8:12",
    ] == sorted(one for one in found if "another" not in one)
    assert ["10:1 another 'id' than in line 8, which has the same id"] == [
        one for one in found if "another" in one
    ]


def test_faults_in_json_lines(tmp_path: Path) -> None:
    """Line and column of the key."""
    text = '{"question": "A?", "answer": 3}\n{"question": "B?", "answer": "x", "contexts": [3]}\nnot\n'
    assert [
        "3:1 not valid JSON: Expecting value",
        "1:20 'answer' is not text",
        "2:35 'contexts' holds at 1 neither a text nor an object with a text",
    ] == faults(tmp_path, text, "", "answers.jsonl")


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("Q,A\nx,y\n", "question=Qs,answer=A", "1 no column 'Qs' for 'question'"),
        ("Q,A\nx,y\n", "question=Q", "1 no column 'answer'"),
        ("question,answer,answer\nx,y,z\n", "", "1 two columns are called 'answer'"),
        ("question,answer\n", "", "holds no answers"),
        ("", "", "is empty"),
        ('question,answer\nx,"y\n', "", "2:3 a quote that is never closed"),
        ('question,answer\nx,"y"z\n', "", "2:6 text behind a closing quote"),
        ("question,answer,reference\nA?,x,r\nA?,y,s\n", "", "3:6 another 'reference' than in line 2"),
    ],
)
def test_one_fault(tmp_path: Path, text: str, columns: str, message: str) -> None:
    """Each is told in one line."""
    found = faults(tmp_path, text, columns)
    assert 1 == len(found), found
    assert message in found[0]


@pytest.mark.parametrize(
    ("texts", "message"),
    [(["question"], "not FIELD="), (["quest=Q"], "no field"), (["answer=A", "answer=B"], "stands twice")],
)
def test_a_map_that_cannot_be_read(texts: list[str], message: str) -> None:
    """What is wrong with --map."""
    with pytest.raises(UserError, match=message):
        read_columns(texts)


CELL = st.text(alphabet='ab,"\r\n é\u2028', max_size=6)


@given(st.lists(st.lists(CELL, min_size=2, max_size=3), min_size=1, max_size=4))
def test_cells_are_those_that_were_written(rows: list[list[str]]) -> None:
    """Of any CSV that Python's own writer writes; and each cell begins where it is said to."""
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows(rows)
    text = stream.getvalue()
    found = list(csv_cells(Path("x"), text))
    assert rows == [list(row.values) for row in found if isinstance(row, Cells)]
    lines = text.split("\n")
    for row in found:
        assert not isinstance(row, Problem)
        assert {'"'} == {lines[line - 1][column - 1] for line, column in row.places}


# ---------------------------------------------------------------- whole runs


def log(path: Path, *, contexts: bool = True) -> Path:
    """A CSV of what an honest bot said about the little world of the fake project."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["Q", "A", "kind", "expected", *(["C"] if contexts else [])])
        for topic, (question, answer, _) in TOPICS.items():
            text = json.dumps([{"id": topic, "text": f"About my {topic}: {answer}"}])
            rows.writerow([question, answer, "known", "answer", *([text] if contexts else [])])
        for question in UNKNOWN.values():
            rows.writerow([question, REFUSAL, "private", "refuse", *(["[]"] if contexts else [])])
    return path


COLUMNS = "question=Q,answer=A,category=kind,expect=expected"


def test_a_file_is_scored_by_code_without_any_config(tmp_path: Path) -> None:
    """A run folder like any other: verified, reported again, proof claimed."""
    done = score(log(tmp_path / "my answers (1).csv"), "--map", f"{COLUMNS},contexts=C")
    assert ExitCode.OK == done.code, done.text
    header = done.folder.header
    assert ("my-answers-1", {"claimed": 16}) == (header.name, header.levels)
    assert header.origin is not None
    assert ("file", "my answers (1).csv") == (header.origin.kind, header.origin.name)
    assert sha256_bytes((tmp_path / "my answers (1).csv").read_bytes()) == header.origin.digest
    assert header.dataset.digest != header.origin.digest
    assert ["refusal_rule", "novel_terms"] == header.config["scorers"]
    assert 8 == sum(one.status == "pass" for one in done.scores("refusal_rule"))
    assert any("no references" in note for note in header.notes)
    assert "answers from my answers (1).csv" in done.text
    for command in ("verify", "report"):
        again = CliRunner().invoke(main, [command, str(done.folder.path)])
        assert 0 == again.exit_code, again.output


def test_without_contexts_nothing_is_proved_and_it_says_so(tmp_path: Path) -> None:
    """Proof none; before anything is spent, what cannot be measured."""
    done = score(log(tmp_path / "log.csv", contexts=False), "--map", COLUMNS, "--quiet")
    assert ExitCode.OK == done.code, done.text
    assert {"none": 16} == done.folder.header.levels
    assert 1 == done.text.count("no contexts: nothing shows what the model was given")
    assert ["refusal_rule"] == done.folder.header.config["scorers"]
    assert 0 == CliRunner().invoke(main, ["verify", str(done.folder.path)]).exit_code


def test_a_config_gives_its_scorers_judge_and_gates(project: Project) -> None:
    """Its target and dataset are left alone; recorded once, replayed offline with the same bytes."""
    project.config["scorers"] = ["outcome", "faithful"]
    project.config["gates"] = [gate for gate in project.config["gates"] if gate["metric"] != "recall@2"]
    project.config["target"]["launch"]["env"] = {"KEY": "${NOT_SET_ANYWHERE}"}
    config = project.write()
    source = log(project.folder / "log.csv")
    by = ("--map", f"{COLUMNS},contexts=C", "--config", str(config))
    done = score(source, *by, "--record")
    assert ExitCode.OK == done.code, done.text
    assert {"grounded": "holds", "correctly_refused": "holds", "faithful": "holds"} == done.decisions
    assert ({"kind": "logged"}, "claimed") == (done.folder.header.bot, done.folder.header.demanded_level)
    first = done.files()["run.json"]
    project.stop()
    (project.folder / "scored").rename(project.folder / "recorded")
    again = score(source, *by)
    assert ExitCode.OK == again.code, again.text
    assert first == again.files()["run.json"]
    verified = CliRunner().invoke(main, ["verify", str(again.folder.path)])
    assert 0 == verified.exit_code, verified.output
    (project.folder / "scored").rename(project.folder / "replayed")
    demanding = score(source, *by, "--set", "provenance=observed")
    assert ExitCode.USAGE == demanding.code
    assert "logged answers are 'claimed' at best" in demanding.text


def test_answers_without_contexts_are_not_judged(project: Project) -> None:
    """They are missing, counted, and no gate holds on them."""
    project.config["scorers"] = ["outcome"]
    project.config["gates"] = [{"metric": "grounded", "group": "answerable", "min": 0.5}]
    config = project.write()
    source = log(project.folder / "log.csv", contexts=False)
    done = score(source, "--map", COLUMNS, "--config", str(config), "--record")
    assert ExitCode.NOT_ENOUGH_EVIDENCE == done.code, done.text
    assert [] == project.judge.bodies
    assert {"error"} == {one.status for one in done.scores("grounded")}


def lines_of(rows: list[dict[str, Any]]) -> str:
    """Rows as JSONL."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_retrieval_of_a_log_is_scored_where_it_has_ids(tmp_path: Path) -> None:
    """JSONL with relevant ids and contexts with ids: recall and rank by code alone."""
    rows = [
        {
            "id": f"q{number}",
            "question": f"Question {number}?",
            "answer": "Yes.",
            "relevant_ids": ["a"],
            "contexts": [{"id": "b", "text": "x"}, {"id": "a", "text": "y"}],
        }
        for number in range(3)
    ]
    (tmp_path / "log.jsonl").write_text(lines_of(rows), "utf-8")
    done = score(tmp_path / "log.jsonl")
    assert ExitCode.OK == done.code, done.text
    assert [0.5] * 3 == [one.value for one in done.scores("mrr")]
    assert [1.0] * 3 == [one.value for one in done.scores("recall@5")]


def test_a_config_is_no_file_of_answers(tmp_path: Path) -> None:
    """One line says so, and where a config belongs."""
    path = tmp_path / "a.yaml"
    path.write_text("name: a\\ndataset: a.jsonl\\n", encoding="utf-8")
    with pytest.raises(InputError) as told:
        read_answers(path, {})
    assert ["a config, and no answers"] == [problem.message for problem in told.value.problems]
