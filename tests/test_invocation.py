"""Commands that are shown are those that can be typed where evalrun was started."""

from __future__ import annotations

import pytest

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
