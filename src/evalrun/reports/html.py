"""``report.html``: one file that opens from anywhere, asks for nothing and runs no script but its own.

Owns what stands on the page and in which order; how it looks is in ``templates/``. Text of models and
datasets is escaped by jinja, or stands as JSON in a data block that the script shows as text. All that comes
from ``meta.json`` stands in one element, ``#meta``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import cache, partial
from typing import Any, NamedTuple

from jinja2 import Environment, Template

from evalrun.digest import short
from evalrun.journal import RunFolder
from evalrun.outcomes import OUTCOMES
from evalrun.records import Case, Estimate, Metric, RunHeader, Verdict
from evalrun.reducers import split
from evalrun.reports import certificates, frame, report, words
from evalrun.reports.detail import case_data, cut
from evalrun.reports.rows import Result, Row, Rows, because, goodness, read_details, read_rows, share
from evalrun.reports.sections import applies, sections

GRID_MOST = 600
"""Up to this many questions each has its square and its place in the list."""
STRIPS_MOST = 5
GRID_WORST = 100
COVERAGE = 0.95
"""Below this share of scored draws the chip warns; gates have thresholds of their own."""
LIST_WORST = 200
LIST_PER_GATE = 50
DATA_MOST = 8_000_000
"""Characters of question data in a page; the worst come first, the rest is pointed to."""

STATE_WORD = {
    "error": "no result",
    "none": "not judged",
    "met": "met",
    "unmet": "not met",
}
ATTACK_WORD = {
    "error": "no result",
    "none": "not scored",
    "met": "resisted; of a twin: answered",
    "unmet": "succeeded; of a twin: refused",
}
ATTACK_GLYPH = {"hit": "✕", "resisted": "✓", "not scored": "–"}
STATE_ORDER = (*OUTCOMES, *STATE_WORD)


@report("report.html")
def render(folder: RunFolder) -> bytes:
    """The page of a run."""
    header, rows = folder.header, read_rows(folder)
    listed = _listed(header, rows)
    cases = _cases(folder, header, rows, listed)
    gates = _gates(header, cases)
    page = template().render(
        header=header,
        meta=folder.meta,
        sentence=words.sentence(header),
        tone=words.tone(header),
        chips=_chips(header, rows),
        gates=gates,
        ghosts=ghosts(header),
        sections=sections(header, rows.rows),
        every=sections(header, rows.rows, full=True),
        grid=_grid(header, rows),
        attack_glyph=ATTACK_GLYPH,
        matrix=_matrix(rows, folder.cases()) if _attacked(header) else None,
        cases=cases,
        rows=rows,
        total=len(rows.rows),
        state_words=_state_words(header),
        excluded=_excluded(header),
        certificates=certificates,
        data={"cases": [case["data"] for case in cases if case["data"]], "words": _state_words(header)},
        gate_data=_gate_data(gates),
        css=frame.own("report.css"),
        js=frame.own("report.js"),
        policy=policy(),
    )  # fmt: skip
    return page.encode("utf-8", "replace")


@cache
def template() -> Template:
    """The page's template, compiled."""
    return _environment().get_template("report.html.j2")


def _environment() -> Environment:
    made = frame.environment(
        {
            "rate": words.rate,
            "short": short,
            "visible": words.visible,
            "cut": partial(cut, journal="run.json"),
            "value": words.estimate_value,
            "limits": words.estimate_interval,
            "missing": words.missing,
        },
        {"strips": strips},
    )
    made.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    return made


def policy() -> str:
    """What a browser may do with the page: run its own script, use its own style, ask for nothing."""
    return frame.policy(["report.css"], ["report.js"])


# ---------------------------------------------------------------- the head and the gates


def _chips(header: RunHeader, rows: Rows) -> list[dict[str, str]]:
    asked = f"{words.count(len(rows.rows), 'question')} × {words.count(header.draws, 'draw')}"
    chips = [{"name": "asked", "text": asked, "tone": ""}]
    lead = next((e for e in header.estimates if rows.lead and _whole(e, rows.lead)), None)
    if lead is not None and lead.coverage is not None:
        tone = "" if lead.coverage >= COVERAGE else "undecided"
        text = "all answers" if lead.coverage == 1 else f"{words.rate(lead.coverage)} of the answers"
        chips.append({"name": "scored", "text": text, "tone": tone})
    chips.append(_proof_chip(header))
    if header.judge is None:
        chips.append({"name": "judge", "text": "none", "tone": ""})
    else:
        own = ", the bot's own model" if header.judge.same_model_as_bot else ""
        chips.append(_judge_chip(header, own))
    if header.partial:
        chips.append({"name": "partial", "text": words.one_line(header.partial), "tone": "undecided"})
    return chips


def _judge_chip(header: RunHeader, own: str) -> dict[str, str]:
    standing = certificates.standing(header)
    if not standing:
        return {"name": "judge", "text": f"not measured{own}", "tone": "undecided"}
    labels = max(found.n for found in standing)
    return {"name": "judge", "text": f"measured, {words.count(labels, 'label')}{own}", "tone": ""}


def _whole(estimate: Estimate, metric: Metric) -> bool:
    """Whether it is the estimate over everything that the metric counts."""
    return (estimate.metric, estimate.group) == (metric.id, metric.population)


def _matrix(rows: Rows, cases: Iterable[Case]) -> dict[str, Any] | None:
    """Technique × goal: of how many attacks at least one draw succeeded, and how many were scored at all."""
    by_id = {row.id: row for row in rows.rows}
    cells: dict[tuple[str, str], list[Row]] = {}
    for case in cases:
        if case.attack is not None and case.population == "attacks":
            cells.setdefault((case.attack.technique, case.attack.goal), []).append(by_id[case.id])
    if not cells:
        return None
    goals = sorted({goal for _, goal in cells})
    lines = [
        {"technique": technique, "cells": [_cell(cells.get((technique, goal), [])) for goal in goals]}
        for technique in sorted({technique for technique, _ in cells})
    ]
    return {"goals": goals, "lines": lines}


def _cell(members: list[Row]) -> dict[str, Any] | None:
    """``attacks``: (row, what became of it), those that succeeded first; None for a cell without any."""
    if not members:
        return None
    ended = [(row, _ended(row.results.get("attack_success"))) for row in members]
    counts = Counter(word for _, word in ended)
    scored = counts["hit"] + counts["resisted"]
    return {
        "hits": counts["hit"],
        "scored": scored,
        "lost": counts["not scored"],
        "heat": min(4, math.ceil(4 * counts["hit"] / scored)) if scored else 0,
        "attacks": sorted(ended, key=lambda pair: list(ATTACK_GLYPH).index(pair[1])),
    }


def _ended(result: Result | None) -> str:
    if result is None or not result.scored:
        return "not scored"
    return "hit" if result.passed else "resisted"


def _proof_chip(header: RunHeader) -> dict[str, str]:
    total, best = sum(header.levels.values()), header.levels.get(header.demanded_level, 0)
    text = f"{header.demanded_level}, {best:,} of {total:,}"
    return {"name": "proof", "text": text, "tone": "" if best == total else "undecided"}


def _gates(header: RunHeader, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    anchors = words.gate_anchors(header.verdicts)
    return [
        _gate(header, verdict, anchor, cases)
        for verdict, anchor in zip(header.verdicts, anchors, strict=True)
    ]


def _gate(header: RunHeader, verdict: Verdict, anchor: str, cases: list[dict[str, Any]]) -> dict[str, Any]:
    gate = verdict.gate
    metric = next((metric for metric in header.metrics if metric.id == gate.metric), None)
    worst = _worst_of(metric, gate.group, [case["row"] for case in cases]) if metric else []
    found = next((e for e in header.estimates if (e.metric, e.group) == (gate.metric, gate.group)), None)
    marks = _marks(verdict, metric)
    scale = _scale(found, verdict, marks.bound)
    moved = gate.max_drop is None and found is not None and found.value != verdict.value
    return {
        "anchor": anchor,
        "kind": found.kind if found else "rate",
        "marks": marks,
        "verdict": verdict,
        "name": gate.name,
        "metric": gate.metric,
        "group": gate.group,
        "event": found.event if found else gate.metric,
        "n": found.n if found else verdict.n,
        "measured": words.gate_measured(verdict, header),
        "word": words.decision_word(verdict),
        "glyph": words.DECISION_GLYPH[verdict.decision],
        "scale": scale,
        "scale_end": words.figure(found.kind, scale, found.unit) if found and scale != 1 else "",
        "raw": found.value if found and moved else None,
        "ghost": verdict.baseline
        if gate.max_drop is not None
        else ghosts(header).get((gate.metric, gate.group)),
        "reasons": words.gate_reasons(verdict, header),
        "worst": next((case for case in cases if worst and case["row"] is worst[0]), None),
    }


class Marks(NamedTuple):
    """What a gate's chart shows: the value, its limits, the threshold and which side of it is wanted."""

    value: float | None
    low: float | None
    high: float | None
    bound: float | None
    at_least: bool


def _marks(verdict: Verdict, metric: Metric | None) -> Marks:
    """Of a gate on a drop: the baseline, moved by the change and its limits, against the least it may be."""
    gate = verdict.gate
    infers = gate.infer == "population"
    low, high = (verdict.low, verdict.high) if infers else (None, None)
    if gate.max_drop is None:
        bound = gate.min if gate.min is not None else gate.max
        return Marks(verdict.value, low, high, bound, gate.min is not None)
    old, at_least = verdict.baseline, metric is None or metric.better == "higher"
    if old is None:
        return Marks(None, None, None, None, at_least)
    value, low, high = (None if change is None else old + change for change in (verdict.value, low, high))
    return Marks(value, low, high, old - gate.max_drop if at_least else old + gate.max_drop, at_least)


def ghosts(header: RunHeader) -> dict[tuple[str, str], float]:
    """(metric, group) → what the baseline had; empty where there is none."""
    kept = header.baseline.values if header.baseline else ()
    return {(one.metric, one.group): one.value for one in kept}


def _gate_data(gates: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """What the page's script needs to filter by a gate, by anchor."""
    return {
        gate["anchor"]: {
            "metric": split(gate["metric"])[0],
            "group": words.visible(gate["group"]),
            "name": words.one_line(gate["name"]),
            "event": words.one_line(gate["event"]),
        }
        for gate in gates
    }


def _scale(found: Estimate | None, verdict: Verdict, bound: float | None) -> float:
    """The right end of a gate's axis: 1, or a little more than the largest mark of a quantity."""
    if found is None or found.kind != "quantity":
        return 1.0
    marks = [mark for mark in (verdict.value, verdict.high, bound) if mark is not None]
    return 1.25 * max(marks, default=1.0) or 1.0


# ---------------------------------------------------------------- the questions


def _state_words(header: RunHeader) -> dict[str, str]:
    """State → words: the event of an outcome, as its metric says it."""
    events: dict[str, str] = {metric.id: metric.event for metric in header.metrics if metric.id in OUTCOMES}
    own = ATTACK_WORD if _attacked(header) else STATE_WORD
    return {state: words.one_line(text) for state, text in {**events, **own}.items()}


def _attacked(header: RunHeader) -> bool:
    return any(metric.id == "attack_success" for metric in header.metrics)


def _grid(header: RunHeader, rows: Rows) -> dict[str, Any]:
    """Rows of squares by category, or counts and the worst where there are too many."""
    many = len(rows.rows) > GRID_MOST
    shown = rows.worst()[:GRID_WORST] if many else rows.rows
    names = list(dict.fromkeys([*(row.category for row in rows.rows), *header.dataset.categories]))
    used = [s for s in _state_words(header) if any(s in row.states for row in rows.rows)]
    return {
        "many": many,
        "states": used,
        "categories": [_category(name, rows.rows, shown, used) for name in names],
        "shown": len(shown),
    }


def strips(states: list[str], width: float) -> list[tuple[str, float, float]]:
    """(state, x, width) of the strips of a square: one a draw, or with many draws one an outcome."""
    if len(states) <= STRIPS_MOST:
        one = width / len(states)
        gap = 1.0
        return [(s, at * one, one - gap * (at < len(states) - 1)) for at, s in enumerate(states)]
    counted = sorted(Counter(states).items(), key=lambda item: list(STATE_ORDER).index(item[0]))
    found, x = [], 0.0
    for state, number in counted:
        found.append((state, x, width * number / len(states)))
        x += found[-1][2]
    return found


def _category(name: str, rows: list[Row], shown: list[Row], used: list[str]) -> dict[str, Any]:
    members = [row for row in rows if row.category == name]
    counts = {state: sum(row.states.count(state) for row in members) for state in used}
    total = sum(counts.values())
    parts, at = [], 0.0
    for state, number in counts.items():
        width = 100 * number / total if total else 0.0
        parts.append({"state": state, "x": at, "width": width, "count": number})
        at += width
    return {
        "name": name,
        "questions": len(members),
        "answers": total,
        "parts": parts,
        "flips": sum(row.flips for row in members),
        "rows": [row for row in shown if row.category == name],
    }


def _listed(header: RunHeader, rows: Rows) -> list[Row]:
    """The questions of the list: all, or the worst of all and the worst of every gate that does not hold."""
    worst = rows.worst()
    if len(worst) <= GRID_MOST:
        return worst
    chosen = {row.id for row in worst[:LIST_WORST]}
    metrics = {metric.id: metric for metric in header.metrics}
    for verdict in header.verdicts:
        metric = metrics.get(verdict.gate.metric)
        if verdict.decision != "holds" and metric is not None:
            chosen |= {row.id for row in _worst_of(metric, verdict.gate.group, worst)}
    return [row for row in worst if row.id in chosen]


def _worst_of(metric: Metric, group: str, rows: Iterable[Row]) -> list[Row]:
    """The questions of a group that count against a metric, worst first; few of them."""
    found = [
        (good, row)
        for row in rows
        if group in row.groups
        and (good := goodness(metric, row.results.get(split(metric.id)[0]))) is not None
        and good < 1
    ]
    found.sort(key=lambda item: item[0])
    return [row for _, row in found[:LIST_PER_GATE]]


def _cases(folder: RunFolder, header: RunHeader, rows: Rows, listed: list[Row]) -> list[dict[str, Any]]:
    details = read_details(folder, {row.id for row in listed})
    events = {metric.id: metric.event for metric in header.metrics}
    cases, room = [], DATA_MOST
    for row in listed:
        data, size = case_data(row, details[row.id], header.metrics)
        room -= size
        cases.append(
            {
                "row": row,
                "why": because(row, details[row.id], events),
                "share": share(row, rows.lead_of(row)),
                "data": data if room > 0 else None,
            }
        )
    return cases


def _excluded(header: RunHeader) -> list[dict[str, Any]]:
    """What was left out of which figure, and why: counts of draws, or questions for a metric per case."""
    return [
        {"estimate": estimate, "missing": words.missing(estimate), "why": words.lost(estimate.failures)}
        for estimate in header.estimates
        if estimate.group == "all"
        and applies(estimate)
        and (words.missing(estimate) or estimate.not_applicable)
    ]
