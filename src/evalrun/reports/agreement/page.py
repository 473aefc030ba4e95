"""All disagreements of judge and labels as one HTML file: it asks for nothing and runs no script.

Owns what stands on the page; its look is that of the run's report. All text is escaped by jinja.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalrun.agreement import Agreement
from evalrun.errors import ReportError
from evalrun.jsonl import write_atomically
from evalrun.reports import words
from evalrun.reports.agreement import console as told

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
    page = _environment().get_template("agreement.html.j2").render(
        found=found,
        told=told,
        names=told.WORDS[found.dimension],
        figures=told.named_figures(found),
        groups=[("Read differently", found.disagreements), ("Without a verdict", found.judge_missing)],
        styles=[_style(name) for name in STYLES],
        policy=_policy(),
    )  # fmt: skip
    return page.encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evalrun.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: words.visible(value) if type(value) is str else value,
    )
    environment.filters |= {"line": words.one_line}
    environment.globals |= {"words": words}
    return environment


@cache
def _style(name: str) -> Markup:
    """A style sheet of this package: the only text that goes into the page as it is."""
    return Markup(files("evalrun.reports").joinpath("templates", name).read_text("utf-8"))


def _policy() -> str:
    digests = (base64.b64encode(hashlib.sha256(_style(name).encode()).digest()).decode() for name in STYLES)
    styles = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"
