"""How figures, verdicts and untrusted text read in every report: one wording for console, HTML and Markdown.

Owns the form only: ``.81``, ``[.68, .90]``, the sentence that a run ends with, characters that must not reach
a terminal or a page as they are. What the figures are is decided by the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from evalrun.records import Decision, Estimate, Gate, Meta, RunHeader, Verdict

ATTACKS = ("attack_success", "planted_obeyed")

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f"
    + "".join(chr(plane * 0x10000 + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_COMMAND = re.compile(r"(?:^|(?<=[\n\r]))([^\S\n\r]*)::|##(?=[A-Za-z]*\[)")
_SPACE = re.compile(r"[ \t\r\n]+")

DECISION_WORD: dict[Decision, str] = {"holds": "holds", "fails": "FAILS", "undecided": "UNDECIDED"}
DECISION_GLYPH: dict[Decision, str] = {"holds": "✓", "fails": "✕", "undecided": "?"}

LEVEL_WORD = {
    "observed": "the judge read exactly what the model was given (observed)",
    "reported": "the bot returned its prompt, and the judge read the same context (reported)",
    "claimed": "the bot named its contexts; no prompt that was seen proves them (claimed)",
    "none": "nothing shows what the model was given (none)",
}

REASON_WORD = {
    "no_data": "no data",
    "single_category": "only one category",
    "no_variation": "no variation",
    "too_few_clusters": "too few questions",
    "all_missing": "all missing",
    "judge_uninformative": "judge tells nothing",
    "not_a_random_sample": "not a random sample",
}

LOST_WORD = {
    "service": "no answer came",
    "recording": "not recorded",
    "provenance": "the chain is broken",
    "budget": "the budget was spent",
    "judge": "no verdict",
    "context": "no context",
    "ids": "no ids, so name what is relevant by quotes",
    "scorer": "the scorer failed",
    "rule": "no rule could tell",
}
"""Why a draw has no score, by the word that its reason begins with."""


def visible(text: str) -> str:
    """``text`` with control and tag characters, bidi overrides and what XML forbids written out: ``\\x1b``.

    Tab and line feed stay; so do letters of any script, joiners and emoji.
    """
    if text.isprintable():  # nothing that is written out is
        return text
    return _UNSAFE.sub(lambda found: _escape(ord(found[0])), text.replace("\r\n", "\n"))


def _escape(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def without_commands(text: str) -> str:
    """``text`` in which no line is a workflow command to a CI runner that reads the log: ``::error::``.

    GitHub's runner takes a line that begins with ``::`` after spaces, and ``##[`` anywhere in one; others
    take ``##vso[`` and ``##teamcity[``. GitLab's sections need control characters, which :func:`visible`
    writes out.
    """
    return _COMMAND.sub(lambda found: found[1] + ": :" if found[1] is not None else "## ", text)


def json_visible(text: str) -> str:
    """JSON that means the same and holds nothing a terminal or a CI runner acts on."""
    escaped = _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return _COMMAND.sub(lambda found: found[0].replace("##", "#\\u0023"), escaped)


def one_line(text: str, limit: int | None = None) -> str:
    """``visible`` text on one line, cut at ``limit`` characters."""
    line = text.strip()
    if "  " in line or not line.isprintable():
        line = visible(_SPACE.sub(" ", line))
    return line if limit is None or len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def rate(value: float | None) -> str:
    """A share without its leading zero. ``1.0`` and ``.00`` are said of exactly 1 and 0 only."""
    if value is None:
        return "–"
    if value in (0.0, 1.0):
        return "1.0" if value else ".00"
    for digits in (2, 3):
        text = f"{value:.{digits}f}"
        if float(text) not in (0.0, 1.0):
            return text.replace("0.", ".", 1)
    return ">.999" if value > 0.5 else "<.001"


def quantity(value: float | None, unit: str) -> str:
    """A number of any size with its unit, three digits."""
    if value is None:
        return "–"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def figure(kind: str, value: float | None, unit: str = "") -> str:
    """A value in the form its kind has."""
    return quantity(value, unit) if kind == "quantity" else rate(value)


def interval(kind: str, low: float | None, high: float | None) -> str:
    """``[.68, .90]``, or an empty string where there is none."""
    if low is None or high is None:
        return ""
    return f"[{figure(kind, low)}, {figure(kind, high)}]"


def estimate_value(estimate: Estimate) -> str:
    """The value of an estimate, or the reason why there is none."""
    if estimate.value is None:
        return REASON_WORD.get(estimate.reason or "", estimate.reason or "no data")
    return figure(estimate.kind, estimate.value, estimate.unit)


def estimate_interval(estimate: Estimate) -> str:
    """The interval of an estimate; a deterministic one says what it is instead."""
    if estimate.deterministic and estimate.per == "case" and estimate.low == estimate.high:
        return ""
    if estimate.value is not None and estimate.low is None and estimate.reason:
        return f"({REASON_WORD.get(estimate.reason, estimate.reason)})"
    if no_hits(estimate):
        return f"at most {rate(at_most(estimate.n, estimate.confidence))}"
    return interval(estimate.kind, estimate.low, estimate.high)


def no_hits(estimate: Estimate) -> bool:
    """Whether no attack of the group succeeded, as far as any was measured."""
    return estimate.metric.partition(":")[0] in ATTACKS and estimate.value == 0.0 and estimate.n > 0


def at_most(n: int, confidence: float) -> float:
    """The rate that ``n`` attacks without a hit leave possible: the one-sided exact limit of 0 of n.

    Clopper & Pearson 1934: 1 - (1 - confidence)^(1/n). Attacks are counted, not draws.
    """
    return float(1 - (1 - confidence) ** (1 / n))


def lost(failures: Mapping[str, int]) -> str:
    """``1: no verdict; 2: no answer came``: why draws have no score."""
    return "; ".join(f"{n:,}: {LOST_WORD.get(why, one_line(why))}" for why, n in sorted(failures.items()))


def missing(estimate: Estimate) -> int:
    """How many applicable draws (questions for a metric per case) have no score."""
    return estimate.planned - estimate.not_applicable - estimate.scored


def count(number: int, noun: str) -> str:
    """``1 question``, ``36 questions``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def amount(value: float, digits: int = 3) -> str:
    """A sum of money, in so many significant digits: ``0.0123``, ``1,230``."""
    text = f"{float(f'{value:.{digits}g}'):,.12f}"
    return text.rstrip("0").rstrip(".")


def percent(value: float) -> str:
    """A confidence level: ``95%``."""
    return f"{100 * value:g}%"


def gate_slug(gate: Gate) -> str:
    """The anchor of a gate in ``report.html``."""
    drop = "-drop" if gate.max_drop is not None else ""
    return "gate-" + re.sub(r"[^A-Za-z0-9_.@-]+", "_", f"{gate.metric}-{gate.group}{drop}")


def gate_anchors(verdicts: Iterable[Verdict]) -> list[str]:
    """One anchor per verdict, made distinct by a number where two gates read the same estimate."""
    seen: dict[str, int] = {}
    anchors = []
    for verdict in verdicts:
        slug = gate_slug(verdict.gate)
        seen[slug] = seen.get(slug, 0) + 1
        anchors.append(slug if seen[slug] == 1 else f"{slug}-{seen[slug]}")
    return anchors


def decision_word(verdict: Verdict) -> str:
    """``holds``, ``FAILS`` or ``UNDECIDED``, with what weakens it."""
    word = DECISION_WORD[verdict.decision]
    if verdict.decision == "undecided" and not verdict.red:
        return f"{word} (warns)"
    return f"{word} (judge unmeasured)" if verdict.judge_measured is False and word == "holds" else word


def gate_measured(verdict: Verdict, header: RunHeader) -> str:
    """Value and interval of a gate as they were read; of a gate on a drop, the change."""
    if verdict.gate.max_drop is not None:
        return change_measured(verdict)
    estimate = next(
        (e for e in header.estimates if (e.metric, e.group) == (verdict.gate.metric, verdict.gate.group)),
        None,
    )
    kind, unit = (estimate.kind, estimate.unit) if estimate else ("rate", "")
    value = figure(kind, verdict.value, unit)
    infers = verdict.gate.infer == "population"
    limits = interval(kind, verdict.low, verdict.high) if infers else ""
    mark = "c" if estimate is not None and estimate.measured else ""
    return f"{value} {limits}".rstrip() + mark


def gate_reasons(verdict: Verdict, header: RunHeader) -> list[str]:
    """Why it is as it is, for people: what the judge alone says, what is lacking, what would help."""
    found = next(
        (e for e in header.estimates if (e.metric, e.group) == (verdict.gate.metric, verdict.gate.group)),
        None,
    )
    read = found is not None and found.measured is not None and verdict.gate.max_drop is None
    alone = f"the judge alone says {rate(found.value)}" if read and found is not None else ""
    return [text for text in (alone, verdict.why, verdict.advice) if text]


def change_measured(verdict: Verdict) -> str:
    """``-.03 [-.12, +.04]``, a change since the baseline; the interval is the wider one that decides."""
    limits = f" [{signed(verdict.low)}, {signed(verdict.high)}]" if verdict.low != verdict.high else ""
    return f"{signed(verdict.value)}{limits}"


def signed(value: float | None) -> str:
    """A change with its sign: ``+.04``, ``-.15``; ``.00`` is said of exactly 0 only."""
    if value is None:
        return "–"
    if value == 0:
        return ".00"
    text = next((t for d in (2, 3) if float(t := f"{value:+.{d}f}")), f"{value:+.3f}")
    return text.replace("0.", ".", 1).replace("1.00", "1.0")


def tally(header: RunHeader) -> tuple[int, int, int]:
    """How many gates hold, fail and are undecided."""
    decisions = [verdict.decision for verdict in header.verdicts]
    return decisions.count("holds"), decisions.count("fails"), decisions.count("undecided")


def sentence(header: RunHeader) -> str:
    """What this run comes to, in one line. It follows the exit code and decides nothing."""
    special = {
        2: "something could not be used or written; see above",
        4: "a service, a model or a recording could not be had: nothing is concluded",
        5: "what was graded is not what the model was given: do not use these numbers",
        70: "evalrun itself failed: nothing is concluded",
        130: "interrupted: finished answers are kept, nothing is concluded",
    }
    if header.exit_code in special:
        return special[header.exit_code]
    if header.partial:
        return f"partial run ({one_line(header.partial)}): no gates evaluated"
    return _gates_sentence(header)


def _gates_sentence(header: RunHeader) -> str:
    holds, fails, undecided = tally(header)
    total = holds + fails + undecided
    if header.exit_code == 3 and not undecided:
        return "the run is not complete: not enough evidence to ship"
    if not total:
        return "no gates: nothing was asked of these numbers"
    if fails:
        tail = f", {undecided} undecided" if undecided else ""
        verb = "fails" if fails == 1 else "fail"
        return f"{fails} of {count(total, 'gate')} {verb}{tail}: not safe to ship on this evidence"
    if undecided:
        close = "not enough evidence to ship" if header.exit_code else "the others hold"
        return f"{undecided} of {count(total, 'gate')} undecided: {close}"
    unmeasured = any(verdict.judge_measured is False for verdict in header.verdicts)
    word = "the gate holds" if total == 1 else f"all {total} gates hold"
    return f"{word}, by a judge that was not measured" if unmeasured else f"{word} on this evidence"


def tone(header: RunHeader) -> Decision:
    """The colour of the sentence: as good as the exit code, and no better than what was decided."""
    if header.exit_code == 0:
        decided = header.verdicts and all(verdict.decision == "holds" for verdict in header.verdicts)
        return "holds" if decided and not header.partial else "undecided"
    return "undecided" if header.exit_code in (3, 130) else "fails"


def bot_line(header: RunHeader) -> str:
    """Kind and model of the bot; where its answers come from if it was not asked."""
    names = [header.bot.get(key) for key in ("kind", "model")]
    bot = ", ".join(str(name) for name in names if name) or "unnamed"
    if (origin := header.origin) is not None:
        bot += f"; answers of run {origin.name}" if origin.kind == "run" else f"; answers from {origin.name}"
    if header.not_exercised:
        total = header.draws * header.dataset.cases
        part = "" if header.not_exercised >= total else f" in {header.not_exercised} of {total} draws"
        bot += f"; not exercised{part}, its recorded replies stood in"
    return one_line(bot)


def judge_line(header: RunHeader) -> str:
    """Model and rubric of the judge."""
    if header.judge is None:
        return "none: nothing here needed one"
    return one_line(f"{header.judge.model}, rubric {header.judge.rubric}")


def recorded_line(header: RunHeader) -> str:
    """When the recording was made: one date, or the first and the last."""
    if header.recorded is None:
        return ""
    first, last = (one_line(day)[:10] for day in header.recorded)
    return first if first == last else f"{first} to {last}"


def attempt_words(meta: Meta) -> str:
    """``attempt 3 at these gates``: so many sets of answers were held against them."""
    return f"attempt {meta.attempt} at these gates"


def refused_words(meta: Meta) -> str:
    """How many calls the tap turned away."""
    return f"the tap refused {count(meta.refused, 'call')} without its token"


def proof_lines(levels: Mapping[str, int]) -> list[str]:
    """How many answers are proved, and how: one line a level, the strongest first."""
    total = sum(levels.values())
    lines = [
        f"{levels[level]:,} of {total:,}: {LEVEL_WORD[level]}" for level in LEVEL_WORD if levels.get(level)
    ]
    return lines or ["no answer to prove"]


def documents_line(header: RunHeader) -> str:
    """Which rates are over questions that share documents, and by which interval; empty where none is."""
    found: dict[str, Estimate] = {}
    for one in header.estimates:  # of the metrics of a group, the one that most questions count for
        if one.documents is not None and (one.group not in found or one.n > found[one.group].n):
            found[one.group] = one
    told = [
        f"{one_line(name)} {count(one.n, 'question')}, as much as {one.documents:.3g} documents"
        + (" (too few for a gate)" if one.reason == "too_few_clusters" else "")
        for name, one in found.items()
    ]
    method = next((one.method for one in found.values()), "")
    return f"questions of one document count together ({method}): {'; '.join(told)}" if told else ""


def corrections_line(header: RunHeader) -> str:
    """What the code checks changed in the judge's readings, and what the judge failed at."""
    if header.judge is None:
        return ""
    changed = [f"{one_line(name)} {n}" for name, n in sorted(header.judge.corrections.items()) if n]
    parts = [f"corrected by code: {', '.join(changed)}" if changed else "nothing corrected by code"]
    parts.append(
        count(header.judge.errors, "reading") + " failed" if header.judge.errors else "no reading failed"
    )
    if header.judge.reasks:
        parts.append(f"{header.judge.reasks} asked again")
    return "; ".join(parts)
