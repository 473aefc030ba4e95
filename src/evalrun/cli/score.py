"""The command that scores answers without asking a bot."""

from __future__ import annotations

from pathlib import Path

import click

from evalrun.cli.parameters import FILE
from evalrun.cli.running import Ending, carry_out, makes_a_run, mode_of
from evalrun.cli.told import echo


@click.command()
@click.argument("source", metavar="RUN|FILE", type=click.Path(exists=True, path_type=Path))
@click.option("--config", type=FILE, help="Scorers, judge and gates; needed for a RUN.")
@click.option(
    "--map",
    "columns",
    metavar="FIELD=COLUMN,…",
    multiple=True,
    help="Which column of FILE is question, answer, contexts, reference, id, draw, expect, category, …",
)
@click.option("--apart", is_flag=True, help="FILE: rows with the same question are cases of their own.")
@click.option("--live", is_flag=True, help="Ask the real judge; store nothing.")
@click.option("--record", is_flag=True, help="Ask the judge for what has no recording, and store it.")
@makes_a_run
def score(
    source: Path,
    config: Path | None,
    columns: tuple[str, ...],
    apart: bool,
    live: bool,
    record: bool,
    overrides: tuple[str, ...],
    ending: Ending,
) -> None:
    """Score answers that are there already: of a RUN, or logged ones in a FILE (CSV, TSV, JSON, JSONL).

    The bot is never asked. A RUN gets the scorers, judge and gates of another config. A FILE needs nothing
    else: without --config it is scored by code alone. The result is a run folder like any other.
    """
    from evalrun.answers import answers_of
    from evalrun.errors import UserError
    from evalrun.journal import RunFolder
    from evalrun.logged import code_only, read_answers, read_columns
    from evalrun.planning import load, load_scoring, plan_scoring

    mode = mode_of(live, record, record_missing=False)
    if source.is_dir():
        if config is None:
            raise UserError(f"{source}: by what is this run to be scored?", "name scorers with --config")
        if columns or apart:
            flag = "--map" if columns else "--apart"
            raise UserError(f"{flag} is for files of logged answers", "leave it out")
        plan = plan_scoring(load(config, overrides), mode, answers_of(RunFolder(source)))
    else:
        answers = read_answers(source, read_columns(columns), apart=apart)
        by = load_scoring(config, source, overrides) if config else code_only(source, answers)
        plan = plan_scoring(by, mode, answers)
        # The screen shows them again; who spends, or sees no screen, should know before.
        for note in plan.dataset.notes if ending.as_json or (plan.judged and mode != "replay") else ():
            echo(f"note: {note}", err=True)
    carry_out(plan, ending, refresh=False)


ALL = (score,)
