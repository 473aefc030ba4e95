"""Writing all reports of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_run import make_run

from evalrun.reports import report, write_reports


def test_all_reports_are_written_and_are_the_same_twice(tmp_path: Path) -> None:
    """Two runs of the same replay give the same files, and nothing else lies about."""
    first, second = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    assert [] == write_reports(first)
    assert [] == write_reports(second)
    for name in report.names():
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()
    assert [] == list(first.path.glob("*.tmp"))


def test_one_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    """The error names the file; the other reports are there."""
    folder = make_run(tmp_path / "a")
    (folder.path / "junit.xml").mkdir()
    errors = write_reports(folder)
    assert 1 == len(errors)
    assert "junit.xml: cannot be written" in str(errors[0])
    assert (folder.path / "summary.md").is_file()


def test_a_fault_in_one_is_raised_after_the_others(tmp_path: Path) -> None:
    """A defect of a report is not hidden, and costs no other report."""
    folder = make_run(tmp_path / "a")

    def broken(_: object) -> bytes:
        raise ZeroDivisionError

    report("aaa.txt")(broken)
    try:
        with pytest.raises(ZeroDivisionError):
            write_reports(folder)
    finally:
        report._factories.pop("aaa.txt")
    assert (folder.path / "summary.md").is_file()
