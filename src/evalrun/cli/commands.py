"""The commands that ask a bot or look at a run, and what comes before: one function each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalrun.cli.parameters import FILE, FOLDER, SET
from evalrun.cli.running import Ending, asks_a_bot, carry_out, loading, makes_a_run, or_live
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.cassette import Mode
    from evalrun.planning import Plan


@click.command()
@click.argument("config", type=FILE)
@asks_a_bot
@click.option("--draws", type=click.IntRange(min=1), help="Answers a question.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Only this case; evaluates no gates.")
@click.option("--category", "categories", multiple=True, help="Only this category; evaluates no gates.")
@click.option("--limit", type=click.IntRange(min=0), help="Only the first N cases; evaluates no gates.")
@makes_a_run
def run(
    config: Path,
    mode: Mode,
    refresh: bool,
    draws: int | None,
    cases: tuple[str, ...],
    categories: tuple[str, ...],
    limit: int | None,
    overrides: tuple[str, ...],
    ending: Ending,
) -> None:
    """Ask a bot every question of CONFIG, judge, measure, and evaluate the gates.

    Without --live or --record, recorded replies are replayed: no key, no model, no network. A config without
    a cassette has nothing to replay: there the bot is asked.
    """
    if draws is not None:
        overrides = (*overrides, f"draws={draws}")
    with loading():
        from evalrun.planning import Selection, load, make_plan

        loaded = load(config, overrides)
        plan = make_plan(loaded, or_live(mode, loaded), Selection(cases, categories, limit))
    carry_out(plan, ending, refresh=refresh)


@click.command()
@click.argument("folder", metavar="RUN", type=FOLDER)
@click.option("--config", type=FILE, help="Whose plugins to import first, where they scored the run.")
def verify(folder: Path, config: Path | None) -> None:
    """Derive every link of a RUN anew: block, exchange, answer, verdict, score, estimate, gate. Offline."""
    from evalrun.errors import ProvenanceError
    from evalrun.planning import load
    from evalrun.reports.words import count
    from evalrun.verify import verify_run

    if config is not None:
        load(config)
    broken, counts = verify_run(folder)
    if broken:
        if not counts:
            raise ProvenanceError("\n".join([f"{folder}: not all of the run is there", *broken]))
        raise ProvenanceError("\n".join([f"{folder}: {count(len(broken), 'broken link')}", *broken]))
    echo(f"{folder}: every link holds ({counts})")
    if not (folder / "meta.json").is_file():
        echo("note: meta.json is gone: when and how it ran is not known, and reports cannot be made")


@click.command()
@click.argument("folder", metavar="RUN", type=FOLDER)
@click.option("--full", is_flag=True, help="Show every table.")
@click.option("--json", "as_json", is_flag=True, help="Print run.json instead.")
@click.option("--annotations", type=click.Choice(["github"]), help="Only print annotations for CI; exit 0.")
def report(folder: Path, full: bool, as_json: bool, annotations: str | None) -> None:
    """Write the reports of a RUN anew and show it again; its exit code is that of the run."""
    from evalrun.journal import RunFolder
    from evalrun.reports import write_reports
    from evalrun.reports.annotations import workflow_commands
    from evalrun.reports.console import print_json, print_run

    run_folder = RunFolder(folder)
    run_folder.need_all()
    if annotations is not None:
        for line in workflow_commands(run_folder):
            click.echo(line)  # escaped as commands are
        return
    code = run_folder.header.exit_code
    failed = write_reports(run_folder)
    if as_json:
        print_json(run_folder, sys.stdout)
    else:
        print_run(run_folder, sys.stdout, full=full)
    for error in failed:
        echo(f"evalrun: {error}", err=True)
    sys.exit(failed[0].exit_code if failed else code)


@click.command()
@click.argument("configs", nargs=-1, required=True, type=FILE)
@click.option("--probe", is_flag=True, help="Start the bot and ask it the first question.")
@SET
def validate(configs: tuple[Path, ...], probe: bool, overrides: tuple[str, ...]) -> None:
    """Check each CONFIG, its dataset, rubric and gates; say everything that is wrong at once."""
    from evalrun.errors import InputError, Problem
    from evalrun.planning import load, make_plan
    from evalrun.reports.words import count

    problems: list[Problem] = []
    for path in configs:
        try:
            config = load(path, overrides)
            plan = make_plan(config, or_live("live" if probe else "replay", config))
        except InputError as error:
            problems += error.problems
            continue
        asked = f"{count(len(plan.cases), 'case')} × {count(plan.config.draws, 'draw')}"
        echo(f"{path}: {asked}, {count(len(plan.config.gates), 'gate')}")
        for line in plan.shortfalls:
            echo(f"  note: {line}")
        if probe:
            _probe(plan)
    if problems:
        raise InputError(problems)


def _probe(plan: Plan) -> None:
    import asyncio

    from evalrun.reports.words import one_line
    from evalrun.runner import probe

    drawn, about = asyncio.run(probe(plan))
    for key, value in about.items():
        echo(f"  {key}: {value}")
    context = ", ".join(drawn.context.ids) if drawn.context else "none"
    echo(f"  asked: {plan.cases[0].question}\n  context: {context}")
    echo(f"  answer: {one_line(drawn.draw.answer or '')}\n  proof: {drawn.draw.level}")
    if drawn.draw.error:
        from evalrun.errors import UnavailableError

        raise UnavailableError(f"{plan.cases[0].id}: {drawn.draw.error}")


@click.command()
@click.argument("dataset", type=FILE)
def freeze(dataset: Path) -> None:
    """Pin a released DATASET (NAME.vN.jsonl) in SHA256SUMS beside it: it cannot change any more."""
    from evalrun.dataset import freeze as pin

    echo(f"{dataset}: " + ("pinned in SHA256SUMS" if pin(dataset) else "pinned already, unchanged"))


@click.command(name="list")
@click.argument("config", required=False, type=FILE)
def list_(config: Path | None) -> None:
    """The scorers, targets, judge models and reports there are; with CONFIG, its cases."""
    if config is not None:
        from evalrun.planning import load, make_plan

        for case in make_plan(load(config), "live").cases:
            echo(f"{case.id:<24} {case.category:<16} {case.question}")
        return
    from evalrun.models import model
    from evalrun.reports import report as reports
    from evalrun.scorers import SCORERS
    from evalrun.targets import TARGETS

    for kind, registry in {
        "scorers": SCORERS,
        "targets": TARGETS,
        "models": model,
        "reports": reports,
    }.items():
        echo(kind)
        for name, made in registry:
            first = (made.__doc__ or "").strip().partition("\n")[0].replace("``", "`")
            echo(f"  {name:<18} {first}")


ALL = (run, verify, report, validate, freeze, list_)
