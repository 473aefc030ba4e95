"""The kinds of path and the option that several commands take. Owns their words: everywhere the same."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
WRITTEN = click.Path(dir_okay=False, path_type=Path)
SET = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a value.")
