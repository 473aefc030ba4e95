"""Where run folders are made, and what they are called."""

from __future__ import annotations

import contextlib
import shlex
from datetime import date
from pathlib import Path

from evalrun.errors import UserError
from evalrun.journal import HEADER, RunFolder

RUNS = Path("runs")


def new_run_folder(output: Path | None, name: str) -> RunFolder:
    """A folder for a new run: ``output``, or ``runs/MMDD-NAME`` with a number behind it when taken.

    Raises:
        UserError: ``output`` holds something already, or cannot be made.
    """
    try:
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            return _reserved(output)
        return RunFolder(_free(f"{date.today():%m%d}-{name}"))
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise UserError(f"cannot make a run folder: {where}", "name another with --output") from None


def unfinished_run_folder(path: Path) -> RunFolder:
    """The folder of a run that can be gone on with, held by this process.

    Raises:
        UserError: there is nothing to go on with, or another process does.
    """
    folder = RunFolder(path)
    if not folder.unfinished:
        done = (path / HEADER).is_file()
        raise UserError(
            f"{path}: nothing to resume, " + ("this run is complete" if done else "nothing was asked yet"),
            f"show it: {shown_by(path)}" if done else "run again without --resume",
        )
    folder.hold()
    return folder


def _reserved(output: Path) -> RunFolder:
    """Take the folder for this run: of two that start at once, one is refused.

    An empty journal of cases is what a run leaves that was killed before it asked anything.
    """
    folder = RunFolder(output)
    mark = folder.file("cases")
    if not (set(output.iterdir()) <= {mark} and not mark.is_symlink() and folder.take(mark)):
        raise UserError(f"--output {output}: not empty", "name a folder that does not exist yet")
    return folder


def shown_by(path: Path) -> str:
    """The command that shows a finished run."""
    return f"evalrun report {shlex.quote(str(path))}"


def give_back(folder: RunFolder) -> None:
    """Remove the folder of a run of which nothing came about."""
    with contextlib.suppress(OSError):
        if not folder.file("cases").stat().st_size:
            folder.file("cases").unlink()
    with contextlib.suppress(OSError):
        folder.path.rmdir()


def _free(name: str) -> Path:
    RUNS.mkdir(exist_ok=True)
    number = 1
    while True:
        path = RUNS / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
            continue
        return path
