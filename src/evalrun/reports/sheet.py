"""Answers to be labelled as one HTML file, for people who do not use terminals: keys, offline, blind.

Owns what the page holds: nothing of the judge nor of another rater. What it saves is a label file; reading
that back is the business of ``labelling``. All text is escaped by jinja.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalrun.digest import tagged
from evalrun.labelling import Question
from evalrun.records import Dimension, LabelHeader
from evalrun.reports import frame, words
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
    page = frame.environment().get_template("sheet.html.j2").render(
        questions=questions,
        counted=words.count(len(questions), "answer"),
        dimension=dimension,
        asked=ASKED[dimension],
        rater=rater,
        data=data,
        styles=[frame.own(name) for name in STYLES],
        script=frame.own(SCRIPT),
        policy=frame.policy(STYLES, [SCRIPT]),
    )  # fmt: skip
    return page.encode("utf-8", "replace")
