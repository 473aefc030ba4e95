"""docs/threats.md: every line names tests, and each of them exists and can be collected."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "threats.md").read_text("utf-8")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def lines(page: str) -> list[list[str]]:
    """The cells of each line of each table, without headings."""
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows if row[0].strip() != "from"]


def faults(page: str) -> list[str]:
    """Lines of another shape, lines without a test, and tests that do not exist."""
    found = []
    for row in lines(page):
        named = _TEST.findall(row[-1])
        if len(row) != 5 or not all(row):
            found.append(f"{row[0]}: a line has from, to, must not, what stops it, test")
        if not named:
            found.append(f"{row[0]}: names no test")
        found += [f"{file}::{name}: no such test" for file, name in named if name not in names_in(file)]
    return found


def names_in(file: str) -> set[str]:
    """The names of the tests in a file."""
    path = ROOT / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and node.name.startswith("test_")}


def test_every_line_has_its_test() -> None:
    """Nothing is claimed that no test shows."""
    assert [] == faults(PAGE)
    assert 40 < len(lines(PAGE))


@pytest.mark.parametrize(
    ("spoiled", "fault"),
    [
        (PAGE.replace("`tests/test_yamlfile.py::test_tags_are_not_read`", "to be written"), "names no test"),
        (
            PAGE.replace("::test_tags_are_not_read", "::test_tags_are_gone"),
            "test_tags_are_gone: no such test",
        ),
        (PAGE.replace("tests/test_yamlfile.py::", "tests/test_gone.py::"), "tests/test_gone.py"),
        (PAGE + "\n| a | b | c | d |\n", "a line has"),
    ],
)
def test_the_check_can_fail(spoiled: str, fault: str) -> None:
    """A line without a test, with one that is gone, or with a cell too few, is found."""
    assert any(fault in found for found in faults(spoiled))


def test_the_tests_are_collected() -> None:
    """pytest finds each by its name; those in a browser belong to a session of their own."""
    named = {f"{file}::{name}" for file, name in _TEST.findall(PAGE) if "/browser/" not in file}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(named)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout[-2000:]
    found = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert named == found
