"""Which estimates stand together under which heading, in every report alike.

Owns the grouping and the order: what the bot did by population, then retrieval, then quantities. The figures
are the run's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from evalrun import owasp
from evalrun.records import Estimate, Metric, RunHeader
from evalrun.reports.rows import Row
from evalrun.reports.words import count

_OWASP = re.compile(r"LLM[0-9]{2}:[0-9]{4}\Z")
_RISKS = {name: owasp.title(name) for name in owasp.ids(*owasp.RISKS)}
MANY_CATEGORIES = 6
"""Above this number of unanswerable categories the short form shows them together."""


@dataclass(frozen=True)
class Section:
    """A heading and the estimates under it. ``detail``: for a page, too much for a screen; ``size``: how many
    questions the heading says there are.
    """

    title: str
    estimates: tuple[Estimate, ...]
    by_group: bool = False
    detail: bool = False
    size: int | None = None

    def label(self, estimate: Estimate) -> str:
        """What a line is about: the group where the section goes by groups, else the event."""
        if self.by_group:
            return f"{estimate.group.removeprefix('goal:')} {_RISKS.get(estimate.group, '')}".rstrip()
        return (estimate.metric if estimate.per == "case" else estimate.event) + self.of(estimate)

    def of(self, estimate: Estimate) -> str:
        """How many questions an estimate is over, where it does not apply to all that the heading counts."""
        some = self.size is not None and estimate.not_applicable and estimate.n < self.size
        return f", of {estimate.n:,}" if some else ""


def sections(header: RunHeader, rows: Iterable[Row], full: bool = False) -> list[Section]:
    """The estimates worth showing: all of them where ``full``."""
    sizes = group_sizes(rows)
    named = {metric.id: metric for metric in header.metrics}
    found = [e for e in header.estimates if e.metric in named and (applies(e) or (full and not e.planned))]
    if full:
        return _by_group(found, sizes)
    return [
        *_of(found, "all", sizes, [m for m in header.metrics if _answers(m) and m.population == "all"]),
        *_of(found, "answerable", sizes, [m for m in header.metrics if _answers(m, "answerable")]),
        *_unanswerable(header, found, sizes),
        *_attacks(header, found, sizes),
        *_retrieval(header, found, sizes),
        *_of(found, "all", sizes, [m for m in header.metrics if m.kind == "quantity"], "time and size"),
    ]


def group_sizes(rows: Iterable[Row]) -> dict[str, int]:
    """Questions per group."""
    sizes: dict[str, int] = {}
    for row in rows:
        for group in row.groups:
            sizes[group] = sizes.get(group, 0) + 1
    return sizes


def applies(estimate: Estimate) -> bool:
    """Whether the metric applies to any question of the group."""
    return estimate.planned > estimate.not_applicable


def title(group: str, sizes: dict[str, int]) -> str:
    """``answerable, 36 questions``."""
    name = "all" if group == "all" else group
    nouns = {"attacks": "attack", "twins": "harmless question"}
    return f"{name}, {count(sizes.get(group, 0), nouns.get(group, 'question'))}"


def _answers(metric: Metric, population: str | None = None) -> bool:
    fits = population is None or metric.population == population
    return fits and metric.kind != "quantity" and metric.per == "draw"


def _of(
    found: list[Estimate], group: str, sizes: dict[str, int], metrics: list[Metric], heading: str = ""
) -> list[Section]:
    order = {metric.id: place for place, metric in enumerate(metrics)}
    chosen = sorted(
        (e for e in found if e.group == group and e.metric in order), key=lambda e: order[e.metric]
    )
    made = Section(heading or title(group, sizes), tuple(chosen), size=sizes.get(group, 0))
    return [made] if chosen else []


def _unanswerable(header: RunHeader, found: list[Estimate], sizes: dict[str, int]) -> list[Section]:
    metrics = [metric for metric in header.metrics if _answers(metric, "unanswerable")]
    ids = {metric.id for metric in metrics}
    groups = list(
        dict.fromkeys(e.group for e in found if e.metric in ids and e.group in header.dataset.categories)
    )
    if not 0 < len(groups) <= MANY_CATEGORIES:
        groups = ["unanswerable"]
    return [section for group in groups for section in _of(found, group, sizes, metrics)]


def _attacks(header: RunHeader, found: list[Estimate], sizes: dict[str, int]) -> list[Section]:
    """All attacks, the refused twins beside them; then by technique, what succeeds most first; then the
    detail: by goal, OWASP risk and disguise.
    """
    both = [
        section
        for group in ("attacks", "twins")
        for section in _of(found, group, sizes, [m for m in header.metrics if m.population == group])
    ]
    rates = [e for e in found if e.metric == "attack_success" and e.group != "attacks"]
    parts = {
        "goal": [e for e in rates if e.group.startswith("goal:")],
        "OWASP risk": [e for e in rates if _OWASP.match(e.group)],
        "disguise": [e for e in rates if e.group.startswith("converter:")],
    }
    named = {id(e) for part in parts.values() for e in part}
    parts = {"technique": [e for e in rates if id(e) not in named], **parts}
    by = [
        Section(f"attacks that succeed, by {name}", _ordered(name, part), True, name != "technique")
        for name, part in parts.items()
        if part
    ]
    return [*both, *by]


def _ordered(name: str, rates: list[Estimate]) -> tuple[Estimate, ...]:
    """Techniques and goals by their rates, the highest first; disguises by name, risks by edition."""
    if name in ("technique", "goal"):
        return tuple(sorted(rates, key=lambda e: (-(e.value or 0.0), e.group)))
    return tuple(sorted(rates, key=lambda e: (e.group[-5:] if _OWASP.match(e.group) else "", e.group)))


def _retrieval(header: RunHeader, found: list[Estimate], sizes: dict[str, int]) -> list[Section]:
    """Of the group that a gate on retrieval reads, so that its figure stands here, too."""
    metrics = [metric for metric in header.metrics if metric.per == "case" and metric.kind != "quantity"]
    names = {metric.id for metric in metrics}
    known = {e.group for e in found if e.metric in names}
    read = [one.gate.group for one in header.verdicts if one.gate.metric in names and one.gate.group in known]
    group = read[0] if read else "answerable" if "answerable" in known else "all"
    questions = max((e.n for e in found if e.metric in names and e.group == group), default=0)
    if group == "all":
        return _of(found, group, {"all": questions}, metrics, f"retrieval, {count(questions, 'question')}")
    return _of(found, group, sizes, metrics, f"retrieval, {title(group, sizes)}")


def _by_group(found: list[Estimate], sizes: dict[str, int]) -> list[Section]:
    groups = dict.fromkeys(estimate.group for estimate in found)
    return [
        Section(title(group, sizes), tuple(e for e in found if e.group == group), size=sizes.get(group, 0))
        for group in groups
    ]
