"""The commands of ``evalrun``. Owns arguments, and what a user is told when something cannot go on.

Each command imports what it needs inside its body, so that ``--help`` and ``--version`` import click only.
"""

from __future__ import annotations

from typing import Any

import click

from evalrun.cli import commands, judge, numbers, recordings, redteam, score, starting, view
from evalrun.cli.told import echo

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """Shows a user's mistake without a traceback, and gives every end its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        from evalrun.errors import EvalrunError, ExitCode, Interrupted

        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("evalrun: interrupted; finished draws are kept", err=True)
            ctx.exit(Interrupted.exit_code)
        except EvalrunError as error:
            echo(f"evalrun: {error}", err=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception:
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
