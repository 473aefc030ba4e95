"""Two runs of the same questions, paired: what changed, how surely, and on which questions.

Owns the pairing by case id and content and the refusal of what cannot be compared. What a run measured is
read by ``measured``, how much a metric changed stands in ``changes``, by how much it may drop in ``drops``;
how all of it reads is decided by the reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from evalrun.comparison.changes import Change, change_of, tested
from evalrun.comparison.drops import Drop, decide_drop, exit_code
from evalrun.comparison.measured import BY_LABELS, Answer, Measured, Source, same_meaning
from evalrun.comparison.pairs import Pairs
from evalrun.differences import differing
from evalrun.digest import canonical_json
from evalrun.errors import UserError
from evalrun.records import Metric, Record
from evalrun.registry import nearest
from evalrun.reports.rows import lead_metric
from evalrun.reports.words import count

__all__ = ["Change", "Comparison", "Difference", "Drop", "Flip", "Unpaired", "compare"]

MOST_LOST = 0.10
"""More questions without a partner than this share, and a comparison is refused."""
Why = Literal["only in the old run", "only in the new run", "not the same question any more"]


class Flip(Record):
    """A question on which the lead metric changed, with both runs' answers."""

    case: str
    question: str
    category: str
    old: float
    new: float
    better: bool
    old_answers: tuple[Answer, ...]
    new_answers: tuple[Answer, ...]


class Unpaired(Record):
    """A question that was not compared."""

    case: str
    why: Why


class Difference(Record):
    """What else is not the same in the two runs: a key of config or bot, and both values as JSON."""

    key: str
    old: str
    new: str


class Comparison(Record):
    """All that two runs say of each other. ``lead``: the metric whose changes are listed as flips."""

    format: Literal["comparison.v1"] = "comparison.v1"
    old: Source
    new: Source
    same_dataset: bool
    same_judge: bool | None
    paired: int
    populations: dict[str, int]
    unpaired: tuple[Unpaired, ...]
    differences: tuple[Difference, ...]
    lead: str
    changes: tuple[Change, ...]
    drops: tuple[Drop, ...]
    flips: tuple[Flip, ...]
    notes: tuple[str, ...]
    exit_code: int

    @property
    def headline(self) -> Change:
        """The change of the lead metric."""
        return next(change for change in self.changes if change.metric == self.lead)


def compare(
    old: Measured,
    new: Measured,
    max_drops: Mapping[str, float] | None = None,
    *,
    common_cases: bool = False,
    any_judge: bool = False,
) -> Comparison:
    """Compare two runs.

    Args:
        max_drops: metric → by how much it may get worse, in [0, 1).
        common_cases: compare what two datasets have in common.
        any_judge: compare readings of different judges.

    Raises:
        UserError: the runs cannot be compared, or a metric of ``max_drops`` is not in both.
    """
    same_judge = _same_judge(old, new, any_judge)
    paired, unpaired = _pair(old, new, common_cases)
    metrics, notes = _common_metrics(old, new)
    drops = max_drops or {}
    _check_drops(drops, metrics)
    pairs = {
        name: Pairs.of(metric, paired, old.values[name], new.values[name])
        for name, metric in ((metric.id, metric) for metric in metrics)
    }
    changes = tested([change_of(pairs[metric.id]) for metric in metrics], pairs)
    lead = lead_metric(metrics)
    assert lead is not None
    decided = tuple(
        decide_drop(pairs[name], margin, measured=new.source.judge_measured) for name, margin in drops.items()
    )
    return Comparison(
        old=old.source,
        new=new.source,
        same_dataset=old.source.dataset_digest == new.source.dataset_digest,
        same_judge=same_judge,
        paired=len(paired),
        populations=_populations(paired, new),
        unpaired=unpaired,
        differences=_differences(old, new),
        lead=lead.id,
        changes=changes,
        drops=decided,
        flips=_flips(pairs[lead.id], old, new),
        notes=(*notes, *_cautions(old, new, paired, same_judge, changes)),
        exit_code=exit_code(decided),
    )


# ---------------------------------------------------------------- what can be compared


def _same_judge(old: Measured, new: Measured, any_judge: bool) -> bool | None:
    a, b = old.source, new.source
    if a.judge is None or b.judge is None:
        return None
    if a.judge != b.judge and not any_judge:
        raise UserError(
            f"the answers were read by different judges: {a.judge_name} ({a.judge[:15]}…) "
            f"and {b.judge_name} ({b.judge[:15]}…)",
            "what changed may be the judge: run one of them again, or compare anyway with --any-judge",
        )
    return a.judge == b.judge


def _pair(old: Measured, new: Measured, common_cases: bool) -> tuple[list[str], tuple[Unpaired, ...]]:
    """The questions in both runs, in the new run's order, and those that are not."""
    a, b = old.source, new.source
    if a.dataset_digest != b.dataset_digest and not common_cases:
        raise UserError(
            f"the runs asked different datasets: {a.dataset} ({a.dataset_digest[:15]}…) "
            f"and {b.dataset} ({b.dataset_digest[:15]}…)",
            "compare the questions that did not change with --common-cases",
        )
    paired = [case for case, digest in new.digests.items() if old.digests.get(case) == digest]
    unpaired = tuple(_unpaired(old, new))
    total = len(paired) + len(unpaired)
    if not paired or len(unpaired) > MOST_LOST * total:
        named = ", ".join(f"{one.case} ({one.why})" for one in unpaired[:5])
        more = f" and {len(unpaired) - 5} more" if len(unpaired) > 5 else ""
        raise UserError(
            f"{len(unpaired)} of {count(total, 'question')} without a partner in the other: {named}{more}",
            f"a comparison may lose at most {100 * MOST_LOST:.0f} %: run both on one dataset",
        )
    return paired, unpaired


def _unpaired(old: Measured, new: Measured) -> Iterable[Unpaired]:
    for case, digest in old.digests.items():
        if case not in new.digests:
            yield Unpaired(case=case, why="only in the old run")
        elif new.digests[case] != digest:
            yield Unpaired(case=case, why="not the same question any more")
    for case in new.digests:
        if case not in old.digests:
            yield Unpaired(case=case, why="only in the new run")


def _common_metrics(old: Measured, new: Measured) -> tuple[list[Metric], list[str]]:
    """Rates and scores that both runs measured in the same way, and notes on those left out.

    A check that the judge's readings are corrected by is part of them and no result of its own.
    """
    checks = new.checks & old.checks
    both = [metric for name, metric in new.metrics.items() if name in old.metrics and name not in checks]
    same = [metric for metric in both if same_meaning(metric, old.metrics[metric.id])]
    if not same:
        raise UserError("the runs have no rate and no score in common", "run both with the same scorers")
    notes = []
    others = (name for name in old.metrics.keys() ^ new.metrics.keys() if not name.endswith(BY_LABELS))
    if alone := sorted(others):
        notes.append(f"measured in one run only, left out: {', '.join(alone)}")
    if other := sorted(metric.id for metric in both if metric not in same):
        notes.append(f"defined otherwise in the other run, left out: {', '.join(other)}")
    return same, notes


def _check_drops(drops: Iterable[str], metrics: Sequence[Metric]) -> None:
    known = [metric.id for metric in metrics]
    for name in drops:
        if name not in known:
            hint = nearest(name, known) or f"compared here: {', '.join(known)}"
            raise UserError(f"--max-drop {name}: not a rate or score of both runs", hint)


# ---------------------------------------------------------------- what stands beside the numbers


def _populations(paired: Sequence[str], new: Measured) -> dict[str, int]:
    groups = [new.cases[case].population for case in paired]
    return {"all": len(groups)} | {name: groups.count(name) for name in ("answerable", "unanswerable")}


def _flips(pairs: Pairs, old: Measured, new: Measured) -> tuple[Flip, ...]:
    """The questions that changed, those that got worse first, the largest change first."""
    sign = 1 if pairs.metric.better == "higher" else -1
    changed = [
        (sign * (b - a), place, case, a, b)
        for place, (case, (a, b)) in enumerate(zip(pairs.cases, pairs.means, strict=True))
        if a != b
    ]
    changed.sort()
    names = [case for _, _, case, _, _ in changed]
    was, now = old.answers(names), new.answers(names)
    return tuple(
        Flip(
            case=case,
            question=new.cases[case].question,
            category=new.cases[case].category,
            old=a,
            new=b,
            better=good > 0,
            old_answers=was[case],
            new_answers=now[case],
        )
        for good, _, case, a, b in changed
    )


def _differences(old: Measured, new: Measured) -> tuple[Difference, ...]:
    if not old.facts or not new.facts:
        return ()
    return tuple(
        Difference(key=key, old=canonical_json(was), new=canonical_json(now))
        for key, was, now in differing(old.facts, new.facts)
    )


def _cautions(
    old: Measured, new: Measured, paired: Sequence[str], same_judge: bool | None, changes: Sequence[Change]
) -> Iterable[str]:
    if same_judge is False:
        yield "the judges differ: a change may be the judge's and not the bot's"
    if any(change.judged for change in changes) and not new.source.judge_measured:
        yield "judged rates are the judge's own reading, not corrected for its errors"
    if any(change.metric.endswith(BY_LABELS) for change in changes):
        yield "(labels): what labels alone say, of one labelled answer a question; no judge is in it"
    if old.source.draws != new.source.draws:
        yield f"{old.source.draws} and {new.source.draws} draws a question: each question counts by its mean"
    clusters = [new.cases[case].cluster for case in paired if new.cases[case].cluster]
    if len(set(clusters)) < len(clusters):
        yield "questions of one cluster were taken as unrelated: the intervals may be too narrow"
    if old.source.kind == "baseline":
        yield "a baseline keeps no answers: the old ones are not shown"
