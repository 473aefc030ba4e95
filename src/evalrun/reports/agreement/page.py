"""All disagreements of judge and labels as one HTML file: it asks for nothing and runs no script.

Owns what stands on the page; its look is that of the run's report. All text is escaped by jinja.
"""

from __future__ import annotations

from pathlib import Path

from evalrun.agreement import Agreement
from evalrun.errors import ReportError
from evalrun.jsonl import write_atomically
from evalrun.reports import frame
from evalrun.reports.agreement import console as told
from evalrun.reports.certificates import WORDS

STYLES = ("report.css", "comparison.css")


def path_of(found: Agreement) -> Path:
    """Where the page stands: in the folder of the run, beside its report."""
    return Path(found.run) / f"agree-{found.dimension}.html"


def write(found: Agreement) -> ReportError | None:
    """Write the page; what went wrong, if it could not be written."""
    path = path_of(found)
    try:
        write_atomically(path, render(found))
    except OSError as error:
        return ReportError(f"{path}: cannot be written: {error.strerror}", "make the folder writable")
    return None


def render(found: Agreement) -> bytes:
    """The page: the table, the figures, and every answer that judge and labels read differently."""
    page = frame.environment().get_template("agreement.html.j2").render(
        found=found,
        told=told,
        names=WORDS[found.dimension],
        figures=told.named_figures(found),
        groups=[("Read differently", found.disagreements), ("Without a verdict", found.judge_missing)],
        styles=[frame.own(name) for name in STYLES],
        policy=frame.policy(STYLES),
    )  # fmt: skip
    return page.encode("utf-8", "replace")
