"""What code can see in an answer's text: expected words, patterns, plain refusals, new numbers and names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from evalrun.bounded import SECONDS, within
from evalrun.errors import UserError
from evalrun.language.novel import novel_terms
from evalrun.language.refusal import refusal_rule
from evalrun.language.text import folded
from evalrun.records import Case, Metric, Sample
from evalrun.scorers import SCORERS, Because, Scorer, Unscored


def no_depth(name: str, k: int | None) -> None:
    """Refuse an @k where it means nothing.

    Raises:
        UserError: there is one.
    """
    if k is not None:
        raise UserError(f"scorer '{name}' takes no @{k}", f"write {name}")


@SCORERS("contains")
def contains(k: int | None) -> Scorer:
    """Whether the answer holds every text of the case's ``must_contain``, whatever the case of letters."""
    no_depth("contains", k)
    metric = Metric(id="contains", event="contains what it must", kind="rate", better="higher")

    def measure(sample: Sample) -> dict[str, Because]:
        answer = folded(sample.draw.answer or "")
        lacking = [text for text in sample.case.must_contain if folded(text) not in answer]
        return {metric.id: Because(not lacking, _told("lacks", lacking))}

    return Scorer("contains", (metric,), measure, lambda case: bool(case.must_contain))


def _told(what: str, texts: Sequence[str]) -> str:
    """``lacks: "ten to six"``; empty where there is nothing to tell."""
    return f"{what}: {', '.join(json.dumps(text, ensure_ascii=False) for text in texts)}" if texts else ""


def _pattern(case: Case) -> str | None:
    pattern = case.metadata.get("regex")
    return pattern if isinstance(pattern, str) else None


@SCORERS("regex")
def regex(k: int | None) -> Scorer:
    """Whether the case's ``metadata.regex`` is found in the answer."""
    no_depth("regex", k)
    metric = Metric(id="regex", event="matches its pattern", kind="rate", better="higher")

    def measure(sample: Sample) -> dict[str, Because]:
        slow = Unscored(
            f"scorer: its pattern takes longer than {SECONDS:g} s on this answer: make it simpler"
        )
        pattern = _pattern(sample.case) or ""
        with within(slow):
            found = re.search(pattern, sample.draw.answer or "")
        return {metric.id: Because(found is not None, "" if found else f"no match of: {pattern}")}

    return Scorer("regex", (metric,), measure, lambda case: _pattern(case) is not None)


@SCORERS("refusal_rule")
def only_declines(k: int | None) -> Scorer:
    """Whether the phrase grammar reads the answer as one that only declines; no opinion: not applicable."""
    no_depth("refusal_rule", k)
    metric = Metric(id="refusal_rule", event="only declines, by rule", kind="rate", better="higher")
    return Scorer(
        "refusal_rule", (metric,), lambda sample: {metric.id: refusal_rule(sample.draw.answer or "")}
    )


@SCORERS("novel_terms")
def no_novel_terms(k: int | None) -> Scorer:
    """Whether every number and name of the answer stands in the context or in the question."""
    no_depth("novel_terms", k)
    metric = Metric(id="novel_terms", event="no new numbers or names", kind="rate", better="higher")

    def measure(sample: Sample) -> dict[str, Because]:
        assert sample.context is not None
        known = "\n".join(
            [
                sample.case.question,
                *(turn.content for turn in sample.case.history),
                *(chunk.text for chunk in sample.context.chunks),
            ]
        )
        new = novel_terms(sample.draw.answer or "", known)
        return {metric.id: Because(not new, _told("new", new))}

    return Scorer("novel_terms", (metric,), measure, needs=frozenset({"context"}))
