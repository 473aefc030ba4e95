"""Text files: what keeps one from being read, and where its lines end."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.errors import InputError, Problem
from evalrun.textfile import Row, is_table, json_lines, json_rows, lines, read_bytes, read_text, unpacked


def refused(call: object, *arguments: object) -> str:
    """What a call is refused with."""
    with pytest.raises(InputError) as caught:
        call(*arguments)  # type: ignore[operator]
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path to nothing is an input error that names it."""
    assert f"{tmp_path / 'no.yaml'}: no such file" in refused(read_text, tmp_path / "no.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder in the place of a file is said to be one."""
    assert f"{tmp_path}: is a folder, not a file" == refused(read_text, tmp_path)


def test_a_path_no_system_takes_is_an_input_error() -> None:
    """A NUL in a path is told, not raised."""
    assert "cannot be read" in refused(read_text, Path("a\0b"))


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    """The limit itself is allowed, one byte more is not."""
    path = tmp_path / "big"
    path.write_bytes(b"12345")
    assert b"12345" == read_bytes(path, 5)
    assert "larger than 4 bytes" in refused(read_bytes, path, 4)


def test_a_packed_file_is_read_as_what_it_unpacks_to(tmp_path: Path) -> None:
    """By its name; several packed parts one after the other are one file."""
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(b"caf\xc3\xa9") + gzip.compress(b"\n"))
    assert "café\n" == read_text(path)
    assert is_table(tmp_path / "x.csv.gz")


def test_a_packed_file_that_is_none_is_told(tmp_path: Path) -> None:
    """Cut off, another format, changed: each with what is wrong."""
    whole = gzip.compress(bytes(range(256)) * 40)
    changed = whole[:-8] + bytes(8)
    for data, told in ((whole[:-9], "is cut off"), (b"plain", "is no gzip"), (changed, "is no gzip")):
        path = tmp_path / "a.gz"
        path.write_bytes(data)
        assert told in refused(read_bytes, path)


def test_a_file_that_unpacks_to_far_more_is_refused_within_bounded_memory(tmp_path: Path) -> None:
    """64 MiB of nothing in a small file: no more than the limit and a part is ever held."""
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(16 * 1024 * 1024)) * 4)
    tracemalloc.start()
    try:
        assert "unpacks to more than 4,000,000 bytes" in refused(unpacked, path, 4_000_000)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
    path.write_bytes(path.read_bytes() * 5)
    assert "more than 268,435,456 bytes" in refused(read_bytes, path)


def test_bytes_that_are_not_utf8_are_shown_with_their_place(tmp_path: Path) -> None:
    """Latin-1 is refused at line and column of its first wrong byte."""
    path = tmp_path / "latin"
    path.write_bytes(b"ab\ncaf\xe9\n")
    assert f"{path}:2:4: not UTF-8 (byte 0xe9)\n    save the file as UTF-8" == refused(read_text, path)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    """The mark that some editors write is dropped."""
    path = tmp_path / "bom"
    path.write_bytes(b"\xef\xbb\xbfa")
    assert "a" == read_text(path)


def test_lines_end_at_line_feeds_only() -> None:
    """A CR before the LF goes, blank lines count but do not come, other separators are text."""
    text = "a\r\n\r\n \t\nb\u2028c\u2029d\x85e\n\nf\rg"
    assert [(1, "a"), (4, "b\u2028c\u2029d\x85e"), (6, "f\rg")] == list(lines(text))


def test_json_lines_keep_line_value_and_source() -> None:
    """A row knows where it stands and how it was written."""
    assert [Row(2, {"a": 1}, '{"a": 1}')] == list(json_lines(Path("x"), '\n{"a": 1}\n'))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"a": 1 "b": 2}', Problem("x:1:9", "not valid JSON: Expecting ',' delimiter")),
        ('{"a": 1, "a": 1}', Problem("x:1", "not valid JSON: key 'a' stands twice")),
        ('{"a": {"b": 1, "b": 2}}', Problem("x:1", "not valid JSON: key 'b' stands twice")),
        ('{"a": NaN}', Problem("x:1", "not valid JSON: NaN is not a number")),
        ("[" * 100_000, Problem("x:1", "not valid JSON: nested too deeply")),
        ("[1]", Problem("x:1", "not an object", 'a line looks like {"id": "…", …}')),
    ],
)
def test_a_line_that_is_no_object_is_a_problem(line: str, problem: Problem) -> None:
    """Each kind of fault is told at its line, with the column where there is one."""
    assert [problem] == list(json_lines(Path("x"), line))


def test_a_list_where_lines_are_wanted_is_told_once() -> None:
    """Not once for each of its lines."""
    (found,) = json_lines(Path("x"), '[\n {"a": 1},\n {"a": 2}\n]')
    assert isinstance(found, Problem)
    assert ("x:1", "a list over several lines") == (found.where, found.message)


_OBJECTS = st.lists(
    st.dictionaries(st.text(max_size=5), st.one_of(st.text(), st.integers(), st.none()), max_size=3)
)


@given(_OBJECTS, st.sampled_from([None, 0, 1, 4]), st.booleans())
def test_a_list_has_the_rows_of_its_lines(
    objects: list[dict[str, Any]], indent: int | None, ascii_: bool
) -> None:
    """However it is laid out; each row knows where it begins, and where each of its keys does."""
    text = json.dumps(objects, indent=indent, ensure_ascii=ascii_)
    rows = list(json_rows(Path("x"), text))
    assert objects == [row.value for row in rows if isinstance(row, Row)]
    by_line = text.split("\n")
    for row in rows:
        assert isinstance(row, Row)
        assert "{" == by_line[row.line - 1][row.column - 1]
        for key in row.value if not ascii_ else ():
            line, column = row.place(key)
            assert by_line[line - 1][column - 1 :].startswith(json.dumps(key, ensure_ascii=False))


@pytest.mark.parametrize(
    ("text", "rows", "where", "message"),
    [
        ('[{"a": 1},\n {"a" 1}]', 1, "x:2:7", "not valid JSON: Expecting ':' delimiter"),
        ('[{"a": 1},\n {"a": 1, "a": 2}]', 1, "x:2", "not valid JSON: key 'a' stands twice"),
        ('[{"a": 1}\n {"a": 1}]', 1, "x:2:2", "not valid JSON: Expecting ',' delimiter"),
        ('[{"a": 1},]', 1, "x:1:11", "not valid JSON: Expecting value"),
        ('[{"a": 1}] {}', 1, "x:1:12", "not valid JSON: Extra data"),
        ("[", 0, "x:1:2", "not valid JSON: Expecting value"),
        ("[] []", 0, "x:1:4", "not valid JSON: Extra data"),
        ("\n[1]", 0, "x:2", "not an object"),
        ("[" * 100_000, 0, "x:1", "not valid JSON: nested too deeply"),
    ],
)
def test_a_list_ends_at_its_first_fault(text: str, rows: int, where: str, message: str) -> None:
    """What stood before is read, the fault is told at its place."""
    *before, last = json_rows(Path("x"), text)
    assert rows == len(before)
    assert isinstance(last, Problem)
    assert (where, message) == (last.where, last.message)


def test_a_number_too_long_for_python_is_a_problem() -> None:
    """An integer of thousands of digits does not escape as a ValueError."""
    (found,) = json_lines(Path("x"), '{"a": ' + "9" * 5000 + "}")
    assert isinstance(found, Problem)
    assert found.message.startswith("not valid JSON: ")
