"""What commands say in passing: no text of a file, a bot or a model drives a terminal or a CI runner."""

from __future__ import annotations

import ast
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.cli.told import echo
from evalrun.records import Chunk
from evalrun.reports.screen import print_record
from fakes.servers import FakeModel

CLI = Path(__file__).parents[1] / "src" / "evalrun" / "cli"
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m \u202egnp.exe\u2066 \x08\x00 [bold red]x[/bold red]\n"
    "::error::owned\r  ::add-mask::x ##[error]o ##vso[task.complete]o %0A::warning::o\n"
    "section_start:1:owned\r\x1b[0K end"
)


def harmless(text: str) -> bool:
    """Whether neither a terminal nor a CI runner would act on ``text``."""
    controls = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    commands = re.search(r"^\s*::|##[a-z]*\[", text, re.MULTILINE)
    return not controls and not commands


def test_the_check_can_fail() -> None:
    """Each kind of harm is noticed."""
    for text in ("\x1b[2J", "a\rb", "\u202e", "x\n ::error::", "a ##[error]", "##vso[x]", "\x9b31m"):
        assert not harmless(text)


def test_what_a_command_says_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, bidi overrides, workflow commands and section marks are shown, never obeyed."""
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert harmless(text)
        assert "\\x1b]0;owned" in text
        assert "[bold red]x[/bold red]" in text


def test_json_on_screen_is_harmless_and_the_same() -> None:
    """``--json`` means what the record holds, in characters that do nothing."""
    stream = io.StringIO()
    print_record(Chunk(id="a", text=HOSTILE), stream)
    assert harmless(stream.getvalue())
    assert HOSTILE == json.loads(stream.getvalue())["text"]


def test_commands_speak_through_one_place() -> None:
    """No command prints by itself; annotations, escaped as such, and tables of bytes are the exceptions."""
    found = set()
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "click.echo", "click.secho") or re.match(
                    r"sys\.std\w+\..*write", called
                ):
                    found.add(f"{path.name}: {ast.unparse(node)}")
    assert {
        "told.py: click.echo(without_commands(as_started(visible(text))), err=err)",
        "commands.py: click.echo(line)",
        "starting.py: sys.stdout.buffer.write(table)",
    } == found


def test_hostile_files_and_bots_are_told_harmlessly(tmp_path: Path) -> None:
    """A question, a category, a bot's error: through list, validate, run and report."""
    bot = FakeModel(lambda body: {"status": 400, "json": {"error": HOSTILE}}).start()
    row = {"id": "a", "question": HOSTILE, "category": "c", "tags": ["\u202e::error::"]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    asked = '{messages: [{role: user, content: "{question}"}]}'
    target = f"{{kind: http, url: '{bot.url}', path: /api/chat, body: {asked}, limits: {{retries: 0}}}}"
    config, run = tmp_path / "c.yaml", str(tmp_path / "run")
    config.write_text(
        f"name: c\ndataset: q.jsonl\ntarget: {target}\ndraws: 1\nprovenance: none\nscorers: [refusal_rule]\n"
    )
    said = ""
    try:
        for command in (
            ["list", str(config)],
            ["validate", str(config)],
            ["run", str(config), "--live", "--output", run],
            ["report", run, "--full"],
            ["report", run, "--json"],
        ):
            result = CliRunner().invoke(main, command)
            assert 70 != result.exit_code
            assert harmless(result.output), command
            said += result.output
    finally:
        bot.stop()
    assert "HTTP 400" in said
    assert "owned" in said


def test_names_and_what_they_are_stand_in_two_columns() -> None:
    """The longest name of a scorer leaves its line as straight as the others, and no markup of ours shows."""
    lines = [line for line in CliRunner().invoke(main, ["list"]).output.splitlines() if line.startswith("  ")]
    assert 20 < len(lines)
    assert {21} == {len(re.match(r"  \S+ +", line)[0]) for line in lines}  # type: ignore[index]
    assert "``" not in "".join(lines)
