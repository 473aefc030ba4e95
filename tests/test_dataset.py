"""Datasets: what a line may hold, in JSONL and CSV, and what a file is refused for."""

from __future__ import annotations

import gc
import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalrun.dataset import Dataset, freeze, load_dataset
from evalrun.errors import ExitCode, InputError, UserError
from evalrun.journal import RunFolder
from evalrun.records import Case, Draw, Message, Quote
from known import CASES, data_of, known


def written(folder: Path, *rows: Any, name: str = "d.jsonl") -> Path:
    """A dataset of these rows; a text is written as it is."""
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return path


def row(**parts: Any) -> dict[str, Any]:
    """A row with nothing remarkable but ``parts``."""
    return {"id": "q1", "question": "Why?", **parts}


def refused(path: Path, columns: dict[str, str] | None = None) -> list[str]:
    """The problems of a file, as ``line: message``; of the file as a whole, the message."""
    with pytest.raises(InputError) as caught:
        load_dataset(path, columns)
    assert ExitCode.USAGE is caught.value.exit_code
    return [
        f"{problem.where}: {problem.message}".removeprefix(f"{path}:").strip()
        for problem in caught.value.problems
    ]


def hint(path: Path) -> str:
    """The hint of the one problem of a file."""
    with pytest.raises(InputError) as caught:
        load_dataset(path)
    (problem,) = caught.value.problems
    return problem.hint


# ---------------------------------------------------------------- what is read


def test_a_whole_row_is_read(tmp_path: Path) -> None:
    """Every field of a case arrives."""
    path = written(
        tmp_path,
        row(
            category="multi_chunk",
            expect="refuse",
            relevant_ids=["a", "b"],
            reference="So.",
            must_contain=["x"],
            history=[{"role": "user", "content": "Hi"}],
            cluster="doc",
            tags=["t"],
            metadata={"any": [1, None]},
        ),
    )
    assert (
        Case(
            id="q1",
            question="Why?",
            category="multi_chunk",
            expect="refuse",
            relevant_ids=("a", "b"),
            reference="So.",
            must_contain=("x",),
            history=(Message(role="user", content="Hi"),),
            cluster="doc",
            tags=("t",),
            metadata={"any": [1, None]},
        ),
    ) == load_dataset(path).cases


def test_many_cases_take_half_the_room_and_are_what_they_were(tmp_path: Path) -> None:
    """A large dataset is held whole; its cases equal those that pydantic makes, and so do their copies."""
    rows = [row(id=f"q{i}", question=f"Why {i}?", category="a", relevant_ids=[f"d{i}"]) for i in range(500)]
    path = written(tmp_path, *rows)

    def plain() -> list[Case]:
        return [Case.model_validate(one) for one in rows]

    taken = []
    for made in (plain, lambda: list(load_dataset(path).cases)):
        made()
        tracemalloc.start()
        cases = made()
        gc.collect()
        taken.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert plain() == cases
        assert {"id": "q7", "question": "Why 7?", "category": "a", "relevant_ids": ("d7",)} == cases[
            7
        ].model_dump(exclude_unset=True)
        assert plain()[7].model_copy(update={"id": "x"}) == cases[7].model_copy(update={"id": "x"})
    assert taken[1] <= 0.5 * taken[0]


def test_a_file_is_known_by_name_digest_and_lines(tmp_path: Path) -> None:
    """The digest is that of the bytes, as sha256sum gives it; blank lines count."""
    path = written(
        tmp_path, row(category="a"), "", row(id="q2", category="b", expect="refuse"), name="twin.jsonl"
    )
    dataset = load_dataset(path)
    assert "twin" == dataset.name
    assert path == dataset.path
    assert "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() == dataset.digest
    assert {"q1": 1, "q2": 3} == dataset.lines
    assert {"a": 1, "b": 1} == dataset.categories
    assert {"all", "answerable", "unanswerable", "a", "b"} == dataset.groups


@pytest.mark.parametrize(
    ("given_ids", "expected"),
    [
        (["a", "b"], ("a", "b")),
        ([], ()),
        ({"a": 2, "b": 0.5}, {"a": 2.0, "b": 0.5}),
        ([{"quote": "in Berlin"}], (Quote(quote="in Berlin"),)),
        (None, None),
    ],
)
def test_relevance_has_three_shapes(tmp_path: Path, given_ids: Any, expected: Any) -> None:
    """Ids, graded ids, or quotes; an empty list and none at all are not the same."""
    assert expected == load_dataset(written(tmp_path, row(relevant_ids=given_ids))).cases[0].relevant_ids


@pytest.mark.parametrize("category", ["single_chunk", "out-of-corpus", "Größe", "日本語", "a1"])
def test_a_category_is_any_word(tmp_path: Path, category: str) -> None:
    """In any language."""
    assert category == load_dataset(written(tmp_path, row(category=category))).cases[0].category


def test_a_row_without_a_category_is_uncategorized(tmp_path: Path) -> None:
    """A plain list of questions is a dataset."""
    assert "uncategorized" == load_dataset(written(tmp_path, row())).cases[0].category


MARK = b"\xef\xbb\xbf"


def as_file(folder: Path, data: bytes) -> Path:
    """A dataset of these bytes: CSV where there is no brace in them."""
    path = folder / ("d.jsonl" if b"{" in data else "d.csv")
    path.write_bytes(data)
    return path


@known(
    "DS-01",
    data_of("ds-01-bom.jsonl"),
    MARK + b"\r\n" + data_of("ds-01-bom.jsonl").removeprefix(MARK).replace(b"\n", b"\r\n"),
    MARK + b'"id",question\nq1,Where did Mara study?\nq2,Which tools does Mara use?\n',
    MARK + b"question,id\nWhere did Mara study?,q1\r\nWhich tools does Mara use?,q2",
)
def test_a_byte_order_mark_changes_nothing(given: bytes, tmp_path: Path) -> None:
    """Two rows, and the first key is id: before JSON, a blank line, a quoted heading; as without the mark."""
    assert given.startswith(MARK)
    marked = load_dataset(as_file(tmp_path, given)).cases
    assert ["q1", "q2"] == [case.id for case in marked]
    assert ["Where did Mara study?", "Which tools does Mara use?"] == [case.question for case in marked]
    assert marked == load_dataset(as_file(tmp_path, given.removeprefix(MARK))).cases


SEPARATORS = "\u2028|\u2029|\x85|\u00a0|\u200b|\ufeff"


@known(
    "DS-02",
    (data_of("ds-02-unicode-separators.jsonl"), ["first\u2028second", "a\u2029b", "c\x85d"]),
    (
        f'{{"id": "q1", "question": "{SEPARATORS}", "tags": ["\u2028"], "metadata": {{"\x85": 1}}}}'.encode(),
        [SEPARATORS],
    ),
    ("id,question\nq1,a\u2028b\nq2,\u2029c\nq3,d\x85\n".encode(), ["a\u2028b", "\u2029c", "d\x85"]),
    ('id,question\r\nq1,"a\u2028\nb\x0bc\x0cd\x1ce"\r\n'.encode(), ["a\u2028\nb\x0bc\x0cd\x1ce"]),
)
def test_unicode_separators_are_text(given: tuple[bytes, list[str]], tmp_path: Path) -> None:
    """Lines end at LF alone, in a dataset and in what a run writes of its questions and answers."""
    data, questions = given
    cases = load_dataset(as_file(tmp_path, data)).cases
    assert questions == [case.question for case in cases]
    folder = RunFolder(tmp_path / "run")
    for case in cases:
        folder.append("cases", case)
        folder.append("draws", Draw(case=case.id, index=0, answer=case.question, error=case.question))
    folder.close()
    assert list(cases) == list(folder.cases())
    assert questions == [draw.answer for draw in folder.draws()] == [draw.error for draw in folder.draws()]


@known(
    "DS-03",
    (data_of("ds-03-crlf-blank-nofinal.jsonl"), [1, 3, 5]),
    (
        b' \t\r\n\n{"id": "q1", "question": "one"}  \r\n{"id": "q2", "question": "two"}\r\n'
        b'\t{"id": "q3", "question": "three"}\r\n \r\n\t',
        [3, 4, 5],
    ),
    (
        b'{"id": "q1", "question": "one"}\n\r\n\r\n{"id": "q2", "question": "two"}\n\n'
        b'{"id": "q3", "question": "three"}\r',
        [1, 4, 6],
    ),
    (b"id,question\r\nq1,one\r\n\r\nq2,two\r\n\r\n\r\nq3,three", [2, 4, 7]),
    (b"id,question\r\n\r\nq1,one\r\n  \r\nq2,two\r\nq3,three\r\n \t", [3, 5, 6]),
)
def test_crlf_blank_lines_and_no_last_newline_are_fine(
    given: tuple[bytes, list[int]], tmp_path: Path
) -> None:
    """Three rows, no CR left in a value, lines counted as they stand."""
    data, lines = given
    dataset = load_dataset(as_file(tmp_path, data))
    assert ["one", "two", "three"] == [case.question for case in dataset.cases]
    assert dict(zip(("q1", "q2", "q3"), lines, strict=True)) == dataset.lines


# ---------------------------------------------------------------- what is refused


@known(
    "DS-04",
    (data_of("ds-04-duplicate-id.jsonl"), "3: id 'q1' stands twice, on lines 1 and 3"),
    (
        b'\r\n{"id": "q1", "question": "one"}\r\n\r\n{"id": "\\u00711", "question": "two"}\r\n',
        "4: id 'q1' stands twice, on lines 2 and 4",
    ),
    (
        b'id,question\nq1,"one\nmore"\nq2,two\nq1,three\n',
        "5: id 'q1' stands twice, on lines 2 and 5",
    ),
    (
        '{"id": "\u00e9", "question": "one"}\n{"id": "e\u0301", "question": "two"}\n'.encode(),
        "2: ids '\u00e9' (line 1) and 'e\u0301' (line 2) differ only in case or spaces",
    ),
)
def test_a_duplicate_id_names_both_lines(given: tuple[bytes, str], tmp_path: Path) -> None:
    """Before anything is asked, so that no answer overwrites another; however the id is written."""
    assert [given[1]] == refused(as_file(tmp_path, given[0]))


GOOD_LINE = b'{"id": "q%d", "question": "one"}'


@known(
    "DS-05",
    (data_of("ds-05-bad-line-4.jsonl"), ["4:34: not valid JSON: Expecting ',' delimiter"]),
    (
        b"\r\n" + GOOD_LINE % 1 + b"\r\n \r\n" + b'{"id": "q2", "question": "tw\r\n' + GOOD_LINE % 3,
        ["4:26: not valid JSON: Unterminated string starting at"],
    ),
    (
        b"\n" * 9 + GOOD_LINE % 1 + b"\n" + b'{"id": "q2", "question": "a\tb"}\n' + GOOD_LINE % 3 + b"}\n",
        ["11:28: not valid JSON: Invalid control character at", "12:32: not valid JSON: Extra data"],
    ),
    (GOOD_LINE % 1 + b"\n\n" + b'{"id": "q2", "question": "\xff"}\n', ["3:27: not UTF-8 (byte 0xff)"]),
    (
        GOOD_LINE % 1 + b"\n" + b'{"id": "q2", "question": "two", "relevant_ids": {"a": NaN}}',
        ["2: not valid JSON: NaN is not a number"],
    ),
)
def test_a_bad_line_is_told_by_its_own_number(given: tuple[bytes, list[str]], tmp_path: Path) -> None:
    """The fourth line of the file is line 4, with the column of the fault; blank lines and CR LF count."""
    assert given[1] == refused(as_file(tmp_path, given[0]))


def test_an_empty_dataset_is_refused() -> None:
    """Nothing asked is no success."""
    assert ["holds no cases"] == refused(CASES / "th-02-empty.jsonl")


def test_a_missing_dataset_is_refused(tmp_path: Path) -> None:
    """The path is named."""
    assert ["no such file"] == refused(tmp_path / "no.jsonl")


@pytest.mark.parametrize("other", ["Q1", "q1 ", " q1", "Q1\u2003"])
def test_ids_that_a_file_system_confuses_are_refused(tmp_path: Path, other: str) -> None:
    """Ids become names of tests and files, where case and spaces get lost."""
    path = written(tmp_path, row(), row(id=other))
    assert [f"2: ids 'q1' (line 1) and '{other}' (line 2) differ only in case or spaces"] == refused(path)


def test_ids_that_only_look_the_same_are_refused(tmp_path: Path) -> None:
    """Composed and decomposed letters are one id."""
    assert 1 == len(refused(written(tmp_path, row(id="é"), row(id="e\u0301"))))


def test_every_bad_line_is_told_at_once(tmp_path: Path) -> None:
    """One reading mends the file."""
    path = written(
        tmp_path,
        "{",
        row(),
        {"question": "x"},
        row(id="q3", qestion="x", expect="decline"),
        row(id="q1"),
        row(id=7),
        "[]",
    )
    assert [
        "1:2: not valid JSON: Expecting property name enclosed in double quotes",
        "3: 'id' is missing",
        "4: 'expect' should be 'answer' or 'refuse' (it is \"decline\")",
        "4: unknown key 'qestion'",
        "5: id 'q1' stands twice, on lines 2 and 5",
        "6: 'id' should be text (it is 7)",
        "7: not an object",
    ] == refused(path)


@pytest.mark.parametrize("key", ["id[0]", "tuple[str, ...]", "f(x)", "[", ""])
def test_an_unknown_key_may_look_like_anything(tmp_path: Path, key: str) -> None:
    """Also like what a schema calls the branches of a choice."""
    assert [f"1: unknown key '{key}'"] == refused(written(tmp_path, row(**{key: 1})))


def test_an_unknown_key_comes_with_the_nearest_known_one(tmp_path: Path) -> None:
    """A misspelt key is not ignored."""
    assert "did you mean 'must_contain'?" == hint(written(tmp_path, row(must_contains=["x"])))


@pytest.mark.parametrize(
    ("relevant", "message"),
    [
        ([1], "'relevant_ids.0' is 1; ids must be text"),
        (["a", None], "'relevant_ids.1' is null; ids must be text"),
        ([True], "'relevant_ids.0' is true; ids must be text"),
        ("a", "'relevant_ids' is neither a list nor a mapping of grades"),
        (3, "'relevant_ids' is neither a list nor a mapping of grades"),
        (["a", "a"], "'relevant_ids' holds 'a' twice"),
        ({"a": "2"}, "'relevant_ids.a' is not a grade"),
        ({"a": True}, "'relevant_ids.a' is not a grade"),
        ({"a": -1}, "'relevant_ids.a' is not a grade"),
        ([{"quote": ""}], "'relevant_ids.0' is not a quote"),
        ([{"quote": "x", "id": "y"}], "'relevant_ids.0' is not a quote"),
        ([{"text": "x"}], "'relevant_ids.0' is not a quote"),
        (["a", {"quote": "x"}], "'relevant_ids' holds ids and quotes"),
    ],
)
def test_relevance_of_another_shape_is_one_problem(tmp_path: Path, relevant: Any, message: str) -> None:
    """Numbers are not taken for ids, and the message speaks of the shape that was meant."""
    assert [f"1: {message}"] == refused(written(tmp_path, row(relevant_ids=relevant)))


def test_a_number_as_id_says_how_to_write_it(tmp_path: Path) -> None:
    """The hint can be copied."""
    assert 'write "1"' == hint(written(tmp_path, row(relevant_ids=[1])))


def test_a_grade_too_large_for_a_number_is_refused(tmp_path: Path) -> None:
    """What passes our own rules and not the record's is still told."""
    line = '{"id": "q1", "question": "Why?", "relevant_ids": {"a": 1' + "0" * 400 + "}}"
    assert all("relevant_ids" in problem for problem in refused(written(tmp_path, line)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"id": "  "}, "'id' is blank or holds a control character"),
        ({"id": "a\nb"}, "'id' is blank or holds a control character"),
        ({"question": " \n"}, "'question' is blank"),
        ({"reference": ""}, "'reference' is blank"),
        ({"category": "two words"}, "'category' is not a word"),
        ({"category": "all"}, "'category' is 'all', the name of a group of its own"),
        ({"category": "answerable"}, "'category' is 'answerable', the name of a group of its own"),
        ({"category": "unanswerable"}, "'category' is 'unanswerable', the name of a group of its own"),
        ({"must_contain": [""]}, "'must_contain' holds an empty text, which every answer contains"),
        (
            {"metadata": {"regex": "("}},
            "'metadata.regex' is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        ({"metadata": {"regex": 3}}, "'metadata.regex' should be text"),
        ({"must_contain": "x"}, "'must_contain' should be a list (it is \"x\")"),
        (
            {"history": [{"role": "bot", "content": "x"}]},
            "'history.0.role' should be 'system', 'user' or 'assistant' (it is \"bot\")",
        ),
    ],
)
def test_a_value_that_would_mislead_is_refused(tmp_path: Path, parts: dict[str, Any], message: str) -> None:
    """Blank questions, expectations that always hold, groups under a borrowed name."""
    assert [f"1: {message}"] == refused(written(tmp_path, row(**parts)))


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    """A lone surrogate has no bytes, so nothing with one could be sent or written."""
    (problem,) = refused(written(tmp_path, r'{"id": "q1", "question": "a\ud800b"}'))
    assert problem.startswith("1: 'question' holds half a character")


def test_problems_are_counted_beyond_a_hundred(tmp_path: Path) -> None:
    """A file of another kind fills no screen."""
    problems = refused(written(tmp_path, *["x"] * 250))
    assert (101, ": and 150 more like these") == (len(problems), problems[-1])


def test_columns_are_for_csv(tmp_path: Path) -> None:
    """A mapping of headings over JSONL would be ignored, so it is refused."""
    path = written(tmp_path, row())
    assert ["'columns' are for CSV files"] == refused(path, {"question": "Q"})


# ---------------------------------------------------------------- CSV


def table(folder: Path, text: str, name: str = "d.csv") -> Path:
    """A CSV file."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_csv_with_columns_is_read(tmp_path: Path) -> None:
    """Headings are mapped, others left alone, lists divided, empty cells left out, quoted lines kept."""
    text = '\ufeffNr,Q,Doc,Other,Ref\r\n1,"Why, then?\nReally?",a; b,x,\r\n\r\n2,How?,,y,So\r\n'
    columns = {"id": "Nr", "question": "Q", "relevant_ids": "Doc", "reference": "Ref"}
    dataset = load_dataset(table(tmp_path, text), columns)
    assert (
        Case(id="1", question="Why, then?\nReally?", category="uncategorized", relevant_ids=("a", "b")),
        Case(id="2", question="How?", category="uncategorized", reference="So"),
    ) == dataset.cases
    assert {"1": 2, "2": 5} == dataset.lines


def test_csv_headings_may_be_the_fields_themselves(tmp_path: Path) -> None:
    """Without a mapping every heading is a field."""
    path = table(tmp_path, "id,question,category,expect\nq1,Why?,a,refuse\n")
    assert (Case(id="q1", question="Why?", category="a", expect="refuse"),) == load_dataset(path).cases


@pytest.mark.parametrize(
    ("text", "columns", "problems"),
    [
        ("id,questoin\n", None, ["1: 'questoin' is not a field of a case in CSV"]),
        ("id,Q\n", {"id": "id", "question": "q"}, ["1: no column 'q'"]),
        ("id,Q,Q\n", {"id": "id", "question": "Q"}, ["1: more than one column 'Q'"]),
        ("id,question\n1,2,3\n4\n", None, ["2: 3 cells under 2 headings", "3: 1 cells under 2 headings"]),
        ('id,question\n1,"x\n', None, ["2:3: a quote that is never closed"]),
        ("Q\nWhy?\n", {"question": "Q"}, ["2: 'id' is missing"]),
        ("id,question\n1,Why?\n1,How?\n", None, ["3: id '1' stands twice, on lines 2 and 3"]),
    ],
)
def test_a_fault_of_a_csv_is_told_by_line(
    tmp_path: Path, text: str, columns: dict[str, str] | None, problems: list[str]
) -> None:
    """Headings on line 1, cells where they stand, then the rules of every dataset."""
    assert problems == refused(table(tmp_path, text), columns)


@pytest.mark.parametrize(("text", "message"), [("", "is empty"), ("id,question\n", "holds no cases")])
def test_a_csv_without_rows_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """As any dataset without cases."""
    path = table(tmp_path, text)
    assert [message] == refused(path)


# ---------------------------------------------------------------- released versions


def test_freeze_pins_a_released_version_once(tmp_path: Path) -> None:
    """The pin is a line of sha256sum; a second time there is nothing to do."""
    path = written(tmp_path, row(), name="d.v1.jsonl")
    assert freeze(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"{digest}  d.v1.jsonl\n" == (tmp_path / "SHA256SUMS").read_text()
    assert not freeze(path)
    assert () == load_dataset(path).notes


def test_a_released_version_without_a_pin_is_read_with_a_note(tmp_path: Path) -> None:
    """It says how to pin it; a file without a version needs none."""
    path = written(tmp_path, row(), name="d.v1.jsonl")
    assert (f"d.v1.jsonl is not pinned yet; 'evalrun freeze {path}' pins it",) == load_dataset(path).notes
    assert () == load_dataset(written(tmp_path, row())).notes


def test_a_changed_released_version_is_refused(tmp_path: Path) -> None:
    """By a run and by freeze alike; the hint names the next version."""
    path = written(tmp_path, row(), name="d.v9.jsonl")
    freeze(path)
    written(tmp_path, row(question="How?"), name="d.v9.jsonl")
    message = "changed since it was released: its sha256 is not the one pinned in SHA256SUMS"
    assert [message] == refused(path)
    assert hint(path).endswith("save the change as d.v10.jsonl")
    with pytest.raises(InputError, match="changed since it was released"):
        freeze(path)


def test_a_file_without_a_version_may_change(tmp_path: Path) -> None:
    """Freeze refuses it and says how to name it."""
    with pytest.raises(UserError, match=r"rename it to d\.v1\.jsonl"):
        freeze(written(tmp_path, row()))


def test_a_dataset_that_cannot_be_read_is_not_pinned(tmp_path: Path) -> None:
    """A version is released whole or not at all."""
    with pytest.raises(InputError):
        freeze(written(tmp_path, "{", name="d.v1.jsonl"))
    assert not (tmp_path / "SHA256SUMS").exists()


def test_other_pins_are_kept(tmp_path: Path) -> None:
    """Lines of other files stay, in order of their names, as sha256sum -b wrote them or not."""
    pins = tmp_path / "SHA256SUMS"
    pins.write_text(f"{'b' * 64} *z.v1.jsonl\r\n{'a' * 64}  a.v1.jsonl\n")
    freeze(written(tmp_path, row(), name="m.v2.jsonl"))
    assert ["a.v1.jsonl", "m.v2.jsonl", "z.v1.jsonl"] == [
        line.split()[1] for line in pins.read_text().splitlines()
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "1: not a line of sha256sum"),
        (f"{'a' * 64}  x\n{'b' * 64}  x\n", "2: a second digest for x"),
    ],
)
def test_pins_that_cannot_be_read_stop_everything(tmp_path: Path, text: str, message: str) -> None:
    """A broken list of pins is not an empty one."""
    (tmp_path / "SHA256SUMS").write_text(text)
    with pytest.raises(InputError, match=f"SHA256SUMS:{message}"):
        load_dataset(written(tmp_path, row(), name="d.v1.jsonl"))


# ---------------------------------------------------------------- anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
FIELDS = st.dictionaries(st.sampled_from([*Case.model_fields, "unknown"]), JSON, max_size=5)
NAMES = st.sampled_from(["d.jsonl", "d.csv"])


@settings(max_examples=150, deadline=None)
@given(
    data=st.one_of(
        st.binary(max_size=80),
        st.text(st.sampled_from(list('{}[]":,\\u0dq\n\r\t;x\x00')), max_size=60).map(str.encode),
        FIELDS.map(lambda parts: json.dumps({**row(), **parts}).encode()),
    ),
    name=NAMES,
)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    """Whatever a file holds, the answer is a dataset with cases or an input error."""
    path = tmp_path_factory.mktemp("d") / name
    path.write_bytes(data)
    try:
        found: Any = load_dataset(path)
    except InputError as fault:
        found = fault.problems
    assert found.cases if isinstance(found, Dataset) else found
