"""Retrieval measured on the context that the model was given: recall, nDCG, reciprocal rank, completeness."""

from __future__ import annotations

from collections.abc import Callable

from evalrun import ranking
from evalrun.errors import UserError
from evalrun.language.quotes import holds_quote
from evalrun.records import Case, Context, Metric, Quote, Sample
from evalrun.scorers import SCORERS, Scorer


def _has_relevant(case: Case) -> bool:
    return bool(case.relevant_ids)


def grades_of(case: Case, context: Context) -> dict[str, float]:
    """Id → grade of what is relevant to a case.

    A quote stands for the first retrieved chunk that holds it, or, where none does, for itself: so it
    survives another chunking.
    """
    relevant = case.relevant_ids or ()
    if isinstance(relevant, dict):
        return relevant
    grades: dict[str, float] = {}
    for number, item in enumerate(relevant):
        name = _holder(number, item, context) if isinstance(item, Quote) else str(item)
        grades[name] = 1.0
    return grades


def _holder(number: int, item: Quote, context: Context) -> str:
    found = (chunk.id for chunk in context.chunks if holds_quote(chunk.text, item.quote))
    return next(found, f"quote {number}")


def _relevant(case: Case, context: Context) -> set[str]:
    return {name for name, grade in grades_of(case, context).items() if grade > 0}


def _metric(name: str, event: str, kind: str = "score") -> Metric:
    return Metric.model_validate(
        {"id": name, "event": event, "kind": kind, "better": "higher", "per": "case", "deterministic": True}
    )


def _needs_k(name: str, k: int | None) -> int:
    if k is None:
        raise UserError(f"scorer '{name}' needs a depth", f"write {name}@5")
    return k


def _scorer(metric: Metric, value: Callable[[Case, Context], float | None]) -> Scorer:
    def measure(sample: Sample) -> dict[str, float | None]:
        assert sample.context is not None
        return {metric.id: value(sample.case, sample.context)}

    return Scorer(metric.id, (metric,), measure, _has_relevant, frozenset({"context", "ids"}))


@SCORERS("recall")
def recall(k: int | None) -> Scorer:
    """Share of the relevant chunks among the first k."""
    depth = _needs_k("recall", k)
    metric = _metric(f"recall@{depth}", f"relevant sections among the first {depth}")
    return _scorer(metric, lambda case, found: ranking.recall_at_k(found.ids, _relevant(case, found), depth))


@SCORERS("ndcg")
def ndcg(k: int | None) -> Scorer:
    """nDCG of the first k, linear gain."""
    depth = _needs_k("ndcg", k)
    metric = _metric(f"ndcg@{depth}", f"nDCG of the first {depth} (linear gain)")
    return _scorer(metric, lambda case, found: ranking.ndcg_at_k(found.ids, grades_of(case, found), depth))


@SCORERS("mrr")
def mrr(k: int | None) -> Scorer:
    """Reciprocal rank of the first relevant chunk."""
    if k is not None:
        raise UserError("scorer 'mrr' takes no depth", "write mrr")
    metric = _metric("mrr", "reciprocal rank of the first relevant section")
    return _scorer(metric, lambda case, found: ranking.reciprocal_rank(found.ids, _relevant(case, found)))


@SCORERS("all_relevant")
def all_relevant(k: int | None) -> Scorer:
    """Whether every relevant chunk is among the first k."""
    depth = _needs_k("all_relevant", k)
    metric = _metric(f"all_relevant@{depth}", f"all relevant sections among the first {depth}", "rate")

    def complete(case: Case, found: Context) -> bool | None:
        share = ranking.all_relevant_at_k(found.ids, _relevant(case, found), depth)
        return None if share is None else share == 1

    return _scorer(metric, complete)
