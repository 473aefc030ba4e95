"""What every command has in common: how it ends where its output cannot be written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalrun.cli import _refused
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from fakes.project import Project

PROGRAM = [sys.executable, "-c", "from evalrun.cli import main; main()"]


def test_who_stops_reading_is_told_no_gate_failed() -> None:
    """``evalrun list | head -1`` ends with 2 and without a word; 1 would say that a gate fails."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*PROGRAM, "ci", "1/2"], stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (ExitCode.USAGE, b"") == (done.returncode, done.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that takes nothing is Linux's")
def test_a_full_disk_is_no_fault_of_ours() -> None:
    """What the machine refuses is said without a traceback."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, "ci", "1/2"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ExitCode.USAGE == done.returncode
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that takes nothing is Linux's")
def test_where_nothing_can_be_said_no_gate_has_failed() -> None:
    """Also where the error itself cannot be written: a log on the full disk."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, "ci", "1/2"], stdout=full, stderr=full, check=False)
    assert ExitCode.USAGE == done.returncode


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_output_is_no_fault(project: Project, closed: str) -> None:
    """As of a job whose starter closed the streams: the run is made, and no journal takes their place."""
    command = [*PROGRAM, "run", str(project.write()), "--live", "--output", str(project.folder / "run")]
    done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], capture_output=True, check=False)
    assert ExitCode.OK == done.returncode, done.stderr
    assert 32 == len(list(RunFolder(project.folder / "run").draws()))


def test_only_what_the_machine_refused_is_taken_for_that() -> None:
    """Also of tasks that ran at once; one fault of ours among them is a fault of ours."""
    full, gone = OSError(errno.ENOSPC, "no room"), FileNotFoundError(errno.ENOENT, "gone")
    assert full is _refused(full)
    assert full is _refused(ExceptionGroup("tasks", [full, ExceptionGroup("more", [full])]))
    assert None is _refused(gone)
    assert None is _refused(ExceptionGroup("tasks", [full, KeyError("x")]))
