"""Answers to be labelled as one HTML file, for people who do not use terminals: keys, offline, blind.

Owns what the page holds: nothing of the judge nor of another rater. What it saves is a label file; reading
that back is the business of ``labelling``. All text is escaped by jinja.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalrun.agreement import Dimension
from evalrun.digest import tagged
from evalrun.labelling import Question
from evalrun.labels import LabelHeader
from evalrun.reports import words
from evalrun.reports.labelling import ASKED

STYLES = ("report.css", "sheet.css")
SCRIPT = "sheet.js"


def render(questions: Sequence[Question], dimension: Dimension, header: LabelHeader, rater: str) -> bytes:
    """The page that asks for the labels of these answers, in their order."""
    head = header.model_dump(mode="json", exclude_none=True)
    keys = [question.key for question in questions]
    data = {
        "id": tagged("sheet", [head, keys])[7:23],
        "header": head,
        "rater": rater,
        "answers": keys,
        "file": f"{dimension}-labels.jsonl",
    }
    page = _environment().get_template("sheet.html.j2").render(
        questions=questions,
        dimension=dimension,
        asked=ASKED[dimension],
        rater=rater,
        data=data,
        styles=[_own(name) for name in STYLES],
        script=_own(SCRIPT),
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
    return environment


@cache
def _own(name: str) -> Markup:
    """A file of this package: the only text that goes into the page as it is."""
    return Markup(files("evalrun.reports").joinpath("templates", name).read_text("utf-8"))


def _policy() -> str:
    def digest(name: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(_own(name).encode()).digest()).decode()}'"

    styles = " ".join(map(digest, STYLES))
    return (
        f"default-src 'none'; style-src {styles}; script-src {digest(SCRIPT)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
