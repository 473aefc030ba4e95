"""``summary.md``: the run in one screen of Markdown, for a pull request or a job summary.

Owns the layout and that text of models and datasets stays text: it stands in code spans whose fence it cannot
close, so that it makes no link, no mention, no heading and no markup.
"""

from __future__ import annotations

import re

from evalrun.journal import RunFolder
from evalrun.records import Estimate, Meta, RunHeader, Verdict
from evalrun.reports import certificates, report, words
from evalrun.reports.rows import Rows, because, read_details, read_rows, share
from evalrun.reports.sections import Section, sections

WORST = 10
MOST = 1_000_000
"""Bytes. GitHub drops a job summary of more than 1 MiB without a word."""
SIGN = {"holds": "✅", "fails": "❌", "undecided": "❔"}
_HOSTED = re.compile(r"(?<!\w)@|@(?=[\w-]+\.[A-Za-z])|:(?=//)|\bwww(?=\.)|#(?=[0-9])|\bGH(?=-[0-9])")
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")


@report("summary.md")
def render(folder: RunFolder) -> bytes:
    """The run as Markdown; its last line alone comes from ``meta.json``."""
    header, rows = folder.header, read_rows(folder)
    parts = [
        _head(header),
        _gates(header),
        _judge(header),
        _did(header, rows),
        _worst(folder, header, rows),
        _told(header),
    ]
    told = "\n\n".join("\n".join(part) for part in parts if part)
    return "\n\n".join([short_enough(told), *_meta(folder.meta), ""]).encode().removesuffix(b"\n")


def short_enough(text: str, most: int = MOST) -> str:
    """``text``, or its first whole lines in at most ``most`` bytes of UTF-8 and where the rest is."""
    data = text.encode()
    if len(data) <= most:
        return text
    kept = data[: data.rfind(b"\n", 0, most) + 1].decode()
    closing = "\n</details>\n" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{closing}\n… cut here: the whole run is in `report.html`"


def code(text: str, limit: int = 200) -> str:
    """Untrusted text as a code span, safe in a table cell too."""
    line = words.one_line(text, limit) or " "
    line = line.replace("|", "¦") if "`" in line else line.replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if "`" in line or line != line.strip() else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def plain(text: str) -> str:
    """Text of the run's own making, with marks that Markdown would read escaped.

    Names and groups of a dataset stand in it, too: a word joiner keeps them from being a mention, a link or
    a reference, which hosts make of plain text.
    """
    return _MARKS.sub(r"\\\1", _HOSTED.sub("\\g<0>\u2060", words.one_line(text)))


def _head(header: RunHeader) -> list[str]:
    sign = SIGN[words.tone(header)]
    asked = f"{words.count(header.dataset.cases, 'question')} × {words.count(header.draws, 'draw')}"
    judge = words.judge_line(header)
    if header.judge is not None and not certificates.standing(header):
        judge += ", not measured against labels"
    proof = "; ".join(words.proof_lines(header.levels))
    return [
        f"## {sign} {plain(header.name)}: {plain(words.sentence(header))}",
        "",
        f"{code(header.dataset.name)}, {asked} · bot {code(words.bot_line(header))} · judge {code(judge)}"
        f" · exit {header.exit_code}",
        "",
        f"Proof: {plain(proof)}",
    ]


def _gates(header: RunHeader) -> list[str]:
    if not header.verdicts:
        return []
    lines = ["| gate | needs | measured | verdict | why |", "|---|---|---|---|---|"]
    return [*lines, *(_gate(verdict, header) for verdict in header.verdicts)]


def _gate(verdict: Verdict, header: RunHeader) -> str:
    reasons = (verdict.decided_by, *words.gate_reasons(verdict, header))
    why = " · ".join(text for text in reasons if text)
    cells = [
        code(verdict.gate.name),
        plain(verdict.gate.needs),
        plain(words.gate_measured(verdict, header)),
        f"{SIGN[verdict.decision]} {plain(words.decision_word(verdict))}",
        plain(why) if verdict.decision != "holds" else "",
    ]
    return f"| {' | '.join(cells)} |"


def _judge(header: RunHeader) -> list[str]:
    if not header.certificates:
        return []
    lines = ["| judge against labels | right how often | labels |", "|---|---|---|"]
    for found in header.certificates:
        sure, agreed = certificates.sure(found), certificates.agreed(found)
        how = "; ".join(text for text in (sure, agreed) if text)
        lines.append(f"| {found.dimension} | {plain(how)} | {plain(certificates.source(found))} |")
    told = [f"Not corrected: {text}." for text in certificates.uncorrected(header)]
    told += [f"Taken for granted: {text}." for text in certificates.assumptions(header)]
    marked = "A figure marked c is corrected for the judge's errors."
    notes = [marked, *told, f"{certificates.belongs(header).capitalize()}."]
    return [*lines, "", plain(" ".join(notes))]


def _did(header: RunHeader, rows: Rows) -> list[str]:
    found = sections(header, rows.rows)
    if not found:
        return []
    level = words.percent(found[0].estimates[0].confidence)
    lines = [f"| what the bot did | rate | {level} interval | missing |", "|---|--:|---|--:|"]
    for section in found:
        lines.append(f"| **{plain(section.title)}** | | | |")
        lines += [_estimate(section, estimate) for estimate in section.estimates]
    told = words.documents_line(header)
    return [*lines, "", plain(told)] if told else lines


def _estimate(section: Section, estimate: Estimate) -> str:
    cells = [
        plain(estimate.group if section.by_group else estimate.event + section.of(estimate)),
        plain(words.estimate_value(estimate)),
        plain(_limits(estimate)),
        str(words.missing(estimate)),
    ]
    return f"| {' | '.join(cells)} |"


def _limits(estimate: Estimate) -> str:
    """The interval; where there is one, the corrected rate beside it."""
    found = estimate.measured
    more = f"; {certificates.corrected(found)}c" if found else ""
    return words.estimate_interval(estimate) + more


def _worst(folder: RunFolder, header: RunHeader, rows: Rows) -> list[str]:
    unmet = rows.unmet()
    shown = unmet[:WORST]
    if not shown:
        return []
    details = read_details(folder, [row.id for row in shown])
    events = {metric.id: metric.event for metric in header.metrics}
    lines = [
        f"<details><summary>The {len(shown)} worst of {words.count(len(unmet), 'question')} "
        "with something wrong</summary>",
        "",
    ]
    for row in shown:
        why = because(row, details[row.id], events)
        met = share(row, rows.lead_of(row))
        lines.append(f"- {code(row.id)} {met} {code(row.question)}{' → ' + code(why) if why else ''}")
    return [*lines, "", "</details>"]


def _told(header: RunHeader) -> list[str]:
    return [
        *(f"- **error** {code(text, 1000)}" for text in header.errors),
        *(f"- note: {code(text, 1000)}" for text in header.notes),
    ]


def _meta(meta: Meta) -> list[str]:
    again = f" · **{words.attempt_words(meta)}**" if meta.attempt > 1 else ""
    again += f" · {words.refused_words(meta)}" if meta.refused else ""
    return [f"<sub>run {code(meta.run)} · {meta.mode} · {meta.started} · {meta.seconds:.1f} s{again}</sub>"]
