"""How a judge's certificates and corrected rates read, in every report alike.

Owns the words: what a dimension's yes and no are called, how a figure of agreement is printed, which rates
were not corrected and why. The figures are those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evalrun.digest import short
from evalrun.records import Certificate, Correction, Dimension, Figure, RunHeader
from evalrun.reports import words
from evalrun.reports.comparison.figures import signed

DESIGN = {
    "random": "random draws",
    "by_verdict": "draws chosen by verdict",
    "external": "draws of other runs",
    "unknown": "draws chosen in an unknown way",
}


@dataclass(frozen=True)
class Words:
    """How yes and no of a dimension are called."""

    yes: str
    no: str
    finds: str
    clears: str
    of_yes: str
    of_no: str


WORDS: dict[Dimension, Words] = {
    "refusal": Words("refused", "answered", "finds refusals", "clears answers", "refusals", "answers"),
    "faithful": Words(
        "faithful",
        "unfaithful",
        "clears faithful",
        "finds unfaithful",
        "faithful answers",
        "unfaithful answers",
    ),
}

# ---------------------------------------------------------------- figures


def value_of(figure: Figure) -> str:
    """``.90``, ``-.18``, or why there is no value."""
    if figure.value is None:
        return f"undefined ({words.REASON_WORD.get(figure.reason or '', figure.reason or 'no data')})"
    return signless(figure.value)


def limits_of(figure: Figure) -> str:
    """``[.70, .99]``, or an empty string."""
    return "" if figure.low is None else f"[{signless(figure.low)}, {signless(figure.high)}]"


def count_of(figure: Figure) -> str:
    """``19 of 21``."""
    return f"{figure.count} of {figure.n}" if figure.n else "no such label"


def signless(value: float | None) -> str:
    """A share, or a coefficient that may be below 0, which then has its sign."""
    return words.rate(value) if value is None or value >= 0 else signed(value)


def _whole(figure: Figure) -> str:
    return f"{value_of(figure)} {limits_of(figure)}".rstrip()


# ---------------------------------------------------------------- a certificate


def named_figures(found: Certificate) -> list[tuple[str, Figure, str]]:
    """(name, figure, what stands beside it) of all that such labels allow."""
    told = WORDS[found.dimension]
    if found.by_verdict is not None:
        yes, no = found.by_verdict
        return [
            (f"judged {told.yes}, labelled so", yes, count_of(yes)),
            (f"judged {told.no}, labelled {told.yes}", no, count_of(no)),
        ]
    return [
        (f"{told.finds} (sensitivity)", found.sensitivity, count_of(found.sensitivity)),
        (f"{told.clears} (specificity)", found.specificity, count_of(found.specificity)),
        ("agreement", found.agreement, count_of(found.agreement)),
        ("kappa", found.kappa, words.REASON_WORD.get(found.kappa.reason or "", "")),
    ]


def sure(found: Certificate) -> str:
    """How often the judge is right of a yes and of a no, in a line; or why that is not known."""
    if found.void:
        return f"void: {found.void}"
    told = WORDS[found.dimension]
    if found.by_verdict is not None:
        yes, no = map(_whole, found.by_verdict)
        return f'{yes} of its "{told.yes}" are so by the labels, {no} of its "{told.no}"'
    finds, clears = _whole(found.sensitivity), _whole(found.specificity)
    first, second = told.finds.split()[0], told.clears.split()[0]
    return f"{first} {finds} of {told.of_yes}, {second} {clears} of {told.of_no}"


def source(found: Certificate) -> str:
    """``64 random draws, model reading, 2026-11-30 (refusal.v1.jsonl)``."""
    lost = [
        f"{number:,} {what}"
        for number, what in (
            (found.stale, "of another answer"),
            (found.elsewhere, "of other questions"),
            (found.unjudged, "without a verdict"),
        )
        if number
    ]
    compared = f"{found.n:,} {DESIGN[found.design]}"
    more = f" ({', '.join(lost)} left out)" if lost else ""
    file = words.one_line(found.file, 60)
    return f"{compared}{more}, {found.kind} reading, {found.date.isoformat()}, {file}"


def agreed(found: Certificate) -> str:
    """``agreement .89 [.79, .95], kappa .76 [.57, .91]``; empty where these labels do not allow it."""
    if found.void or found.by_verdict is not None:
        return ""
    return f"agreement {_whole(found.agreement)}, kappa {_whole(found.kappa)}"


@dataclass(frozen=True)
class Area:
    """A part of the table as an area, in hundredths: columns are labels yes and no, rows the judge's."""

    x: float
    y: float
    width: float
    height: float
    same: bool


def areas(found: Certificate) -> list[Area]:
    """The table as four areas, each as large as its share of the answers; those of no answer left out."""
    (tp, fp), (fn, tn) = found.table.rows
    made, x = [], 0.0
    for yes, no, same in ((tp, fn, True), (fp, tn, False)):
        width = 100 * (yes + no) / found.table.total if found.table.total else 0.0
        top = 100 * yes / (yes + no) if yes + no else 0.0
        made += [Area(x, 0.0, width, top, same), Area(x, top, width, 100 - top, not same)]
        x += width
    return [area for area in made if area.width and area.height]


def standing(header: RunHeader) -> list[Certificate]:
    """The certificates that are not void."""
    return [found for found in header.certificates if not found.void]


def belongs(header: RunHeader) -> str:
    """What voids all of it."""
    digest = short(header.judge.fingerprint)[:4] if header.judge else ""
    return f"void if model, rubric or parameters change ({digest}…)"


# ---------------------------------------------------------------- corrected rates


def corrected(found: Correction) -> str:
    """``.77 [.63, .86]``, with what is odd about it."""
    text = f"{words.rate(found.value)} {words.interval('rate', found.low, found.high)}"
    return f"{text} (clipped: the labels' error rates do not fit this run)" if found.clipped else text


def uncorrected(header: RunHeader) -> Iterator[str]:
    """``right, correct: labels do not say …``: what could not be corrected where it is shown, by reason."""
    whole = {(metric.id, metric.population) for metric in header.metrics}
    gated = {(verdict.gate.metric, verdict.gate.group) for verdict in header.verdicts}
    reasons: dict[str, list[str]] = {}
    for estimate in header.estimates:
        why, name = estimate.corrected.why if estimate.corrected else "", (estimate.metric, estimate.group)
        if why and estimate.planned and name in whole | gated:
            told = estimate.metric if name in whole else " ".join(name)
            reasons.setdefault(why, []).append(words.one_line(told))
    yield from (f"{', '.join(names)}: {why}" for why, names in reasons.items())


def assumptions(header: RunHeader) -> list[str]:
    """What the corrected rates take for granted, each once."""
    found = (estimate.measured for estimate in header.estimates)
    return list(dict.fromkeys(one.assumes for one in found if one is not None and one.assumes))
