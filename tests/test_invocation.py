"""Commands that are shown are those that can be typed where evalrun was started."""

from __future__ import annotations

from importlib import import_module

import pytest

from evalrun.cli import COMMANDS as COMMAND_LINES
from evalrun.cli import main
from evalrun.invocation import COMMANDS, as_started


def test_every_command_is_known() -> None:
    """A new one that is left out would be shown without its way to be started."""
    assert sorted(main.commands) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("next: evalrun run a.yaml --live", "next: uv run evalrun run a.yaml --live"),
        ("evalrun diff A B, then evalrun accept B", "uv run evalrun diff A B, then uv run evalrun accept B"),
        ("go on: uv run evalrun run x", "go on: uv run evalrun run x"),
        ("call evalrun from the project's folder", "call evalrun from the project's folder"),
        ("see .evalrun run or /bin/evalrun run", "see .evalrun run or /bin/evalrun run"),
        ("an evalrun runner", "an evalrun runner"),
    ],
)
def test_uv_run_stands_before_commands_where_it_started_this_one(
    monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    """Once, before commands alone; elsewhere every text stays as it is."""
    assert text == as_started(text)
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    assert shown == as_started(text)


def test_the_list_of_commands_is_that_of_their_modules() -> None:
    """Help shows a line a command without importing any; each stands in the module that the list names."""
    modules = {module for module, _ in COMMAND_LINES.values()}
    there = [command.name for name in modules for command in import_module(f"evalrun.cli.{name}").ALL]
    assert sorted(COMMAND_LINES) == sorted(there)
    assert {name: main.commands[name].short_help for name in main.commands} == {
        name: line for name, (_, line) in COMMAND_LINES.items()
    }
    assert 68 >= max(len(line) for _, line in COMMAND_LINES.values())  # 80 columns cut none
