"""Attempts at the same gates: what counts as one, and that no number of runs slows a run down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from evalrun.attempts import Attempt, attempt_of
from evalrun.journal import RunFolder
from evalrun.jsonl import pretty_json
from evalrun.records import Gate, Verdict
from fakes.project import TOPICS, Project, honest
from paired_runs import passes, write_run

VERDICTS = (Verdict(gate=Gate(metric="right", min=0.5), decision="holds"),)


def tried(path: Path, answers: str = "first", **header: Any) -> Attempt:
    """A run in ``path`` whose bot said so, its attempt written down as a run does it."""
    outcomes = passes("ans", [[1, 1]] * 3)
    said = {name: f"{answers} answer to {name}" for name in outcomes}
    folder = write_run(path, outcomes, answers=said, **({"verdicts": VERDICTS} | header))
    found = attempt_of(folder, folder.header)
    fields = {"attempt": found.number, "trial": found.trial, "answers": found.answers}
    (path / "meta.json").write_bytes(pretty_json(folder.meta.model_copy(update=fields)))
    return found


def test_other_answers_are_another_attempt(tmp_path: Path) -> None:
    """The first run is attempt 1, each set of answers that was not there before is one more."""
    numbers = [tried(tmp_path / name, name).number for name in ("a", "b", "c")]
    assert [1, 2, 3] == numbers


def test_a_replay_is_none(tmp_path: Path) -> None:
    """The same answers again are no new attempt, however often."""
    tried(tmp_path / "a")
    assert [1, 1] == [tried(tmp_path / name).number for name in ("b", "c")]
    assert 2 == tried(tmp_path / "d", "second").number
    assert 2 == tried(tmp_path / "e").number


@pytest.mark.parametrize(
    "other",
    [
        {"bot": {"kind": "ragbot", "model": "large"}},
        {"config": {"name": "quality", "temperature": 0.1}},
        {"name": "quality", "config": {"name": "other", "temperature": 0.7}},
    ],
)
def test_another_bot_or_config_is_tried_for_the_first_time(tmp_path: Path, other: dict[str, Any]) -> None:
    """What was changed is no second try of what was there before."""
    tried(tmp_path / "a")
    assert 1 == tried(tmp_path / "b", "second", **other).number


def test_other_gates_do_not_start_anew(tmp_path: Path) -> None:
    """A threshold lowered after a look is still a look at the same bot."""
    gates = [[{"metric": "right", "min": bound}] for bound in (0.9, 0.5)]
    configs = [{"name": "quality", "temperature": 0.7, "gates": each} for each in gates]
    numbers = [tried(tmp_path / str(n), str(n), config=config).number for n, config in enumerate(configs)]
    assert [1, 2] == numbers


@pytest.mark.parametrize("how", [{"verdicts": ()}, {"exit_code": 4}, {"exit_code": 5}])
def test_a_run_that_its_gates_had_no_say_in_is_none(tmp_path: Path, how: dict[str, Any]) -> None:
    """A partial run, or one that concluded nothing, neither counts nor is counted."""
    assert Attempt() == tried(tmp_path / "a", **how)
    assert 1 == tried(tmp_path / "b", "second").number


def test_what_else_lies_there_does_no_harm(tmp_path: Path) -> None:
    """Files, empty folders, and what is no meta.json of ours."""
    found = tried(tmp_path / "a")
    (tmp_path / "file").write_text("x", "utf-8")
    for name, content in {
        "torn": f'{{"trial": "{found.trial}"',
        "list": f'["{found.trial}"]',
        "x": "{}",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.json").write_text(content, "utf-8")
    (tmp_path / "loop").symlink_to(tmp_path / "a")
    assert 2 == tried(tmp_path / "b", "second").number


def test_a_thousand_runs_are_looked_through_at_once(tmp_path: Path) -> None:
    """Finding the attempts among a thousand runs costs little more than reading that many small files."""
    first = tried(tmp_path / "first")
    text = json.dumps({"trial": first.trial, "answers": "sha256:other", "run": "x" * 400})
    for number in range(1000):
        (tmp_path / f"r{number}").mkdir()
        (tmp_path / f"r{number}" / "meta.json").write_text(text, "utf-8")
    folder = RunFolder(tmp_path / "first")
    header = folder.header
    began = time.process_time()
    for number in range(1000):
        json.loads((tmp_path / f"r{number}" / "meta.json").read_bytes())
    bare = time.process_time() - began
    began = time.process_time()
    assert 2 == attempt_of(folder, header).number
    assert time.process_time() - began < 3 * bare + 0.05


def test_the_count_is_printed(project: Project) -> None:
    """The whole way: other answers of the same bot are attempt 2, and console, page and Markdown say so."""
    assert "attempt" not in project.run("--live").text
    project.model.say = lambda body: honest(body).replace("I row", "I do row")
    done = project.run("--live")
    assert "attempt 2 at these gates" in done.text
    for name in ("report.html", "summary.md"):
        assert "attempt 2 at these gates" in (done.folder.path / name).read_text("utf-8")
    assert "attempt" not in (done.folder.path / "run.json").read_text("utf-8")
    assert (2, True) == ((meta := done.folder.meta).attempt, meta.trial.startswith("sha256:"))
    assert 2 == project.run("--live").folder.meta.attempt
    assert 1 == project.run("--live", "--case", next(iter(TOPICS))).folder.meta.attempt
