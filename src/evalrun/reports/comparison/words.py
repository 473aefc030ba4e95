"""How a comparison reads: signed figures, headings, and the advice that follows from the numbers.

Owns the wording, and the thresholds of what is worth saying; one wording for console, Markdown and page. The
numbers are those of the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evalrun.comparison import Change, Comparison, Drop, Flip
from evalrun.comparison.changes import MIRRORED
from evalrun.records import Decision
from evalrun.reports import words
from evalrun.reports.comparison.figures import about, limits, p_value, signed
from evalrun.reports.words import count, one_line, rate

__all__ = [
    "about",
    "differences",
    "drop_advice",
    "drop_measured",
    "drop_needs",
    "drop_word",
    "flips",
    "head",
    "headline",
    "limits",
    "missing",
    "one_call",
    "outcome",
    "p_value",
    "sections",
    "sentence",
    "signed",
    "tone",
]

DIFFERENCES = 6
"""So many keys of config and bot are named; the JSON holds all."""
TONE: dict[str, Decision] = {
    "better": "holds",
    "likely better": "holds",
    "worse": "fails",
    "likely worse": "undecided",
}


# ---------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class Section:
    """A heading and the changes under it."""

    title: str
    changes: tuple[Change, ...]


def sections(comparison: Comparison) -> list[Section]:
    """The changes by population, then retrieval."""
    drawn = [change for change in comparison.changes if change.per == "draw"]
    found = []
    for name, questions in comparison.populations.items():
        chosen = tuple(change for change in drawn if change.population == name)
        found.append(Section(f"{name}, {count(questions, 'question')}", chosen))
    retrieval = tuple(change for change in comparison.changes if change.per == "case")
    most = max((change.n for change in retrieval), default=0)
    found.append(Section(f"retrieval, {count(most, 'question')}", retrieval))
    return [section for section in found if section.changes]


def head(comparison: Comparison) -> str:
    """``same dataset, same judge, 150 of 150 questions paired, 1 draw each``."""
    total = comparison.paired + len(comparison.unpaired)
    draws = [comparison.old.draws, comparison.new.draws]
    each = " and ".join(str(number) for number in dict.fromkeys(draws))
    parts = [
        _dataset(comparison),
        {True: "same judge", False: "DIFFERENT judges", None: "no judge in common"}[comparison.same_judge],
        f"{comparison.paired} of {count(total, 'question')} paired",
        f"{each} {'draw' if draws == [1, 1] else 'draws'} each",
    ]
    return ", ".join(parts)


def _dataset(comparison: Comparison) -> str:
    if comparison.same_dataset:
        return "same dataset"
    return "DIFFERENT datasets, common questions" if comparison.unpaired else "same questions in another file"


def one_call(comparison: Comparison) -> str:
    """The warning that a single draw hides the noise of the model; empty where each run has several."""
    single = [name for name in ("old", "new") if getattr(comparison, name).draws == 1]
    if not single or not any(change.per == "draw" for change in comparison.changes):
        return ""
    each = "each" if len(single) == 2 else f"a question in the {single[0]} run"
    return f"one model call {each}: a rerun also flips answers; use --draws 3 to separate"


def differences(comparison: Comparison) -> Iterator[str]:
    """What else differs: ``bot.model: "a" → "b"``."""
    for one in comparison.differences[:DIFFERENCES]:
        yield f"{one_line(one.key, 60)}: {one_line(one.old, 60)} → {one_line(one.new, 60)}"
    if (more := len(comparison.differences) - DIFFERENCES) > 0:
        yield f"and {more} more"


def missing(comparison: Comparison) -> Iterator[str]:
    """What has no score, said once for all metrics that it is true of."""
    found: dict[str, list[str]] = {}
    for change in comparison.changes:
        parts = []
        if any(change.missing):
            noun = "answers" if change.per == "draw" else "questions"
            old, new = change.missing
            parts.append(f"{noun} without a score: {old} in the old run, {new} in the new")
        if change.left_out:
            parts.append(left_out(change.left_out))
        if parts:
            found.setdefault("; ".join(parts), []).append(one_line(change.event))
    yield from (f"{text}: {', '.join(metrics)}" for text, metrics in found.items())


def left_out(questions: int) -> str:
    """``4 questions left out, without a score in one of the runs``."""
    return f"{count(questions, 'question')} left out, without a score in one of the runs"


# ---------------------------------------------------------------- what follows from it


def headline(comparison: Comparison) -> list[str]:
    """What the lead metric shows, what would show more, and what the average hides."""
    lead = comparison.headline
    return [_told(lead), *_more(lead), *_opposite(comparison, lead)]


def _told(lead: Change) -> str:
    if lead.change is None:
        return f'Nothing can be said of "{one_line(lead.event)}": no question has a score in both runs.'
    if lead.low is None or lead.high is None:
        return f'One question decides nothing about "{one_line(lead.event)}".'
    if not lead.better + lead.worse:
        most = max(-lead.low, lead.high)
        return (
            f'No question changed in "{one_line(lead.event)}"; '
            f"a difference of up to {rate(most)} could still hide behind {count(lead.n, 'question')}."
        )
    asked = f'"{rate(lead.old)} or {rate(lead.new)}?"'
    verb = "flipped" if lead.cells else "changed"
    moved = f"{count(lead.better + lead.worse, 'question')} {verb}, {lead.better} up, {lead.worse} down"
    if lead.low <= 0 <= lead.high:
        return f"{asked}  This test cannot tell: {moved}."
    good = (lead.change > 0) == (lead.good == "higher")
    least = min(abs(lead.low), abs(lead.high))
    return f"{asked}  It got {'better' if good else 'worse'}, by at least {rate(least)}: {moved}."


def _more(lead: Change) -> Iterator[str]:
    """Only where the test cannot tell and there is something to see."""
    if lead.low is None or lead.high is None or not lead.low <= 0 <= lead.high:
        return
    if lead.change and lead.needed and lead.needed > lead.n:
        yield f"Seeing {signed(lead.change)} with 80% power takes about {about(lead.needed)} questions."


def _opposite(comparison: Comparison, lead: Change) -> Iterator[str]:
    """What moved against the lead metric; where that shows nothing, what moved both ways."""
    others = [c for c in comparison.changes if c.metric != lead.metric and c.metric not in MIRRORED]
    up = [change for change in others if change.word.endswith("better")]
    down = [change for change in others if change.word.endswith("worse")]
    if against := down if lead.word.endswith("better") else up if lead.word.endswith("worse") else []:
        yield f"But {_moves(against)}."
    elif up and down and not lead.word.endswith(("better", "worse")):
        yield f"But the average hides opposite moves: {_moves(up)}; {_moves(down)}."


def _moves(changes: Iterable[Change]) -> str:
    return ", ".join(f'"{one_line(change.event)}" is {change.word}' for change in changes)


# ---------------------------------------------------------------- drops


def drop_needs(drop: Drop) -> str:
    """``drop at most .05``; what is better when lower may rise."""
    return f"{'drop' if drop.good == 'higher' else 'rise'} at most {rate(drop.margin)}"


def drop_measured(drop: Drop) -> str:
    """The limit that decided, or both."""
    if drop.low is None or drop.high is None:
        return "–"
    worst, best = (drop.low, drop.high) if drop.good == "higher" else (drop.high, drop.low)
    if drop.decision == "holds":
        return f"at worst {signed(worst)}"
    if drop.decision == "fails":
        return f"at best {signed(best)}"
    return f"{signed(drop.low)} to {signed(drop.high)}"


def drop_word(drop: Drop) -> str:
    """``holds``, ``FAILS`` or ``UNDECIDED``, with what weakens it."""
    word = words.DECISION_WORD[drop.decision]
    return f"{word} (judge unmeasured)" if word == "holds" and drop.judge_measured is False else word


def drop_advice(drop: Drop) -> str:
    """Why it is undecided and what would decide; which questions it says nothing of."""
    told = drop.why
    if drop.needed:
        kind = "" if drop.population == "all" else f"{drop.population} "
        told = f"about {about(drop.needed)} {kind}questions would decide; you have {drop.n}"
    parts = [told if drop.decision == "undecided" else "", left_out(drop.left_out) if drop.left_out else ""]
    return "; ".join(part for part in parts if part)


def sentence(comparison: Comparison) -> str:
    """What the comparison comes to. It follows the exit code and decides nothing."""
    decisions = [drop.decision for drop in comparison.drops]
    if not decisions:
        return "nothing was asked of this comparison (ask with --max-drop METRIC=MARGIN)"
    if "fails" in decisions:
        return (
            f"{decisions.count('fails')} of {count(len(decisions), 'drop')} larger than allowed: it got worse"
        )
    if "undecided" in decisions:
        return "undecided: do not call this an improvement yet"
    return "no drop larger than allowed"


def tone(comparison: Comparison) -> Decision:
    """The colour of the sentence."""
    decisions = [drop.decision for drop in comparison.drops]
    if "fails" in decisions:
        return "fails"
    return "undecided" if "undecided" in decisions or not decisions else "holds"


# ---------------------------------------------------------------- flips


def flips(comparison: Comparison) -> tuple[list[Flip], list[Flip]]:
    """(got worse, got better), each the largest change first."""
    worse = [flip for flip in comparison.flips if not flip.better]
    return worse, [flip for flip in comparison.flips if flip.better][::-1]


def outcome(name: str | None) -> str:
    """An outcome in words."""
    return one_line(name).replace("_", " ") if name else "no outcome"
