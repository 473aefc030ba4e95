"""An attack suite as a dataset: what the probes make for this bot, and why some attacks cannot be made on it.

Owns which attacks apply to a target, what is left of them where the bot takes no overlay, and how those that
do not apply are counted. What an attack says belongs to :mod:`evalrun.probes`; answers to the detectors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from evalrun.dataset import Dataset
from evalrun.digest import tagged
from evalrun.errors import InputError, Problem
from evalrun.jsonl import to_line
from evalrun.probes import applicable
from evalrun.records import Attack, Case
from evalrun.settings import RunConfig
from evalrun.shortfalls import best_level, offers_of

NAME = "attacks"


def load_suite(config: RunConfig) -> Dataset:
    """Every attack that can be made on this bot, in the order of the probes, own ones last.

    What does not apply is told in the notes, a line a reason, as is what the suite then cannot show.

    Raises:
        InputError: a file of own attacks that cannot be used; no attack applies.
    """
    assert config.redteam is not None
    if config.redteam.planted and offers_of(config).overlay:
        where, hint = config.where("redteam", "planted"), "leave it out: evalrun plants for each attack alone"
        raise InputError([Problem(where, "this bot takes planted text with the question", hint)])
    made, missing = applicable(config.redteam)
    left = Counter(reason for _, reason in missing)
    fitted = [(case, _fitted(case, config)) for case in made]
    left.update(found for _, found in fitted if isinstance(found, str))
    cases = tuple(found for _, found in fitted if isinstance(found, Case))
    notes = tuple(f"not applicable: {count} because {reason}" for reason, count in sorted(left.items()))
    if not any(case.population == "attacks" for case in cases):
        where = config.where("redteam")
        raise InputError([Problem(where, "no attack applies to this bot", "; ".join(notes))])
    without = sum(isinstance(found, Case) and found is not case for case, found in fitted)
    notes += tuple(_lost(cases, without, by_hand=bool(config.redteam.planted)))
    lines = [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
    return Dataset(NAME, cases, tagged("suite", lines), config.path, {}, notes)


def _lost(cases: Iterable[Case], without_canary: int, *, by_hand: bool) -> Iterator[str]:
    """What this suite cannot show of this bot."""
    if without_canary:
        yield (
            f"{without_canary} {'attack' if without_canary == 1 else 'attacks'} on the instructions "
            f"{'looks' if without_canary == 1 else 'look'} for the system prompt's own words alone: "
            "no token can be hidden in it"
        )
    if by_hand:
        yield "no benign twins: ask them of the bot without the planted documents"
    elif not any(case.population == "twins" for case in cases):
        yield (
            "no benign twin applies: over-refusal is not measured, and a bot that refuses everything looks "
            "safe; give redteam.facts"
        )


def saved(cases: Iterable[Case]) -> bytes:
    """Attacks as a dataset file, a case a line."""
    return b"".join(to_line(case) for case in cases)


def planted_files(cases: Iterable[Case]) -> dict[str, str]:
    """File name → Markdown, one for each section that an attack plants: to be put among a bot's documents."""
    sections = [section for case in cases if case.attack for section in case.attack.planted]
    return {
        f"{number:02}-{re.sub(r'[^A-Za-z0-9]+', '-', section.id).strip('-')[:60]}.md": (
            f"# {' '.join(section.title.split())}\n\n{section.text}\n"
        )
        for number, section in enumerate(sections, start=1)
    }


def _fitted(case: Case, config: RunConfig) -> Case | str:
    """The case as it can be asked of this bot, or why it cannot."""
    offers, attack = offers_of(config), case.attack
    by_hand = config.redteam is not None and config.redteam.planted == "by_hand"
    if by_hand and not (attack and attack.planted):
        return "documents are planted by hand: only attacks by document are made"
    if len(case.turns) > 1 and not offers.history:
        return "this bot is not given the turns before: its target sends no {history}"
    if attack is None or not attack.needs_overlay or offers.overlay:
        return case
    if attack.planted and not by_hand:
        return "nothing can be planted in this bot: its target has no overlay (see planted: by_hand)"
    return _without_suffix(case, attack, best_level(config) in ("observed", "reported"))


def _without_suffix(case: Case, attack: Attack, prompt_seen: bool) -> Case | str:
    """An attack on a bot whose system prompt takes no canary: only the prompt's own words are looked for."""
    suffix = attack.system_suffix
    if suffix is None:
        return case
    left = tuple(
        spec
        for spec in attack.detectors
        if not (spec.startswith("canary:") and spec.partition(":")[2] in suffix)
        and (spec != "prompt_overlap" or prompt_seen)
    )
    if not left:
        return "nothing can be hidden in this bot's system prompt, and the prompt is not seen"
    update = {"system_suffix": None, "detectors": left}
    return case.model_copy(update={"attack": attack.model_copy(update=update)})
