"""``evalrun cassette``: what is recorded is shown, a changed line is found, a needless one goes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evalrun.cli import main
from evalrun.errors import ExitCode
from fakes.project import TOPICS, Project

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project, recorded once; its servers are gone."""
    project = Project(tmp_path_factory.mktemp("recorded")).recorded()
    project.stop()
    return project


@pytest.fixture
def project(shipped: Project, tmp_path: Path) -> Project:
    """A copy that a test may spoil: config and cassette."""
    copy = Project.__new__(Project)
    copy.__dict__ |= shipped.__dict__ | {"folder": tmp_path, "config": json.loads(json.dumps(shipped.config))}
    shutil.copytree(shipped.folder / "cassette", tmp_path / "cassette")
    copy.write()
    return copy


def cassette(project: Project, command: str, *args: str) -> Result:
    """What a command on the project's config came to."""
    config = str(project.folder / "config.yaml")
    done = CliRunner().invoke(main, ["cassette", command, config, *args], catch_exceptions=False)
    assert "Traceback" not in done.output
    return done


def edit(project: Project, change: Callable[[Lines], Any], book: str = "bot") -> None:
    """Change the lines of a book."""
    path = project.folder / "cassette" / f"{book}.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def test_what_is_recorded_is_counted(project: Project) -> None:
    """Each question twice by the bot; the judge has a call for each answer that differs."""
    bot, judge = json.loads(cassette(project, "stats", "--json").output)["books"]
    assert (32, 16, 32) == (bot["lines"], bot["cases"], bot["draws"])
    assert len(project.lines("judge")) == judge["lines"]
    assert ["judge-model"] == judge["models"]
    assert 0 < bot["completion_tokens"] < bot["prompt_tokens"]
    printed = cassette(project, "stats").output
    assert "16 questions, 32 draws" in printed
    assert f"tokens {bot['prompt_tokens']:,} read" in printed


def test_calls_are_shown_by_case_and_book(project: Project) -> None:
    """One line a call; with --full also what was asked and said."""
    rows = cassette(project, "show", "--case", "talks", "--book", "bot").output.splitlines()
    assert ["talks, draw 1", "talks, draw 2"] == [re.split(" {2,}", row)[1] for row in rows]
    assert all(any(text in row for text in TOPICS["talks"][1:]) for row in rows)
    whole = cassette(project, "show", "--case", "talks", "--full").output
    assert "  > Question: Where did you speak?" in whole
    assert "judge  talks" in whole


def test_what_a_model_said_cannot_steer_the_terminal(project: Project) -> None:
    """Control characters in prompt, reply and case are written out."""

    def poison(lines: Lines) -> None:
        reply = json.loads(lines[0]["reply"])
        reply["message"]["content"] = "\x1b[2Jgone"
        lines[0] |= {"reply": json.dumps(reply), "case": "a\x1bb"}

    edit(project, poison)
    for args in (("show",), ("show", "--full"), ("verify",)):
        assert "\x1b" not in cassette(project, *args).output
    assert "\\x1b[2Jgone" in cassette(project, "show").output


def test_a_recording_as_it_was_written_holds(project: Project) -> None:
    """Every line of both books."""
    done = cassette(project, "verify")
    assert ExitCode.OK == done.exit_code
    assert f"({len(project.lines()) + len(project.lines('judge'))} lines)" in done.output


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines[2]["request"].update(model="x"), "bot.jsonl:3: the key is not that of"),
        (lambda lines: lines[2].update(finish="length"), "bot.jsonl:3: the finish reason is not"),
        (lambda lines: lines[2].update(status=500), "bot.jsonl:3: a reply with status 500"),
        (lambda lines: lines[2].update(source="x"), "bot.jsonl:3: its source 'x' is not in source.json"),
        (lambda lines: lines[2].update(case=None), "bot.jsonl:3: a model call without case"),
        (lambda lines: lines.insert(2, lines[1]), "bot.jsonl:3: this request stands there twice"),
        (lambda lines: lines.reverse(), "bot.jsonl:2: out of order"),
    ],
)
def test_a_line_that_is_not_as_it_was_recorded_is_found(
    project: Project, change: Callable[[Lines], Any], told: str
) -> None:
    """With its place; the exit code is that of a broken proof."""
    edit(project, change)
    done = cassette(project, "verify")
    assert ExitCode.PROVENANCE == done.exit_code
    assert told in done.output


def test_a_torn_last_line_is_found(project: Project) -> None:
    """A recording that was killed while it wrote."""
    path = project.folder / "cassette" / "bot.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    assert "bot.jsonl: the last line is torn" in cassette(project, "verify").output


def test_prune_tells_first_and_takes_out_what_no_draw_needs(project: Project) -> None:
    """Half of the draws: their lines go, the rest stands byte for byte, and the run replays as before."""
    assert "0 of 32 lines needed by no draw" in cassette(project, "prune").output
    project.config["draws"] = 1
    project.write()
    before = project.raw()
    told = cassette(project, "prune").output
    assert "bot.jsonl: 16 of 32 lines needed by no draw" in told
    assert "  talks, draw 2" in told
    assert "nothing was changed; --write takes them out" in told
    assert before == project.raw()
    assert ExitCode.OK == cassette(project, "prune", "--write").exit_code
    wanted = [line for line in before.splitlines() if json.loads(line)["draw"] == 0]
    assert wanted == project.raw().splitlines()
    assert {} == project.run().errors
    assert "bot.jsonl: 0 of 16" in cassette(project, "prune").output
    assert ExitCode.OK == cassette(project, "verify").exit_code


def test_what_another_config_needs_stays(project: Project) -> None:
    """Both are named, and only what neither asks for goes; a config of another cassette is refused."""
    other = project.folder / "other.yaml"
    other.write_text(json.dumps(project.config), "utf-8")
    project.config["draws"] = 1
    project.write()
    assert "bot.jsonl: 0 of 32" in cassette(project, "prune", str(other)).output
    shutil.copytree(project.folder / "cassette", project.folder / "second")
    other.write_text(json.dumps(project.config | {"cassette": {"path": "second"}}), "utf-8")
    assert "another cassette than that of" in cassette(project, "prune", str(other)).output


def test_nothing_goes_where_a_replay_is_not_whole(project: Project) -> None:
    """Another document alters the prompts: what the draws would need is not known."""
    project.docs["talks"] += " And in Nantes."
    try:
        project.write()
        before = project.raw()
        done = cassette(project, "prune", "--write")
    finally:
        project.docs["talks"] = project.docs["talks"].removesuffix(" And in Nantes.")
    assert ExitCode.UNAVAILABLE == done.exit_code
    assert "its replay is not whole" in done.output
    assert before == project.raw()


def test_a_config_without_a_recording_is_told_so(project: Project) -> None:
    """No cassette, or none yet."""
    shutil.rmtree(project.folder / "cassette")
    assert "no recording here" in cassette(project, "stats").output
    del project.config["cassette"]
    project.write()
    assert "no cassette is configured" in cassette(project, "stats").output


def test_a_key_in_a_recorded_reply_is_told_and_can_be_taken_out(tmp_path: Path) -> None:
    """Who has it and where is told, not the key: at the end of the run, in its files, by ``verify``. With a
    pattern the next recording is rid of it, also of what the judge repeated.
    """
    key = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
    project = Project(tmp_path)
    project.config |= {"gates": [], "draws": 1}
    honest = project.model.say
    project.model.say = lambda body: f"My key: {key}" if "Lyon" in str(honest(body)) else honest(body)
    recorded = project.run("--record")
    (note,) = recorded.folder.header.notes
    assert (
        "2 of the recorded replies (bot, talks, draw 1: a key of OpenAI; judge, talks, draw 1: a key" in note
    )
    for told in (recorded.text, (recorded.folder.path / "summary.md").read_text("utf-8"), note):
        assert "cassette.redact" in told
    assert key not in recorded.text + note
    assert (note,) == project.run("--record").folder.header.notes  # of what was recorded before, too
    assert "note: bot.jsonl:" in (found := cassette(project, "verify").output)
    assert "bot, talks, draw 1: a key of OpenAI" in found
    assert key not in found
    assert key.encode() in project.raw()
    project.config["cassette"]["redact"] = ["sk-proj-[A-Za-z0-9]+"]
    assert () == project.run("--record-missing").folder.header.notes
    assert key.encode() not in project.raw() + project.raw("judge")
    assert "a key of" not in cassette(project, "verify").output
    project.stop()
