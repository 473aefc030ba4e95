"""The commands about numbers: an interval, a plan, a comparison, a baseline."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evalrun.cli.parameters import FILE, FOLDER, SET, WRITTEN, Share
from evalrun.cli.told import echo

_RUN_OR_FILE = click.Path(exists=True, path_type=Path)


@click.command()
@click.argument("counts", nargs=-1, required=True, metavar="PASSES/N [PASSES/N]")
def ci(counts: tuple[str, ...]) -> None:
    """The 95% interval of a rate such as 26/35; of two rates, also their difference."""
    from evalrun.errors import UserError
    from evalrun.rates import difference_line, rate_line, read_count

    if len(counts) > 2:
        raise UserError(f"{len(counts)} rates given; one or two can be read", "evalrun ci 123/150 129/150")
    pairs = [read_count(text) for text in counts]
    for pair in pairs:
        echo(rate_line(*pair))
    if len(pairs) == 2:
        echo(difference_line(*pairs))
        echo("on the same questions? a paired comparison is narrower: evalrun diff OLD NEW")


@click.command()
@click.argument("config", type=FILE)
@click.option("--rate", type=Share(), help="A true rate: how often would each gate hold?")
@SET
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def plan(config: Path, rate: float | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """What a run of CONFIG will take, and what it can show, before anything is spent.

    Exit 2 where a gate cannot hold with these questions, as the run itself would.
    """
    from evalrun.forecast import forecast
    from evalrun.forecast.screen import print_forecast
    from evalrun.planning import load
    from evalrun.reports.screen import print_record

    found = forecast(load(config, overrides), rate)
    if as_json:
        print_record(found, sys.stdout)
    else:
        print_forecast(found, sys.stdout)
    sys.exit(found.exit_code)


@click.command()
@click.argument("old", type=_RUN_OR_FILE)
@click.argument("new", type=FOLDER)
@click.option(
    "--max-drop",
    "drops",
    multiple=True,
    metavar="METRIC=MARGIN",
    help="By how much it may get worse: right=.05.",
)
@click.option("--common-cases", is_flag=True, help="Compare what two datasets have in common.")
@click.option("--any-judge", is_flag=True, help="Compare readings of different judges.")
@click.option("--full", is_flag=True, help="Show both answers to every question that changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@click.option("--markdown", type=WRITTEN, metavar="FILE", help="Also write Markdown.")
@click.option("--html", type=WRITTEN, metavar="FILE", help="Also write a page with both answers.")
def diff(
    old: Path,
    new: Path,
    drops: tuple[str, ...],
    common_cases: bool,
    any_judge: bool,
    full: bool,
    as_json: bool,
    markdown: Path | None,
    html: Path | None,
) -> None:
    """Compare two runs of the same questions, in pairs. OLD is a run or a baseline file, NEW a run.

    Exit 1 where a drop is larger than allowed, 3 where that is neither shown nor excluded.
    """
    from evalrun.baseline import read_baseline
    from evalrun.comparison import compare
    from evalrun.comparison.drops import read_drops
    from evalrun.comparison.measured import read_run
    from evalrun.journal import RunFolder
    from evalrun.reports.comparison.console import print_comparison
    from evalrun.reports.comparison.files import write
    from evalrun.reports.screen import print_record

    found = compare(
        read_run(RunFolder(old)) if old.is_dir() else read_baseline(old),
        read_run(RunFolder(new)),
        read_drops(drops),
        common_cases=common_cases,
        any_judge=any_judge,
    )
    failed = write(found, markdown=markdown, html=html)
    if as_json:
        print_record(found, sys.stdout)
    else:
        print_comparison(found, sys.stdout, full=full)
    for error in failed:
        echo(f"evalrun: {error}", err=True)
    sys.exit(failed[0].exit_code if failed else found.exit_code)


@click.command()
@click.argument("folder", metavar="RUN", type=FOLDER)
def accept(folder: Path) -> None:
    """Make RUN the baseline of its config: NAME.baseline.jsonl beside it, outcomes only, no text."""
    from evalrun.baseline import accept as write_baseline
    from evalrun.journal import RunFolder
    from evalrun.reports.words import count

    done = write_baseline(RunFolder(folder))
    echo(f"{done.path}: {count(done.cases, 'case')} × {count(done.draws, 'draw')}, {done.told}")


ALL = (ci, plan, diff, accept)
