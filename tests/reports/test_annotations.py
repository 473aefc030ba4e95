"""Workflow commands: what does not hold is shown, and no text of a model or dataset commands the runner."""

from __future__ import annotations

import re

from click.testing import CliRunner

from evalrun.cli import main
from evalrun.journal import RunFolder
from evalrun.reports.annotations import MOST, command, workflow_commands
from evalrun.reports.words import without_commands

FORM = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)\Z")
INJECTION = "x\n::stop-commands::abc\r\n::set-env name=PATH::/evil%0A::error::\u2028::add-mask::*"


def test_a_gate_that_fails_is_an_error_and_one_undecided_as_it_counts(quality: RunFolder) -> None:
    """Those that hold are not told; the worst questions are notices."""
    lines = workflow_commands(quality)
    levels = [FORM.match(line) for line in lines]
    assert all(levels)
    red = [verdict for verdict in quality.header.verdicts if verdict.red]
    told = [found for found in levels if found and found[1] == "error" and found[2].startswith("gate ")]
    assert len(red) == len(told)
    assert any(found[1] == "notice" for found in levels if found)


def test_hostile_text_commands_nothing(hostile: RunFolder) -> None:
    """Each line is one command of ours, whatever stands in questions, answers, notes and errors."""
    lines = workflow_commands(hostile)
    assert lines
    assert [] == [line for line in lines if not FORM.match(line) or len(line.splitlines()) != 1]
    counts = {level: sum(line.startswith(f"::{level} ") for line in lines) for level in ("error", "notice")}
    assert max(counts.values()) <= MOST


def test_a_command_is_one_line_whatever_it_holds() -> None:
    """Percent signs, line ends, colons and commas are escaped as the runner unescapes them."""
    line = command("error", INJECTION, INJECTION)
    assert FORM.match(line)
    assert 1 == len(line.splitlines())
    assert "%250A" in line
    assert "title=a%3Ab%2Cc::50%25" in command("notice", "a:b,c", "50%")


def test_no_line_on_a_screen_is_a_command() -> None:
    """A log is read by the runner as well."""
    assert "  : :error::x\na ::b\n: :" == without_commands("  ::error::x\na ::b\n::")
    assert "a ## [error]b" == without_commands("a ##[error]b")
    assert "## vso[task.complete]" == without_commands("##vso[task.complete]")
    assert "a ## teamcity[x]" == without_commands("a ##teamcity[x]")
    assert "## Heading" == without_commands("## Heading")
    lines = re.split(r"\r\n|\r|\n", without_commands(INJECTION))
    assert 3 == len(lines)
    assert [] == [line for line in lines if line.strip().startswith("::")]


def test_the_command_prints_them_and_nothing_else(quality: RunFolder) -> None:
    """Its exit code is 0: the run had its own."""
    done = CliRunner().invoke(main, ["report", str(quality.path), "--annotations", "github"])
    assert 0 == done.exit_code
    assert workflow_commands(quality) == done.output.splitlines()
