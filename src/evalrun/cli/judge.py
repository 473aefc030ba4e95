"""The commands that measure the judge: its agreement with reference labels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DIMENSION = click.Choice(["refusal", "faithful"])


class _Share(click.FloatRange):
    """A share that something can miss and something can reach: between 0 and 1, both left out."""

    def __init__(self) -> None:
        super().__init__(0, 1, min_open=True, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The share; not a number is none, which no comparison with a limit finds out."""
        share = super().convert(value, param, ctx)
        return share if share == share else self.fail(f"{value} is not a number", param, ctx)


_SHARE = _Share()


@click.command()
@click.argument("folder", metavar="[RUN]", required=False, type=_FOLDER)
@click.option("--dimension", required=True, type=_DIMENSION, help="What the labels are about.")
@click.option("--labels", "file", type=_FILE, metavar="FILE", help="Default: data/labels/DIMENSION.v1.jsonl.")
@click.option("--rater", help="Whose labels count, where a file has several raters.")
@click.option("--full", is_flag=True, help="Show AC1, PABAK and every disagreement.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@click.option("--min-sensitivity", type=_SHARE, help="Least share of the labels' yes that the judge finds.")
@click.option("--min-specificity", type=_SHARE, help="Least share of the labels' no that the judge clears.")
def agree(
    folder: Path | None,
    dimension: str,
    file: Path | None,
    rater: str | None,
    full: bool,
    as_json: bool,
    min_sensitivity: float | None,
    min_specificity: float | None,
) -> None:
    """Measure the judge of RUN against reference labels.

    Without RUN: the newest in runs/ that holds the labelled draws, else a replay of the config that the
    labels name. Exit 1 where the judge is worse than demanded, 3 where the labels are too few to tell.
    """
    from evalrun import agreement
    from evalrun.errors import UserError
    from evalrun.journal import RunFolder
    from evalrun.labelled import run_of
    from evalrun.labels import load_labels
    from evalrun.reports.agreement import print_agreement
    from evalrun.reports.progress import Progress
    from evalrun.reports.screen import print_record

    path = file or Path("data", "labels", f"{dimension}.v1.jsonl")
    labels = load_labels(path)
    if labels.header.dimension != dimension:
        raise UserError(
            f"{path}: labels of '{labels.header.dimension}', not of '{dimension}'",
            "name others with --labels",
        )
    who = agreement.reference(labels, rater)
    run = RunFolder(folder) if folder else run_of(labels, who, Progress(sys.stderr))
    demands: dict[agreement.Reading, float] = {}
    if min_sensitivity is not None:
        demands["sensitivity"] = min_sensitivity
    if min_specificity is not None:
        demands["specificity"] = min_specificity
    found = agreement.agree(run, labels, who, demands)
    if as_json:
        print_record(found, sys.stdout)
    else:
        print_agreement(found, sys.stdout, full=full)
    sys.exit(found.exit_code)


ALL = (agree,)
