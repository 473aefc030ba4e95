"""YAML files: what they may hold, where each part stands, and what is refused."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalrun.errors import InputError
from evalrun.yamlfile import MAX_DEPTH, MAX_NODES, Document, load_yaml, parse_yaml

CASES = Path(__file__).parent / "cases"
HERE = Path("f.yaml")


def value(text: str, **env: str) -> Any:
    """The value of a text without problems."""
    document = parse_yaml(text, HERE, env)
    assert [] == document.problems
    return document.value


def problems(text: str, **env: str) -> list[str]:
    """Every problem of a text, whether it stops the reader or not."""
    try:
        return [f"{problem.where}: {problem.message}" for problem in parse_yaml(text, HERE, env).problems]
    except InputError as fault:
        return [f"{problem.where}: {problem.message}" for problem in fault.problems]


# ---------------------------------------------------------------- scalars


@pytest.mark.parametrize(
    "text", ["no", "on", "off", "yes", "y", "N", "1_000", "1:30", "2024-01-01", "0b1", "<<"]
)
def test_what_yaml_1_1_converts_is_text(text: str) -> None:
    """Language codes, switches, sexagesimals and dates stay as they are written."""
    assert [text] == value(f"[{text}]")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-1", 0.1),
        ("6e1", 60.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("+3", 3),
    ],
)
def test_numbers_of_yaml_1_2_are_numbers(text: str, number: float) -> None:
    """Exponents without a point are numbers, and integers stay integers."""
    found = value(f"a: {text}")["a"]
    assert number == found
    assert type(number) is type(found)


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "1e999"])
def test_a_number_that_is_not_finite_is_a_problem(text: str) -> None:
    """Infinity and NaN are refused where they stand."""
    assert ["f.yaml:1:4: 'a' is not a finite number"] == problems(f"a: {text}")


def test_quotes_make_text() -> None:
    """Quoted words are text, whatever they look like."""
    assert ["1", "true", "null", "1e-1"] == value("""["1", 'true', "null", '1e-1']""")


def test_nothing_and_null_are_none() -> None:
    """An empty value, a tilde and null are None; so is an empty file."""
    assert {"a": None, "b": None, "c": None} == value("a:\nb: ~\nc: null\n")
    assert value("") is None
    assert value("# only a comment\n") is None


def test_escaped_halves_of_a_character_are_joined() -> None:
    """A character that JSON writes as two escapes is one character; a lone half is replaced."""
    assert ["😀", "\ufffd"] == value(r'["\ud83d\ude00", "\ud800"]')


def test_keys_are_text() -> None:
    """A key that looks like a number or a switch is the text that stands there."""
    assert {"1": 1, "on": 2, "null": 3} == value("1: 1\non: 2\nnull: 3\n")


# ---------------------------------------------------------------- places


def test_every_part_knows_where_it_stands() -> None:
    """Values and keys are found by location; what is not there by what encloses it."""
    document = parse_yaml("a: 1\nb:\n  - x\n  - {c: y}\n", HERE)
    assert "f.yaml:1:1" == document.where(())
    assert "f.yaml:1:4" == document.where(("a",))
    assert "f.yaml:4:9" == document.where(("b", 1, "c"))
    assert "f.yaml:4:6" == document.where_key(("b", 1, "c"))
    assert "f.yaml:4:5" == document.where(("b", 1, "missing"))
    assert "f.yaml:1:1" == document.where(("nothing", "like", "it"))


def test_crlf_and_a_byte_order_mark_change_no_place(tmp_path: Path) -> None:
    """A file saved on Windows reads as any other."""
    path = tmp_path / "w.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    document = load_yaml(path)
    assert {"a": 1, "b": 2} == document.value
    assert f"{path}:2:4" == document.where(("b",))


def test_a_syntax_error_is_told_at_its_place() -> None:
    """What is no YAML stops the reader with line and column."""
    assert ["f.yaml:2:1: not valid YAML: expected ',' or ']', but got '<stream end>'"] == problems(
        "a: [1, 2\n"
    )


def test_a_control_character_is_told_at_its_place() -> None:
    """A character that YAML does not take is named by its number."""
    assert ["f.yaml:2:5: character U+0007 is not allowed in YAML"] == problems("a: 1\nb: x\x07\n")


# ---------------------------------------------------------------- keys


def test_a_duplicate_key_names_its_path_and_both_lines() -> None:
    """The same key twice is refused, not decided by the later value."""
    with pytest.raises(InputError) as caught:
        load_yaml(CASES / "ym-02-duplicate-key.yaml")
    assert f"{CASES}/ym-02-duplicate-key.yaml:7:3" == caught.value.problems[0].where
    assert "key 'judge.threshold' stands twice, on lines 5 and 7" == caught.value.problems[0].message


def test_merge_keys_work_and_are_no_duplicates() -> None:
    """A mapping's own keys win over merged ones, an earlier source over a later one."""
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {z: 4, <<: [{x: 9}, *a]}\nd: {'<<': 1}\n"
    found = value(text)
    assert {"x": 1, "y": 3} == found["b"]
    assert {"x": 9, "y": 2, "z": 4} == found["c"]
    assert {"<<": 1} == found["d"]


def test_merged_values_stand_where_they_are_written() -> None:
    """A fault in a merged value is looked for at its anchor."""
    document = parse_yaml("a: &a {x: 1}\nb: {<<: *a}\n", HERE)
    assert "f.yaml:1:11" == document.where(("b", "x"))


@pytest.mark.parametrize(
    "text", ["<<: 1", "<<: [1]", "<<: {a: 1}\n<<: {b: 1}", "? [a]\n: 1", "? {a: 1}\n: 1"]
)
def test_keys_that_mean_nothing_are_problems(text: str) -> None:
    """Merging a number, merging twice, and keys that are lists or mappings are refused."""
    assert 1 == len(problems(text))


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!str", "!mine", "!!binary"])
def test_tags_are_not_read(tag: str) -> None:
    """No tag makes an object, nor anything else."""
    assert [f"f.yaml:1:4: tag {tag} is not read here"] == problems(f"a: {tag} x")


def test_every_problem_is_told_at_once() -> None:
    """Duplicates, tags and unset variables of one file come together, in one error."""
    assert 3 == len(problems("a: 1\na: 2\nb: !x 1\nc: ${NOT_SET}\n"))


# ---------------------------------------------------------------- the environment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "1"),
        ("x${A}y${B}", "x1y2"),
        ("${C:-3}", "3"),
        ("${C:-}", ""),
        ("${EMPTY:-4}", "4"),
        ("${A:-9}", "1"),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$A costs $5", "$A costs $5"),
    ],
)
def test_variables_are_replaced_in_text(text: str, expected: str) -> None:
    """``${NAME}``, ``${NAME:-default}`` and ``$$``; the result is text; anything else stays."""
    assert expected == value(f"k: '{text}'", A="1", B="2", EMPTY="")["k"]


def test_an_unset_variable_names_itself_and_its_key() -> None:
    """A missing key of a service is found before it is sent as text."""
    with pytest.raises(InputError) as caught:
        load_yaml(CASES / "ym-05-env-unset.yaml", {})
    assert f"{CASES}/ym-05-env-unset.yaml:5:20" == caught.value.problems[0].where
    assert (
        "'service.headers.Authorization' needs the environment variable EVALRUN_TEST_KEY_UNSET,"
        " which is not set" == caught.value.problems[0].message
    )


def test_an_empty_variable_is_said_to_be_empty() -> None:
    """A variable that is set to nothing is no value either."""
    assert ["f.yaml:1:4: 'a' needs the environment variable E, which is set, but empty"] == problems(
        "a: ${E}", E=""
    )


def test_a_placeholder_without_a_name_is_a_problem() -> None:
    """A brace that is never closed is more likely a slip than a text."""
    assert ["f.yaml:1:4: 'a' holds '${' without a variable name"] == problems("a: '${'")


def test_a_variable_cannot_bring_structure() -> None:
    """What the environment holds is text, even if it reads like YAML."""
    assert {"a": "{b: 1}", "c": "x\nd: 2"} == value("a: ${X}\nc: ${Y}", X="{b: 1}", Y="x\nd: 2")


def test_without_an_environment_text_is_left_alone() -> None:
    """A prompt with dollar signs is read as it is written."""
    assert "${A} and $$" == parse_yaml("a: ${A} and $$", HERE).value["a"]


def test_what_came_from_the_environment_is_known() -> None:
    """The text as written is kept, so that a secret need not be shown."""
    document = parse_yaml("a: Bearer ${A}\nb: $$\n", HERE, {"A": "secret"})
    assert {("a",): "Bearer ${A}"} == document.from_env
    assert "Bearer ${A}" == document.written(("a",))
    assert document.written(("b",)) is None


def test_a_problem_of_an_aliased_value_is_told_once() -> None:
    """However often an anchor is used, its fault is one fault."""
    assert 1 == len(problems("a: &a {k: '${NOT_SET}'}\nb: *a\nc: {<<: *a}\n"))


# ---------------------------------------------------------------- budget


def test_an_alias_bomb_is_refused_before_it_is_built() -> None:
    """A few hundred bytes of nested aliases cost no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="more than 20,000 values, aliases written out"):
            load_yaml(CASES / "ym-06-alias-bomb.yaml")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_merge_bomb_is_refused() -> None:
    """Merge keys count as what they stand for."""
    names = "abcdefghijklmnopqr"
    text = "a: &a {x0: 1, x1: 2}\n" + "".join(
        f"{name}: &{name} {{<<: [*{before}, *{before}], {name}: 1}}\n"
        for before, name in itertools.pairwise(names)
    )
    assert ["more than 20,000 values, aliases written out"] == [p.split(": ", 1)[1] for p in problems(text)]


def test_small_anchors_work() -> None:
    """Anchors and aliases are a convenience, and stay one."""
    assert {"a": [1, 2], "b": [[1, 2], [1, 2]]} == value("a: &x [1, 2]\nb: [*x, *x]\n")


def test_the_budget_is_counted_exactly() -> None:
    """The largest file allowed is read, one value more is not."""
    line = "- x\n"
    assert MAX_NODES - 1 == len(value(line * (MAX_NODES - 1)))
    assert 1 == len(problems(line * MAX_NODES))


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "? "])
def test_deep_nesting_is_refused(opening: str) -> None:
    """A hundred thousand brackets do not exhaust the stack."""
    assert [f"nested deeper than {MAX_DEPTH} levels"] == [
        p.split(": ", 1)[1] for p in problems(opening * 100_000)
    ]


def test_depth_counts_through_aliases() -> None:
    """An alias is as deep as what it stands for."""
    steps = "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))
    assert ["nested deeper"] == [p.split(": ", 1)[1][:13] for p in problems("a0: &a0 [x]\n" + steps)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "alias *a stands inside its own anchor"),
        ("a: *b", "alias *b has no anchor before it"),
        ("a: 1\n---\nb: 2", "a second document (---)"),
    ],
)
def test_what_has_no_value_is_refused(text: str, message: str) -> None:
    """Loops, missing anchors and several documents stop the reader."""
    assert [message] == [problem.split(": ", 1)[1] for problem in problems(text)]


# ---------------------------------------------------------------- anything at all

YAMLISH = st.text(
    st.sampled_from(list("ab:-[]{},&*!|>%@`\"'#?<\\\n\t ~01.exuU$\x85\u2028\ud800\x00=\r")), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(YAMLISH, st.text(max_size=60)))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever stands in a file, the answer is a document or an input error."""
    try:
        found: object = parse_yaml(text, HERE, {})
    except InputError as fault:
        found = fault.problems
    assert isinstance(found, Document) or found


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever bytes a file holds, the answer is a document or an input error."""
    path = tmp_path_factory.mktemp("y") / "f.yaml"
    path.write_bytes(data)
    try:
        found: object = load_yaml(path, {})
    except InputError as fault:
        found = fault.problems
    assert isinstance(found, Document) or found
