"""Run folder → files for people and for CI: the registry of reports, and the writing of all of them.

Owns that every report is tried, written in one step and that one which cannot be written does not stop the
others. A report only shows what the run folder holds; numbers and verdicts are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from evalrun.errors import ReportError, UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import write_atomically
from evalrun.registry import Registry

Render: TypeAlias = Callable[[RunFolder], bytes]

report: Registry[Render] = Registry("report", "evalrun.reports")


def write_reports(folder: RunFolder) -> list[ReportError]:
    """Write every registered report into the folder; what could not be written comes back as errors.

    A fault in one report is raised only after the others are written.
    """
    errors: list[ReportError] = []
    faults: list[Exception] = []
    for name, render in report:
        try:
            write_atomically(folder.path / name, render(folder))
        except (OSError, UserError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            hint = "the run itself is kept: evalrun report writes this anew"
            errors.append(ReportError(f"{folder.path / name}: cannot be written: {reason}", hint))
        except Exception as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
    return errors
