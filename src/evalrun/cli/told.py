"""What a command says in passing, beside its reports: notes, errors, paths.

Owns that no text of a file, a bot or a model drives the terminal or the CI runner that reads the log: every
command speaks through here.
"""

from __future__ import annotations

import click


def echo(text: str, *, err: bool = False) -> None:
    """Print ``text`` with its control characters written out and no line that commands a CI runner."""
    from evalrun.reports.words import visible, without_commands

    click.echo(without_commands(visible(text)), err=err)
