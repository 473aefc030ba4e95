"""The commands of ``evalrun``. Owns arguments, and what a user is told when something cannot go on.

Each command imports what it needs inside its body, so that ``--help`` and ``--version`` import click only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Any

import click

from evalrun.cli import commands, judge, numbers, recordings, redteam, score, starting, view
from evalrun.cli.told import echo

_OF_THE_MACHINE = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO,
        errno.EMFILE, errno.ENFILE,
    }
)  # fmt: skip
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


_MAKE_ROOM = "make room, or name another place; what was written before is kept"


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


class _Commands(click.Group):
    """Shows a user's mistake without a traceback, and gives every end its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        from evalrun.errors import EvalrunError, ExitCode, Interrupted

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
                echo(f"evalrun: {where}: {refused.strerror}\n    {_MAKE_ROOM}", err=True)
                ctx.exit(ExitCode.USAGE)
            import traceback

            echo(traceback.format_exc(), err=True)
            echo("evalrun: this is a fault of evalrun, not of your files", err=True)
            ctx.exit(ExitCode.FAULT)


@click.group(cls=_Commands, context_settings=_CONTEXT)
@click.version_option(None, "-V", "--version", package_name="evalrun", message="evalrun %(version)s")
def main() -> None:
    """Measure a chatbot that answers from documents, and say how sure the numbers are."""


for table in (commands, score, numbers, judge, recordings, redteam, view, starting):
    for command in table.ALL:
        main.add_command(command)
