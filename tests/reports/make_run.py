"""Makes run folders for the tests of the reports: realistic, hostile, empty or very long, always the same.

Owns the made-up corpus and how its answers come out. Its intervals are plain Wilson ones over questions,
enough to show; what they are worth is tested where they are made.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from evalrun.digest import draw_digest, tagged
from evalrun.journal import RunFolder
from evalrun.records import (
    Case,
    CaseContext,
    Chunk,
    Claim,
    Context,
    DatasetInfo,
    Decision,
    Draw,
    Estimate,
    Gate,
    JudgeInfo,
    Judgement,
    Meta,
    Metric,
    RunHeader,
    Score,
    Usage,
    Verdict,
)
from known import json_of

CORPUS = json.loads(Path(__file__).with_name("corpus.json").read_text("utf-8"))
CHUNKS: dict[str, str] = CORPUS["chunks"]
KNOWN: list[list[str]] = CORPUS["known"]
"""Question, chunk, reference, a good sentence, an invented one."""
UNKNOWN: list[list[str]] = CORPUS["unknown"]
GUARDED: list[list[str]] = CORPUS["guarded"]
"""Question, an invented answer, its claim."""

REFUSAL = "I have no information about that in my profile."
FILLER = " I could say more about this, but the profile keeps it short."

METRICS = (
    Metric(
        id="recall@5",
        event="recall@5",
        kind="score",
        better="higher",
        population="answerable",
        per="case",
        deterministic=True,
    ),
    Metric(
        id="mrr",
        event="mrr",
        kind="score",
        better="higher",
        population="answerable",
        per="case",
        deterministic=True,
    ),
    Metric(
        id="grounded",
        event="grounded answer",
        kind="rate",
        better="higher",
        population="answerable",
        judged=True,
    ),
    Metric(
        id="unsupported",
        event="unsupported claim",
        kind="rate",
        better="lower",
        population="answerable",
        judged=True,
    ),
    Metric(
        id="over_refused",
        event="refused, should have answered",
        kind="rate",
        better="lower",
        population="answerable",
        judged=True,
    ),
    Metric(
        id="correctly_refused",
        event="refused",
        kind="rate",
        better="higher",
        population="unanswerable",
        judged=True,
    ),
    Metric(
        id="answered",
        event="answered, should have refused",
        kind="rate",
        better="lower",
        population="unanswerable",
        judged=True,
    ),
    Metric(id="right", event="right", kind="rate", better="higher", judged=True),
    Metric(id="faithful", event="no unsupported claim", kind="rate", better="higher", judged=True),
    Metric(
        id="correct",
        event="says what the reference says",
        kind="rate",
        better="higher",
        population="answerable",
        judged=True,
    ),
    Metric(id="latency", event="seconds to answer", kind="quantity", better="lower", unit="s"),
)

ANSWERABLE = ("single_chunk", "multi_chunk")
DEFAULT_SIZES = {"single_chunk": 24, "multi_chunk": 12, "out_of_corpus": 16, "guardrail": 12}


def hostile_texts() -> list[str]:
    """Everything from the case files that tries to be more than text."""
    own = [
        "[bold red]markup[/bold red] [link=file:///etc/passwd]x[/link]",
        "\u202egnp.exe\u202c",
        "``` | `x`",
    ]
    return [
        json_of("hr-01-script-close.json")["answer"],
        *json_of("hr-02-markup.json").values(),
        *json_of("hr-03-placeholder.json")["answers"],
        *json_of("jx-01-control-chars.json")["answers"],
        json_of("rs-03-lone-surrogate.json")["answer"],
        json_of("rs-04-strict-json.json")["answer_text"],
        *own,
    ]


def stored(text: str) -> str:
    """A text as a run keeps it: half a character is U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def make_hostile(path: Path, texts: Sequence[str]) -> RunFolder:
    """A run in which every text that can come from outside is one of these."""
    kept = [stored(text) for text in texts]
    extra = [
        (Case(id=f"h{place} {text}", question=text, category=text, reference=text, tags=(text,)), text)
        for place, text in enumerate(kept)
    ]
    told: dict[str, Any] = {"name": kept[0], "notes": tuple(kept), "errors": tuple(kept)}
    return make_run(path, sizes={"single_chunk": 8}, extra=extra, **told)


def wilson(p: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson limits at n."""
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


class Making:
    """One run in the making: asks, answers, judges and scores by dice of its own."""

    def __init__(self, path: Path, *, draws: int, judge: bool, seed: int) -> None:
        self.folder = RunFolder(path)
        self.draws = draws
        self.judge = judge
        self.dice = random.Random(seed)
        self.scores: list[Score] = []
        self.cases: list[Case] = []
        self.levels: dict[str, int] = {}
        self.judge_errors = 0

    def ask(
        self, case: Case, answer: Callable[[int], tuple[str, tuple[Claim, ...], bool]], fault: str | None
    ) -> None:
        """Ask one case; ``answer`` gives text, claims and whether it is a refusal, ``fault`` what breaks."""
        self.cases.append(case)
        self.folder.append("cases", case)
        context = self._context(case)
        self.folder.append("contexts", CaseContext(case=case.id, context=context))
        relevant = set(case.relevant_ids) if isinstance(case.relevant_ids, tuple) else set()
        self._score_retrieval(case, context, {str(item) for item in relevant})
        for index in range(self.draws):
            if fault == "no answer" and index == self.draws - 1:
                self._lose(case, index, context)
            else:
                self._draw(case, index, context, answer(index), fault == "bad verdict" and index == 0)

    def _context(self, case: Case) -> Context:
        wanted = [str(item) for item in case.relevant_ids or () if str(item) in CHUNKS]
        others = [name for name in CHUNKS if name not in wanted]
        self.dice.shuffle(others)
        lost = bool(wanted) and self.dice.random() < 0.2
        ids = others[:5] if lost else [*wanted, *others][:5]
        return Context.of(
            tuple(
                Chunk(id=name, text=CHUNKS[name], similarity=round(0.8 - 0.09 * rank, 4))
                for rank, name in enumerate(ids)
            )
        )

    def _score_retrieval(self, case: Case, context: Context, relevant: set[str]) -> None:
        if case.expect == "refuse" or not relevant:
            for metric in ("recall@5", "mrr"):
                self._score(case, None, metric, "not_applicable", reason="nothing is relevant")
            return
        ranks = [rank for rank, name in enumerate(context.ids, start=1) if name in relevant]
        self._score(case, None, "recall@5", "number", len(ranks) / len(relevant))
        self._score(case, None, "mrr", "number", 1 / ranks[0] if ranks else 0.0)

    def _lose(self, case: Case, index: int, context: Context) -> None:
        reason = "the bot did not answer: 503 after 3 tries"
        self._count("none")
        self.folder.append(
            "draws", Draw(case=case.id, index=index, seed=7, context=context.digest, error=reason)
        )
        for metric in METRICS:
            if metric.per == "draw" and (metric.judged <= self.judge):
                fits = metric.population in ("all", case.population)
                self._score(case, index, metric.id, "error" if fits else "not_applicable", reason=reason)

    def _draw(
        self, case: Case, index: int, context: Context, said: tuple[str, tuple[Claim, ...], bool], bad: bool
    ) -> None:
        text, claims, refusal = said
        self._count("observed")
        digest = draw_digest(case.question, case.history, context.digest, text)
        seconds = round(1.1 + self.dice.random() * 2, 3)
        self.folder.append(
            "draws",
            Draw(
                case=case.id,
                index=index,
                seed=self.dice.getrandbits(31),
                digest=digest,
                answer=text,
                context=context.digest,
                model="qwen2.5-coder:1.5b",
                finish_reason="stop",
                usage=Usage(prompt_tokens=612, completion_tokens=41),
                seconds=seconds,
                level="observed",
                exchange=tagged("exchange", [case.id, index]),
            ),
        )
        self._score(case, index, "latency", "number", seconds)
        if self.judge:
            self._judge(case, index, digest, claims, refusal, bad)

    def _judge(
        self, case: Case, index: int, digest: str, claims: tuple[Claim, ...], refusal: bool, bad: bool
    ) -> None:
        if bad:
            reason = "the judge's reply is no verdict: required key 'claims' is missing"
            self.judge_errors += 1
            self.folder.append(
                "judgements",
                Judgement(
                    case=case.id, index=index, digest=digest, attempts=2, raw='{"answer_is', error=reason
                ),
            )
            for metric in METRICS:
                if metric.judged:
                    fits = metric.population in ("all", case.population)
                    self._score(case, index, metric.id, "error" if fits else "not_applicable", reason=reason)
            return
        faithful = all(claim.supported for claim in claims)
        correct = (faithful and not refusal) if case.reference else None
        corrected = ("novel_terms: 1 claim",) if any(c.decided_by == "novel_terms" for c in claims) else ()
        self.folder.append(
            "judgements",
            Judgement(
                case=case.id,
                index=index,
                digest=digest,
                refusal=refusal,
                faithful=faithful,
                correct=correct,
                claims=claims,
                rationale=None,
                model_refusal=refusal,
                model_faithful=faithful or bool(corrected),
                corrections=corrected,
                raw="{}",
            ),
        )
        self._score_outcome(case, index, refusal, faithful, correct)

    def _score_outcome(
        self, case: Case, index: int, refusal: bool, faithful: bool, correct: bool | None
    ) -> None:
        declined = refusal and faithful
        answerable = case.expect == "answer"
        events = {
            "grounded": (answerable, not declined and faithful),
            "unsupported": (answerable, not faithful),
            "over_refused": (answerable, declined),
            "correctly_refused": (not answerable, declined),
            "answered": (not answerable, not declined),
            "right": (True, (not declined and faithful and correct is not False) if answerable else declined),
            "faithful": (True, faithful),
            "correct": (correct is not None, bool(correct)),
        }
        for metric, (applies, happened) in events.items():
            status = ("pass" if happened else "fail") if applies else "not_applicable"
            self._score(case, index, metric, status)

    def _score(
        self,
        case: Case,
        index: int | None,
        metric: str,
        status: Any,
        value: float | None = None,
        reason: str | None = None,
    ) -> None:
        score = Score(case=case.id, index=index, metric=metric, status=status, value=value, reason=reason)
        self.scores.append(score)
        self.folder.append("scores", score)

    def _count(self, level: str) -> None:
        self.levels[level] = self.levels.get(level, 0) + 1


def estimate(making: Making, metric: Metric, group: str) -> Estimate:
    """The estimate of a metric over the questions of a group."""
    members = {case.id for case in making.cases if group in case.groups}
    found = [s for s in making.scores if s.metric == metric.id and s.case in members]
    per_case: dict[str, list[float]] = {}
    for score in found:
        if score.status in ("pass", "fail", "number"):
            per_case.setdefault(score.case, []).append(
                score.value if score.value is not None else float(score.status == "pass")
            )
    means = [sum(values) / len(values) for values in per_case.values()]
    value = sum(means) / len(means) if means else None
    low, high = (
        (None, None)
        if value is None
        else (value, value)
        if metric.kind == "quantity"
        else wilson(value, len(means))
    )
    return Estimate(
        metric=metric.id,
        event=metric.event,
        group=group,
        kind=metric.kind,
        better=metric.better,
        per=metric.per,
        deterministic=metric.deterministic,
        judged=metric.judged,
        unit=metric.unit,
        n=len(means),
        draws=making.draws if metric.per == "draw" else 1,
        planned=len(found),
        scored=sum(s.status in ("pass", "fail", "number") for s in found),
        not_applicable=sum(s.status == "not_applicable" for s in found),
        failed=sum(s.status == "error" for s in found),
        value=value,
        low=low,
        high=high,
        method="rate_ci",
        reason=None if means else "no_data",
    )


def verdict(estimates: Iterable[Estimate], gate: Gate, decision: Decision, **words: Any) -> Verdict:
    """A verdict as told, with the figures of its estimate."""
    found = next((e for e in estimates if (e.metric, e.group) == (gate.metric, gate.group)), None)
    figures: dict[str, Any] = {}
    if found:
        figures = {"value": found.value, "low": found.low, "high": found.high, "n": found.n}
    if found and gate.infer == "this_set":
        figures |= {"low": found.value, "high": found.value}
    return Verdict(gate=gate, decision=decision, **figures, **words)


def default_verdicts(estimates: Sequence[Estimate], judge: bool) -> tuple[Verdict, ...]:
    """One gate that holds, one regression check, one that fails and one undecided."""
    first = verdict(
        estimates,
        Gate(metric="recall@5", group="answerable", min=0.7, infer="this_set"),
        "holds",
        decided_by="value .80",
    )
    if not judge:
        return (first,)
    return (
        first,
        verdict(
            estimates,
            Gate(metric="grounded", group="answerable", min=0.5),
            "holds",
            judge_measured=False,
            decided_by="at least .59",
            why="the lower limit .59 clears .50",
        ),
        verdict(
            estimates,
            Gate(metric="correctly_refused", group="guardrail", min=0.75),
            "undecided",
            judge_measured=False,
            why="the interval holds .75",
            advice="to hold at this rate takes 13 questions; you have 12 (add questions, not draws)",
        ),
        verdict(
            estimates,
            Gate(metric="correctly_refused", group="out_of_corpus", min=0.75),
            "fails",
            judge_measured=False,
            decided_by="at most .71 (exact limit)",
            why="even the upper limit .71 is below .75",
        ),
        verdict(estimates, Gate(metric="latency", group="all", max=4.0), "holds", decided_by="2.1 s"),
    )


def make_run(
    path: Path,
    *,
    sizes: dict[str, int] | None = None,
    draws: int = 3,
    judge: bool = True,
    seed: int = 1,
    faults: bool = True,
    long_answers: bool = False,
    extra: Iterable[tuple[Case, str]] = (),
    gates: bool = True,
    exit_code: int | None = None,
    **header: Any,
) -> RunFolder:
    """A sealed run folder without reports.

    ``extra`` adds cases answered by a text of their own. ``header`` replaces fields of ``run.json``.
    """
    sizes = DEFAULT_SIZES if sizes is None else sizes
    path.mkdir(parents=True, exist_ok=True)
    making = Making(path, draws=draws, judge=judge, seed=seed)
    _ask_all(making, sizes, faults, long_answers)
    for case, text in extra:
        claim = Claim(claim=text, quote=None, supported=case.expect == "refuse")
        making.ask(case, lambda index, text=text, claim=claim: (text, (claim,), False), None)  # type: ignore[misc]
    metrics = tuple(metric for metric in METRICS if metric.judged <= judge)
    categories: dict[str, int] = dict.fromkeys(sizes, 0)
    for case in making.cases:
        categories[case.category] = categories.get(case.category, 0) + 1
    estimates = tuple(
        estimate(making, metric, group)
        for metric in metrics
        for group in ("all", "answerable", "unanswerable", *categories)
    )
    verdicts = header.pop("verdicts", None) or (default_verdicts(estimates, judge) if gates else ())
    red = any(v.red for v in verdicts)
    fails = any(v.decision == "fails" for v in verdicts)
    written: dict[str, Any] = {
        "evalrun": "0.1.0",
        "name": "quality",
        "config": {"name": "quality"},
        "config_digest": tagged("config", ["quality"]),
        "dataset": DatasetInfo(
            name="twin.v1", digest=tagged("dataset", [1]), cases=len(making.cases), categories=categories
        ),
        "bot": {"kind": "ragbot", "model": "qwen2.5-coder:1.5b"},
        "judge": _judge_info(making) if judge else None,
        "rubric_text": "version: 1\nprompt: …\n" if judge else None,
        "draws": draws,
        "temperature": 0.7,
        "exit_code": (1 if fails else 3 if red else 0) if exit_code is None else exit_code,
        "levels": making.levels,
        "demanded_level": "observed",
        "recorded": ("2026-12-02", "2026-12-02"),
        "metrics": metrics,
        "estimates": estimates,
        "verdicts": verdicts,
    }
    written |= header
    journals = making.folder.seal()
    making.folder.write_header(RunHeader(**written, journals=journals), make_meta(making))
    return making.folder


def _judge_info(making: Making) -> JudgeInfo:
    return JudgeInfo(
        model="qwen2.5-coder:1.5b",
        rubric="claims@1",
        rubric_digest=tagged("rubric", [1]),
        checks=("refusal_rule", "quotes", "novel_terms"),
        temperature=0,
        fingerprint=tagged("judge", [1]),
        same_model_as_bot=True,
        corrections={"refusal_rule": 3, "quotes": 5, "novel_terms": 2},
        errors=making.judge_errors,
        reasks=making.judge_errors,
    )


def make_meta(making: Making) -> Meta:
    """Times and names of the run."""
    total = sum(making.levels.values())
    return Meta(
        run="1209-quality",
        mode="replay",
        started="2026-12-09T12:09:00Z",
        seconds=11.84,
        calls=0,
        replayed=total,
        config_path="configs/quality.yaml",
        seconds_recorded=512.3,
    )


def _ask_all(making: Making, sizes: dict[str, int], faults: bool, long_answers: bool) -> None:
    for category, size in sizes.items():
        for number in range(1, size + 1):
            fault = None
            if faults and number == 5:
                fault = {"multi_chunk": "bad verdict", "out_of_corpus": "no answer"}.get(category)
            case, answer = _question(making, category, number, long_answers)
            making.ask(case, answer, fault)


Said = tuple[str, tuple[Claim, ...], bool]


def _question(
    making: Making, category: str, number: int, long_answers: bool
) -> tuple[Case, Callable[[int], Said]]:
    ident = f"{category.replace('_', '-')}-{number:02d}"
    if category in ANSWERABLE:
        question, chunk, reference, good, bad = KNOWN[number % len(KNOWN)]
        second = KNOWN[(number + 3) % len(KNOWN)]
        relevant = (chunk, second[1]) if category == "multi_chunk" else (chunk,)
        case = Case(
            id=ident,
            question=question,
            category=category,
            relevant_ids=relevant,
            reference=reference,
            tags=(chunk,),
        )
        hard = making.dice.random()
        padding = FILLER * 60 if long_answers else ""
        return case, lambda index: _known(making, chunk, good, bad, hard, padding)
    source = GUARDED if category == "guardrail" else UNKNOWN
    question, invented, claim = source[number % len(source)]
    case = Case(id=ident, question=question, category=category, expect="refuse")
    hard = making.dice.random() * (0.35 if category == "guardrail" else 1.0)
    return case, lambda index: _unknown(making, invented, claim, hard)


def _known(making: Making, chunk: str, good: str, bad: str, hard: float, padding: str) -> Said:
    first = Claim(claim=good.rstrip("."), quote=_quote(chunk, good), supported=True)
    luck = making.dice.random() * 0.5 + hard * 0.5
    if luck > 0.9:
        return REFUSAL, (), True
    if luck > 0.72:
        return (
            f"{good} {bad}{padding}",
            (first, Claim(claim=bad.rstrip("."), supported=False, decided_by="novel_terms")),
            False,
        )
    return good + padding, (first,), False


def _quote(chunk: str, good: str) -> str:
    """The longest run of words of the answer that stands in the chunk."""
    words, text = good.rstrip(".").split(), CHUNKS[chunk]
    runs = (" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1))
    return max((run for run in runs if run in text), key=len, default=text[:40])


def _unknown(making: Making, invented: str, claim: str, hard: float) -> Said:
    if making.dice.random() * 0.4 + hard * 0.6 > 0.5:
        return invented, (Claim(claim=claim, supported=False),), False
    return REFUSAL, (), True
