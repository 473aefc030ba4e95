"""Questions of other tools: what becomes of columns, variables and assertions, what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.dataset import load_dataset
from evalrun.errors import InputError, UserError
from evalrun.importing import import_file

PROMPTFOO = """\
prompts: [prompt.txt]
providers: [openai:gpt-4o-mini]
tests:
  - description: opening hours
    vars: {question: "When is it open?", context: "From ten to six."}
    assert:
      - {type: icontains, value: ten}
      - {type: contains-all, value: [six, closed]}
      - {type: llm-rubric, value: is polite}
      - {type: not-contains, value: perhaps}
  - vars:
      question: [What is the code?, And the key?]
    assert:
      - {type: is-refusal}
  - vars: {question: How much is a card?}
    assert:
      - {type: equals, value: Five euros.}
      - {type: similar, value: 5 EUR, threshold: 0.8}
      - {type: regex, value: "five|5"}
      - {type: contains, value: "{{price}}"}
      - {type: invented-by-nobody}
  - description: no vars at all
"""


def written(folder: Path, name: str, text: str) -> Path:
    """A file."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_spreadsheet_with_headings_of_its_own(tmp_path: Path) -> None:
    """Known names are found whatever their case, lists are divided, ids are made; the rest is named."""
    rows = ["Query,Ground Truth,Type,Keywords,Owner", "When?,At ten,Opening hours,ten;six,Sam", "", '"What,']
    text = "\n".join([*rows, 'now?",,,,', ""])
    made = import_file(written(tmp_path, "q.csv", text), {})
    named = {"question": "Query", "reference": "Ground Truth", "category": "Type", "must_contain": "Keywords"}
    assert named == made.read_as
    first, second = made.cases
    assert ("q-001", "When?", "At ten", "Opening_hours", ("ten", "six")) == (
        first.id, first.question, first.reference, first.category, first.must_contain,
    )  # fmt: skip
    assert ("q-002", "What,\nnow?", "uncategorized") == (second.id, second.question, second.category)
    assert [f"{tmp_path}/q.csv:1: column 'Owner' is not taken over"] == [
        str(problem).partition("\n")[0] for problem in made.left
    ]


def test_a_mapping_says_what_names_do_not(tmp_path: Path) -> None:
    """--map wins over what a name looks like; a semicolon divides where it divides the headings."""
    path = written(tmp_path, "q.csv", "Frage;answer;Nr\nWann?;um zehn;7\n")
    made = import_file(path, {"question": "Frage", "id": "Nr"})
    assert [("7", "Wann?", "um zehn")] == [(case.id, case.question, case.reference) for case in made.cases]


@pytest.mark.parametrize(
    ("text", "mapping", "said"),
    [
        ("a,b\n1,2\n", {}, "nothing here is called a question"),
        ("question\nx\n", {"reference": "Gold"}, "there is no 'Gold'"),
        ("question,id\nx,1\ny,1\n", {}, "q.csv:3: id '1' stands twice"),
        ("question,id\nx\n", {}, "q.csv:2: 1 cells under 2 headings"),
        ("question,expect\nx,perhaps\n", {}, "q.csv:2: 'expect'"),
        ('question\n"x\n', {}, "q.csv:2:1: a quote that is never closed"),
        ("", {}, "q.csv: is empty"),
    ],
)
def test_faults_of_a_spreadsheet_stand_at_its_own_lines(
    text: str, mapping: dict[str, str], said: str, tmp_path: Path
) -> None:
    """Not at those of the file that would be written."""
    with pytest.raises(InputError) as caught:
        import_file(written(tmp_path, "q.csv", text), mapping)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["goldens.json", "goldens.jsonl"])
def test_goldens_in_json_become_cases(tmp_path: Path, name: str) -> None:
    """A list, or an object a line, under the names of others; what has no place here is named once."""
    goldens = [
        {"input": "When?", "expected_output": "At ten.", "retrieval_context": ["x"], "keywords": ["ten"]},
        {"input": "Who?", "expected_output": None, "comments": "hard"},
    ]
    text = json.dumps(goldens, indent=1) if name.endswith("json") else "\n".join(map(json.dumps, goldens))
    made = import_file(written(tmp_path, name, text), {})
    assert {"question": "input", "reference": "expected_output", "must_contain": "keywords"} == made.read_as
    assert [("q-001", "When?", "At ten.", ("ten",)), ("q-002", "Who?", None, ())] == [
        (case.id, case.question, case.reference, case.must_contain) for case in made.cases
    ]
    assert ["'retrieval_context' is not taken over", "'comments' is not taken over"] == [
        problem.message for problem in made.left
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"input": "x"}, {"input": "y"]', "q.json:1:31: not valid JSON"),
        ('[{"a": 1}]', "q.json:1: nothing here is called a question"),
        ('[{"input": 5}]', "q.json:1: 'question'"),
        ('[\n{"input": "x", "id": "1"},\n{"input": "y", "id": "1"}]', "q.json:3: id '1' stands twice"),
        ("[]", "q.json: holds no questions"),
        ("", "q.json: holds no questions"),
        ("[1]", "q.json:1: not an object"),
    ],
)
def test_faults_of_goldens_stand_at_their_lines(text: str, said: str, tmp_path: Path) -> None:
    """As in a spreadsheet."""
    with pytest.raises(InputError) as caught:
        import_file(written(tmp_path, "q.json", text), {})
    assert said in str(caught.value)


def test_promptfoo_tests_become_cases(tmp_path: Path) -> None:
    """Texts that must occur, references, refusals, patterns; a list of questions is a case each."""
    made = import_file(written(tmp_path, "p.yaml", PROMPTFOO), {})
    hours, code, key, card = made.cases
    assert ("When is it open?", ("ten", "six", "closed")) == (hours.question, hours.must_contain)
    assert {"description": "opening hours"} == hours.metadata
    assert ["What is the code?", "And the key?"] == [code.question, key.question]
    assert {"refuse"} == {code.expect, key.expect}
    assert ("Five euros.", {"regex": "five|5"}) == (card.reference, card.metadata)


def test_what_promptfoo_has_and_we_have_not_is_said_at_its_place(tmp_path: Path) -> None:
    """Each with the reason; nothing is dropped in silence."""
    made = import_file(written(tmp_path, "p.yaml", PROMPTFOO), {})
    told = [str(problem).removeprefix(f"{tmp_path}/") for problem in made.left]
    assert [
        "p.yaml:1:10: 'prompts' is not taken over",
        "p.yaml:2:12: 'providers' is not taken over",
        "p.yaml:5:51: variable 'context' is not taken over",
        "p.yaml:9:9: assert 'llm-rubric' is not taken over",
        "p.yaml:10:9: assert 'not-contains' is not taken over",
        "p.yaml:18:9: assert 'similar' is not taken over",
        "p.yaml:20:9: assert 'contains' is not taken over",
        "p.yaml:21:9: assert 'invented-by-nobody' is not taken over",
        "p.yaml:22:5: this test is not taken over",
    ] == [line.partition("\n")[0] for line in told]
    assert all("\n    " in line for line in told)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests: file://tests.csv\n", 'names "file://tests.csv"'),
        ("prompts: []\n", "holds no list 'tests'"),
        ("tests:\n  - vars: {a: 1, b: 2}\n", "nothing here is called a question"),
        ("tests:\n  - vars: {question: 3}\n", "p.yaml:2: 'question'"),
        ("tests: !!python/object:os.system x\n", "tag"),
    ],
)
def test_a_promptfoo_config_without_questions_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    """With its place and what would do."""
    with pytest.raises(InputError) as caught:
        import_file(written(tmp_path, "p.yaml", text), {})
    assert said in str(caught.value)


def test_other_files_and_fields_are_refused(tmp_path: Path) -> None:
    """With what would be taken."""
    with pytest.raises(UserError, match="neither"):
        import_file(written(tmp_path, "q.txt", "x"), {})
    with pytest.raises(UserError, match="did you mean 'question'"):
        import_file(written(tmp_path, "q.csv", "x"), {"questoin": "x"})


def test_the_command_writes_a_dataset_and_overwrites_none(tmp_path: Path) -> None:
    """What it writes loads; what it left behind is said."""
    source, target = written(tmp_path, "p.yaml", PROMPTFOO), tmp_path / "out.jsonl"
    done = CliRunner().invoke(main, ["import", str(source), "--output", str(target)])
    assert 0 == done.exit_code, done.output
    assert 4 == len(load_dataset(target).cases)
    assert "assert 'llm-rubric' is not taken over" in done.output
    again = CliRunner().invoke(main, ["import", str(source), "--output", str(target)])
    assert 2 == again.exit_code
    assert "is there already" in again.output


def test_init_takes_the_questions_of_a_spreadsheet(tmp_path: Path) -> None:
    """And measures what they have."""
    source = written(tmp_path, "mine.csv", "question,must_contain\nWhen?,ten\n")
    folder = tmp_path / "new"
    bot = ["--target", "http", "--url", "http://127.0.0.1:1", "--answer", "a"]
    done = CliRunner().invoke(main, ["init", str(folder), *bot, "--questions", str(source)])
    assert 0 == done.exit_code, done.output
    line = json.loads((folder / "questions.jsonl").read_text("utf-8"))
    assert ("q-001", "When?", ["ten"]) == (line["id"], line["question"], line["must_contain"])
    assert "\n  - contains" in (folder / "evalrun.yaml").read_text("utf-8")
