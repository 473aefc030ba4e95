"""A comparison in Markdown, for a pull request: the table, the drops, and both answers to what changed.

Owns the layout; text of models and datasets stands in code spans that it cannot close.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalrun.comparison import Change, Comparison, Drop, Flip
from evalrun.comparison.measured import Answer
from evalrun.reports import words
from evalrun.reports.comparison import words as told
from evalrun.reports.markdown import SIGN, code, plain

FLIPS = 30
"""So many questions of each kind are shown with their answers."""
ANSWER = 400


def render(comparison: Comparison) -> bytes:
    """The comparison as Markdown."""
    worse, better = told.flips(comparison)
    parts = [
        _head(comparison),
        _table(comparison),
        [f"- {plain(text)}" for text in told.headline(comparison)],
        _drops(comparison.drops),
        _flips("got worse", worse),
        _flips("got better", better),
        _notes(comparison),
    ]
    return ("\n\n".join("\n".join(part) for part in parts if part) + "\n").encode()


def _head(comparison: Comparison) -> list[str]:
    sign = SIGN[told.tone(comparison)]
    lines = [
        f"## {sign} {plain(told.sentence(comparison))}",
        "",
        f"{code(comparison.old.path)} → {code(comparison.new.path)}, {code(comparison.new.dataset)}"
        f" · {plain(told.head(comparison))} · exit {comparison.exit_code}",
    ]
    if warning := told.one_call(comparison):
        lines += ["", f"! {plain(warning)}"]
    return lines


def _table(comparison: Comparison) -> list[str]:
    level = words.percent(comparison.changes[0].confidence)
    lines = [
        f"| | old | new | change | {level} interval | p (Holm) | |",
        "|---|--:|--:|--:|---|--:|---|",
    ]
    for section in told.sections(comparison):
        lines.append(f"| **{plain(section.title)}** | | | | | | |")
        lines += [_row(change) for change in section.changes]
    return lines


def _row(change: Change) -> str:
    cells = [
        plain(change.event),
        words.rate(change.old),
        words.rate(change.new),
        told.signed(change.change),
        plain(told.limits(change.low, change.high) or words.REASON_WORD.get(change.reason or "", "")),
        plain(told.p_value(change.p_holm)),
        change.word,
    ]
    return f"| {' | '.join(cells)} |"


def _drops(drops: Sequence[Drop]) -> list[str]:
    if not drops:
        return []
    lines = ["| gate | needs | measured | verdict | |", "|---|---|---|---|---|"]
    for drop in drops:
        word = f"{SIGN[drop.decision]} {plain(told.drop_word(drop))}"
        cells = [plain(drop.event), told.drop_needs(drop), told.drop_measured(drop), word]
        lines.append(f"| {' | '.join([*cells, plain(told.drop_advice(drop))])} |")
    return lines


def _flips(what: str, flips: Sequence[Flip]) -> list[str]:
    if not flips:
        return []
    shown = flips[:FLIPS]
    more = f", the first {len(shown)} shown" if len(shown) < len(flips) else ""
    lines = [f"<details><summary>{words.count(len(flips), 'question')} {what}{more}</summary>", ""]
    for flip in shown:
        figures = f"{words.rate(flip.old)} → {words.rate(flip.new)}"
        lines.append(f"- {code(flip.case)} {figures} {code(flip.question)}")
        lines += [f"  - old: {text}" for text in _answers(flip.old_answers)]
        lines += [f"  - new: {text}" for text in _answers(flip.new_answers)]
    return [*lines, "", "</details>"]


def _answers(answers: Iterable[Answer]) -> Iterable[str]:
    for answer in answers:
        text = "not kept" if answer.text is None else code(answer.text, ANSWER)
        yield f"{plain(told.outcome(answer.outcome))}: {text}"


def _notes(comparison: Comparison) -> list[str]:
    lines = [f"- not compared: {code(one.case)}, {one.why}" for one in comparison.unpaired]
    lines += [f"- differs: {code(text, 400)}" for text in told.differences(comparison)]
    return lines + [f"- note: {plain(text)}" for text in (*told.missing(comparison), *comparison.notes)]
