"""The labels of a run beside the verdicts of its judge: what rate of the judge they correct, and why not.

Owns which event a label decides and which labels may correct which rate. The way the labelled draws were
chosen decides the method; the formulas are those of :mod:`evalrun.stats`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalrun import stats
from evalrun.agreement import Answers, dimension_of
from evalrun.certificate import usable
from evalrun.labelling import one_a_case
from evalrun.outcomes import OUTCOMES, UNANSWERABLE, event_of
from evalrun.records import (
    Bounds,
    Case,
    Certificate,
    Correction,
    Design,
    Dimension,
    Draw,
    Estimate,
    Expect,
    LabelsUsed,
)
from evalrun.reducers import split
from evalrun.reports.words import count
from evalrun.stats import Corrected
from evalrun.stats.rate import MIN_CLUSTERS
from evalrun.summary import CONFIDENCE, documents_of

MIN_LABELS = 8
"""Fewer labelled questions correct nothing, as fewer questions decide no gate."""
BOTH: tuple[Dimension, ...] = ("refusal", "faithful")
REASON = {
    "no_data": "the labels hold one kind of answer only",
    "too_few_clusters": "fewer than two labels on one of the judge's verdicts",
    "judge_uninformative": "by its labels the judge may tell no more than a coin",
}


# ---------------------------------------------------------------- which event a reading decides


Readings = Mapping[str, Mapping[str, Mapping[Dimension, bool]]]
"""Case → digest of a draw → dimension → what was read."""


def _joined(files: Sequence[LabelsUsed], *, judge: bool = False) -> Readings:
    """The labels of draws that have one in every file; or what the judge of the files said of these draws."""
    found: dict[str, dict[str, dict[Dimension, bool]]] = {}
    for file in files:
        dimension = dimension_of(file.header.dimension, file.file)
        for row in file.rows:
            value = row.judge if judge else row.label
            if value is not None:
                found.setdefault(row.case, {}).setdefault(row.draw, {})[dimension] = value
    return {
        case: {draw: read for draw, read in draws.items() if len(read) == len(files)}
        for case, draws in found.items()
    }


@dataclass
class _Question:
    """The event by the judge, of each draw with a verdict, the labelled one first; its ``label``."""

    case: Case
    verdicts: list[float]
    label: float | None = None


# ---------------------------------------------------------------- the rates of one run


class Evidence:
    """All labels of a run beside all its verdicts."""

    def __init__(
        self,
        files: Sequence[LabelsUsed],
        certificates: Sequence[Certificate],
        cases: Sequence[Case],
        draws: Iterable[Draw],
        answers: Answers,
    ) -> None:
        self._files = {one: usable(files, certificates, one) for one in BOTH}
        self._void = {one.dimension: f"{one.file}: {one.void}" for one in reversed(certificates) if one.void}
        self._cases, self._answers = cases, answers
        self._draws: dict[str, list[Draw]] = {}
        for draw in draws:
            if draw.digest is not None:
                self._draws.setdefault(draw.case, []).append(draw)

    def correction(self, estimate: Estimate) -> Correction | None:
        """What becomes of one estimate; None where it is none of a judge's rates."""
        if not estimate.judged or estimate.kind == "quantity":
            return None
        members = self._members(estimate)
        if why := _beyond(estimate, members):
            return Correction(why=why)
        files, why = self._choose(BOTH if estimate.metric != "faithful" else BOTH[1:])
        if why:
            return Correction(why=why)
        way = {"random": self._random, "by_verdict": self._by_verdict, "external": self._external}
        return way[files[0].header.design](estimate, members, files)

    def _members(self, estimate: Estimate) -> list[Case]:
        """The cases that an estimate is over."""
        inside = [case for case in self._cases if estimate.group in case.groups]
        if estimate.metric not in OUTCOMES:
            return inside
        population = "unanswerable" if estimate.metric in UNANSWERABLE else "answerable"
        return [case for case in inside if case.population == population]

    def _choose(self, needs: Sequence[Dimension]) -> tuple[list[LabelsUsed], str]:
        """One file for each dimension, their draws chosen in the same way; or why there are none."""
        for one in needs:
            if not self._files[one]:
                return [], self._void.get(one, f"no labels of '{one}'")
        designs: tuple[Design, ...] = ("random", "by_verdict", "external")
        for design in designs:
            chosen = [next((f for f in self._files[one] if f.header.design == design), None) for one in needs]
            files = [file for file in chosen if file is not None]
            if len(files) == len(needs) and (design != "by_verdict" or len(needs) == 1):
                return files, ""
        for one in needs:
            if all(file.header.design == "unknown" for file in self._files[one]):
                return [], f"{self._files[one][0].file}: nobody wrote down how its draws were chosen"
        return [], "an outcome takes labels of both dimensions, and both chosen at random"

    def _random(self, estimate: Estimate, members: Sequence[Case], files: Sequence[LabelsUsed]) -> Correction:
        """Prediction-powered; where every question is labelled, by the verdicts on its other draws."""
        questions = self._questions(estimate.metric, members, files)
        labelled = [question for question in questions if question.label is not None]
        if len(labelled) < MIN_LABELS:
            return _too_few(len(labelled))
        labels = [question.label or 0.0 for question in labelled]
        rest = [question for question in questions if question.label is None]
        documents = documents_of([question.case for question in (*labelled, *rest)])
        if few := _few_documents(documents, len(labelled)):
            return Correction(labels=len(labelled), why=few)
        if rest:
            others = [math.fsum(question.verdicts) / len(question.verdicts) for question in rest]
            first = [one.verdicts[0] for one in labelled]
            found = stats.ppi_ci(labels, first, others, CONFIDENCE, documents)
        else:
            every = [one.verdicts for one in labelled]
            found = stats.labelled_draw_ci(labels, every, CONFIDENCE, documents)
        return _correction(estimate, found, len(labelled))

    def _by_verdict(
        self, estimate: Estimate, members: Sequence[Case], files: Sequence[LabelsUsed]
    ) -> Correction:
        """By what is right among each verdict; the draws that could be chosen are one a question, by seed."""
        if documents_of(members) is not None:
            return Correction(why="questions share documents, which labels chosen by verdict do not tell")
        (file,) = files
        labels, seed = _joined(files), file.header.seed
        frame = {draw.case: draw for draw in one_a_case(self._every(), seed or 0)}
        counts = {True: [0, 0, 0], False: [0, 0, 0]}  # by verdict: draws, of these labelled, of these yes
        strays = 0
        for case in members:
            draw = frame.get(case.id)
            said = None if draw is None else self._verdict(draw, estimate.metric, case)
            if draw is None or said is None:
                continue
            read = labels.get(case.id, {})
            strays += draw.digest not in read and any(one.digest in read for one in self._draws[case.id])
            label = read.get(draw.digest or "")
            row = counts[said]
            row[0] += 1
            if label is not None:
                row[1] += 1
                row[2] += event_of(estimate.metric, case.expect, False, label["faithful"])
        if strays:
            why = f"{file.file}: {count(strays, 'label')} not of the draws that its seed chooses"
            return Correction(why=why)
        (yes, yes_labelled, yes_true), (no, no_labelled, no_true) = counts[True], counts[False]
        if yes_labelled + no_labelled < MIN_LABELS:
            return _too_few(yes_labelled + no_labelled)
        found = stats.by_verdict_ci(yes, yes + no, yes_labelled, yes_true, no_labelled, no_true, CONFIDENCE)
        return _correction(estimate, found, yes_labelled + no_labelled)

    def _external(
        self, estimate: Estimate, members: Sequence[Case], files: Sequence[LabelsUsed]
    ) -> Correction:
        """By sensitivity and specificity on draws of other runs (Rogan and Gladen)."""
        metric, expect = estimate.metric, _expect(estimate.metric)
        if metric == "right":
            return Correction(why="labels from elsewhere do not say which of their questions are answerable")
        labels, said = _joined(files), _joined(files, judge=True)
        pairs = [
            (event_of(metric, expect, **_both(read)), event_of(metric, expect, **_both(said[case][draw])))
            for case, draws in labels.items()
            for draw, read in draws.items()
            if draw in said.get(case, {})
        ]
        if len(pairs) < MIN_LABELS:
            return _too_few(len(pairs))
        questions = self._questions(metric, members, ())
        verdicts = [one.verdicts for one in questions]
        documents = documents_of([one.case for one in questions])
        share = (
            stats.rate_ci(verdicts, CONFIDENCE)
            if documents is None
            else stats.nested_rate_ci(verdicts, documents, CONFIDENCE)
        )
        if share.estimate is None or share.n_eff is None:
            return Correction(why="nothing was measured")
        found = stats.rogan_gladen_ci(
            share.estimate,
            share.n_eff,
            sum(label and verdict for label, verdict in pairs),
            sum(label for label, _ in pairs),
            sum(not label and not verdict for label, verdict in pairs),
            sum(not label for label, _ in pairs),
            CONFIDENCE,
        )
        names = " and ".join(file.file for file in files)
        return _correction(estimate, found, len(pairs), f"the judge errs here as it did in {names}")

    # ------------------------------------------------------------ questions

    def _every(self) -> Iterable[Draw]:
        return (draw for draws in self._draws.values() for draw in draws)

    def _questions(
        self, metric: str, members: Sequence[Case], files: Sequence[LabelsUsed]
    ) -> list[_Question]:
        """The questions that have a verdict, in the order of the cases."""
        labels = _joined(files)
        seed = next((file.header.seed for file in files if file.header.seed is not None), None)
        found = (self._question(metric, case, labels.get(case.id, {}), seed) for case in members)
        return [question for question in found if question.verdicts]

    def _question(
        self, metric: str, case: Case, labels: Mapping[str, Mapping[Dimension, bool]], seed: int | None
    ) -> _Question:
        draws = self._draws.get(case.id, [])
        verdicts = {
            draw.index: float(said)
            for draw in draws
            if (said := self._verdict(draw, metric, case)) is not None
        }
        labelled = [draw for draw in draws if draw.digest in labels and draw.index in verdicts]
        if len(labelled) > 1 and seed is not None:
            # A draw may share its words with one that was chosen elsewhere: the seed tells which is meant.
            labelled = [*(draw for draw in one_a_case(draws, seed) if draw in labelled), *labelled]
        if not labelled:
            return _Question(case, [*verdicts.values()])
        first = labelled[0]
        verdict = verdicts.pop(first.index)
        label = event_of(metric, case.expect, **_both(labels[first.digest or ""]))
        return _Question(case, [verdict, *verdicts.values()], float(label))

    def _verdict(self, draw: Draw, metric: str, case: Case) -> bool | None:
        """Whether the event happened, by the judge; None without a verdict on this answer."""
        judgement = self._answers.judgements.get(draw.key)
        if judgement is None or judgement.error is not None or judgement.digest != draw.digest:
            return None
        return event_of(metric, case.expect, bool(judgement.refusal), bool(judgement.faithful))


def _beyond(estimate: Estimate, members: Sequence[Case]) -> str:
    """Why labels of the two dimensions cannot decide the event, or an empty string."""
    if estimate.value is None:
        return "nothing was measured"
    if split(estimate.metric)[1]:
        return "labels are of single answers, and this reduces all answers to a question"
    if estimate.metric == "faithful" or estimate.metric in OUTCOMES:
        return ""
    if estimate.metric == "right" and not any(case.expect == "answer" and case.reference for case in members):
        return ""
    if estimate.metric in ("right", "correct"):
        return "labels do not say whether an answer agrees with its reference"
    return "no label says whether this happened"


def _few_documents(documents: Sequence[Hashable] | None, labelled: int) -> str:
    """Why so many labelled questions, which come first, correct nothing, or an empty string."""
    if documents is None:
        return ""
    effective = stats.documents_effective([*Counter(documents[:labelled]).values()])
    told = f"the {labelled} labelled questions are worth {effective:.3g} documents, needs {MIN_CLUSTERS}"
    return told if effective < MIN_CLUSTERS else ""


def _expect(metric: str) -> Expect:
    return "refuse" if metric in UNANSWERABLE else "answer"


def _both(read: Mapping[Dimension, bool]) -> dict[str, bool]:
    """A reading as the arguments of :func:`event_of`; ``faithful`` does not ask for the other."""
    return {"refusal": read.get("refusal", False), "faithful": read["faithful"]}


def _too_few(labels: int) -> Correction:
    return Correction(labels=labels, why=f"{count(labels, 'label')}, needs {MIN_LABELS}")


def _correction(estimate: Estimate, found: Corrected, labels: int, assumes: str = "") -> Correction:
    if found.estimate is None:
        return Correction(method=found.method, labels=labels, why=REASON[found.reason or "no_data"])
    return Correction(
        value=found.estimate,
        low=found.low,
        high=found.high,
        method=found.method,
        labels=labels,
        clipped=found.clipped,
        assumes=assumes,
        bounds=_bounds(found, 1 - (estimate.coverage or 0.0)),
    )


def _bounds(found: Corrected, missing: float) -> Bounds | None:
    """What a gate reads: every missing draw counts as 0 in the lower limits and as 1 in the upper ones."""
    limits = stats.bounds_between(found, found, CONFIDENCE)
    if limits is None:
        return None
    return Bounds(
        lower=max(limits.lower - missing, 0.0),
        upper=min(limits.upper + missing, 1.0),
        lower_exact=max(limits.lower_exact - missing, 0.0),
        upper_exact=min(limits.upper_exact + missing, 1.0),
    )
