"""What a command says in passing, beside its reports: notes, errors, paths.

Owns that no text of a file, a bot or a model drives the terminal or the CI runner that reads the log: every
command speaks through here.
"""

from __future__ import annotations

import click


def echo(text: str, *, err: bool = False) -> None:
    """Print ``text`` with its control characters written out and no line that commands a CI runner.

    A command of ours in it is shown as it has to be typed here.
    """
    from evalrun.invocation import as_started
    from evalrun.reports.words import visible, without_commands

    click.echo(without_commands(as_started(visible(text))), err=err)
