"""The screen a run ends with, for people at a terminal and for the log of a CI job.

Owns the layout, from 80 columns on, in colour or plain, in ASCII where the terminal has no UTF-8. Text that a
model or a dataset wrote is shown with its control characters written out and is never read as markup.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evalrun.invocation import as_started
from evalrun.journal import RunFolder
from evalrun.records import Decision, Estimate, Meta, RunHeader, Verdict
from evalrun.reports import certificates, words
from evalrun.reports.progress import Progress
from evalrun.reports.rows import Row, Rows, because, read_details, read_rows, share
from evalrun.reports.screen import columns_of, print_lines, print_record
from evalrun.reports.sections import Section, sections

__all__ = ["Progress", "print_json", "print_run"]

WORST = 5
WORST_FULL = 20
CONCLUDED = (0, 1, 3)
STYLE: dict[Decision, str] = {"holds": "green", "fails": "bold red", "undecided": "yellow"}


def print_run(
    folder: RunFolder, stream: TextIO, full: bool = False, quiet: bool = False, width: int | None = None
) -> None:
    """Print what a run came to.

    ``full`` adds every group and every metric; ``quiet`` leaves the gates, what went wrong, the last sentence
    and where to look.
    ``width`` replaces the width of the terminal.
    """
    columns = columns_of(stream, width)
    header, meta = folder.header, folder.meta
    rows = Rows([], None) if quiet else read_rows(folder)
    lines = _short_body(header, columns) if quiet else _body(folder, header, meta, rows, columns, full)
    print_lines([*lines, *_end(folder, header, meta, rows, columns)], stream, columns)


def print_json(folder: RunFolder, stream: TextIO) -> None:
    """Print what ``run.json`` holds."""
    print_record(folder.header, stream)


def _body(
    folder: RunFolder, header: RunHeader, meta: Meta, rows: Rows, columns: int, full: bool
) -> list[Text]:
    parts = [
        _head(header, meta, columns),
        _did(header, rows, columns, full),
        _judge(header, columns),
        _gates(header, columns),
        _worst(folder, header, rows, columns, full),
        _told(header, columns),
    ]
    return _spaced(parts)


def _short_body(header: RunHeader, columns: int) -> list[Text]:
    """What a log needs to tell why: the gates, and what went wrong."""
    return _spaced([_gates(header, columns), _told(header, columns)])


def _spaced(parts: Iterable[list[Text]]) -> list[Text]:
    return [line for part in parts if part for line in [*part, Text()]]


# ---------------------------------------------------------------- head


def _head(header: RunHeader, meta: Meta, columns: int) -> list[Text]:
    asked = words.count(header.dataset.cases, "question")
    draws = words.count(header.draws, "draw") if header.draws == 1 else f"{header.draws} draws"
    name = words.one_line(f"{header.name} · {header.dataset.name}")
    lines = [Text(f"evalrun {name} · {asked} × {draws}", "bold")]
    lines.append(_fact("bot", words.bot_line(header)))
    judge = _fact("judge", words.judge_line(header))
    if header.judge and header.judge.same_model_as_bot:
        judge.append("     ! same model as the bot", "yellow")
    lines += [judge, _fact(meta.mode, _how(header, meta))]
    spent = [words.count(meta.tokens, "token")] if meta.tokens else []
    spent += [f"cost {words.amount(meta.cost)}"] if meta.cost else []
    if spent:
        lines.append(_fact("spent", ", ".join(spent)))
    if meta.refused:
        lines.append(_fact("tap", words.refused_words(meta), "yellow"))
    proofs = words.proof_lines(header.levels)
    told = [part.plain.strip() for text in proofs for part in _wrapped(text, columns, 8)]
    lines += [_fact("" if place else "proof", text) for place, text in enumerate(told)]
    if header.partial:
        lines.append(_fact("part", words.one_line(header.partial), "yellow"))
    return [_cut(line, columns) for line in lines]


def _fact(name: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{name:<8}", "dim"), (text, style))


def _how(header: RunHeader, meta: Meta) -> str:
    total = sum(header.levels.values())
    recorded = words.recorded_line(header)
    parts = [words.count(total, "answer") + (f", recorded {recorded}" if recorded else "")]
    made = f"{words.count(meta.calls, 'model call' if _models_seen(header) else 'call')}"
    made += "" if _models_seen(header) else " to bot and judge" if header.judge else " to the bot"
    again = f", {meta.retries:,} asked again" if meta.retries else ""
    parts.append(f"{made}{again}, {meta.replayed:,} replayed, {meta.seconds:.1f} s")
    if meta.attempt > 1:
        parts.append(words.attempt_words(meta))
    return "; ".join(parts)


def _models_seen(header: RunHeader) -> bool:
    """Whether the calls that were counted are those of models; of a bot without a tap its own are."""
    target = header.config.get("target") or {}
    return target.get("kind") not in ("http", "command", "python") or "{tap}" in str(target)


# ---------------------------------------------------------------- what the bot did


def _did(header: RunHeader, rows: Rows, columns: int, full: bool) -> list[Text]:
    every = sections(header, rows.rows, full)
    found = [section for section in every if not section.detail]
    if not found:
        return []
    label = min(max(cell_len(_label(s, e)) for s in found for e in s.estimates) + 1, columns - 48)
    bar = max(15, min(41, columns - label - 30))
    level = words.percent(found[0].estimates[0].confidence) + " interval"
    axis = f"{'0':<{bar // 2}}{'.5':<{bar - bar // 2 - 1}}1"
    head = f"{'WHAT THE BOT DID':<{label}}{'rate':>5}  {level:<14}{axis}  missing"
    lines = [Text(head.rstrip(), "bold")]
    for section in found:
        lines.append(Text(words.one_line(section.title)))
        lines += [_estimate_line(section, estimate, label, bar) for estimate in section.estimates]
    if len(found) < len(every):
        lines += _wrapped("by goal, OWASP risk and disguise: --full, or the report", columns, 2)
    told = words.documents_line(header)
    return [*lines, *(_wrapped(told, columns, 2) if told else ())]


def _label(section: Section, estimate: Estimate) -> str:
    return f"  {words.one_line(section.label(estimate))}"


def _estimate_line(section: Section, estimate: Estimate, label: int, bar: int) -> Text:
    line = Text(set_cell_size(_label(section, estimate), label - 1) + " ")
    if estimate.value is None:
        why = f" ({words.lost(estimate.failures)})" if estimate.failures else ""
        return line.append(f"{'–':>5}  {words.estimate_value(estimate)}{why}", "dim")
    if estimate.kind == "quantity":
        line.append(f"{words.quantity(estimate.value, ''):>5}", "bold")
        limits = words.estimate_interval(estimate)
        unit = f" {estimate.unit}"
        # Where there is no interval a reason stands there, which has no unit.
        return line.append(f"{unit}  {limits}" if estimate.low is None else f"  {limits}{unit}", "dim")
    line.append(f"{words.rate(estimate.value):>5}", "bold")
    line.append(f"  {words.estimate_interval(estimate):<14}", "dim")
    line.append(bar_text(estimate.value, estimate.low, estimate.high, bar))
    lost = words.missing(estimate)
    line.append(f"  {lost:>4}", "yellow" if lost else "dim")
    return line


def bar_text(value: float, low: float | None, high: float | None, cells: int) -> str:
    """An interval on a line of ``cells`` cells from 0 to 1: the dot is the value."""

    def cell(at: float) -> int:
        return min(cells - 1, max(0, round(at * (cells - 1))))

    first, last = cell(low if low is not None else value), cell(high if high is not None else value)
    inside = ("━" if first <= at <= last else "·" for at in range(cells))
    return "".join("●" if at == cell(value) else mark for at, mark in enumerate(inside))


# ---------------------------------------------------------------- judge and gates


def _judge(header: RunHeader, columns: int) -> list[Text]:
    if header.judge is None:
        return []
    if not header.certificates:
        unknown = " not measured against labels: its rates are its own reading"
        lines = [Text.assemble(("JUDGE", "bold"), unknown)]
    else:
        lines = [Text.assemble(("JUDGE", "bold"), " against labels"), *_certified(header, columns)]
    return [*lines, *_wrapped(words.corrections_line(header), columns, 2)]


def _certified(header: RunHeader, columns: int) -> Iterator[Text]:
    for found in header.certificates:
        texts = (certificates.sure(found), certificates.source(found), certificates.agreed(found))
        lines = [line for text in texts if text for line in _wrapped(text, columns, 12)]
        yield Text.assemble(f"  {found.dimension:<10}", lines[0].plain.strip())
        yield from lines[1:]
    told = [f"not corrected: {text}" for text in certificates.uncorrected(header)]
    told += [f"taken for granted: {text}" for text in certificates.assumptions(header)]
    if any(estimate.measured for estimate in header.estimates):
        told.insert(0, "Gates marked c read rates corrected for the judge's errors.")
    for text in [*told, certificates.belongs(header)]:
        yield from _wrapped(text, columns, 2)


def _gates(header: RunHeader, columns: int) -> list[Text]:
    if not header.verdicts:
        return []
    names = [words.one_line(verdict.gate.name) for verdict in header.verdicts]
    figures = [words.gate_measured(verdict, header) for verdict in header.verdicts]
    measured = max(16, *map(len, figures)) + 2
    needs = max(8, *(len(verdict.gate.needs) for verdict in header.verdicts)) + 2
    name = min(max(map(cell_len, names)) + 4, columns - 14 - needs - measured)
    lines = [Text(f"{'GATES':<{name}}{'needs':<{needs}}{'measured':<{measured}}verdict", "bold")]
    for text, figure, verdict in zip(names, figures, header.verdicts, strict=True):
        line = Text(set_cell_size(f"  {text}", name - 2) + "  ")
        line.append(f"{verdict.gate.needs:<{needs}}{figure:<{measured}}")
        lines += _gate_lines(line, verdict, words.gate_reasons(verdict, header), columns)
    return lines


def _gate_lines(line: Text, verdict: Verdict, reasons: list[str], columns: int) -> Iterator[Text]:
    word, _, weak = words.decision_word(verdict).partition(" ")
    fits = line.cell_len + len(word) + len(weak) < columns
    line.append(f"{word} {weak}" if weak and fits else word, STYLE[verdict.decision])
    yield line
    if weak and not fits:
        yield Text(f"      {weak}", "dim")
    if verdict.decision == "holds":
        return
    if verdict.decided_by:
        yield from _wrapped(f"decided by: {verdict.decided_by}", columns, 6)
    for text in reasons:
        yield from _wrapped(text, columns, 6)


def _wrapped(text: str, columns: int, indent: int) -> Iterator[Text]:
    line = ""
    for word in words.one_line(text).split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > columns - indent:
            yield Text(" " * indent + line, "dim")
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        yield Text(" " * indent + line, "dim")


# ---------------------------------------------------------------- worst, notes and the end


def _worst(folder: RunFolder, header: RunHeader, rows: Rows, columns: int, full: bool) -> list[Text]:
    shown = rows.unmet()[: WORST_FULL if full else WORST]
    if not shown:
        return []
    details = read_details(folder, [row.id for row in shown])
    events = {metric.id: metric.event for metric in header.metrics}
    id_width = min(max(cell_len(words.one_line(row.id)) for row in shown), 28)
    lines: list[Text] = []
    for place, row in enumerate(shown):
        why = because(row, details[row.id], events)
        lines += _worst_lines("WORST" if not place else "", row, rows, why, id_width, columns)
    return lines


def _worst_lines(head: str, row: Row, rows: Rows, why: str, id_width: int, columns: int) -> Iterator[Text]:
    line = Text.assemble((f"{head:<7}", "bold"), set_cell_size(_short(row.id, id_width), id_width))
    line.append(f"  {share(row, rows.lead_of(row)):<5}")
    indent = line.cell_len
    line.append(f'"{_short(row.question, columns - indent - 2)}"')
    if not why:
        yield line
        return
    if line.cell_len + 2 + cell_len(why) <= columns:
        yield line.append(f"  {why}", "red")
        return
    yield line
    yield Text(" " * indent + _short(why, columns - indent), "red")


def _short(text: str, cells: int) -> str:
    line = words.one_line(text)
    return line if cell_len(line) <= cells else set_cell_size(line, max(cells - 1, 1)).rstrip() + "…"


def _told(header: RunHeader, columns: int) -> list[Text]:
    lines: list[Text] = []
    for mark, style, texts in (("error", "bold red", header.errors), ("note", "yellow", header.notes)):
        for text in texts:
            lines += _told_lines(mark, style, text, columns)
    return lines


def _told_lines(mark: str, style: str, text: str, columns: int) -> Iterable[Text]:
    for place, part in enumerate(as_started(words.visible(text)).split("\n")):
        head = Text.assemble((f"{mark:<7}" if not place else " " * 7, style))
        yield Text.assemble(head, part)


def _end(folder: RunFolder, header: RunHeader, meta: Meta, rows: Rows, columns: int) -> list[Text]:
    text, code = words.sentence(header), f"exit {header.exit_code}"
    gap = max(4, columns - cell_len(text) - len(code) - 2)
    lines = [Text.assemble((text, STYLE[words.tone(header)]), " " * min(gap, 20), (code, "bold"))]
    lines.append(_fact("look:", look(folder, header)))
    command = next_command(header, meta, rows)
    return [*lines, _fact("next:", as_started(command))] if command else lines


def look(folder: RunFolder, header: RunHeader) -> str:
    """The report, at the gate that matters most."""
    anchors = words.gate_anchors(header.verdicts)
    order: dict[Decision, int] = {"fails": 0, "undecided": 1, "holds": 2}
    ranked = sorted(zip(header.verdicts, anchors, strict=True), key=lambda item: order[item[0].decision])
    wrong = [anchor for verdict, anchor in ranked if verdict.decision != "holds"]
    return words.one_line(str(folder.path / "report.html")) + (f"#{wrong[0]}" if wrong else "")


def next_command(header: RunHeader, meta: Meta, rows: Rows) -> str:
    """What to run next: the worst question, asked again. Where nothing was concluded, the errors say it;
    where no bot was asked, there is none to ask.
    """
    unmet = rows.unmet() if header.exit_code in CONCLUDED else []
    if not unmet or not meta.config_path or header.origin is not None:
        return ""
    command = "redteam" if "redteam" in header.config else "run"
    parts = ["evalrun", command, meta.config_path, "--live", "--case", unmet[0].id]
    return words.one_line(shlex.join(parts))


def _cut(line: Text, columns: int) -> Text:
    if line.cell_len > columns:
        line.truncate(columns, overflow="ellipsis")
    return line
