"""The journals of a run joined per question, for reports: what each answer came to, and the worst first.

Owns the joining, the order and the one-line reason beside a question. It counts passes to show ``0/3`` beside
a question; shares, intervals and verdicts are the run's own. Texts are read only for the
questions that are shown, so that a long run costs little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from evalrun.journal import RunFolder
from evalrun.outcomes import GOOD, OUTCOMES
from evalrun.records import Case, Claim, Context, Draw, Judgement, Metric, Score
from evalrun.reports.words import one_line

ERROR = "error"
MET = "met"
UNMET = "unmet"
NONE = "none"
"""What an answer came to where no outcome says it: by the metric the order goes by, or nothing at all."""


@dataclass(slots=True)
class Result:
    """One metric of one question: how many draws passed of those scored, or its value; what went wrong."""

    passed: int = 0
    scored: int = 0
    failed: int = 0
    not_applicable: int = 0
    total: float = 0.0
    reason: str = ""

    @property
    def value(self) -> float | None:
        """Passes, or the sum of values, over the draws scored."""
        return (self.passed + self.total) / self.scored if self.scored else None


@dataclass(slots=True)
class Row:
    """One question and what its answers came to."""

    id: str
    question: str
    category: str
    population: str
    states: list[str]
    groups: tuple[str, ...] = ()
    results: dict[str, Result] = field(default_factory=dict)
    invented: int = 0
    """Answers with a name or number that nobody gave the bot: the surest sign there is."""

    @property
    def flips(self) -> bool:
        """Whether the answers to this question came to different things."""
        return len({state for state in self.states if state not in (ERROR, NONE)}) > 1


@dataclass(slots=True)
class Detail:
    """All there is about one question."""

    case: Case
    contexts: dict[str, Context] = field(default_factory=dict)
    draws: list[Draw] = field(default_factory=list)
    judgements: dict[int, Judgement] = field(default_factory=dict)
    found: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Rows:
    """Every question of a run in dataset order, and the metric by which they are good or bad."""

    rows: list[Row]
    lead: Metric | None
    twins: Metric | None = None

    def worst(self) -> list[Row]:
        """Worst first: by the lead metric, then what is plainly invented, then what failed to be scored.

        Among equals attacks come before harmless questions, and the categories take turns, so that a short
        list shows every kind of trouble.
        """
        turn: Counter[tuple[tuple[float, bool, int, int], str]] = Counter()
        ranked = []
        for place, row in enumerate(self.rows):
            badness = self._badness(row)
            ranked.append((badness, turn[badness, row.category], place, row))
            turn[badness, row.category] += 1
        return [row for *_, row in sorted(ranked, key=lambda item: item[:3])]

    def lead_of(self, row: Row) -> Metric | None:
        """The metric by which a question is good or bad; the harmless twin of an attack has its own."""
        return self.twins if row.population == "twins" and self.twins else self.lead

    def _badness(self, row: Row) -> tuple[float, bool, int, int]:
        lead = self.lead_of(row)
        result = row.results.get(lead.id) if lead else None
        lost = max((found.failed for found in row.results.values()), default=0)
        value = goodness(lead, result)
        if value is None:
            value = 0.999 if lost or ERROR in row.states else 1.0
        elif lost:
            value = min(value, 0.999)
        return (value, row.population == "twins", -row.invented, -lost)

    def unmet(self) -> list[Row]:
        """The questions on which something is wrong or missing, worst first."""
        return [row for row in self.worst() if self._badness(row)[0] < 1.0]


def goodness(metric: Metric | None, result: Result | None) -> float | None:
    """How good a question is by a metric, 1 the best; None where it was not scored or has no best."""
    if metric is None or result is None or metric.kind == "quantity" or result.value is None:
        return None
    return result.value if metric.better == "higher" else 1.0 - result.value


def lead_metric(metrics: Iterable[Metric]) -> Metric | None:
    """``right`` where it was measured, else the first metric that can be good or bad.

    That an answer only declines is neither: it depends on the question.
    """
    found = [metric for metric in metrics if metric.kind != "quantity" and metric.id != "refusal_rule"]
    named = [metric for metric in found if metric.id == "right"]
    rates = [metric for metric in found if metric.kind == "rate" and metric.better == "higher"]
    return next(iter(named or rates or found), None)


def read_rows(folder: RunFolder) -> Rows:
    """Join cases, draws and scores of a sealed run; no answer text is kept.

    The last run is remembered by the digests of its journals: every report asks for the same rows.
    """
    return _join(folder.path, tuple(sorted(folder.header.journals.items())))


@lru_cache(maxsize=1)
def _join(path: Path, journals: tuple[tuple[str, str], ...]) -> Rows:
    folder = RunFolder(path)
    header = folder.header
    lead = lead_metric(header.metrics)
    twins = next((metric for metric in header.metrics if metric.id == "over_refusal"), None)
    alike = _Alike()
    rows = {
        case.id: Row(
            case.id,
            case.question,
            alike.text(case.category),
            case.population,
            [NONE] * header.draws,
            alike.texts(case.groups),
        )
        for case in folder.cases()
    }
    for draw in folder.draws():
        if draw.error is not None and not draw.absent and draw.case in rows:
            _set_state(rows[draw.case], draw.index, ERROR)
    for case, scores in groupby(folder.scores(), key=lambda score: score.case):
        if (row := rows.get(case)) is not None:
            row.results = {name: replace(found) for name, found in row.results.items()}
            row.states = [*row.states]
            for score in scores:
                _add(row, score, twins if row.population == "twins" and twins else lead)
            row.results, row.states = alike.results(row.results), alike.states(row.states)
    for judgement in folder.judgements():
        if judgement.case in rows and any(map(_invented, judgement.claims)):
            rows[judgement.case].invented += 1
    return Rows(list(rows.values()), lead, twins)


class _Alike:
    """Keeps once what is the same for many questions of a large run; nobody changes it any more."""

    def __init__(self) -> None:
        self._texts: dict[Any, Any] = {}
        self._states: dict[tuple[str, ...], list[str]] = {}
        self._single: dict[tuple[Any, ...], Result] = {}
        self._results: dict[tuple[tuple[str, int], ...], dict[str, Result]] = {}

    def text(self, text: str) -> str:
        return str(self._texts.setdefault(text, text))

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._texts.setdefault(texts, texts))

    def states(self, states: list[str]) -> list[str]:
        return self._states.setdefault(tuple(states), states)

    def results(self, results: dict[str, Result]) -> dict[str, Result]:
        for name, result in results.items():
            if result.total in (0.0, result.scored):  # not a number like any other
                results[name] = self._single.setdefault(astuple(result), result)
        # Of two mappings with the very same results one will do.
        found = tuple((name, id(result)) for name, result in results.items())
        whole = all(result.total in (0.0, result.scored) for result in results.values())
        return self._results.setdefault(found, results) if whole else results


def _invented(claim: Claim) -> bool:
    return claim.decided_by == "novel_terms" and not claim.supported


def _set_state(row: Row, index: int, state: str) -> None:
    row.states.extend([NONE] * (index + 1 - len(row.states)))
    row.states[index] = state


def _add(row: Row, score: Score, lead: Metric | None) -> None:
    result = row.results.setdefault(score.metric, Result())
    match score.status:
        case "pass" | "fail":
            result.scored += 1
            result.passed += score.status == "pass"
        case "number":
            result.scored += 1
            result.total += score.value or 0.0
        case "error":
            result.failed += 1
            result.reason = result.reason or score.reason or "error"
        case "not_applicable":
            result.not_applicable += 1
    if score.index is not None:
        _note_state(row, score, score.index, lead)


def _note_state(row: Row, score: Score, index: int, lead: Metric | None) -> None:
    known = row.states[index] if index < len(row.states) else NONE
    if score.metric in OUTCOMES and score.status == "pass":
        _set_state(row, index, score.metric)
    elif score.metric in OUTCOMES and score.status == "error" and known == NONE:
        _set_state(row, index, ERROR)
    elif lead and score.metric == lead.id and known == NONE and score.status in ("pass", "fail"):
        _set_state(row, index, MET if (score.status == "pass") == (lead.better == "higher") else UNMET)


def read_details(folder: RunFolder, ids: Collection[str]) -> dict[str, Detail]:
    """Everything about the questions named, in dataset order."""
    wanted = set(ids)
    details = {case.id: Detail(case) for case in folder.cases() if case.id in wanted}
    for case, context in folder.contexts(wanted):
        details[case].contexts[context.digest] = context
    for draw in folder.draws(wanted):
        details[draw.case].draws.append(draw)
    for judgement in folder.judgements(wanted):
        details[judgement.case].judgements[judgement.index] = judgement
    if any(detail.case.attack for detail in details.values()):
        for score in folder.scores():
            if score.case in wanted and score.metric == "attack_success" and score.index is not None:
                details[score.case].found[score.index] = score.reason or ""
    for detail in details.values():
        detail.draws.sort(key=lambda draw: draw.index)
    return details


def because(row: Row, detail: Detail, events: Mapping[str, str]) -> str:
    """Why a question is among the worst, in a few words; the first answer that is wrong speaks for it."""
    for index, state in enumerate(row.states):
        judgement = detail.judgements.get(index)
        if state in ("unsupported", "answered") and judgement and judgement.unsupported:
            unsupported = [claim for claim in judgement.claims if not claim.supported]
            first = next(filter(_invented, unsupported), unsupported[0])
            word = "no quote for" if first.decided_by == "quotes" else "invented"
            return f'{word}: "{one_line(first.claim, 120)}"'
        if state in OUTCOMES and state not in GOOD:
            return events.get(state, state)
        if state == UNMET and detail.case.attack is not None:
            return one_line(detail.found.get(index) or "refused a harmless question", 120)
        if judgement and judgement.correct is False:
            return "not what the reference says"
    return _because_not_scored(row, detail)


def _because_not_scored(row: Row, detail: Detail) -> str:
    for draw in detail.draws:
        if draw.error and not draw.absent:
            return f"no answer: {one_line(draw.error, 120)}"
    for judgement in detail.judgements.values():
        if judgement.error:
            return f"not judged: {one_line(judgement.error, 120)}"
    return next((f"not scored: {one_line(r.reason, 120)}" for r in row.results.values() if r.failed), "")


def share(row: Row, lead: Metric | None) -> str:
    """``0/3``: met draws of those scored; a value where the metric is a number; ``–`` where there is none."""
    result = row.results.get(lead.id) if lead else None
    if lead is None or result is None or not result.scored:
        return "–"
    if lead.kind == "rate":
        met = result.passed if lead.better == "higher" else result.scored - result.passed
        return f"{met}/{result.scored}"
    return f"{result.value:.2f}".replace("0.", ".", 1)
