"""What can be measured of a draw. To add a scorer: a file here with a factory under ``@SCORERS("name")``.

Owns how a measurement becomes a score: who is counted, and that what is missing becomes a reason, never a
number. What the numbers of a population add up to belongs to :mod:`evalrun.summary`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from evalrun.errors import UserError
from evalrun.records import Case, Metric, Quote, Sample, Score, Status
from evalrun.reducers import reduced, split
from evalrun.registry import Registry, nearest, parse_spec


class Because(NamedTuple):
    """A measurement and what decided it, for people."""

    value: bool
    why: str


Measured = bool | float | Because | None


class Unscored(Exception):
    """Raised by a measurement that cannot tell; the text, ``kind: what``, is why there is no score."""


def always(case: Case) -> bool:
    """Applies to every case."""
    return True


def every_draw(sample: Sample) -> bool:
    """The judge reads every draw."""
    return True


@dataclass(frozen=True)
class Scorer:
    """A measurement with a canonical name.

    ``measure`` gives a value for each metric of the sample's population: a bool is a rate, a number a score,
    None is not applicable. ``applies`` says beforehand which cases can be measured, ``asks`` which draws of a
    judged scorer the judge must read: where code can decide, no model is asked.
    """

    name: str
    metrics: tuple[Metric, ...]
    measure: Callable[[Sample], Mapping[str, Measured]]
    applies: Callable[[Case], bool] = always
    needs: frozenset[str] = frozenset()
    asks: Callable[[Sample], bool] = every_draw

    @property
    def judged(self) -> bool:
        """Whether it reads the judge's verdict."""
        return any(metric.judged for metric in self.metrics)


Factory = Callable[[int | None], Scorer]
SCORERS: Registry[Factory] = Registry("scorer", "evalrun.scorers")


def build(spec: str) -> Scorer:
    """The scorer of a spec like ``recall@5``.

    Raises:
        UserError: no such scorer, an @k that is missing or makes no sense, or a plugin that makes none.
    """
    name, k = parse_spec(spec)
    factory, hint = SCORERS.get(name), "mend what registers it: a function of k that returns a Scorer"
    try:
        made: object = factory(k)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"scorer '{name}' cannot be made: {type(error).__name__}: {error}", hint) from None
    if not isinstance(made, Scorer):
        raise UserError(f"scorer '{name}' cannot be made: that is a {type(made).__name__}", hint)
    return made


def build_all(specs: Iterable[str], draws: int) -> tuple[Scorer, ...]:
    """The scorers of a config; a reduced metric such as ``grounded:pass^3`` joins the scorer it is made from.

    Raises:
        UserError: no such scorer, or nothing that could be so reduced.
    """
    listed = list(specs)
    made = {spec: build(spec) for spec in listed if not split(spec)[1]}
    for spec in listed:
        base, reducer = split(spec)
        if reducer:
            owner, metric = _owner(spec, base, made)
            more = reduced(metric, reducer, draws)
            made[owner] = replace(made[owner], metrics=(*made[owner].metrics, more))
    return tuple(made.values())


def _owner(spec: str, base: str, made: Mapping[str, Scorer]) -> tuple[str, Metric]:
    """The spec of the scorer that measures ``base``, and the metric."""
    found = [(name, metric) for name, scorer in made.items() for metric in scorer.metrics]
    for name, metric in found:
        if metric.id == base:
            return name, metric
    known = [metric.id for _, metric in found]
    hint = nearest(base, known) or (
        f"measured here: {', '.join(known)}" if known else "add the scorer that does"
    )
    raise UserError(f"'{spec}': no scorer of this config measures '{base}'", hint)


def counts(metric: Metric, case: Case) -> bool:
    """Whether ``case`` belongs to the population of ``metric``."""
    return metric.population in ("all", case.population)


def score(scorer: Scorer, sample: Sample, *, per: str) -> list[Score]:
    """The scores of one sample: metrics per ``case``, or per ``draw``.

    To a draw that nobody asked for no metric applies. One without an answer still shows what was retrieved
    for its case, unless its chain is broken: then nobody knows what the model was given.
    """
    wanted = [
        metric
        for metric in scorer.metrics
        if metric.per == per and counts(metric, sample.case) and not split(metric.id)[1]
    ]
    index = None if per == "case" else sample.draw.index
    if not wanted:
        return []
    values: Mapping[str, Measured] = {}
    try:
        if not scorer.applies(sample.case) or (per == "draw" and sample.draw.absent):
            return [_score(sample, index, metric, None) for metric in wanted]
        reason = _unmeasurable(scorer, sample, per)
        if reason is None:
            values = scorer.measure(sample)
            reason = _no_values(scorer, values)
    except Unscored as fault:
        reason = str(fault)
    except (Exception, SystemExit) as error:  # of a plugin: its fault is a missing score, not a lost run
        reason = f"scorer: {type(error).__name__}: {error}"
    if reason is not None:
        return [_missing(sample, index, metric, reason) for metric in wanted]
    return [_score(sample, index, metric, values.get(metric.id)) for metric in wanted]


def _no_values(scorer: Scorer, values: object) -> str | None:
    """Why what was measured is not metric → value; metrics that nobody declared would be lost unseen."""
    if not isinstance(values, Mapping):
        return f"scorer: it gives a {type(values).__name__}, not metric → value"
    known = {metric.id for metric in scorer.metrics}
    strange = [str(name) for name in values if name not in known]
    return f"scorer: it gives '{strange[0]}', which is none of its metrics" if strange else None


def _unmeasurable(scorer: Scorer, sample: Sample, per: str) -> str | None:
    error = sample.draw.error
    if error is not None:
        broken = error.startswith("provenance:")
        if per == "draw" or sample.context is None or broken:
            return error
    if "context" in scorer.needs and sample.context is None:
        return "context: the bot returns none"
    if "ids" in scorer.needs and sample.context is not None and sample.context.numbered:
        relevant = sample.case.relevant_ids or ()
        if not any(isinstance(item, Quote) for item in relevant):
            return "ids: the bot's contexts have none; name what is relevant by quotes"
    if scorer.judged and scorer.asks(sample):
        if sample.judgement is None:
            return "judge: no verdict"
        if sample.judgement.error is not None:
            return _with_kind("judge", sample.judgement.error)
    return None


def _with_kind(kind: str, reason: str) -> str:
    return reason if reason.startswith(("recording:", "provenance:", "budget:")) else f"{kind}: {reason}"


def _score(sample: Sample, index: int | None, metric: Metric, value: Measured) -> Score:
    case, name = sample.case.id, metric.id
    if value is None:
        return Score(case=case, index=index, metric=name, status="not_applicable")
    if isinstance(value, Because):
        status: Status = "pass" if value.value else "fail"
        return Score(case=case, index=index, metric=name, status=status, reason=value.why or None)
    if isinstance(value, bool):
        return Score(case=case, index=index, metric=name, status="pass" if value else "fail")
    if not isinstance(value, int | float) or not math.isfinite(value):
        return _missing(sample, index, metric, f"scorer: {value} is no score")
    if metric.kind != "quantity" and not 0 <= value <= 1:
        return _missing(sample, index, metric, f"scorer: {value} is outside 0 to 1")
    return Score(case=case, index=index, metric=name, status="number", value=float(value))


def _missing(sample: Sample, index: int | None, metric: Metric, reason: str) -> Score:
    return Score(case=sample.case.id, index=index, metric=metric.id, status="error", reason=reason)


def all_metrics(scorers: Iterable[Scorer]) -> tuple[Metric, ...]:
    """Every metric once, in the order of the scorers."""
    return tuple({metric.id: metric for scorer in scorers for metric in scorer.metrics}.values())
