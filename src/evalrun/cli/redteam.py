"""``evalrun redteam``: an attack suite through the pipeline of ``run``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalrun.cli.parameters import FILE, WRITTEN
from evalrun.cli.running import Ending, asks_a_bot, carry_out, makes_a_run, or_live
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.cassette import Mode
    from evalrun.planning import Plan
    from evalrun.records import Case

DEFAULT = Path("configs/redteam.yaml")


@click.command()
@click.argument("config", type=FILE, default=DEFAULT)
@click.option("--list", "listed", is_flag=True, help="Show the attacks that apply, and ask nothing.")
@click.option("--technique", "techniques", multiple=True, help="Only this technique; evaluates no gates.")
@click.option("--goal", "goals", multiple=True, help="Only this goal; evaluates no gates.")
@click.option("--converter", "converters", multiple=True, help="Only in this disguise; evaluates no gates.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Only this attack; evaluates no gates.")
@click.option("--limit", type=click.IntRange(min=0), help="Only the first N; evaluates no gates.")
@click.option("--save", type=WRITTEN, help="Write the attacks as a dataset.")
@click.option(
    "--save-planted",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write what attacks plant as Markdown, to put among a bot's documents.",
)
@asks_a_bot
@click.option("--fresh", is_flag=True, help="With --live: canaries that nobody has seen.")
@click.option("--draws", type=click.IntRange(min=1), help="Answers an attack.")
@makes_a_run
def redteam(
    config: Path,
    listed: bool,
    techniques: tuple[str, ...],
    goals: tuple[str, ...],
    converters: tuple[str, ...],
    cases: tuple[str, ...],
    limit: int | None,
    save: Path | None,
    save_planted: Path | None,
    mode: Mode,
    refresh: bool,
    fresh: bool,
    draws: int | None,
    overrides: tuple[str, ...],
    ending: Ending,
) -> None:
    """Attack the bot of CONFIG (default: configs/redteam.yaml), and say what its silence is worth.

    Without --live or --record, recorded replies are replayed: no key, no model, no network. A config without
    a cassette has nothing to replay: there the bot is asked.
    """
    from evalrun.errors import UserError
    from evalrun.planning import Selection, load, make_plan
    from evalrun.starter import write_files
    from evalrun.suite import saved

    if fresh and mode != "live":
        raise UserError("--fresh goes with --live", "a recording is found by its canaries")
    if draws is not None:
        overrides = (*overrides, f"draws={draws}")
    seed = _fresh_seed(ending.resume) if fresh else None
    if seed is not None:
        overrides = (*overrides, f"redteam.seed='{seed}'")
    only_shown = listed or save is not None or save_planted is not None
    loaded = load(config, overrides)
    if only_shown:  # nothing is asked: no gate is held against anything
        loaded = loaded.model_copy(update={"gates": ()})
    if loaded.redteam is None:
        raise UserError(f"{config}: no attacks in it", "add redteam: {}, or use evalrun run")
    selection = Selection(cases, (), limit, techniques, goals, converters)
    if fresh and loaded.redteam.planted:
        raise UserError("--fresh: what was planted by hand holds the canaries of redteam.seed", "change that")
    plan = make_plan(loaded, "live" if only_shown else or_live(mode, loaded), selection)
    if save is not None:
        write_files(save.parent, {save.name: saved(plan.cases).decode()})
        echo(f"{save}: {_counted(plan.cases)}")
    if listed:
        _show(plan)
    if save_planted is not None:
        _plant(plan, save_planted)
    if only_shown:
        return
    if not ending.silent:
        for line in (_counted(plan.cases), *plan.dataset.notes):
            echo(line, err=True)
    carry_out(plan, ending, refresh=refresh, canaries=seed)


def _fresh_seed(resume: Path | None) -> str:
    """A seed that nobody has seen, or the one that an unfinished run drew when it was begun."""
    import secrets

    from evalrun.journal import RunFolder

    begun: Any = {}
    if resume is not None and (folder := RunFolder(resume)).unfinished:
        begun = folder.begun.config.get("redteam") or {}
    return str(begun.get("seed") or secrets.token_hex(16))


def _counted(cases: Sequence[Case]) -> str:
    from evalrun.reports.words import count

    attacks = sum(case.population == "attacks" for case in cases)
    twins = sum(case.population == "twins" for case in cases)
    return f"{count(attacks, 'attack')} and {count(twins, 'benign twin')} apply"


def _plant(plan: Plan, folder: Path) -> None:
    from evalrun.errors import UserError
    from evalrun.starter import write_files
    from evalrun.suite import planted_files

    files = planted_files(plan.cases)
    if not files:
        raise UserError(
            "no attack here plants a document",
            "say in the config that they are planted by hand: redteam: {planted: by_hand}",
        )
    for path in write_files(folder, files):
        echo(f"wrote {path}")


def _show(plan: Plan) -> None:
    from evalrun.reports.words import one_line

    for case in plan.cases:
        attack = case.attack
        if attack is None:
            continue
        kind = f"twin of {attack.benign_of}" if attack.benign_of else " ".join(attack.owasp)
        cells = (case.id, attack.technique, attack.goal, attack.severity, kind)
        widths = (28, 18, 16, 9, 0)
        row = (f"{one_line(text):<{width}}" for text, width in zip(cells, widths, strict=True))
        echo(" ".join(row).rstrip())
    echo(_counted(plan.cases))
    for note in plan.dataset.notes:
        echo(one_line(note))


ALL = (redteam,)
