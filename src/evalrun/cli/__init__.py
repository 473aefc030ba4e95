"""The commands of ``evalrun``. Owns arguments, and what a user is told when something cannot go on.

The module of a command is imported when it is called, and what it needs inside its body: ``--help`` and
``--version`` import click only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from evalrun.cli.told import echo

COMMANDS = {
    "accept": ("numbers", "Make RUN the baseline of its config, in a file beside it."),
    "agree": ("judge", "Measure the judge of RUN against reference labels."),
    "cassette": ("recordings", "Look into the cassette of a CONFIG, check it, prune it."),
    "ci": ("numbers", "The interval of a rate such as 26/35, or of the difference of two."),
    "diff": ("numbers", "Compare two runs of the same questions, in pairs."),
    "export": ("starting", "Print a RUN as a table, one row a draw."),
    "freeze": ("commands", "Pin a released DATASET in SHA256SUMS beside it."),
    "import": ("starting", "Turn the questions of a CSV, JSON or promptfoo FILE into a dataset."),
    "init": ("starting", "Write a config, ten questions and CI jobs for your bot into DIR."),
    "label": ("judge", "Label answers of RUN in the terminal, one key an answer."),
    "list": ("commands", "The scorers, targets, judge models and reports there are."),
    "plan": ("numbers", "What a run of CONFIG will take, and what it can show."),
    "redteam": ("redteam", "Attack the bot of CONFIG, and say what its silence is worth."),
    "report": ("commands", "Write the reports of a RUN anew and show it again."),
    "run": ("commands", "Ask a bot every question of CONFIG, judge, measure, gate."),
    "score": ("score", "Score answers that are there already: of a RUN, or of a FILE."),
    "validate": ("commands", "Check each CONFIG, its dataset, rubric and gates."),
    "verify": ("commands", "Derive every link of a RUN anew, offline."),
    "view": ("view", "Show one RUN, or all RUNS of a folder, in a browser."),
}
"""Command name → (module of this folder, what it does in a line that no narrow terminal cuts)."""

_OF_THE_MACHINE = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO,
        errno.EMFILE, errno.ENFILE, errno.ESTALE,
    }
)  # fmt: skip
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


_MAKE_ROOM = "make room, or name another place; what was written before is kept"
_LEAVE_IT = "leave the files of a run where they are until it has ended, and run again"


def _refused(error: BaseException) -> OSError | None:
    """What the machine refused, where that is all that went wrong: no room, no right, too many files."""
    if isinstance(error, BaseExceptionGroup):
        found = [_refused(one) for one in error.exceptions]
        return found[0] if all(found) else None
    return error if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE else None


def _write_no_more() -> None:
    """Let what is still to be flushed go nowhere, or Python complains of it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _have_streams() -> None:
    """Where output was closed (``>&-``), let it go nowhere; else the next file that is opened would be it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


class _OnDemand(MutableMapping[str, click.Command]):
    """The commands by name; the module of one is imported when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._made:
            for command in import_module(f"evalrun.cli.{COMMANDS[name][0]}").ALL:
                command.short_help = COMMANDS[command.name][1]
                self._made[command.name] = command
        return self._made[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Commands(click.Group):
    """Shows a user's mistake without a traceback, and gives every end its exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command with its line, of which none is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        from evalrun.errors import EvalrunError, ExitCode, Interrupted

        _have_streams()
        # httpx's own command line, which imports more than httpx itself, goes unused; httpx can do without.
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("evalrun: interrupted", err=True)
            ctx.exit(Interrupted.exit_code)
        except EvalrunError as error:
            echo(f"evalrun: {error}", err=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # nobody reads on, as behind `| head`; click would say 1: a gate fails
            _write_no_more()
            ctx.exit(ExitCode.USAGE)
        except Exception as error:
            if (refused := _refused(error)) is not None:
                _write_no_more()
                where = refused.filename or "what was to be written"
                hint = _LEAVE_IT if refused.errno == errno.ESTALE else _MAKE_ROOM
                with contextlib.suppress(OSError):  # where it is this very stream that takes nothing
                    echo(f"evalrun: {where}: {refused.strerror}\n    {hint}", err=True)
                ctx.exit(ExitCode.USAGE)
            import traceback

            echo(traceback.format_exc(), err=True)
            echo("evalrun: this is a fault of evalrun, not of your files", err=True)
            ctx.exit(ExitCode.FAULT)


@click.group(cls=_Commands, commands=_OnDemand(), context_settings=_CONTEXT)
@click.version_option(None, "-V", "--version", package_name="evalrun", message="evalrun %(version)s")
def main() -> None:
    """Measure a chatbot that answers from documents, and say how sure the numbers are."""
