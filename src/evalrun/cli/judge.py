"""The commands that measure the judge: its agreement with reference labels, and how labels come about."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from evalrun.cli.parameters import FILE, FOLDER, WRITTEN, Share
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.journal import RunFolder
    from evalrun.labelling import Question, Sheet
    from evalrun.labels import Labels
    from evalrun.records import Dimension, LabelHeader
    from evalrun.relevance import Pooled, RelevanceSheet

_LABELLED = click.Choice(["refusal", "faithful", "relevant"])
_DIMENSION = click.Choice(["refusal", "faithful"])


_SHARE = Share(open_ended=True)
"""What something can miss and something can reach."""


@click.command()
@click.argument("folder", metavar="[RUN]", required=False, type=FOLDER)
@click.option("--dimension", required=True, type=_DIMENSION, help="What the labels are about.")
@click.option(
    "--labels",
    "file",
    type=FILE,
    metavar="FILE",
    help="Default: those of RUN, else data/labels/DIMENSION.v1.jsonl.",
)
@click.option("--rater", help="Whose labels count, where a file has several raters.")
@click.option("--save", type=WRITTEN, metavar="FILE", help="Keep the labels with this judge's verdicts.")
@click.option("--full", is_flag=True, help="Show AC1, PABAK and every disagreement.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@click.option("--min-sensitivity", type=_SHARE, help="Least share of the labels' yes that the judge finds.")
@click.option("--min-specificity", type=_SHARE, help="Least share of the labels' no that the judge clears.")
def agree(
    folder: Path | None,
    dimension: str,
    file: Path | None,
    rater: str | None,
    save: Path | None,
    full: bool,
    as_json: bool,
    min_sensitivity: float | None,
    min_specificity: float | None,
) -> None:
    """Measure the judge of RUN against reference labels; RUN gets a page of all disagreements.

    Without RUN: the newest in runs/ that holds the labelled draws, else a replay of the config that the
    labels name. A FILE that is saved corrects runs of other bots, as long as the judge is the same.
    Exit 1 where the judge is worse than demanded, 3 where the labels are too few to tell.
    """
    from evalrun import agreement
    from evalrun.errors import UserError
    from evalrun.journal import RunFolder
    from evalrun.labelled import run_of
    from evalrun.labels import load_labels
    from evalrun.reports.agreement.console import print_agreement
    from evalrun.reports.agreement.page import path_of, write
    from evalrun.reports.progress import Progress
    from evalrun.reports.screen import print_record

    path = file or _labels_of(folder, dimension) or Path("data", "labels", f"{dimension}.v1.jsonl")
    labels = load_labels(path)
    if labels.header.dimension != dimension:
        raise UserError(
            f"{path}: labels of '{labels.header.dimension}', not of '{dimension}'",
            "name others with --labels",
        )
    who = agreement.reference(labels, rater)
    run = RunFolder(folder) if folder else run_of(labels, who, Progress(sys.stderr))
    run.need_all()
    demands: dict[agreement.Reading, float] = {}
    if min_sensitivity is not None:
        demands["sensitivity"] = min_sensitivity
    if min_specificity is not None:
        demands["specificity"] = min_specificity
    found = agreement.agree(run, labels, who, demands)
    if save is not None:
        _save(save, run, labels, who)
    failed = write(found)
    if as_json:
        print_record(found, sys.stdout)
    else:
        print_agreement(found, sys.stdout, full=full, page=None if failed else path_of(found))
    if failed:
        echo(f"evalrun: {failed}", err=True)
    sys.exit(failed.exit_code if failed else found.exit_code)


def _save(path: Path, run: RunFolder, labels: Labels, rater: str) -> None:
    from evalrun.certificate import carried
    from evalrun.errors import UserError
    from evalrun.jsonl import to_line, write_atomically
    from evalrun.reports.words import count

    lines = carried(run, labels, rater)
    try:
        write_atomically(path, b"".join(to_line(line) for line in lines))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}", "name another file") from None
    echo(f"{count(len(lines) - 1, 'label')} with verdicts: {path}", err=True)


def _labels_of(folder: Path | None, dimension: str) -> Path | None:
    """The label file that a run read for a dimension: where its config says, else in data/labels."""
    from evalrun.journal import RunFolder
    from evalrun.labelled import label_files

    if folder is None:
        return None
    used = {one.file for one in RunFolder(folder).header.labels if one.header.dimension == dimension}
    known = [*label_files(RunFolder(folder)), *(Path("data", "labels", name) for name in sorted(used))]
    return next((path for path in known if path.name in used and path.is_file()), None)


@click.command()
@click.argument("folder", metavar="RUN", type=FOLDER)
@click.option("--dimension", required=True, type=_LABELLED, help="What to label.")
@click.option("--random", "count", type=click.IntRange(min=1), metavar="N", help="N questions by seed.")
@click.option(
    "--by-verdict",
    "each",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=30,
    metavar="[N]",
    help="N the judge called yes and N it called no (30).",
)
@click.option("--pool", "pooled", multiple=True, type=FOLDER, help="relevant: chunks of this run too.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses questions and draws.")
@click.option("--rater", default="r1", show_default=True, help="Who reads, as named in the file.")
@click.option("--kind", type=click.Choice(["human", "model"]), default="human", show_default=True)
@click.option("--output", type=WRITTEN, metavar="FILE", help="Default: data/labels/DIMENSION.jsonl.")
@click.option("--html", type=WRITTEN, metavar="FILE", help="Write a page to label in a browser instead.")
@click.option("--import", "saved", type=FILE, metavar="FILE", help="Take in what such a page saved.")
def label(
    folder: Path,
    dimension: Dimension | Literal["relevant"],
    count: int | None,
    each: int | None,
    pooled: tuple[Path, ...],
    seed: int,
    rater: str,
    kind: Literal["human", "model"],
    output: Path | None,
    html: Path | None,
    saved: Path | None,
) -> None:
    """Label answers of RUN in the terminal, one key an answer, blind to the judge.

    Each label is written at once. Called again in the same way, it goes on with what has no label yet.
    Dimension relevant: one key a retrieved chunk; writes a dataset whose relevant_ids are quotes.
    """
    from evalrun import labelling
    from evalrun.errors import UserError
    from evalrun.journal import RunFolder
    from evalrun.records import Rater
    from evalrun.reports.labelling import ASKED
    from evalrun.reports.words import count as counted

    run = RunFolder(folder)
    run.need_all()
    if dimension == "relevant":
        if each is not None or html is not None or saved is not None:
            raise UserError("--by-verdict, --html and --import are for answers", "leave them out")
        return _label_chunks([run, *map(RunFolder, pooled)], output, seed, count)
    if pooled:
        raise UserError("--pool is for --dimension relevant", "leave it out")
    path = output or Path("data", "labels", f"{dimension}.jsonl")
    if saved is not None and (count, each, html) == (None, None, None):
        taken, turned = labelling.import_labels(run, saved, path, dimension)
        told = f"; {turned} of them {'replaces one' if turned == 1 else 'replace ones'} that said otherwise"
        echo(f"{counted(taken, 'label')} taken into {path}{told if turned else ''}")
        return
    chosen = _chosen(run, dimension, count, each, seed, saved)
    design: Literal["random", "by_verdict"] = "random" if each is None else "by_verdict"
    who = Rater(kind=kind, how=f"One answer at a time, blind to judge and other raters. {ASKED[dimension]}")
    header = labelling.new_header(run, dimension, design, seed, rater, who)
    if html is not None:
        _write_page(html, chosen, dimension, header, rater)
        echo(f"{html}: {counted(len(chosen), 'answer')}")
        run_named, into = shlex.quote(str(folder)), f" --output {shlex.quote(str(output))}" if output else ""
        echo(f"what it saves: evalrun label {run_named} --dimension {dimension} --import FILE{into}")
        return
    sheet = labelling.Sheet.open(path, header, rater)
    _read_answers(chosen, sheet, dimension)
    done = sum(sheet.label_of(one) is not None for one in chosen)
    echo(f"{done} of {len(chosen)} labelled by {rater}: {path}")
    if done:
        named = ["agree", "--dimension", dimension, "--labels", str(path), str(folder)]
        echo(f"next: evalrun {shlex.join(named)}")


def _chosen(
    run: RunFolder, dimension: str, count: int | None, each: int | None, seed: int, saved: Path | None
) -> list[Question]:
    """The answers that the options choose."""
    from evalrun.errors import UserError
    from evalrun.labelling import choose_by_verdict, choose_random

    if saved is not None:
        raise UserError(
            "--import takes labels as they were chosen", "leave out --random, --by-verdict, --html"
        )
    if count is not None and each is None:
        chosen = choose_random(run, seed, count)
    elif each is not None and count is None:
        chosen = choose_by_verdict(run, seed, each, dimension)
    else:
        raise UserError("say how the answers are chosen", "either --random N or --by-verdict N")
    if not chosen:
        raise UserError(f"{run.path}: holds no answer to label", "name another run")
    return chosen


def _write_page(
    path: Path, chosen: Sequence[Question], dimension: Dimension, header: LabelHeader, rater: str
) -> None:
    from evalrun.errors import UserError
    from evalrun.jsonl import write_atomically
    from evalrun.reports.sheet import render

    try:
        write_atomically(path, render(chosen, dimension, header, rater))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}", "name another file") from None


def _read_answers(chosen: Sequence[Question], sheet: Sheet, dimension: Dimension) -> None:
    """Ask for a key an answer, until all have one or the rater stops."""
    from evalrun.reports.labelling import print_question

    unread = [question for question in chosen if sheet.label_of(question) is None]
    done, at = len(chosen) - len(unread), 0
    while at < len(unread):
        question = unread[at]
        click.clear()
        told = f"{done + at + 1} of {len(chosen)}"
        print_question(question, dimension, told, sheet.label_of(question), sys.stdout)
        key = _key()
        if key in ("y", "n"):
            sheet.put(question, key == "y")
        elif key == "q":
            return
        at = max(at - 1, 0) if key == "b" else at + 1


def _label_chunks(runs: Sequence[RunFolder], output: Path | None, seed: int, count: int | None) -> None:
    """Ask for a key a chunk of the pool; all questions, or ``count`` of them by seed."""
    from evalrun.labelling import order
    from evalrun.relevance import RelevanceSheet, pool
    from evalrun.reports.words import count as counted

    cases = list(runs[0].cases())
    path = output or Path("data", "datasets", f"{runs[0].header.dataset.name}.relevant.jsonl")
    sheet = RelevanceSheet.open(path, cases)
    pooled = pool(runs)
    asked = sorted({one.case.id for one in pooled}, key=lambda name: order(seed, name))[:count]
    chosen = [one for one in pooled if one.case.id in asked]
    _read_chunks(chosen, sheet)
    done = sum(sheet.said(one) is not None for one in chosen)
    echo(f"{done} of {counted(len(chosen), 'chunk')} read, of {counted(len(asked), 'question')}: {path}")
    if empty := sheet.empty:
        echo(f"nothing relevant so far: {', '.join(empty)}; another retriever's run may hold it (--pool)")


def _read_chunks(chosen: Sequence[Pooled], sheet: RelevanceSheet) -> None:
    """Until all are read or the rater stops; a chunk that holds a chosen passage is not asked about."""
    from evalrun.relevance import passages
    from evalrun.reports.labelling import print_chunk

    at = 0
    unread = [one for one in chosen if sheet.said(one) is None]
    while at < len(unread):
        one = unread[at]
        if sheet.said(one) is None and sheet.covered(one):
            sheet.take(one)
            at += 1
            continue
        found = passages(one, [other.chunk for other in chosen if other.case.id == one.case.id])
        click.clear()
        print_chunk(one, found, f"{at + 1} of {len(unread)}", sheet.said(one), sys.stdout)
        key = _key("ynsbq" + "123456789"[: len(found)])
        if key == "q":
            return
        if key == "n" or key == "y" or key.isdigit():
            sheet.put(one, None if key == "n" else found[0 if key == "y" else int(key) - 1])
        at = max(at - 1, 0) if key == "b" else at + 1


def _key(known: str = "ynsbq") -> str:
    """The next of the keys that mean something; the end of the input is a stop."""
    from evalrun.errors import UserError

    while True:
        try:
            key = click.getchar().lower()
        except EOFError:
            return "q"
        except OSError:
            raise UserError("there is no terminal to read a key from", "call it in one") from None
        if key in ("", "\x04"):
            return "q"
        if key in known:
            return key


ALL = (agree, label)
