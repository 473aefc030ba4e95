"""Commands that make a run: what all of them take, and how a plan is carried out into a run folder.

Owns signals, the way on after an early end, and the exit code. Which plan it is, each command says.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from evalrun.cli.parameters import FOLDER, SET
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.cassette import Mode
    from evalrun.journal import RunFolder
    from evalrun.pipeline import Stop
    from evalrun.planning import Plan
    from evalrun.reports.progress import Progress
    from evalrun.runner import Result
    from evalrun.settings import RunConfig

GRACE_SECONDS = 10


@dataclass(frozen=True)
class Ending:
    """Where a run is kept, how it is shown, and the command that made it, without where it writes."""

    output: Path | None
    resume: Path | None
    full: bool
    quiet: bool
    as_json: bool
    again: str

    @property
    def silent(self) -> bool:
        """Whether nothing but the result is shown."""
        return self.quiet or self.as_json


_ENDING = (
    click.option("--output", type=click.Path(path_type=Path), help="Run folder (default: runs/MMDD-NAME)."),
    click.option("--resume", type=FOLDER, metavar="RUN", help="Do what is missing in this unfinished run."),
    SET,
    click.option("--full", is_flag=True, help="Show every table."),
    click.option("--quiet", "-q", is_flag=True, help="Show the gates and the verdict only."),
    click.option("--json", "as_json", is_flag=True, help="Print run.json instead."),
)
_REPLIES = (
    click.option("--live", is_flag=True, help="Ask the real models; store nothing."),
    click.option("--record", is_flag=True, help="Ask for what has no recording; a stale one: exit 4."),
    click.option("--record-missing", is_flag=True, help="As --record, and replace stale recordings."),
)


def makes_a_run(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options of all that make a run. It gets them as ``overrides`` and ``ending``."""

    @functools.wraps(command)
    def gathered(
        *, output: Path | None, resume: Path | None, full: bool, quiet: bool, as_json: bool, **rest: object
    ) -> None:
        again = command_of(click.get_current_context())
        command(ending=Ending(output, resume, full, quiet, as_json, again), **rest)

    return _with(_ENDING, gathered)


def asks_a_bot(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options that say where replies come from. It gets ``mode`` and ``refresh``."""

    @functools.wraps(command)
    def gathered(*, live: bool, record: bool, record_missing: bool, **rest: object) -> None:
        command(mode=mode_of(live, record, record_missing), refresh=record_missing, **rest)

    return _with(_REPLIES, gathered)


def _with(
    options: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...], command: Callable[..., None]
) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage: what is made here stays. Nor is it looked through again during the run."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


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


def carry_out(plan: Plan, ending: Ending, *, refresh: bool, canaries: str | None = None) -> NoReturn:
    """Run a plan into its folder, new or gone on with; show what it came to, and end with its code.

    ``refresh``: a recording that is stale is made anew. ``canaries``: the seed that they were drawn from, to
    be kept in the folder's ``source.json``.

    Raises:
        UserError: both folders are given, or the one that is cannot be written to.
    """
    with loading():
        from evalrun.cassette import keep_seed
        from evalrun.folders import give_back

        folder = _begun(plan, ending)
    try:
        result = _executed(plan, folder, ending, refresh)
    finally:
        if ending.resume is None:
            give_back(folder)
        folder.let_go()
    if canaries is not None:
        keep_seed(folder.path, canaries)
    _show(result, ending)
    if folder.unfinished:
        echo(f"evalrun: not everything was answered and judged{_way_on(folder)}", err=True)
    sys.exit(result.exit_code)


def _begun(plan: Plan, ending: Ending) -> RunFolder:
    """The folder of the run, locked; what is to be known before anything is spent has been said."""
    from evalrun.errors import UserError
    from evalrun.folders import new_run_folder, unfinished_run_folder

    if ending.resume is not None and ending.output is not None:
        raise UserError("--resume and --output exclude each other", "a run goes on in its own folder")
    for line in () if ending.silent else plan.shortfalls:
        echo(f"note: {line}", err=True)
    if ending.resume is None:
        return new_run_folder(ending.output, plan.config.name)
    folder = unfinished_run_folder(ending.resume)
    for name in folder.torn:
        echo(f"note: {name}: its last line was torn; what it was about is done again", err=True)
    return folder


def _executed(plan: Plan, folder: RunFolder, ending: Ending, refresh: bool) -> Result:
    """What the run came to. One that ends early says what is kept, and how to go on."""
    with loading():
        import asyncio
        import shlex

        from evalrun.errors import Interrupted, UnavailableError, UserError
        from evalrun.pipeline import Stop
        from evalrun.reports.progress import Progress
        from evalrun.runner import execute

    progress = Progress(io.StringIO() if ending.silent else sys.stderr)
    command = f"{ending.again} --resume {shlex.quote(str(folder.path))}"

    async def stoppable() -> Result:
        stop = Stop()
        _stop_on_signals(stop, progress)
        return await execute(plan, folder, progress, refresh=refresh, command=command, stop=stop)

    try:
        return asyncio.run(stoppable())
    except (asyncio.CancelledError, Interrupted):
        raise Interrupted(f"interrupted{_kept(folder)}{_way_on(folder)}") from None
    except UnavailableError as gone:
        gone.hint = f"{gone.hint}{_way_on(folder)}".strip()
        raise
    except UserError:
        raise
    except Exception:
        if not folder.path.is_dir():
            raise UserError(
                f"{folder.path}: moved away or removed while the run wrote to it",
                "where it was moved to, --resume goes on with it; else run again",
            ) from None
        echo(f"evalrun: the run broke off{_kept(folder)}{_way_on(folder)}", err=True)
        raise


def _show(result: Result, ending: Ending) -> None:
    from evalrun.reports.console import print_json, print_run

    if ending.as_json:
        print_json(result.folder, sys.stdout)
    else:
        print_run(result.folder, sys.stdout, full=ending.full, quiet=ending.quiet)
    for error in result.report_errors:
        echo(f"evalrun: {error}", err=True)


def _kept(folder: RunFolder) -> str:
    """What there is of a run that ended early."""
    if folder.complete:
        return "; the run is complete"
    draws = folder.file("draws")
    some = draws.is_file() and draws.stat().st_size
    return "; finished draws are kept" if some else " before the first answer"


def _way_on(folder: RunFolder) -> str:
    """The command that goes on with a run, where that is possible, or shows what it came to."""
    from evalrun.folders import shown_by

    if folder.complete:
        return f"\n    show it: {shown_by(folder.path)}"
    return f"\n    go on with it: {folder.begun.command}" if folder.unfinished else ""


def _stop_on_signals(stop: Stop, progress: Progress) -> None:
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
        with progress.aside():
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
