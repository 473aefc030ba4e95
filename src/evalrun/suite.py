"""An attack suite as a dataset: what the probes make for this bot, and why some attacks cannot be made on it.

Owns which attacks apply to a target and how those that do not are counted. What an attack says belongs to
:mod:`evalrun.probes`; the bot's answers to the detectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evalrun.dataset import Dataset
from evalrun.digest import tagged
from evalrun.errors import InputError, Problem
from evalrun.jsonl import to_line
from evalrun.probes import applicable
from evalrun.records import Case
from evalrun.settings import RunConfig
from evalrun.targets import Offers

NAME = "attacks"


def load_suite(config: RunConfig, offers: Offers) -> Dataset:
    """Every attack that can be made on this bot, in the order of the probes, own ones last.

    What does not apply is told in the notes, a line a reason.

    Raises:
        InputError: a file of own attacks that cannot be used; no attack applies.
    """
    assert config.redteam is not None
    made, missing = applicable(config.redteam)
    left = Counter(reason for _, reason in missing)
    left.update(filter(None, (_unmakeable(case, offers) for case in made)))
    cases = tuple(case for case in made if not _unmakeable(case, offers))
    notes = tuple(f"not applicable: {count} because {reason}" for reason, count in sorted(left.items()))
    if not any(case.population == "attacks" for case in cases):
        where = config.where("redteam")
        raise InputError([Problem(where, "no attack applies to this bot", "; ".join(notes))])
    lines = [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
    return Dataset(NAME, cases, tagged("suite", lines), config.path, {}, notes)


def saved(cases: Iterable[Case]) -> bytes:
    """Attacks as a dataset file, a case a line."""
    return b"".join(to_line(case) for case in cases)


def _unmakeable(case: Case, offers: Offers) -> str:
    """Why an attack cannot be made on a bot that offers this; empty if it can."""
    if case.attack is not None and case.attack.needs_overlay and not offers.overlay:
        return "nothing can be planted in this bot: its target has no overlay"
    if len(case.turns) > 1 and not offers.history:
        return "this bot is not given the turns before: its target sends no {history}"
    return ""
