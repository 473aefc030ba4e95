"""What the judge's reading makes of a draw: its one outcome, whether it is faithful, whether it is correct.

Owns the metrics and their words. Which outcome follows from a reading is decided in ``outcomes``.
"""

from __future__ import annotations

from evalrun.outcomes import GOOD, UNANSWERABLE, Outcome, outcome_of
from evalrun.records import Metric, Sample
from evalrun.scorers import SCORERS, Scorer
from evalrun.scorers.text import no_depth

EVENTS: dict[Outcome, str] = {
    "grounded": "grounded answer",
    "unsupported": "unsupported claim",
    "over_refused": "refused, should have answered",
    "correctly_refused": "refused",
    "answered": "answered, should have refused",
}


def _share(name: Outcome) -> Metric:
    return Metric(
        id=name,
        event=EVENTS[name],
        kind="rate",
        better="higher" if name in GOOD else "lower",
        population="unanswerable" if name in UNANSWERABLE else "answerable",
        judged=True,
    )


@SCORERS("outcome")
def outcome(k: int | None) -> Scorer:
    """The share of each outcome in its population, and ``right`` over all questions."""
    no_depth("outcome", k)
    shares = {name: _share(name) for name in EVENTS}
    right = Metric(id="right", event="right", kind="rate", better="higher", judged=True)

    def measure(sample: Sample) -> dict[str, bool]:
        assert sample.judgement is not None
        read = sample.judgement
        found = outcome_of(sample.case.expect, bool(read.refusal), bool(read.faithful))
        values: dict[str, bool] = {name: name == found for name in shares}
        wrong = sample.case.reference is not None and sample.judgement.correct is False
        values["right"] = found in GOOD and not (found == "grounded" and wrong)
        return values

    return Scorer("outcome", (right, *shares.values()), measure, needs=frozenset({"context"}))


@SCORERS("faithful")
def faithful(k: int | None) -> Scorer:
    """No unsupported claim; a refusal makes no claims and is faithful. All questions."""
    no_depth("faithful", k)
    metric = Metric(id="faithful", event="faithful", kind="rate", better="higher", judged=True)

    def measure(sample: Sample) -> dict[str, bool | None]:
        assert sample.judgement is not None
        return {metric.id: sample.judgement.faithful}

    return Scorer("faithful", (metric,), measure, needs=frozenset({"context"}))


@SCORERS("correct")
def correct(k: int | None) -> Scorer:
    """Agrees with the reference; answerable questions that have one."""
    no_depth("correct", k)
    metric = Metric(
        id="correct", event="correct", kind="rate", better="higher", population="answerable", judged=True
    )

    def measure(sample: Sample) -> dict[str, bool | None]:
        assert sample.judgement is not None
        return {metric.id: sample.judgement.correct}

    return Scorer(
        "correct", (metric,), measure, lambda case: case.reference is not None, frozenset({"context"})
    )
