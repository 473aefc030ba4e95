"""The journals of a run joined per question, for reports: what each answer came to, and the worst first.

Owns the joining, the order and the one-line reason beside a question. It counts passes to show ``0/3`` beside
a question; shares, intervals and verdicts are the run's own. Texts are read only for the
questions that are shown, so that a long run costs little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from evalrun.journal import RunFolder
from evalrun.outcomes import GOOD, OUTCOMES
from evalrun.records import Case, Claim, Context, Draw, Judgement, Metric, Score
from evalrun.reports.words import one_line

T = TypeVar("T")
ERROR = "error"
MET = "met"
UNMET = "unmet"
NONE = "none"
"""What an answer came to where no outcome says it: by the metric the order goes by, or nothing at all."""
_KNOWN = 4096
"""Kinds of questions, by all of their scores, whose results are held ready."""


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


class Results(Mapping[str, Result]):
    """Metric → result of one question.

    ``alike`` may be that of many questions, since a large run has a million results; ``own`` holds the sums
    in which this one differs: a metric, its sum, the next metric, its sum.
    """

    __slots__ = ("_alike", "_own")

    def __init__(self, alike: Mapping[str, Result], own: tuple[Any, ...] = ()) -> None:
        self._alike = alike
        self._own = own

    def __getitem__(self, metric: str) -> Result:
        found = self._alike[metric]
        if metric in self._own:
            found = replace(found, total=self._own[self._own.index(metric) + 1])
        return found

    def __contains__(self, metric: object) -> bool:
        return metric in self._alike

    def __iter__(self) -> Iterator[str]:
        return iter(self._alike)

    def __len__(self) -> int:
        return len(self._alike)

    def but(self, own: tuple[Any, ...]) -> Results:
        """The same results, but with sums of their own."""
        return Results(self._alike, own) if own else self

    @property
    def lost(self) -> int:
        """How many draws the metric lost that lost most."""
        return max([found.failed for found in self._alike.values()], default=0)


_NOTHING = Results({})


@dataclass(slots=True)
class Row:
    """One question and what its answers came to."""

    id: str
    question: str
    category: str
    population: str
    states: list[str]
    groups: tuple[str, ...] = ()
    results: Results = field(default_factory=lambda: _NOTHING)
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
    reasons: dict[int, dict[str, str]] = field(default_factory=dict)
    """Draw → metric → what decided it, where its scorer says so: what an attack got, what an answer lacks."""

    def found(self, index: int) -> str:
        """What the detectors found in an answer to an attack."""
        return self.reasons.get(index, {}).get("attack_success", "")

    def amiss(self, index: int) -> list[str]:
        """What scorers say is wrong with an answer; what is found of an attack is told apart."""
        return [why for metric, why in self.reasons.get(index, {}).items() if metric != "attack_success"]


@dataclass(slots=True)
class Rows:
    """Every question of a run in dataset order, and the metric by which they are good or bad."""

    rows: list[Row]
    lead: Metric | None
    twins: Metric | None = None
    _worst: list[Row] | None = None

    def worst(self) -> list[Row]:
        """Worst first: by the lead metric, then what is plainly invented, then what failed to be scored.

        Among equals attacks come before harmless questions, and the categories take turns, so that a short
        list shows every kind of trouble.
        """
        if self._worst is None:
            turn: Counter[tuple[tuple[float, bool, int, int], str]] = Counter()
            same: dict[tuple[float, bool, int, int], tuple[float, bool, int, int]] = {}
            ranked = []
            for place, row in enumerate(self.rows):
                badness = self._badness(row)
                badness = same.setdefault(badness, badness)
                ranked.append((badness, turn[badness, row.category], place))
                turn[badness, row.category] += 1
            ranked.sort()
            self._worst = [self.rows[place] for _, _, place in ranked]
        return self._worst

    def lead_of(self, row: Row) -> Metric | None:
        """The metric by which a question is good or bad; the harmless twin of an attack has its own."""
        return self.twins if row.population == "twins" and self.twins else self.lead

    def _badness(self, row: Row) -> tuple[float, bool, int, int]:
        lead = self.lead_of(row)
        result = row.results.get(lead.id) if lead else None
        lost = row.results.lost
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
            alike.one(case.category),
            case.population,
            alike.states([NONE] * header.draws),
            alike.one(case.groups),
        )
        for case in folder.cases()
    }
    for draw in folder.draws(holding=b'"error"'):
        if draw.error is not None and not draw.absent and (row := rows.get(draw.case)) is not None:
            states = [*row.states]
            _set_state(states, draw.index, ERROR)
            row.states = alike.states(states)
    for case, scores in groupby(folder.scores(), key=attrgetter("case")):
        if (row := rows.get(case)) is not None:
            alike.fill(row, list(scores), twins if row.population == "twins" and twins else lead)
    for judgement in folder.judgements(holding=b"novel_terms"):
        if judgement.case in rows and any(map(_invented, judgement.claims)):
            rows[judgement.case].invented += 1
    return Rows(list(rows.values()), lead, twins)


class _Alike:
    """Keeps and works out once what is the same for many questions of a large run; nobody changes it."""

    def __init__(self) -> None:
        self._single: dict[Any, Any] = {}
        self._states: dict[tuple[str, ...], list[str]] = {}
        self._several: dict[tuple[tuple[str, int], ...], Results] = {}
        self._known: dict[Any, tuple[Results, list[str]]] = {}

    def one(self, value: T) -> T:
        """``value``, or what came before and equals it."""
        return self._single.setdefault(value, value)  # type: ignore[no-any-return]

    def states(self, states: list[str]) -> list[str]:
        return self._states.setdefault(tuple(states), states)

    def fill(self, row: Row, scores: Sequence[Score], lead: Metric | None) -> None:
        """Note what the scores of a question make of it. Numbers are its own, whatever else it shares."""
        if row.results:  # a journal that is not in order: here is more of a question
            results, states = _read(row, scores, lead)
            row.results, row.states = Results(results), states
            return
        own = _own_sums(scores)
        kind = (id(row.states), lead.id if lead else "", tuple(map(_mark, scores)))
        found = self._known.get(kind)
        if found is None:
            found = self._shared(*_read(row, scores, lead), own)
            if len(self._known) < _KNOWN:
                self._known[kind] = found
        row.results, row.states = found[0].but(own), found[1]

    def _shared(
        self, results: dict[str, Result], states: list[str], own: tuple[Any, ...]
    ) -> tuple[Results, list[str]]:
        for name, result in results.items():
            if name in own:
                result.total = 0.0
            parts = (result.passed, result.scored, result.failed, result.not_applicable, result.total)
            results[name] = self._single.setdefault((*parts, result.reason), result)
        # Of two mappings with the very same results one will do.
        found = tuple((name, id(result)) for name, result in results.items())
        return self._several.setdefault(found, Results(results)), self.states(states)


def _read(row: Row, scores: Iterable[Score], lead: Metric | None) -> tuple[dict[str, Result], list[str]]:
    results = {name: replace(found) for name, found in row.results.items()}
    states = [*row.states]
    for score in scores:
        _add(results, score)
        if score.index is not None:
            _note_state(states, score, score.index, lead)
    return results, states


def _own_sums(scores: Sequence[Score]) -> tuple[Any, ...]:
    """Metric, sum, metric, sum, … of those with a number like no other."""
    odd = {score.metric for score in scores if score.value is not None and score.value not in (0.0, 1.0)}
    sums = dict.fromkeys(sorted(odd), 0.0)
    for score in scores if odd else ():
        if score.metric in odd:
            sums[score.metric] += score.value or 0.0
    return tuple(part for pair in sums.items() for part in pair)


def _mark(score: Score) -> tuple[Any, ...]:
    """All of a score that a row tells apart, but for a number like no other."""
    told = score.reason if score.status == "error" else score.value if score.value in (0.0, 1.0) else None
    return (score.metric, score.index, score.status, told)


def _invented(claim: Claim) -> bool:
    return claim.decided_by == "novel_terms" and not claim.supported


def _set_state(states: list[str], index: int, state: str) -> None:
    states.extend([NONE] * (index + 1 - len(states)))
    states[index] = state


def _add(results: dict[str, Result], score: Score) -> None:
    if (result := results.get(score.metric)) is None:
        result = results[score.metric] = Result()
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


def _note_state(states: list[str], score: Score, index: int, lead: Metric | None) -> None:
    known = states[index] if index < len(states) else NONE
    if score.metric in OUTCOMES and score.status == "pass":
        _set_state(states, index, score.metric)
    elif score.metric in OUTCOMES and score.status == "error" and known == NONE:
        _set_state(states, index, ERROR)
    elif lead and score.metric == lead.id and known == NONE and score.status in ("pass", "fail"):
        _set_state(states, index, MET if (score.status == "pass") == (lead.better == "higher") else UNMET)


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
    if folder.header.judge is None or any(_explained(detail.case) for detail in details.values()):
        for score in folder.scores(wanted, holding=b'"reason"'):
            told = score.status == "fail" or score.metric == "attack_success"
            if told and score.reason and score.index is not None:
                details[score.case].reasons.setdefault(score.index, {})[score.metric] = score.reason
    for detail in details.values():
        detail.draws.sort(key=lambda draw: draw.index)
    return details


def _explained(case: Case) -> bool:
    """Whether a scorer may say of an answer to this case what decided it, beside what the judge says."""
    return bool(case.attack or case.must_contain or case.metadata)


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
            return one_line(detail.found(index) or "refused a harmless question", 120)
        if state == UNMET and (amiss := detail.amiss(index)):
            return one_line("; ".join(amiss), 120)
        if judgement and judgement.correct is False:
            return "not what the reference says"
    # What another metric lacked is not why these answers are wrong.
    return "not met" if UNMET in row.states else _because_not_scored(row, detail)


def _because_not_scored(row: Row, detail: Detail) -> str:
    for draw in detail.draws:
        if draw.error and not draw.absent:
            return f"no answer: {one_line(draw.error.removeprefix('service: '), 120)}"
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
