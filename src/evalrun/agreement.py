"""The judge against reference labels: which label belongs to which answer, and how far the two agree.

Owns the matching of labels to the draws of a run by digest, and the figures that may be reported for the way
the labels were chosen. The formulas are those of :mod:`evalrun.stats`, verdicts on a demanded accuracy those
of the gates; how all of it reads is decided by the reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, get_args

from evalrun import gates, stats
from evalrun.errors import ExitCode, UserError, worst
from evalrun.journal import RunFolder
from evalrun.labels import Labels
from evalrun.records import (
    Case,
    Cells,
    Design,
    Dimension,
    Draw,
    Estimate,
    Figure,
    Gate,
    JudgeInfo,
    Judgement,
    Label,
    Metric,
    Rater,
    Record,
    Verdict,
)
from evalrun.registry import nearest
from evalrun.reports.words import count
from evalrun.stats import Interval
from evalrun.summary import estimate_of

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
ADJUDICATED = "adjudicated"
"""The rater whose labels are taken where a file has several and none is asked for."""
CONFIDENCE = 0.95
Reading = Literal["sensitivity", "specificity"]


# ---------------------------------------------------------------- the record


class Bias(Record):
    """(judge yes, label no) less (judge no, label yes), over n, and the exact two-sided p of such a lean."""

    value: float | None
    p: float | None


class Relatives(Record):
    """Coefficients beside kappa. AC1 is not kappa and has no kappa scale."""

    ac1: float | None
    ac1_se: float | None
    pabak: float | None
    prevalence_index: float | None
    bias_index: float | None


class RatersAgree(Record):
    """Two raters on the draws that both labelled: the ceiling for any judge."""

    first: str
    second: str
    n: int
    agreement: Figure
    kappa: Figure


class Source(Record):
    """Where the labels come from and how their draws were chosen."""

    path: str
    digest: str
    design: Design
    seed: int | None
    date: date
    raters: dict[str, Rater]
    rater: str


class Pair(Record):
    """A labelled answer and what the judge said of it; ``judge`` None: no verdict, and ``why``."""

    case: str
    index: int
    draw: str
    question: str
    answer: str
    label: bool
    judge: bool | None
    note: str | None = None
    rationale: str | None = None
    unsupported: tuple[str, ...] = ()
    why: str | None = None


class Unmatched(Record):
    """A label without its answer in this run."""

    case: str
    draw: str


class Agreement(Record):
    """How far a run's judge agrees with the labels of one dimension.

    ``matched`` labels are of cases of the run; of these ``stale`` were made for another answer, and
    ``judge_missing`` are of answers without a verdict, which is never read as a no. ``n`` are compared.
    ``by_verdict``: share labelled yes among what the judge called yes, and among what it called no; given
    instead of the other figures where the labels were chosen by verdict.
    """

    format: Literal["agreement.v1"] = "agreement.v1"
    dimension: Dimension
    run: str
    judge: JudgeInfo
    labels: Source
    labelled: int
    matched: int
    n: int
    stale: tuple[Unmatched, ...]
    only_in_labels: tuple[Unmatched, ...]
    only_in_run: tuple[str, ...]
    judge_missing: tuple[Pair, ...]
    disagreements: tuple[Pair, ...]
    table: Cells
    agreement: Figure
    majority: Figure
    majority_label: bool | None
    kappa: Figure
    sensitivity: Figure
    specificity: Figure
    bias: Bias
    relatives: Relatives
    by_verdict: tuple[Figure, Figure] | None = None
    raters_agree: RatersAgree | None = None
    confidence: float = CONFIDENCE
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int = 0


# ---------------------------------------------------------------- from a run and a file


def agree(
    folder: RunFolder,
    labels: Labels,
    rater: str | None = None,
    demands: Mapping[Reading, float] | None = None,
) -> Agreement:
    """The judge of a run against the labels of one rater.

    Args:
        demands: least sensitivity or specificity, in (0, 1): each becomes a verdict.

    Raises:
        UserError: the run has no judge, the file is of no dimension that a judge reads, it has no such rater,
            or no label is of an answer of this run.
    """
    header = folder.header
    dimension = dimension_of(labels.header.dimension, str(labels.path))
    if header.judge is None:
        raise UserError(f"{folder.path}: no judge read these answers", "name a run whose config has a judge")
    who = reference(labels, rater)
    chosen = [row for row in labels.rows if row.rater == who]
    found = match(Answers.of(folder.cases(), folder.draws(), folder.judgements()), chosen, dimension)
    if not found.pairs:
        raise UserError(*_nothing(folder, labels, found))
    source = Source(
        path=str(labels.path),
        digest=labels.digest,
        design=labels.header.design,
        seed=labels.header.seed,
        date=labels.header.date,
        raters=labels.header.raters,
        rater=who,
    )
    verdicts = tuple(_demand(found.pairs, source.design, *one) for one in (demands or {}).items())
    return Agreement(
        dimension=dimension,
        run=str(folder.path),
        judge=header.judge,
        labels=source,
        labelled=len(chosen),
        matched=len(found.pairs) + len(found.stale),
        stale=found.stale,
        only_in_labels=found.only_in_labels,
        only_in_run=found.only_in_run,
        **figures(found.pairs, source.design),
        **_leans(found.pairs, source.design),
        raters_agree=raters_agree(labels),
        verdicts=verdicts,
        notes=tuple(_notes(found, source, len(chosen))),
        exit_code=worst(_EXIT[verdict.decision] for verdict in verdicts),
    )


_EXIT = {
    "holds": ExitCode.OK,
    "fails": ExitCode.GATE_FAILED,
    "undecided": ExitCode.NOT_ENOUGH_EVIDENCE,
}


def dimension_of(name: str, file: str) -> Dimension:
    """The dimension of a label file, by the name its header gives.

    Raises:
        UserError: it is nothing that a judge reads.
    """
    for dimension in DIMENSIONS:
        if dimension == name:
            return dimension
    raise UserError(
        f"{file}: dimension '{name}' is nothing that a judge reads",
        nearest(name, DIMENSIONS) or f"known: {', '.join(DIMENSIONS)}",
    )


def reference(labels: Labels, rater: str | None = None) -> str:
    """The rater whose labels count: the one asked for, else ``adjudicated``, else the first of the header.

    Raises:
        UserError: no label of such a rater is in the file.
    """
    known = [name for name in labels.header.raters if any(row.rater == name for row in labels.rows)]
    if rater is None:
        return ADJUDICATED if ADJUDICATED in known else known[0]
    if rater not in known:
        hint = nearest(rater, known) or f"raters with labels: {', '.join(known)}"
        raise UserError(f"{labels.path}: no label by rater '{rater}'", hint)
    return rater


# ---------------------------------------------------------------- which label belongs to which answer


@dataclass(frozen=True)
class Answers:
    """The answers of a run: case and digest → draw, (case, index) → verdict, case → question."""

    draws: Mapping[tuple[str, str], Draw]
    judgements: Mapping[tuple[str, int], Judgement]
    questions: Mapping[str, str]

    @classmethod
    def of(cls, cases: Iterable[Case], draws: Iterable[Draw], judgements: Iterable[Judgement]) -> Answers:
        """Of draws with the same words the first with a verdict stands for all."""
        verdicts = {(one.case, one.index): one for one in judgements}
        found: dict[tuple[str, str], Draw] = {}
        for draw in draws:
            if draw.digest is None:
                continue
            known = found.get((draw.case, draw.digest))
            if known is None or (_unread(verdicts.get(known.key)) and not _unread(verdicts.get(draw.key))):
                found[draw.case, draw.digest] = draw
        return cls(found, verdicts, {case.id: case.question for case in cases})


def _unread(judgement: Judgement | None) -> bool:
    return judgement is None or judgement.error is not None


@dataclass(frozen=True)
class Matched:
    """Labels and the answers they belong to, and what has no partner."""

    pairs: tuple[Pair, ...]
    stale: tuple[Unmatched, ...]
    only_in_labels: tuple[Unmatched, ...]
    only_in_run: tuple[str, ...]


def match(answers: Answers, rows: Sequence[Label], dimension: Dimension) -> Matched:
    """Each label beside the answer with its digest, in the order of the labels."""
    pairs: list[Pair] = []
    stale: list[Unmatched] = []
    alone: list[Unmatched] = []
    for row in rows:
        draw = answers.draws.get((row.case, row.draw))
        if draw is not None:
            judgement = answers.judgements.get(draw.key)
            pairs.append(_pair(row, draw, judgement, answers.questions.get(row.case, ""), dimension))
        else:
            lost = stale if row.case in answers.questions else alone
            lost.append(Unmatched(case=row.case, draw=row.draw))
    labelled = {row.case for row in rows}
    unlabelled = tuple(case for case in answers.questions if case not in labelled)
    return Matched(tuple(pairs), tuple(stale), tuple(alone), unlabelled)


def _pair(row: Label, draw: Draw, judgement: Judgement | None, question: str, dimension: Dimension) -> Pair:
    said: bool | None = None
    why: str | None = "the judge was not asked"
    if judgement is not None and judgement.digest != draw.digest:
        why = "the verdict is on another answer"
    elif judgement is not None:
        said, why = getattr(judgement, dimension), judgement.error
    return Pair(
        case=row.case,
        index=draw.index,
        draw=row.draw,
        question=question,
        answer=draw.answer or "",
        label=row.label,
        judge=said,
        note=row.note,
        rationale=judgement.rationale if judgement else None,
        unsupported=judgement.unsupported if judgement else (),
        why=(why or "no verdict") if said is None else None,
    )


def _nothing(folder: RunFolder, labels: Labels, found: Matched) -> tuple[str, str]:
    stale, alone = len(found.stale), len(found.only_in_labels)
    return (
        f"{labels.path}: no label is of an answer in {folder.path}: {stale} made for another answer of "
        f"a case of this run, {alone} of cases that it does not have",
        "label this run (evalrun label), or name the run that was labelled",
    )


def _notes(found: Matched, source: Source, labelled: int) -> Iterable[str]:
    if found.stale:
        yield (
            f"left out, made for another answer of its question: {len(found.stale)} of "
            f"{count(labelled, 'label')}: {', '.join(one.case for one in found.stale[:5])}"
        )
    if source.design == "by_verdict":
        yield (
            "the labelled answers were chosen by the judge's verdict: kappa, agreement, sensitivity and "
            "specificity of such a sample would be biased and are not given"
        )
    if source.design == "unknown":
        yield "nobody wrote down how the labelled answers were chosen: they may not speak for the run"
    if several := _several(found.pairs):
        yield f"several answers to one question are labelled ({several}): the intervals are too narrow"
    if len(source.raters) > 1:
        yield f"the labels of '{source.rater}' count; choose another with --rater"


def _several(pairs: Sequence[Pair]) -> int:
    """How many questions have more than one labelled answer."""
    return sum(count > 1 for count in Counter(pair.case for pair in pairs).values())


# ---------------------------------------------------------------- the figures


def figures(pairs: Sequence[Pair], design: Design) -> dict[str, Any]:
    """The fields of :class:`Agreement` that follow from the pairs, but those that say which way the judge
    leans.
    """
    read = [pair for pair in pairs if pair.judge is not None]
    table = table_of((pair.judge is True, pair.label) for pair in read)
    return {
        "n": table.total,
        "judge_missing": tuple(pair for pair in pairs if pair.judge is None),
        "disagreements": tuple(pair for pair in read if pair.judge != pair.label),
        "table": table,
        **accuracy(table, design),
    }


def accuracy(table: Cells, design: Design) -> dict[str, Any]:
    """Agreement, kappa, sensitivity and specificity, with limits at 95%.

    Where the labels were chosen by verdict, only the shares ``by_verdict`` are sound and given.
    """
    (tp, fp), (fn, tn) = table.rows
    if design == "by_verdict":
        none = Figure(reason="not_a_random_sample", n=table.total)
        shares = [(tp, tp + fp), (fn, fn + tn)]
        return {
            **dict.fromkeys(("agreement", "kappa", "sensitivity", "specificity"), none),
            "by_verdict": tuple(_share(stats.clopper_pearson_ci(x, n, CONFIDENCE), x) for x, n in shares),
        }
    found = stats.judge_accuracy(tp, fp, fn, tn, CONFIDENCE)
    return {
        "agreement": _share(stats.wilson_ci(tp + tn, table.total, CONFIDENCE), tp + tn),
        "kappa": _figure(stats.kappa_ci(table.rows, CONFIDENCE)),
        "sensitivity": _share(found.sensitivity, tp),
        "specificity": _share(found.specificity, tn),
    }


def table_of(codes: Iterable[tuple[bool, bool]]) -> Cells:
    """(judge, label) pairs, counted."""
    both = list(codes)
    (a, b), (c, d) = stats.contingency(
        [int(not judge) for judge, _ in both], [int(not label) for _, label in both]
    ).tolist()
    return Cells(yes_yes=a, yes_no=b, no_yes=c, no_no=d)


def _leans(pairs: Sequence[Pair], design: Design) -> dict[str, Any]:
    """Which way the judge leans, the relatives of kappa, and what saying always the same would reach."""
    table = table_of((pair.judge, pair.label) for pair in pairs if pair.judge is not None)
    (tp, fp), (fn, tn) = table.rows
    if design == "by_verdict":
        return {
            "majority": Figure(reason="not_a_random_sample", n=table.total),
            "majority_label": None,
            "bias": Bias(value=None, p=None),
            "relatives": Relatives(ac1=None, ac1_se=None, pabak=None, prevalence_index=None, bias_index=None),
        }
    yes, no = tp + fn, fp + tn
    return {
        "majority": _share(stats.wilson_ci(max(yes, no), table.total, CONFIDENCE), max(yes, no)),
        "majority_label": yes > no if table.total else None,
        "bias": _bias(table),
        "relatives": _relatives(table),
    }


def _figure(found: Interval) -> Figure:
    return Figure(
        value=found.estimate,
        low=found.low,
        high=found.high,
        method=found.method,
        reason=found.reason,
        n=found.n,
    )


def _share(found: Interval, count: int) -> Figure:
    return _figure(found).model_copy(update={"count": count})


def _bias(table: Cells) -> Bias:
    from evalrun.stats.significance import mcnemar_exact  # needs scipy.stats, for which a run must not wait

    if not table.total:
        return Bias(value=None, p=None)
    value = (table.yes_no - table.no_yes) / table.total
    return Bias(value=value, p=mcnemar_exact(table.yes_no, table.no_yes))


def _relatives(table: Cells) -> Relatives:
    ac1, indices = stats.gwet_ac1(table.rows), stats.pabak(table.rows)
    return Relatives(
        ac1=ac1.coefficient,
        ac1_se=ac1.se,
        pabak=indices.pabak,
        prevalence_index=indices.prevalence_index,
        bias_index=indices.bias_index,
    )


def raters_agree(labels: Labels) -> RatersAgree | None:
    """How far the two raters of a file agree; None unless it has exactly two beside an adjudicated one."""
    readers = [name for name in labels.header.raters if name != ADJUDICATED]
    if len(readers) != 2:
        return None
    one, two = (
        {(row.case, row.draw): row.label for row in labels.rows if row.rater == name} for name in readers
    )
    table = table_of((one[key], two[key]) for key in one if key in two)
    if not table.total:
        return None
    same = table.yes_yes + table.no_no
    return RatersAgree(
        first=readers[0],
        second=readers[1],
        n=table.total,
        agreement=_share(stats.wilson_ci(same, table.total, CONFIDENCE), same),
        kappa=_figure(stats.kappa_ci(table.rows, CONFIDENCE)),
    )


# ---------------------------------------------------------------- demands


_EVENT: dict[Reading, str] = {
    "sensitivity": "the judge says yes where the labels do",
    "specificity": "the judge says no where the labels do",
}


def _demand(pairs: Sequence[Pair], design: Design, reading: Reading, least: float) -> Verdict:
    """The verdict on a least sensitivity or specificity, by the exact limits at 95%.

    An answer without a verdict counts against it. Undecided where the labels do not speak for the run, or
    several of one question are labelled.
    """
    gate = Gate(metric=reading, group="labels", min=least, method="exact")
    concerned = [pair for pair in pairs if pair.label == (reading == "sensitivity")]
    values = [[None if pair.judge is None else float(pair.judge == pair.label)] for pair in concerned]
    verdict = gates.decide(gate, {(reading, "labels"): _estimate(reading, values)})
    verdict = verdict.model_copy(update={"advice": _advice(verdict)})
    if design in ("by_verdict", "unknown"):
        return _undecided(verdict, "the labels are not a random sample")
    if _several(concerned):
        return _undecided(verdict, "several answers to one question are labelled")
    if verdict.value is not None and verdict.n < gate.min_n:
        word = "yes" if reading == "sensitivity" else "no"
        why = f"{count(verdict.n, 'answer')} labelled {word}; a verdict needs {gate.min_n}"
        return verdict.model_copy(update={"why": why})
    return verdict


def _undecided(verdict: Verdict, why: str) -> Verdict:
    return verdict.model_copy(update={"decision": "undecided", "why": why, "decided_by": "", "advice": ""})


def _advice(verdict: Verdict) -> str:
    if verdict.decision != "undecided" or verdict.value is None or verdict.gate.min is None:
        return ""
    needed = stats.questions_needed(verdict.value, verdict.gate.min, True, method="exact")
    what = "yes" if verdict.gate.metric == "sensitivity" else "no"
    if needed is None or needed <= verdict.n:
        return ""
    return f"to hold at this rate takes {needed:,} answers labelled {what}; there are {verdict.n:,}"


def _estimate(reading: Reading, values: list[list[float | None]]) -> Estimate:
    metric = Metric(id=reading, event=_EVENT[reading], kind="rate", better="higher")
    known = [value for [value] in values if value is not None]
    lost = len(values) - len(known)
    failures = Counter({"no verdict": lost} if lost else {})
    exact = stats.clopper_pearson_ci(int(sum(known)), len(known), CONFIDENCE)
    return estimate_of(metric, "labels", values, failures=failures, interval=exact)
