"""A comparison as one HTML file: it opens from anywhere, asks for nothing and runs no script.

Owns what stands on the page; its look is that of the run's report, with a few rules of its own. All text is
escaped by jinja.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment

from evalrun.comparison import Change, Comparison
from evalrun.reports import frame, words
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
        styles=[frame.own(name) for name in STYLES],
        policy=policy(),
    )  # fmt: skip
    return page.encode("utf-8", "replace")


def policy() -> str:
    """What a browser may do with the page: use its own style."""
    return frame.policy(STYLES)


def _reach(changes: tuple[Change, ...]) -> float:
    """The end of the axis of changes: no limit lies outside, and a small change does not look large."""
    limits = [abs(limit) for change in changes for limit in (change.low, change.high) if limit is not None]
    return max([0.25, *limits])


@cache
def _environment() -> Environment:
    return frame.environment({"rate": words.rate, "signed": told.signed}, {"told": told})
