"""The rates that a judge produced, corrected for its errors by reference labels.

Owns that every such rate says by what it was corrected, or why it was not. What labels tell belongs to
``evidence``, which a run without labels never loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalrun.records import (
    Case,
    Certificate,
    Correction,
    Design,
    Draw,
    Estimate,
    Judgement,
    LabelsUsed,
)

CORRECTS: dict[Design, str] = {
    "random": "`faithful`, the outcomes, and `right` where no reference is asked for (with both dimensions)",
    "by_verdict": "`faithful`, while the judge of the header reads the answers",
    "external": "`faithful`, the outcomes (with both dimensions), while the judge of the header reads",
    "unknown": "nothing",
}
"""What labels of each design may correct."""


def correct(
    estimates: Iterable[Estimate],
    files: Sequence[LabelsUsed],
    fingerprint: str | None,
    cases: Sequence[Case],
    draws: Iterable[Draw],
    judgements: Iterable[Judgement],
) -> tuple[tuple[Estimate, ...], tuple[Certificate, ...]]:
    """The estimates with the rates of the judge corrected where labels allow, and the judge's certificates.

    ``fingerprint`` None: no judge, and nothing to correct. Every rate of a judge gets a
    :class:`~evalrun.records.Correction`, if only to say why there is none.
    """
    found = tuple(estimates)
    if fingerprint is None:
        return found, ()
    if not files:
        return tuple(_with(one, Correction(why="no labels")) for one in found), ()
    from evalrun.agreement import Answers
    from evalrun.certificate import certify
    from evalrun.evidence import Evidence

    asked = list(draws)
    answers = Answers.of(cases, asked, judgements)
    certificates = certify(files, fingerprint, answers)
    evidence = Evidence(files, certificates, cases, asked, answers)
    return tuple(_with(one, evidence.correction(one)) for one in found), certificates


def _with(estimate: Estimate, correction: Correction | None) -> Estimate:
    fits = estimate.judged and estimate.kind != "quantity" and correction is not None
    return estimate.model_copy(update={"corrected": correction}) if fits else estimate
