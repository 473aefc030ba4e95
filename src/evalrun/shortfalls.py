"""What a bot cannot offer, and what follows from it for this config: known before anything is spent.

Owns the sentences and which metrics cannot be measured. What a bot offers is read off its options; what it
then really returns is judged draw by draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evalrun.errors import Problem
from evalrun.records import LEVELS, Case, Level, Quote
from evalrun.scorers import Scorer, every_draw
from evalrun.settings import RunConfig
from evalrun.targets import Offers


def shortfalls(config: RunConfig, scorers: Sequence[Scorer], cases: Sequence[Case]) -> tuple[str, ...]:
    """One line for each thing that the bot of this config cannot offer, with what follows from it."""
    return tuple(_lines(config, scorers, cases))


def _lines(config: RunConfig, scorers: Sequence[Scorer], cases: Sequence[Case]) -> Iterator[str]:
    offers = offers_of(config)
    if not offers.contexts:
        names = _names(scorer for scorer in scorers if "context" in scorer.needs)
        lost = f"{names} cannot be measured" if names else "what the bot answered from is not known"
        yield f"no contexts: {lost}"
    elif _without_ids(offers, cases):
        names = _names(scorer for scorer in scorers if "ids" in scorer.needs)
        if names:
            yield f"no ids: {names} cannot be measured by ids; name what is relevant by quotes"
    if offers.contexts and LEVELS.index(best_level(config)) < LEVELS.index(config.provenance):
        names = _names(scorer for scorer in scorers if _all_judged(scorer))
        if names:
            yield (
                f"no tap between bot and model: the proof is '{best_level(config)}' at best, this config "
                f"demands '{config.provenance}': {names} cannot be judged"
            )
    yield from unasked(scorers, cases)
    if not offers.seed:
        tapped = config.tapped
        yield "no seed: " + (
            "one call in flight through the tap" if tapped else "no draw can be asked for again"
        )
    if config.temperature is not None and not offers.sampling:
        yield "no temperature: the bot answers at its own, not at that of this config"
    if offers.contexts and not offers.retrieval and config.draws > 1:
        yield (
            "no retrieval of its own: each draw is judged on the context it came with, "
            "and retrieval is measured on that of the first"
        )


def unasked(scorers: Sequence[Scorer], cases: Sequence[Case]) -> Iterator[str]:
    """What nothing is measured of, since no case has what it takes."""
    if names := _names(scorer for scorer in scorers if not any(map(scorer.applies, cases))):
        yield f"not measured, since no question has what it takes: {names}"


def _all_judged(scorer: Scorer) -> bool:
    """Whether a scorer needs a verdict on every draw."""
    return scorer.judged and scorer.asks is every_draw


def _names(scorers: Iterable[Scorer]) -> str:
    return ", ".join(scorer.name for scorer in scorers)


def offers_of(config: RunConfig) -> Offers:
    """What the bot of a config offers."""
    found: Offers = getattr(config.target.options, "offers", Offers())
    return found


def best_level(config: RunConfig) -> Level:
    """The strongest proof that a draw of this config can have."""
    offers = offers_of(config)
    if not offers.contexts:
        return "none"
    if config.tapped:
        return "observed"
    return "reported" if offers.prompt else "claimed"


def _without_ids(offers: Offers, cases: Sequence[Case]) -> bool:
    """Whether what is relevant is named by ids, and the bot's contexts have none."""
    return not offers.ids and any(named_by_ids(case) for case in cases)


def named_by_ids(case: Case) -> bool:
    """Whether a case names what is relevant by ids, and not by quotes."""
    relevant = case.relevant_ids or ()
    return bool(relevant) and not any(isinstance(item, Quote) for item in relevant)


def impossible(config: RunConfig, scorers: Sequence[Scorer], cases: Sequence[Case]) -> list[Problem]:
    """Gates on what this bot cannot let be measured, and histories that it would not be given."""
    offers = offers_of(config)
    lost: dict[str, tuple[str, str]] = {}
    for scorer in scorers:
        if found := _lost(scorer, config, cases):
            lost |= {metric.id: found for metric in scorer.metrics}
    problems = [
        Problem(config.where("gates", index), f"gate '{gate.name}' cannot hold: {found[0]}", found[1])
        for index, gate in enumerate(config.gates)
        if (found := lost.get(gate.metric))
    ]
    turns = [case.id for case in cases if case.history or len(case.turns) > 1]
    if turns and not offers.history:
        more = f" (and {len(turns) - 1} more)" if len(turns) > 1 else ""
        problems.append(
            Problem(
                config.where("target"),
                f"case '{turns[0]}'{more} has a history, which the bot would not be given",
                'place "{history}" in what is sent to it: a list of {role, content}',
            )
        )
    return problems


def _lost(scorer: Scorer, config: RunConfig, cases: Sequence[Case]) -> tuple[str, str] | None:
    """Why a scorer can measure nothing here and what to do; None if it can."""
    offers, best = offers_of(config), best_level(config)
    if "context" in scorer.needs and not offers.contexts:
        return "the bot returns no contexts", "name them by target.contexts or target.context, or drop it"
    if "ids" in scorer.needs and not offers.ids and all(map(named_by_ids, filter(scorer.applies, cases))):
        return "the bot's contexts have no ids", 'name what is relevant by quotes: [{"quote": "…"}]'
    if _all_judged(scorer) and LEVELS.index(best) < LEVELS.index(config.provenance):
        reason = f"the proof is '{best}' at best, and '{config.provenance}' is demanded"
        led = 'lead its model calls through the tap ("{tap}")'
        return reason, f"{'write at: model' if config.at_bot else led}, or set provenance: {best}"
    return None
