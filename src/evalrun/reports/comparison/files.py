"""A comparison as files. Owns that each is written in one step, and that one which cannot be does not stop
the other."""

from __future__ import annotations

from pathlib import Path

from evalrun.comparison import Comparison
from evalrun.errors import ReportError
from evalrun.jsonl import write_atomically


def write(
    comparison: Comparison, markdown: Path | None = None, html: Path | None = None
) -> list[ReportError]:
    """Write the files that are asked for; what could not be written comes back as errors."""
    from evalrun.reports.comparison import markdown as text
    from evalrun.reports.comparison import page

    errors = []
    for path, render in ((markdown, text.render), (html, page.render)):
        if path is None:
            continue
        try:
            write_atomically(path, render(comparison))
        except OSError as error:
            errors.append(ReportError(f"{path}: cannot be written: {error}", "name another file"))
    return errors
