"""What somebody's reading of an answer makes of it: its one outcome, and which metrics follow from that.

Owns the outcomes and the rule that decides among them, for the judge's readings and for labels alike. Each
draw falls into exactly one, so that the shares of a population add up to one and refusing more cannot flatter
a bot: a refusal that also makes an unsupported claim counts as an answer.
"""

from __future__ import annotations

from typing import Literal, get_args

from evalrun.records import Dimension, Expect

Outcome = Literal["grounded", "unsupported", "over_refused", "correctly_refused", "answered"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
GOOD: tuple[Outcome, ...] = ("grounded", "correctly_refused")
UNANSWERABLE: tuple[Outcome, ...] = ("correctly_refused", "answered")


def outcome_of(expect: Expect, refusal: bool, faithful: bool) -> Outcome:
    """The one outcome of a draw, by somebody's reading of it."""
    refused = refusal and faithful
    if expect == "refuse":
        return "correctly_refused" if refused else "answered"
    if refused:
        return "over_refused"
    return "grounded" if faithful else "unsupported"


def event_of(metric: str, expect: Expect, refusal: bool, faithful: bool) -> bool:
    """Whether the event of ``faithful``, ``right`` or an outcome happened, by one reading of a draw."""
    if metric == "faithful":
        return faithful
    outcome = outcome_of(expect, refusal, faithful)
    return outcome in GOOD if metric == "right" else outcome == metric


def read_for(metric: str) -> frozenset[Dimension]:
    """The dimensions in which a draw must be read to decide ``faithful``, ``right`` or an outcome."""
    return frozenset({"faithful"} if metric == "faithful" else {"faithful", "refusal"})
