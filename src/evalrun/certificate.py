"""What reference labels say of the judge of one run: its certificates, one a label file.

Owns which labels of a file count, and what makes a certificate void: it belongs to one judge, known by its
fingerprint. How far two readings agree is computed by ``agreement``; rates are corrected by ``correction``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evalrun.agreement import Answers, Matched, accuracy, dimension_of, figures, match, reference, table_of
from evalrun.digest import short
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.labels import Labels
from evalrun.records import Certificate, Dimension, LabelsUsed, Record
from evalrun.reports.words import count

MOST_STALE = 0.05
"""Where more of the labelled questions have another answer now, what is left is a choice of its own."""


def used(labels: Labels) -> LabelsUsed:
    """What of a label file goes into a run: the labels of the adjudicated rater, else of the first."""
    who = reference(labels)
    rows = tuple(row for row in labels.rows if row.rater == who)
    return LabelsUsed(file=labels.path.name, digest=labels.digest, header=labels.header, rater=who, rows=rows)


def certify(files: Iterable[LabelsUsed], fingerprint: str, answers: Answers) -> tuple[Certificate, ...]:
    """A certificate for each file, in their order."""
    return tuple(_certificate(file, fingerprint, answers) for file in files)


def _certificate(file: LabelsUsed, fingerprint: str, answers: Answers) -> Certificate:
    found = _elsewhere(file, fingerprint) if file.header.design == "external" else None
    return Certificate(
        dimension=dimension_of(file.header.dimension, file.file),
        fingerprint=fingerprint,
        file=file.file,
        digest=file.digest,
        design=file.header.design,
        date=file.header.date,
        rater=file.rater,
        kind=file.header.raters[file.rater].kind,
        labelled=len(file.rows),
        **(found or _here(file, fingerprint, answers)),
    )


def _here(file: LabelsUsed, fingerprint: str, answers: Answers) -> dict[str, Any]:
    """What follows from labels of draws of this run, beside the verdicts of this run."""
    found = match(answers, file.rows, dimension_of(file.header.dimension, file.file))
    told = figures(found.pairs, file.header.design)
    del told["disagreements"]
    return told | {
        "stale": len(found.stale),
        "elsewhere": len(found.only_in_labels),
        "unjudged": len(told.pop("judge_missing")),
        "void": _void(file, fingerprint, found, told["n"]),
    }


def _elsewhere(file: LabelsUsed, fingerprint: str) -> dict[str, Any]:
    """What follows from labels that have the judge's verdict beside them."""
    read = [row for row in file.rows if row.judge is not None]
    table = table_of((row.judge is True, row.label) for row in read)
    return accuracy(table, file.header.design) | {
        "table": table,
        "n": table.total,
        "unjudged": len(file.rows) - table.total,
        "void": _another_judge(file, fingerprint, "measured with") or _nothing(table.total),
    }


def _void(file: LabelsUsed, fingerprint: str, found: Matched, compared: int) -> str:
    """Why these labels say nothing of this judge or this run, or an empty string."""
    if not found.pairs:
        return f"of its {count(len(file.rows), 'label')} none is of an answer of this run"
    if file.header.design == "by_verdict" and (
        why := _another_judge(file, fingerprint, "chosen by the verdicts of")
    ):
        return why
    here = {pair.case for pair in found.pairs}
    lost = {row.case for row in found.stale} - here
    if len(lost) > MOST_STALE * (len(lost) + len(here)):
        return (
            f"of {len(lost) + len(here)} labelled questions {len(lost)} have another answer in this run: "
            "those that are left are no random sample"
        )
    return _nothing(compared)


def _another_judge(file: LabelsUsed, fingerprint: str, how: str) -> str:
    theirs = file.header.judge
    if theirs is None:
        return f"its labels were {how} a judge that its header does not name"
    if theirs != fingerprint:
        return f"its labels were {how} another judge ({short(theirs)}); this one is {short(fingerprint)}"
    return ""


def _nothing(compared: int) -> str:
    return "" if compared else "no labelled answer has a verdict"


def carried(folder: RunFolder, labels: Labels, rater: str) -> list[Record]:
    """The lines of a label file of design ``external``: labels of answers of a run, each with its verdict.

    By it a run of another bot can be corrected, as long as the judge is the same.

    Raises:
        UserError: the draws were not chosen at random, or nobody judged them.
    """
    judge = folder.header.judge
    if labels.header.design != "random" or judge is None:
        raise UserError(
            f"{labels.path}: only draws chosen at random, and judged, tell how often a judge is wrong",
            "label a random sample of a judged run: evalrun label RUN --random N",
        )
    answers = Answers.of(folder.cases(), folder.draws(), folder.judgements())
    rows = [row for row in labels.rows if row.rater == rater]
    dimension = dimension_of(labels.header.dimension, str(labels.path))
    said = {(pair.case, pair.draw): pair.judge for pair in match(answers, rows, dimension).pairs}
    changed = {
        "design": "external",
        "raters": {rater: labels.header.raters[rater]},
        "judge": judge.fingerprint,
    }
    header = labels.header.model_copy(update=changed)
    kept = [row for row in rows if said.get((row.case, row.draw)) is not None]
    return [header, *(row.model_copy(update={"judge": said[row.case, row.draw]}) for row in kept)]


def usable(
    files: Sequence[LabelsUsed], certificates: Sequence[Certificate], dimension: Dimension
) -> list[LabelsUsed]:
    """The files of a dimension whose certificate stands, in their order."""
    return [
        file
        for file, found in zip(files, certificates, strict=True)
        if found.dimension == dimension and not found.void
    ]
