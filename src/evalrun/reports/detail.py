"""One question as data for the drawer of the page: question, answers, claims, context, proof.

Owns what the page's script gets to see and how long a text may be there; a longer one is cut with a pointer
to the journal that holds it whole. Every text has its control characters written out already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalrun.digest import short
from evalrun.language.quotes import holds_quote
from evalrun.records import Case, Chunk, Context, Draw, Judgement, Metric, Quote
from evalrun.reports.rows import Detail, Result, Row, goodness
from evalrun.reports.words import figure, visible

TEXT_MOST = 4_000
CLAIMS_MOST = 40


def case_data(row: Row, detail: Detail, metrics: Iterable[Metric]) -> tuple[dict[str, Any], int]:
    """The data of a question and roughly how many characters they take."""
    case = detail.case
    data = {
        "id": visible(case.id),
        "question": cut(case.question, "cases.jsonl"),
        "category": visible(case.category),
        "groups": [visible(group) for group in case.groups],
        "expect": case.expect,
        "reference": cut(case.reference, "cases.jsonl") if case.reference else None,
        "history": [[turn.role, cut(turn.content, "cases.jsonl")] for turn in case.history],
        "states": row.states,
        "flips": row.flips,
        "metrics": {
            metric.id: _measured(metric, row.results[metric.id])
            for metric in metrics
            if metric.id in row.results and (row.results[metric.id].scored or row.results[metric.id].failed)
        },
        "draws": [_draw(draw, row, detail) for draw in detail.draws],
        **_attack(case, detail),
        "contexts": _contexts(case, detail),
    }
    return data, _length(data)


def _attack(case: Case, detail: Detail) -> dict[str, Any]:
    """What a page shows of an attack: what it is, what it plants, and each conversation up to the answer."""
    attack = case.attack
    if attack is None:
        return {}
    shown = [attack.technique, attack.goal, attack.severity, *attack.owasp, *attack.converters]
    return {
        "attack": {
            "twin_of": visible(attack.benign_of) if attack.benign_of else None,
            "facts": [visible(text) for text in shown],
            "planted": [[visible(one.id), cut(one.text, "cases.jsonl")] for one in attack.planted],
            "suffix": cut(attack.system_suffix, "cases.jsonl") if attack.system_suffix else None,
            "talks": [
                [[cut(turn.question, "draws.jsonl"), cut(turn.answer, "draws.jsonl")] for turn in draw.before]
                for draw in detail.draws
            ],
            "found": [cut(detail.found(draw.index), "scores.jsonl") for draw in detail.draws],
        }
    }


def _length(value: Any) -> int:
    if type(value) is str:
        return len(value) + 4
    if type(value) is dict:
        return sum([len(key) + 4 + _length(item) for key, item in value.items()])
    return sum([_length(item) for item in value]) if type(value) is list else 6


def cut(text: str, journal: str) -> str:
    """``visible`` text, cut where it is very long with a pointer to the file that holds it whole."""
    shown = visible(text)
    if len(shown) <= TEXT_MOST:
        return shown
    return (
        f"{shown[:TEXT_MOST]}\n… cut here, {len(shown):,} characters in all; the whole text is in {journal}"
    )


def _measured(metric: Metric, result: Result) -> list[Any]:
    """How good (1 the best, None where nothing is), how it reads, the plain value (None: all are lost)."""
    if not result.scored:
        text = "–"
    elif metric.kind == "rate":
        text = f"{result.passed}/{result.scored}"
    else:
        text = figure(metric.kind, result.value, metric.unit)
    return [goodness(metric, result), text, result.value]


def _draw(draw: Draw, row: Row, detail: Detail) -> dict[str, Any]:
    judgement = detail.judgements.get(draw.index)
    tokens = (draw.usage.prompt_tokens, draw.usage.completion_tokens)
    return {
        "index": draw.index,
        "state": row.states[draw.index] if draw.index < len(row.states) else "none",
        "answer": cut(draw.answer, "draws.jsonl") if draw.answer is not None else None,
        "error": visible(draw.error) if draw.error else None,
        "level": draw.level,
        "exchange": short(draw.exchange) if draw.exchange else None,
        "seed": draw.seed,
        "model": visible(draw.model) if draw.model else None,
        "finish": visible(draw.finish_reason) if draw.finish_reason else None,
        "tokens": list(tokens) if None not in tokens else None,
        "seconds": draw.seconds,
        "amiss": [cut(why, "scores.jsonl") for why in detail.amiss(draw.index)],
        "judged": _judged(judgement) if judgement else None,
    }


def _judged(judgement: Judgement) -> dict[str, Any]:
    return {
        "error": visible(judgement.error) if judgement.error else None,
        "correct": judgement.correct,
        "rationale": cut(judgement.rationale, "judgements.jsonl") if judgement.rationale else None,
        "corrections": [visible(text) for text in judgement.corrections],
        "claims": [
            [
                cut(c.claim, "judgements.jsonl"),
                visible(c.quote) if c.quote else None,
                c.supported,
                c.decided_by,
            ]
            for c in judgement.claims[:CLAIMS_MOST]
        ],
        "more_claims": max(0, len(judgement.claims) - CLAIMS_MOST),
    }


def _contexts(case: Case, detail: Detail) -> list[dict[str, Any]]:
    """Each context that a draw was answered from, with the draws it served, in their order."""
    served: dict[str, list[int]] = {}
    for draw in detail.draws:
        if draw.context in detail.contexts:
            served.setdefault(draw.context, []).append(draw.index)
    return [_context(case, detail.contexts[digest], draws) for digest, draws in served.items()]


def _context(case: Case, context: Context, draws: list[int]) -> dict[str, Any]:
    return {
        "draws": draws,
        "digest": short(context.digest),
        # Numbers that stand in for ids mean nothing to the dataset: what it names by ids is not known then.
        "known": case.relevant_ids is not None and not (context.numbered and _by_ids(case)),
        "chunks": [
            [
                visible(chunk.id),
                cut(chunk.text, "contexts.jsonl"),
                chunk.similarity,
                relevant(case, chunk) and not (context.numbered and _by_ids(case)),
            ]
            for chunk in context.chunks
        ],
    }


def _by_ids(case: Case) -> bool:
    """Whether what is relevant is named by ids alone."""
    return not any(isinstance(item, Quote) for item in case.relevant_ids or ())


def relevant(case: Case, chunk: Chunk) -> bool:
    """Whether the dataset names this chunk, by id or by a passage it holds."""
    wanted = case.relevant_ids
    if not wanted:
        return False
    if isinstance(wanted, dict):
        return wanted.get(chunk.id, 0) > 0
    return any(
        holds_quote(chunk.text, item.quote) if isinstance(item, Quote) else item == chunk.id
        for item in wanted
    )
