"""What a run will cost and what it can show, before anything is spent.

Owns the counting of calls, tokens and seconds, what each gate needs, and how small a change a comparison of
two such runs would still show. The formulas are those of :mod:`evalrun.stats`; how it reads is in ``screen``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from evalrun import stats
from evalrun.beside import Baseline
from evalrun.cassette import Book, address_of, belongs_to_a_draw, read_book
from evalrun.config import check_gates
from evalrun.dataset import Dataset
from evalrun.drop_gates import if_unchanged
from evalrun.errors import ExitCode, InputError
from evalrun.gates import infeasible, threshold
from evalrun.planning import drop_problem, drop_rows, make_plan, read_baseline
from evalrun.records import Case, Exchange, Gate, Metric, Record
from evalrun.scorers import Scorer
from evalrun.settings import Budget, RunConfig
from evalrun.summary import documents_of, groups_of
from evalrun.wires import output_of

POWER = 0.80
Key = Literal["calls", "tokens", "seconds", "cost"]
"""A limit of a budget."""
ICC = 0.8
"""How alike the draws of a question are taken to be, before anything is measured."""
RELATED = 0.5
"""Correlation of how hard the questions are for two runs, taken likewise."""
USUAL_RATE = 0.8
"""The true rate where none is stated."""


class Calls(Record):
    """The model calls of one book: how many at most, how many are recorded, and what one takes.

    Tokens and seconds are means of the recording; None where it does not tell. ``cost``: of one call, in the
    currency of the config's prices; None where price or tokens are not known.
    """

    planned: int
    recorded: int
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    seconds: float | None = None
    cost: float | None = None

    @property
    def tokens(self) -> float | None:
        """Read and written by one call."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class Fit(Record):
    """What a limit of the budget will meet: a run in which every call is live, and one of those without a
    recording only. None where that is not known.
    """

    key: Key
    limit: float
    live: float | None
    fresh: float | None


class GateForecast(Record):
    """What one gate needs: ``passes`` of ``n`` questions, for "at most" no more than that.

    ``rate``: the true rate with which it holds 4 times in 5. ``chance``: how often it holds at the stated
    rate, 0 to 1. ``note``: what to expect of a gate on a drop if nothing changes.
    """

    gate: Gate
    event: str
    kind: Literal["rate", "score"]
    n: int
    problem: str = ""
    hint: str = ""
    note: str = ""
    passes: int | None = None
    rate: float | None = None
    chance: float | None = None


class Detectable(Record):
    """The smallest change of a rate in one group that a comparison shows with 80 % power."""

    group: str
    n: int
    planned: float
    twice_questions: float
    twice_draws: float


class Forecast(Record):
    """All that is known before a run."""

    format: Literal["forecast.v1"] = "forecast.v1"
    name: str
    dataset: str
    cases: int
    draws: int
    stated_rate: float | None
    assumed_rate: float
    bot: Calls
    judge: Calls | None
    budget: tuple[Fit, ...]
    gates: tuple[GateForecast, ...]
    detectable: tuple[Detectable, ...]

    @property
    def calls(self) -> int:
        """Calls to the bot's model and to the judge, at most."""
        return self.bot.planned + (self.judge.planned if self.judge else 0)

    @property
    def exit_code(self) -> ExitCode:
        """As for the run: a gate that cannot hold is an error of the config."""
        return ExitCode.USAGE if any(gate.problem for gate in self.gates) else ExitCode.OK


def forecast(config: RunConfig, rate: float | None = None) -> Forecast:
    """What a run of ``config`` will take. ``rate``: a true rate for which to say how often each gate holds.

    Raises:
        InputError: a dataset that cannot be read, or a gate on what is not measured.
    """
    # Without its gates: one that cannot hold is told here, not refused.
    plan = make_plan(config.model_copy(update={"gates": ()}), "live")
    dataset, metrics = plan.dataset, {metric.id: metric for metric in plan.metrics}
    if problems := check_gates(config, metrics, dataset.groups):
        raise InputError(problems)
    baseline = read_baseline(config)
    answers = {(case.id, index) for case in dataset.cases for index in range(config.draws)}
    assumed = USUAL_RATE if rate is None else rate
    bot = _calls(config, "bot", answers)
    judge = _calls(config, "judge", answers) if plan.judged else None
    return Forecast(
        name=config.name,
        dataset=dataset.name,
        cases=len(dataset.cases),
        draws=config.draws,
        stated_rate=rate,
        assumed_rate=assumed,
        bot=bot,
        judge=judge,
        budget=tuple(_fits(config.budget, [bot, *([judge] if judge else [])])),
        gates=tuple(
            _gate(gate, metrics, plan.scorers, dataset.cases, rate)
            if gate.max_drop is None
            else _drop(gate, metrics[gate.metric], baseline, dataset)
            for gate in config.gates
        ),
        detectable=tuple(_detectable(dataset.cases, config.draws, assumed)),
    )


# ---------------------------------------------------------------- calls


def _calls(config: RunConfig, book: Book, answers: set[tuple[str, int]]) -> Calls:
    """The calls of one book: at most one an answer, or as many as the recording needed for one."""
    lines = list(_of_draws(config.cassette.path if config.cassette else None, book))
    addresses = [address_of(line) for line in lines]
    known = {(address.case, address.draw) for address in addresses if address is not None}
    each = len(lines) / len(known) if known and book == "bot" else 1.0
    outputs = [output_of(line.path, line.reply) for line in lines]
    read = _mean(output.prompt_tokens for output in outputs)
    written = _mean(output.completion_tokens for output in outputs)
    price = config.prices.get(book)
    return Calls(
        planned=round(len(answers) * each),
        recorded=round(len(known & answers) * each),
        prompt_tokens=read,
        completion_tokens=written,
        seconds=_mean(line.seconds for line in lines),
        cost=None if price is None or read is None or written is None else price.of(read, written),
    )


def _of_draws(cassette: Path | None, book: Book) -> Iterable[Exchange]:
    if cassette is None:
        return ()
    return (line for line in read_book(cassette / f"{book}.jsonl") if belongs_to_a_draw(line))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _fits(budget: Budget, books: Sequence[Calls]) -> Iterable[Fit]:
    each: dict[Key, list[float | None]] = {
        "calls": [1.0] * len(books),
        "tokens": [calls.tokens for calls in books],
        "seconds": [calls.seconds for calls in books],
        "cost": [calls.cost for calls in books],
    }
    for key, takes in each.items():
        limit = getattr(budget, key)
        if limit is not None:
            live = _total(takes, [calls.planned for calls in books])
            fresh = _total(takes, [max(calls.planned - calls.recorded, 0) for calls in books])
            yield Fit(key=key, limit=limit, live=live, fresh=fresh)


def _total(each: Sequence[float | None], counts: Sequence[int]) -> float | None:
    """None where the share of one that is asked at all is not known."""
    asked = [(one, count) for one, count in zip(each, counts, strict=True) if count]
    parts = [one * count for one, count in asked if one is not None]
    return math.fsum(parts) if len(parts) == len(asked) else None


# ---------------------------------------------------------------- gates


def _gate(
    gate: Gate,
    metrics: Mapping[str, Metric],
    scorers: Sequence[Scorer],
    cases: Sequence[Case],
    rate: float | None,
) -> GateForecast:
    metric = metrics[gate.metric]
    applies = next(scorer.applies for scorer in scorers if metric in scorer.metrics)
    members = groups_of(metric, cases).get(gate.group, [])
    n = sum(applies(case) for case in members)
    problem, hint = infeasible(gate, metric, cases, applies) or ("", "")
    found = GateForecast(
        gate=gate,
        event=metric.event,
        kind="rate" if metric.kind == "rate" else "score",
        n=n,
        problem=problem,
        hint=hint,
    )
    if problem or gate.infer == "this_set":
        return found
    documents = documents_of([case for case in members if applies(case)])
    if documents is None:
        return found.model_copy(update=_needs(gate, n, rate))
    return found.model_copy(update=_needs_of_documents(gate, n, documents, rate))


def _drop(gate: Gate, metric: Metric, baseline: Baseline | None, dataset: Dataset) -> GateForecast:
    """What a gate on a drop needs; ``note``: what to expect of a bot that did not change."""
    assert baseline is not None
    problem, hint = drop_problem(gate, metric, baseline, dataset) or ("", "")
    rows = [] if problem else drop_rows(gate, metric, baseline, dataset.cases)
    return GateForecast(
        gate=gate,
        event=metric.event,
        kind="rate" if metric.kind == "rate" else "score",
        n=len(rows),
        problem=problem,
        hint=hint,
        note=if_unchanged(gate, metric, rows) if rows else "",
    )


def _needs_of_documents(
    gate: Gate, n: int, documents: Sequence[Hashable], rate: float | None
) -> dict[str, float | int | str | None]:
    """As if the questions of a document were one question: the cautious end, they may be less alike."""
    worth = math.ceil(stats.documents_effective(list(Counter(documents).values())))
    found = _needs(gate, worth, rate)
    passes, up = found["passes"], gate.min is not None
    scaled = None if passes is None else (math.ceil if up else math.floor)(passes * n / worth)
    return {**found, "passes": scaled, "note": f"as if each of {worth} documents were one question"}


def _needs(gate: Gate, n: int, rate: float | None) -> dict[str, float | int | None]:
    """Passes, true rate and chance; "at most T" is "at least 1 - T" of the complement."""
    limit, at_least = threshold(gate)
    wanted = limit if at_least else 1 - limit
    passes = stats.min_passes(n, wanted, method=gate.method)
    enough = stats.rate_to_hold(n, wanted, POWER, method=gate.method)
    chance = None
    if rate is not None:
        chance = stats.chance_to_hold(n, wanted, rate if at_least else 1 - rate, method=gate.method)
    if at_least or passes is None or enough is None:
        return {"passes": passes, "rate": enough, "chance": chance}
    return {"passes": n - passes, "rate": 1 - enough, "chance": chance}


# ---------------------------------------------------------------- comparisons


def _detectable(cases: Sequence[Case], draws: int, rate: float) -> Iterable[Detectable]:
    for group in ("all", "answerable", "unanswerable"):
        n = sum(group in case.groups for case in cases)
        if n:
            yield Detectable(
                group=group,
                n=n,
                planned=stats.paired_mde(n, difference_sd(rate, draws), power=POWER),
                twice_questions=stats.paired_mde(2 * n, difference_sd(rate, draws), power=POWER),
                twice_draws=stats.paired_mde(n, difference_sd(rate, 2 * draws), power=POWER),
            )


def difference_sd(rate: float, draws: int) -> float:
    """Standard deviation of a question's change between two runs, as assumed before anything is measured.

    A draw's variance p(1-p) is split into between questions (ICC) and within; of the part between,
    ``RELATED`` is common to both runs and cancels: 2·p(1-p)·(ICC·(1-RELATED) + (1-ICC)/k).
    """
    spread = ICC * (1 - RELATED) + (1 - ICC) / draws
    return math.sqrt(2 * rate * (1 - rate) * spread)
