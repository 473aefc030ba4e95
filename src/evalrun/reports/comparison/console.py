"""The screen of ``evalrun diff``.

Owns the layout, from 80 columns on; the wording is that of ``words``. Text of models and datasets is shown
with its control characters written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evalrun.comparison import Change, Comparison, Drop, Flip
from evalrun.comparison.measured import Answer
from evalrun.reports import words
from evalrun.reports.comparison import words as told
from evalrun.reports.console import STYLE
from evalrun.reports.screen import columns_of, cut, print_lines, wrapped

NAMED = 24
"""So many questions are named in a line; the page and the JSON hold all."""
_FIGURES = 56


def print_comparison(
    comparison: Comparison, stream: TextIO, full: bool = False, width: int | None = None
) -> None:
    """Print a comparison; ``full`` adds both answers to every question that changed."""
    columns = columns_of(stream, width)
    parts = [
        _head(comparison, columns),
        _table(comparison, columns),
        [line for text in told.headline(comparison) for line in wrapped(text, columns)],
        _drops(comparison, columns),
        _flips(comparison, columns, full),
        _notes(comparison, columns),
        _end(comparison, columns),
    ]
    lines = [line for part in parts if part for line in [*part, Text()]]
    print_lines(lines[:-1], stream, columns)


def _head(comparison: Comparison, columns: int) -> list[Text]:
    old, new = comparison.old, comparison.new
    title = f"evalrun diff {old.path} {new.path} · {new.dataset}"
    lines = [*wrapped(title, columns, style="bold"), *wrapped(told.head(comparison), columns)]
    if warning := told.one_call(comparison):
        lines += wrapped(f"! {warning}", columns, style="yellow")
    for place, text in enumerate(told.differences(comparison)):
        lines.append(Text.assemble((f"{'differs' if not place else '':<9}", "dim"), cut(text, columns - 9)))
    return lines


def _table(comparison: Comparison, columns: int) -> list[Text]:
    label = columns - _FIGURES
    widest = max(cell_len(words.one_line(change.event)) for change in comparison.changes) + 4
    label = min(label, widest)
    level = words.percent(comparison.changes[0].confidence) + " interval"
    lines = [Text(f"{'':<{label}}{'old':>4} {'new':>5} {'change':>7}  {level:<14}{'p (Holm)':>8}", "bold")]
    for section in told.sections(comparison):
        lines.append(Text(words.one_line(section.title)))
        lines += [line for change in section.changes for line in _row(change, label)]
    return lines


def _row(change: Change, label: int) -> Iterator[Text]:
    """The figures of a change beside its name, as the run's screen has it; below it, if that is long."""
    name = words.one_line(change.event)
    if cell_len(name) > label - 3:
        yield Text(f"  {name}")
        name = ""
    yield _figures(change, Text(set_cell_size(f"  {name}", label - 1) + " "))


def _figures(change: Change, line: Text) -> Text:
    if change.change is None:
        reason = words.REASON_WORD.get(change.reason or "", change.reason or "no data")
        return line.append(f"{'–':>4}  {reason}", "dim")
    line.append(f"{words.rate(change.old):>4} {words.rate(change.new):>5} ")
    line.append(f"{told.signed(change.change):>7}", "bold")
    line.append(f"  {told.limits(change.low, change.high):<14}", "dim")
    line.append(f"{told.p_value(change.p_holm):>7}  ")
    tone = told.TONE.get(change.word)
    return line.append(change.word, STYLE[tone] if tone else "dim")


def _drops(comparison: Comparison, columns: int) -> list[Text]:
    if not comparison.drops:
        return []
    names = [f"{words.one_line(drop.event)}: {told.drop_needs(drop)}" for drop in comparison.drops]
    width = min(max(map(cell_len, names)) + 2, columns - 42)
    lines: list[Text] = []
    for place, (name, drop) in enumerate(zip(names, comparison.drops, strict=True)):
        lines += _drop("GATES" if not place else "", name, drop, width, columns)
    return lines


def _drop(head: str, name: str, drop: Drop, width: int, columns: int) -> Iterator[Text]:
    line = Text(f"{head:<7}", "bold")
    if cell_len(name) > width - 2:  # the margin stands at its end
        yield Text.assemble(line, (name, "not bold"))
        line, name = Text(" " * 7), ""
    line.append(set_cell_size(name, width), "not bold")
    line.append(f"{told.drop_measured(drop):<16} ")
    word, _, weak = told.drop_word(drop).partition(" ")
    fits = line.cell_len + len(word) + 1 + len(weak) <= columns
    yield line.append(f"{word} {weak}" if weak and fits else word, STYLE[drop.decision])
    if weak and not fits:
        yield Text(" " * 11 + weak, "dim")
    yield from wrapped(told.drop_advice(drop), columns, 11, "dim")


# ---------------------------------------------------------------- what flipped


def _flips(comparison: Comparison, columns: int, full: bool) -> list[Text]:
    worse, better = told.flips(comparison)
    lines: list[Text] = []
    for head, flips, style in (("WORSE", worse, "red"), ("BETTER", better, "green")):
        if flips and full:
            lines += _shown(head, flips, columns)
        elif flips:
            lines += _named(head, [flip.case for flip in flips], columns, style)
    if lines and not full:
        lines.append(Text("       both answers: --full, or --html FILE", "dim"))
    return lines


def _named(head: str, cases: Sequence[str], columns: int, style: str) -> Iterator[Text]:
    more = f" and {len(cases) - NAMED} more" if len(cases) > NAMED else ""
    for place, line in enumerate(wrapped(" ".join(cases[:NAMED]) + more, columns - 7)):
        yield Text.assemble((f"{head if not place else '':<7}", "bold"), (line.plain, style))


def _shown(head: str, flips: Iterable[Flip], columns: int) -> Iterator[Text]:
    for flip in flips:
        asked = f'{head}  {flip.case}  {words.rate(flip.old)} → {words.rate(flip.new)}  "{flip.question}"'
        yield Text(cut(asked, columns), "bold")
        for name, answers in (("old", flip.old_answers), ("new", flip.new_answers)):
            for answer in answers:
                yield from _answer(name, answer, columns)


def _answer(name: str, answer: Answer, columns: int) -> Iterator[Text]:
    text = "(not kept)" if answer.text is None else answer.text
    said = f"{told.outcome(answer.outcome)}: {text}"
    for place, line in enumerate(wrapped(said, columns - 7)):
        yield Text.assemble((f"  {name if not place else '':<5}", "dim"), line.plain)


# ---------------------------------------------------------------- the end


def _notes(comparison: Comparison, columns: int) -> list[Text]:
    left = [f"{one.case} ({one.why})" for one in comparison.unpaired]
    texts = [f"not compared: {', '.join(left)}"] if left else []
    texts += [*told.missing(comparison), *comparison.notes]
    lines = []
    for text in texts:
        for place, line in enumerate(wrapped(text, columns - 7)):
            lines.append(Text.assemble(("note   " if not place else " " * 7, "yellow"), line.plain))
    return lines


def _end(comparison: Comparison, columns: int) -> list[Text]:
    text, code = told.sentence(comparison), f"exit {comparison.exit_code}"
    gap = max(4, min(20, columns - cell_len(text) - len(code)))
    return [Text.assemble((text, STYLE[told.tone(comparison)]), " " * gap, (code, "bold"))]
