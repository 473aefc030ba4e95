"""The commands, one function each."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from evalrun.cli.loading import loading
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.cassette import Mode
    from evalrun.journal import RunFolder
    from evalrun.pipeline import Stop
    from evalrun.planning import Plan
    from evalrun.settings import RunConfig

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
GRACE_SECONDS = 10
_SET = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a value.")


@click.command()
@click.argument("config", type=_FILE)
@click.option("--live", is_flag=True, help="Ask the real models; store nothing.")
@click.option("--record", is_flag=True, help="Ask for what has no recording; a stale one: exit 4.")
@click.option("--record-missing", is_flag=True, help="As --record, and replace stale recordings.")
@click.option("--draws", type=click.IntRange(min=1), help="Answers a question.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Only this case; evaluates no gates.")
@click.option("--category", "categories", multiple=True, help="Only this category; evaluates no gates.")
@click.option("--limit", type=click.IntRange(min=0), help="Only the first N cases; evaluates no gates.")
@click.option("--output", type=click.Path(path_type=Path), help="Run folder (default: runs/MMDD-NAME).")
@click.option("--resume", type=_FOLDER, metavar="RUN", help="Do what is missing in this unfinished run.")
@_SET
@click.option("--full", is_flag=True, help="Show every table.")
@click.option("--quiet", "-q", is_flag=True, help="Show the gates and the verdict only.")
@click.option("--json", "as_json", is_flag=True, help="Print run.json instead.")
@click.pass_context
def run(
    ctx: click.Context,
    config: Path,
    live: bool,
    record: bool,
    record_missing: bool,
    draws: int | None,
    cases: tuple[str, ...],
    categories: tuple[str, ...],
    limit: int | None,
    output: Path | None,
    resume: Path | None,
    overrides: tuple[str, ...],
    full: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Ask a bot every question of CONFIG, judge, measure, and evaluate the gates.

    Without --live or --record, recorded replies are replayed: no key, no model, no network. A config without
    a cassette has nothing to replay: there the bot is asked.
    """
    mode = mode_of(live, record, record_missing)
    if draws is not None:
        overrides = (*overrides, f"draws={draws}")
    with loading():
        from evalrun.planning import Selection, load, make_plan

        loaded = load(config, overrides)
        plan = make_plan(loaded, or_live(mode, loaded), Selection(cases, categories, limit))
    carry_out(
        plan,
        output,
        refresh=record_missing,
        full=full,
        quiet=quiet,
        as_json=as_json,
        again=command_of(ctx),
        resume=resume,
    )


def command_of(ctx: click.Context) -> str:
    """The command line that stands behind ``ctx``, to be pasted into a shell, without where it writes."""
    import shlex

    words = ["evalrun", str(ctx.info_name)]
    for param in ctx.command.params:
        value = ctx.params[str(param.name)]
        if param.name in ("output", "resume") or value is None or value is False or value == ():
            continue
        option = [param.opts[0]] if isinstance(param, click.Option) else []
        for one in value if isinstance(value, tuple) else (value,):
            words += option if value is True else [*option, str(one)]
    return shlex.join(words)


def mode_of(live: bool, record: bool, record_missing: bool) -> Mode:
    """Where model replies come from.

    Raises:
        UserError: more than one way is asked for.
    """
    from evalrun.errors import UserError

    if live + record + record_missing > 1:
        raise UserError("--live, --record and --record-missing exclude each other", "choose one")
    return "live" if live else "record" if record or record_missing else "replay"


def or_live(mode: Mode, config: RunConfig) -> Mode:
    """``mode``, but live where there is nothing to replay."""
    return "live" if mode == "replay" and config.cassette is None else mode


def carry_out(
    plan: Plan,
    output: Path | None,
    *,
    refresh: bool,
    full: bool,
    quiet: bool,
    as_json: bool,
    again: str,
    resume: Path | None,
    canaries: str | None = None,
) -> NoReturn:
    """Run a plan into a new folder, or go on in that of ``resume``; show what it came to, end with its code.

    ``canaries``: the seed that they were drawn from, to be kept in the folder's ``source.json``. ``again`` is
    the command that, with ``--resume`` behind it, goes on with a run that ended early.

    Raises:
        UserError: both folders are given, or the one that is cannot be written to.
    """
    import asyncio
    import shlex

    with loading():
        from evalrun.cassette import keep_seed
        from evalrun.errors import Interrupted, UnavailableError, UserError
        from evalrun.folders import give_back, new_run_folder, unfinished_run_folder
        from evalrun.pipeline import Stop
        from evalrun.reports.progress import Progress
        from evalrun.runner import Result, execute

    if resume is not None and output is not None:
        raise UserError("--resume and --output exclude each other", "a run goes on in its own folder")
    for line in () if quiet or as_json else plan.shortfalls:
        echo(f"note: {line}", err=True)
    folder = unfinished_run_folder(resume) if resume else new_run_folder(output, plan.config.name)
    for name in folder.torn if resume else ():
        echo(f"note: {name}: its last line was torn; what it was about is done again", err=True)
    progress = Progress(io.StringIO() if quiet or as_json else sys.stderr)
    command = f"{again} --resume {shlex.quote(str(folder.path))}"

    async def stoppable() -> Result:
        stop = Stop()
        _stop_on_signals(stop)
        return await execute(plan, folder, progress, refresh=refresh, command=command, stop=stop)

    try:
        result = asyncio.run(stoppable())
    except (asyncio.CancelledError, Interrupted):
        raise Interrupted(f"interrupted{_kept(folder)}{_way_on(folder)}") from None
    except UnavailableError as gone:
        gone.hint = f"{gone.hint}{_way_on(folder)}".strip()
        raise
    except UserError:
        raise
    except Exception:
        echo(f"evalrun: the run broke off{_kept(folder)}{_way_on(folder)}", err=True)
        raise
    finally:
        if resume is None:
            give_back(folder)
        folder.let_go()
    if canaries is not None:
        keep_seed(folder.path, canaries)
    from evalrun.reports.console import print_json, print_run

    if as_json:
        print_json(result.folder, sys.stdout)
    else:
        print_run(result.folder, sys.stdout, full=full, quiet=quiet)
    for error in result.report_errors:
        echo(f"evalrun: {error}", err=True)
    if folder.unfinished:
        echo(f"evalrun: not everything was answered and judged{_way_on(folder)}", err=True)
    sys.exit(result.exit_code)


def _kept(folder: RunFolder) -> str:
    """What there is of a run that ended early."""
    draws = folder.file("draws")
    some = draws.is_file() and draws.stat().st_size
    return "; finished draws are kept" if some else " before the first answer"


def _way_on(folder: RunFolder) -> str:
    """The command that goes on with a run, where that is possible."""
    return f"\n    go on with it: {folder.begun.command}" if folder.unfinished else ""


def _stop_on_signals(stop: Stop) -> None:
    """Ctrl-C, or the SIGTERM of a cancelled job: once, what is in flight may finish; twice, it may not.

    So does the SIGHUP of a closed terminal, which comes from shell and system both, and so counts once;
    ``nohup`` has it ignored. A bot that was launched is stopped in any case.
    """
    import asyncio
    import signal

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cut() -> None:
        if stop.working:
            task.cancel()

    def asked() -> None:
        if stop.asked or not stop.working:
            task.cancel()
            return
        stop.asked = True
        loop.call_later(GRACE_SECONDS, cut)
        echo(f"evalrun: finishing what is in flight, at most {GRACE_SECONDS} s; again: at once", err=True)

    def hung_up() -> None:
        loop.add_signal_handler(signal.SIGHUP, _say_nothing_to_nobody)
        _say_nothing_to_nobody()
        asked()

    # Where SIGINT is ignored (a background job of a shell), SIGTERM must still end it.
    deeds = {"SIGINT": asked, "SIGTERM": asked, "SIGHUP": hung_up}
    for name, deed in deeds.items():
        number = getattr(signal, name, None)
        if number is None or (signal.getsignal(number) is signal.SIG_IGN and name != "SIGTERM"):
            continue
        with contextlib.suppress(
            NotImplementedError, RuntimeError
        ):  # no such signals, or not the main thread
            loop.add_signal_handler(number, deed)


def _say_nothing_to_nobody() -> None:
    """Let what is meant for a terminal or a reader that is gone go nowhere: to write it would be an error."""
    import select

    ends = select.poll()
    for stream in (1, 2):
        ends.register(stream, 0)
    for stream, state in ends.poll(0):
        if state & (select.POLLERR | select.POLLHUP):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


@click.command()
@click.argument("folder", metavar="RUN", type=_FOLDER)
@click.option("--config", type=_FILE, help="Whose plugins to import first, where they scored the run.")
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
@click.argument("folder", metavar="RUN", type=_FOLDER)
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
@click.argument("configs", nargs=-1, required=True, type=_FILE)
@click.option("--probe", is_flag=True, help="Start the bot and ask it the first question.")
@_SET
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


def _probe(plan: object) -> None:
    import asyncio

    from evalrun.planning import Plan
    from evalrun.reports.words import one_line
    from evalrun.runner import probe

    assert isinstance(plan, Plan)
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
@click.argument("dataset", type=_FILE)
def freeze(dataset: Path) -> None:
    """Pin a released DATASET (NAME.vN.jsonl) in SHA256SUMS beside it: it cannot change any more."""
    from evalrun.dataset import freeze as pin

    echo(f"{dataset}: " + ("pinned in SHA256SUMS" if pin(dataset) else "pinned already, unchanged"))


@click.command(name="list")
@click.argument("config", required=False, type=_FILE)
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
            first = (made.__doc__ or "").strip().partition("\n")[0]
            echo(f"  {name:<16} {first}")


ALL = (run, verify, report, validate, freeze, list_)
