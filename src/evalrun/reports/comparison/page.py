"""A comparison as one HTML file: it opens from anywhere, asks for nothing and runs no script.

Owns what stands on the page; its look is that of the run's report, with a few rules of its own. All text is
escaped by jinja.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalrun.comparison import Change, Comparison
from evalrun.reports import words
from evalrun.reports.comparison import words as told

STYLES = ("report.css", "comparison.css")


def render(comparison: Comparison) -> bytes:
    """The page of a comparison."""
    worse, better = told.flips(comparison)
    page = _environment().get_template("comparison.html.j2").render(
        comparison=comparison,
        sentence=told.sentence(comparison),
        tone=told.tone(comparison),
        level=words.percent(comparison.changes[0].confidence),
        sections=told.sections(comparison),
        reach=_reach(comparison.changes),
        headline=told.headline(comparison),
        flips=[("Got worse", worse), ("Got better", better)],
        notes=[*told.missing(comparison), *comparison.notes],
        styles=[_style(name) for name in STYLES],
        policy=_policy(),
    )  # fmt: skip
    return page.encode("utf-8", "replace")


def _reach(changes: tuple[Change, ...]) -> float:
    """The end of the axis of changes: no limit lies outside, and a small change does not look large."""
    limits = [abs(limit) for change in changes for limit in (change.low, change.high) if limit is not None]
    return max([0.25, *limits])


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
    environment.filters |= {"rate": words.rate, "line": words.one_line, "signed": told.signed}
    environment.globals |= {"words": words, "told": told}
    return environment


@cache
def _style(name: str) -> Markup:
    """A style sheet of this package: the only text that goes into the page as it is."""
    return Markup(files("evalrun.reports").joinpath("templates", name).read_text("utf-8"))


def _policy() -> str:
    digests = (base64.b64encode(hashlib.sha256(_style(name).encode()).digest()).decode() for name in STYLES)
    styles = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"
