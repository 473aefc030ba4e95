"""A run as a table: every draw a row, every score a column, and no text that a spreadsheet would execute."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.exporting import export
from evalrun.journal import RunFolder
from fakes.project import Project

HOSTILE = ("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "  =cmd|' /C calc'!A0")


@pytest.fixture
def run(project: Project) -> RunFolder:
    """A run of the small project, live, without a judge, whose answers begin like formulas."""
    project.model.say = lambda body: HOSTILE[len(project.model.bodies) % len(HOSTILE)]
    del project.config["judge"]
    project.config |= {"gates": [], "scorers": ["recall@2", "contains", "latency"]}
    project.cases = [{**case, "must_contain": ["x"]} for case in project.cases[:4]] + project.cases[8:10]
    done = project.run("--live")
    assert done.code == 0, done.text
    return done.folder


def rows(data: bytes) -> list[dict[str, str]]:
    """The rows of a CSV."""
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_no_cell_of_a_csv_begins_like_a_formula(run: RunFolder) -> None:
    """An apostrophe stands before it; numbers of our own stay numbers."""
    table = rows(export(run, "csv"))
    assert 12 == len(table)
    cells = [cell for row in table for cell in row.values()]
    assert [] == [cell for cell in cells if cell.lstrip(" ")[:1] in "=+-@\t\r" and cell.strip()]
    assert any(cell.startswith("'") for cell in cells)
    assert all(float(row["score:latency"]) >= 0 for row in table)


def test_a_row_holds_the_draw_and_its_scores(run: RunFolder) -> None:
    """A score of the case stands in each of its rows; what does not apply is empty."""
    table = rows(export(run, "csv"))
    talks = next(row for row in table if row["case"] == "talks")
    assert ("1", "known", "answer", "1.0", "false") == (
        talks["draw"], talks["category"], talks["expect"], talks["score:recall@2"], talks["score:contains"],
    )  # fmt: skip
    assert "talks" in json.loads(talks["context_ids"])
    assert {("", "")} == {
        (row["score:recall@2"], row["score:contains"]) for row in table if row["category"] == "private"
    }


def test_jsonl_holds_the_texts_as_they_are(run: RunFolder) -> None:
    """Nothing is escaped there: a data frame executes nothing."""
    lines = [json.loads(line) for line in export(run, "jsonl").splitlines()]
    answers = {draw.answer for draw in run.draws()}
    assert answers == {line["answer"] for line in lines}
    assert {True, False, None} >= {line["scores"].get("contains") for line in lines}


def test_the_command_prints_or_writes(run: RunFolder, tmp_path: Path) -> None:
    """To standard output as it is, or to a file that is not there yet."""
    printed = CliRunner().invoke(main, ["export", str(run.path), "--format", "jsonl"])
    assert export(run, "jsonl") == printed.stdout_bytes
    target = tmp_path / "table.csv"
    for code in (0, 2):
        done = CliRunner().invoke(main, ["export", str(run.path), "--output", str(target)])
        assert code == done.exit_code, done.output
    assert export(run, "csv") == target.read_bytes()


def test_a_run_that_lost_a_case_says_so(run: RunFolder) -> None:
    """Exit 2 with the journal and the case, in place of a traceback."""
    lines = run.file("cases").read_bytes().splitlines(keepends=True)
    run.file("cases").write_bytes(b"".join(lines[1:]))
    done = CliRunner().invoke(main, ["export", str(run.path)])
    assert (2, True) == (done.exit_code, "cases.jsonl: holds no case" in done.output)
