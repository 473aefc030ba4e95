"""The path, the number and the option that several commands take. Owns their words: everywhere the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
WRITTEN = click.Path(dir_okay=False, path_type=Path)
SET = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a value.")


class Share(click.FloatRange):
    """A number between 0 and 1; both left out where ``open_ended``."""

    def __init__(self, *, open_ended: bool = False) -> None:
        super().__init__(0, 1, min_open=open_ended, max_open=open_ended)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The share; not a number is none, which no comparison with a limit finds out."""
        share = super().convert(value, param, ctx)
        return share if share == share else self.fail(f"{value} is not a number", param, ctx)
