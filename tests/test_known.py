"""Every known fault has a test, as it stands in ``tests/cases`` and in two inputs of our own at the least."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from known import CASES, INDEX, known

TESTS = Path(__file__).parent


def taken_in(source: str) -> Iterator[str]:
    """The ids of the cases that a module's tests take: ``@known("ID", …)`` on a test."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name.startswith("test_"):
            for call in function.decorator_list:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "known":
                    yield ast.literal_eval(call.args[0])


def test_every_case_of_the_index_is_taken_by_a_test() -> None:
    """An id that no test takes is named here; inputs of our own are asked for by ``known``."""
    files = (path for path in TESTS.rglob("test_*.py") if path != Path(__file__))
    taken = {case for path in files for case in taken_in(path.read_text("utf-8"))}
    assert set() == INDEX.keys() - taken


def test_a_case_that_no_test_takes_would_be_seen() -> None:
    """A helper or a comment that names a case is no test of it."""
    assert ["A"] == list(taken_in('@known("A", 1, 2, 3)\ndef test_a(given): ...\n'))
    assert ["B"] == list(taken_in('@other\n@known("B", 1, 2, 3)\nasync def test_b(given): ...\n'))
    assert [] == list(taken_in('# known("C", 1, 2, 3)\n@known("C", 1, 2, 3)\ndef helper(given): ...\n'))


@pytest.mark.parametrize("case", INDEX)
def test_the_files_of_a_case_are_kept_byte_for_byte(case: str) -> None:
    """As the index has their digests: no editor and no checkout may change a line end."""
    for file in INDEX[case]["files"]:
        assert file["sha256"] == hashlib.sha256((CASES / file["file"]).read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("case", "inputs", "message"),
    [
        ("DS-99", (1, 2, 3), "no case of the index"),
        ("DS-01", (1, 2), "1 inputs of our own"),
        ("DS-01", (1, 2, 1), "an input stands twice"),
    ],
)
def test_one_input_is_not_enough(case: str, inputs: tuple[int, ...], message: str) -> None:
    """Neither none of our own, nor the original once more, nor a case that nobody knows."""
    with pytest.raises(ValueError, match=message):
        known(case, *inputs)
