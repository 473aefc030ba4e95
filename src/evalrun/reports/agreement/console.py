"""The screen of ``evalrun agree``.

Owns the layout, from 80 columns on, and the advice, which follows from coded thresholds. The figures are
those of :mod:`evalrun.agreement`; text of models is shown with its control characters written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from evalrun.agreement import Agreement, Pair
from evalrun.errors import ExitCode
from evalrun.invocation import as_started
from evalrun.records import Dimension, Figure, Verdict
from evalrun.reports import words
from evalrun.reports.certificates import WORDS, count_of, limits_of, signless, value_of
from evalrun.reports.comparison.figures import p_value, signed
from evalrun.reports.console import STYLE
from evalrun.reports.screen import columns_of, cut, print_lines, wrapped

FEWEST = 8
"""Fewer labels decide nothing, as fewer questions decide no gate."""
SAFE = 0.90
"""Alone before a gate: both limits at least this, so that at most one in ten is misread either way."""
SURE = 0.05
"""A lean is more than chance below this p."""
SHOWN = 3
"""So many disagreements without ``--full``."""
_LABEL = 34


def print_agreement(
    found: Agreement, stream: TextIO, full: bool = False, page: Path | None = None, width: int | None = None
) -> None:
    """Print how far judge and labels agree; ``full`` adds kappa's relatives and every disagreement.

    ``page``: the file that holds all disagreements, where there is one.
    """
    columns = columns_of(stream, width)
    parts = [
        _head(found, columns),
        _table(found),
        [*_figures(found, columns), *(_more(found) if full else ())],
        _gates(found, columns),
        _advice(found, columns),
        _pairs(found, columns, full, page),
        _notes(found, columns),
        _end(found, columns),
    ]
    lines = [line for part in parts if part for line in [*part, Text()]]
    print_lines(lines[:-1], stream, columns)


# ---------------------------------------------------------------- who was compared


def _head(found: Agreement, columns: int) -> list[Text]:
    judge = f"{found.judge.model}, rubric {found.judge.rubric}, temperature {found.judge.temperature:g}"
    facts = [("judge", judge), ("labels", _labels(found)), ("run", found.run)]
    lines = []
    for name, text in facts:
        for place, line in enumerate(wrapped(text, columns - 8)):
            lines.append(Text.assemble((f"{'' if place else name:<8}", "dim"), line.plain))
    return lines


def _labels(found: Agreement) -> str:
    """``refusal.v1: 64 random draws, one per question; 0 stale, 0 missing; model readings``."""
    source = found.labels
    design = {"random": "random ", "by_verdict": "by-verdict ", "external": "external ", "unknown": ""}
    name = Path(source.path).name.removesuffix(".jsonl")
    parts = [
        f"{name}: {words.count(found.labelled, design[source.design] + 'draw')}",
        f"{found.n} compared, {len(found.stale)} stale, {len(found.judge_missing)} without a verdict",
    ]
    if found.only_in_labels or found.only_in_run:
        parts.append(
            f"{words.count(len(found.only_in_labels), 'label')} of questions not in the run, "
            f"{words.count(len(found.only_in_run), 'question')} of the run without a label"
        )
    kinds = "".join(sorted({rater.kind for name, rater in source.raters.items() if name == source.rater}))
    parts.append(f"{kinds} reading, {source.date.isoformat()}")
    return "; ".join(parts)


def _table(found: Agreement) -> list[Text]:
    told, cells = WORDS[found.dimension], found.table
    width = max(len(told.no), len(told.yes), 8) + 3
    head = f"{'':<16}labels:{told.yes:>{width}}{told.no:>{width}}"
    rows = [(told.yes, cells.rows[0]), (told.no, cells.rows[1])]
    return [
        Text(head, "bold"),
        *(Text(f"judge: {name:<16}{one:>{width}}{two:>{width}}") for name, (one, two) in rows),
    ]


# ---------------------------------------------------------------- the figures


def _figures(found: Agreement, columns: int) -> list[Text]:
    lines = [_row(*figure) for figure in named_figures(found)]
    return lines if found.by_verdict is not None else [*lines, *wrapped(_lean(found), columns)]


def named_figures(found: Agreement) -> list[tuple[str, Figure, str]]:
    """(name, figure, what stands beside it) of all that may be reported for these labels."""
    told = WORDS[found.dimension]
    if found.by_verdict is not None:
        yes, no = found.by_verdict
        return [
            (f"judged {told.yes}, labelled so", yes, count_of(yes)),
            (f"judged {told.no}, labelled {told.yes}", no, count_of(no)),
        ]
    always = ""
    if found.majority_label is not None:
        word = told.yes if found.majority_label else told.no
        always = f'always "{word}": {words.rate(found.majority.value)}'
    figures = [
        (f"{told.finds} (sensitivity)", found.sensitivity, count_of(found.sensitivity)),
        (f"{told.clears} (specificity)", found.specificity, count_of(found.specificity)),
        ("agreement", found.agreement, always),
        ("kappa", found.kappa, ""),
    ]
    if (both := found.raters_agree) is not None:  # no judge can be asked for more
        figures.append(("the two raters agree", both.agreement, count_of(both.agreement)))
    return figures


def _row(name: str, figure: Figure, rest: str) -> Text:
    line = Text(f"{name:<{_LABEL}}")
    if figure.value is None:
        return line.append(value_of(figure), "dim").append(f"   {rest}" if rest else "")
    line.append(f"{value_of(figure):>4}", "bold")
    line.append(f"  {limits_of(figure):<13}", "dim").append(f"  {rest}")
    if figure.reason:
        line.append(f"  ({words.REASON_WORD.get(figure.reason, figure.reason)})", "yellow")
    line.rstrip()
    return line


def _lean(found: Agreement) -> str:
    told, bias = WORDS[found.dimension], found.bias
    if bias.value is None:
        return "no verdict to compare"
    if not bias.value:
        return "leans neither way"
    word = told.yes if bias.value > 0 else told.no
    chance = "could be chance" if bias.p is None or bias.p >= SURE else "more than chance"
    return f'leans towards "{word}" by {words.rate(abs(bias.value))}, p = {p_value(bias.p)}: {chance}'


def _more(found: Agreement) -> Iterator[Text]:
    other = found.relatives
    if other.pabak is None:
        return
    error = "" if other.ac1_se is None else f"standard error {words.rate(other.ac1_se)}; "
    yield Text(f"{'AC1':<{_LABEL}}{signless(other.ac1):>4}  {error}not on kappa's scale")
    yield Text(f"{'PABAK':<{_LABEL}}{signless(other.pabak):>4}  twice the agreement, less 1")
    yield Text(f"{'prevalence index':<{_LABEL}}{signed(other.prevalence_index):>4}  both yes less both no")
    yield Text(f"{'bias index':<{_LABEL}}{signed(other.bias_index):>4}")
    if (both := found.raters_agree) is not None:
        yield _row("kappa of the two raters", both.kappa, words.count(both.n, "draw"))


# ---------------------------------------------------------------- demands and advice


def _gates(found: Agreement, columns: int) -> list[Text]:
    lines = []
    for place, verdict in enumerate(found.verdicts):
        head = "GATES" if not place else ""
        measured = f"{words.rate(verdict.value)} {words.interval('rate', verdict.low, verdict.high)}".rstrip()
        line = Text.assemble((f"{head:<7}", "bold"), f"{verdict.gate.metric:<14}{verdict.gate.needs:<9}")
        line.append(f"{measured:<20}")
        lines.append(line.append(words.decision_word(verdict), STYLE[verdict.decision]))
        lines += wrapped(_why(verdict), columns, 11, "dim")
    return lines


def _why(verdict: Verdict) -> str:
    by = f"decided by: {verdict.decided_by}" if verdict.decided_by and verdict.decision != "undecided" else ""
    return "; ".join(part for part in (by, verdict.why, verdict.advice) if part)


def _advice(found: Agreement, columns: int) -> list[Text]:
    if found.by_verdict is not None:
        return []
    return [
        Text.assemble((f"{'' if place else 'CAN I USE IT?':<15}", "bold"), line.plain)
        for place, line in enumerate(wrapped(advice(found), columns - 15))
    ]


def advice(found: Agreement) -> str:
    """What this judge may be used for, and which labels would say more."""
    told = WORDS[found.dimension]
    finds, clears = found.sensitivity, found.specificity
    if found.n < FEWEST:
        return f"{words.count(found.n, 'label')} with a verdict decide nothing; {FEWEST} are the least."
    if finds.low is None or clears.low is None:
        lacking = told.of_yes if finds.low is None else told.of_no
        return f"Nobody can say: the labels hold no {lacking}."
    informative = finds.low + clears.low > 1
    compare = (
        "To compare runs: yes, with rates corrected for its errors."
        if informative
        else "To compare runs: not on this evidence; it may tell no more than a coin."
    )
    return f"{compare} {_alone(found)} {_narrower(found)}"


def _alone(found: Agreement) -> str:
    told, finds, clears = WORDS[found.dimension], found.sensitivity, found.specificity
    assert finds.low is not None
    assert clears.low is not None
    if min(finds.low, clears.low) >= SAFE:
        return "To clear a gate alone: yes."
    low, what = min((finds.low, told.of_yes), (clears.low, told.of_no))
    return f"To clear a gate alone: no, it may misread up to {100 * (1 - low):.0f}% of {what}."


def _narrower(found: Agreement) -> str:
    """The side with the wider interval is the one that lacks labels, and a random sample finds both."""
    told, finds, clears = WORDS[found.dimension], found.sensitivity, found.specificity
    widths = [(figure.high or 0) - (figure.low or 0) for figure in (finds, clears)]
    what = told.of_yes if widths[0] >= widths[1] else told.of_no
    more = as_started(f"evalrun label RUN --dimension {found.dimension} --random N")
    return f"Labels of {what} would narrow this most: {more}"


# ---------------------------------------------------------------- where they disagree


def _pairs(found: Agreement, columns: int, full: bool, page: Path | None) -> list[Text]:
    lines: list[Text] = []
    for name, pairs in (("DISAGREEMENT", found.disagreements), ("WITHOUT VERDICT", found.judge_missing)):
        if not pairs:
            continue
        plural = "S" if name == "DISAGREEMENT" and len(pairs) != 1 else ""
        lines.append(Text(f"{len(pairs)} {name}{plural}", "bold"))
        for pair in pairs if full else pairs[:SHOWN]:
            lines += _pair(pair, found.dimension, columns, full)
        if not full and len(pairs) > SHOWN:
            lines.append(Text(f"  and {len(pairs) - SHOWN} more: --full", "dim"))
    if lines and page is not None:
        lines += wrapped(f"all with what the judge said: {page}", columns, 2, "dim")
    return lines


def _pair(pair: Pair, dimension: Dimension, columns: int, full: bool) -> Iterator[Text]:
    verdict = f": {readings(pair, dimension)}"
    name = f"  {cut(pair.case, columns // 4)} "
    room = max(columns - cell_len(name) - cell_len(verdict) - 2, 12)
    yield Text(f'{name}"{cut(pair.answer, room)}"{verdict}')
    if not full:
        return
    details = [("asked", pair.question), ("answer", pair.answer), ("judge", rationale(pair))]
    details.append(("labels", pair.note or ""))
    for head, text in details:
        for place, line in enumerate(wrapped(text, columns - 12) if text else ()):
            yield Text.assemble((f"    {'' if place else head:<8}", "dim"), line.plain)


def readings(pair: Pair, dimension: Dimension) -> str:
    """``judge refused, labels answered``."""
    told = WORDS[dimension]
    said = "no verdict" if pair.judge is None else f"judge {told.yes if pair.judge else told.no}"
    return f"{said}, labels {told.yes if pair.label else told.no}"


def rationale(pair: Pair) -> str:
    """Why the judge said so, or said nothing: its own words and the claims it did not find."""
    unsupported = [f'not in the context: "{claim}"' for claim in pair.unsupported]
    return "; ".join(part for part in (pair.why, pair.rationale, *unsupported) if part)


# ---------------------------------------------------------------- the end


def _notes(found: Agreement, columns: int) -> list[Text]:
    lines = []
    for text in found.notes:
        for place, line in enumerate(wrapped(text, columns - 7)):
            lines.append(Text.assemble(("note   " if not place else " " * 7, "yellow"), line.plain))
    return lines


def _end(found: Agreement, columns: int) -> list[Text]:
    digest = found.judge.fingerprint.removeprefix("sha256:")[:4]
    text, code = f"void if model, rubric or parameters change ({digest}…)", f"exit {found.exit_code}"
    gap = max(4, min(20, columns - cell_len(text) - len(code)))
    style = {ExitCode.GATE_FAILED: STYLE["fails"], ExitCode.NOT_ENOUGH_EVIDENCE: STYLE["undecided"]}
    return [Text.assemble(text, " " * gap, (code, style.get(ExitCode(found.exit_code), "bold")))]
