"""Jobs of a CI service: the commands of evalrun in their YAML, and whether each is one that there is."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from evalrun.cli import main
from evalrun.config import load_config
from evalrun.errors import UserError

CONFIG = """\
name: mine
dataset: {path: questions.jsonl}
target: {kind: http, url: "http://127.0.0.1:1"}
scorers: [latency]
budget: {seconds: 3600}
prices: {bot: {prompt: 0.15}, judge: {prompt: 0.15}}
"""


def commands_in(value: Any) -> Iterator[str]:
    """Every line of a script that calls evalrun, also behind a condition: ``evalrun run FILE --live``."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from commands_in(item)
    if isinstance(value, str):
        for line in value.splitlines():
            for found in re.findall(r"""(?:^\s*|[;&|)]\s*)(?:\w+="[^"]*"\s+)*(evalrun [^;&|#]+)""", line):
                yield found.strip()


def fault_of(command: str, folder: Path) -> str:
    """Why a command line cannot be used on a project in ``folder``; empty if it can. Nothing is run.

    Whatever file it names is there; what it sets is read as that of a config.
    """
    _, name, *arguments = shlex.split(command)
    there = Path.cwd()
    os.chdir(folder)
    try:
        for argument in arguments:
            _exist(argument)
        context = main.commands[name].make_context(name, arguments)
        load_config(_config(), context.params.get("overrides", ()), env={})
    except KeyError:
        return f"{command}: no such command"
    except (click.ClickException, UserError) as error:
        return f"{command}: {error}"
    finally:
        os.chdir(there)
    return ""


def _config() -> Path:
    Path("questions.jsonl").touch()
    path = Path("fault_of.yaml")
    path.write_text(CONFIG, "utf-8")
    return path


def _exist(argument: str) -> None:
    """A config or the folder of a run, as the steps before left them."""
    path = Path(argument)
    if path.suffix in (".yaml", ".yml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    elif argument.startswith("runs/"):
        path.mkdir(parents=True, exist_ok=True)
