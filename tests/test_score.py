"""``evalrun score``: the answers of a run, judged and scored anew without its bot."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from evalrun.cli import main
from evalrun.digest import sha256_bytes
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from fakes.project import Outcome, Project


def score(project: Project, source: Path, config: dict[str, Any] | None = None, *args: str) -> Outcome:
    """``evalrun score`` in this process, by another config of the project, into a new folder."""
    output = project.folder / "scored" / str(len(list((project.folder / "scored").glob("*"))) + 1)
    output.parent.mkdir(exist_ok=True)
    options = ["--output", str(output), *args]
    if config is not None:
        path = project.folder / "other.yaml"
        path.write_text(json.dumps(config, indent=1), "utf-8")
        options += ["--config", str(path)]
    done = CliRunner().invoke(main, ["score", str(source), *options])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Outcome(done.exit_code, done.output, RunFolder(output))


def another(project: Project) -> dict[str, Any]:
    """The project's config with another rubric."""
    rubric = json.loads(json.dumps(project.rubric))
    rubric["name"], rubric["prompt"]["system"] = "stricter", "Read the answer twice."
    (project.folder / "stricter.yaml").write_text(json.dumps(rubric), "utf-8")
    config: dict[str, Any] = json.loads(json.dumps(project.config))
    config["name"] = "rescored"
    config["judge"]["rubric"] = "stricter.yaml"
    return config


def test_a_run_is_judged_anew_and_its_bot_is_left_alone(project: Project) -> None:
    """Another rubric: recorded once, replayed with no server there, linked to its parent, verified."""
    parent = project.recorded().run()
    project.model.stop()
    config = another(project)
    # Were the bot started, this would be an error.
    config["target"]["launch"]["command"] = ["no-such-program", "{tap}"]
    recorded = score(project, parent.folder.path, config, "--record")
    assert ExitCode.OK == recorded.code, recorded.text
    assert 0 < len(project.judge.bodies) == recorded.folder.meta.calls
    project.judge.stop()
    replayed = score(project, parent.folder.path, config)
    assert ExitCode.OK == replayed.code, replayed.text
    assert recorded.files()["run.json"] == replayed.files()["run.json"]
    old, new = parent.folder.header, replayed.folder.header
    assert new.origin is not None
    run_json = sha256_bytes(parent.files()["run.json"])
    assert ("run", "small", run_json) == (new.origin.kind, new.origin.name, new.origin.digest)
    assert parent.files()["draws.jsonl"] == replayed.files()["draws.jsonl"]
    assert {"observed": 32} == new.levels
    assert old.judge is not None
    assert new.judge is not None
    assert old.judge.fingerprint != new.judge.fingerprint
    assert "plain@1" == old.judge.rubric
    assert old.bot == new.bot
    assert old.config["target"] == new.config["target"]
    assert parent.decisions == replayed.decisions
    assert "answers of run small" in replayed.text
    verified = CliRunner().invoke(main, ["verify", str(replayed.folder.path)])
    assert 0 == verified.exit_code, verified.output


def test_code_alone_needs_neither_judge_nor_recording(project: Project) -> None:
    """Only deterministic scorers: no cassette, no call."""
    parent = project.recorded().run()
    project.stop()
    config = another(project)
    del config["judge"], config["cassette"]
    config |= {"scorers": ["recall@1", "refusal_rule"], "gates": []}
    done = score(project, parent.folder.path, config)
    assert ExitCode.OK == done.code, done.text
    assert 8 == sum(one.value == 1 for one in done.scores("recall@1"))
    assert 0 == done.folder.meta.calls
    assert 0 == CliRunner().invoke(main, ["verify", str(done.folder.path)]).exit_code


def test_scoring_that_ended_early_is_gone_on_with(project: Project) -> None:
    """The hint names ``score``; no verdict is asked for twice, and the files are those of a run nobody
    stopped.
    """
    parent = project.recorded().run()
    config = another(project)
    whole = score(project, parent.folder.path, config, "--live")
    judged = len(project.judge.bodies)
    project.judge.bodies.clear()
    first = score(project, parent.folder.path, config | {"budget": {"calls": 5}}, "--live")
    command = first.folder.begun.command
    assert f"evalrun score {parent.folder.path} --config" in first.text
    assert f"go on with it: {command}" in first.text
    (project.folder / "other.yaml").write_text(json.dumps(config, indent=1), "utf-8")
    done = CliRunner().invoke(main, shlex.split(command)[1:])
    assert ExitCode.OK == done.exit_code, done.output
    assert judged == len(project.judge.bodies)
    assert not first.folder.unfinished
    for name in ("draws", "contexts", "scores", "cases"):
        assert whole.files()[f"{name}.jsonl"] == first.files()[f"{name}.jsonl"], name
    assert 0 == CliRunner().invoke(main, ["verify", str(first.folder.path)]).exit_code


def test_scoring_other_answers_is_another_run(project: Project) -> None:
    """What was judged of one run is not mixed with the answers of another."""
    parent = project.recorded().run()
    config = another(project)
    begun = score(project, parent.folder.path, config | {"budget": {"calls": 5}}, "--live").folder.begun
    project.model.say = lambda body: "Something else."
    other = project.run("--live")
    command = shlex.split(begun.command.replace(str(parent.folder.path), str(other.folder.path), 1))
    done = CliRunner().invoke(main, command[1:])
    assert (ExitCode.USAGE, True) == (done.exit_code, "origin.digest: 'sha256:" in done.output), done.output


def test_a_new_rubric_without_a_recording_says_what_it_takes(project: Project) -> None:
    """Exit 4, how many verdicts are missing, and the option that records them."""
    parent = project.recorded().run()
    done = score(project, parent.folder.path, another(project))
    assert ExitCode.UNAVAILABLE == done.code
    assert "up to 32 verdicts" in done.text
    assert "run again with --record" in done.text
    assert "--record-missing" not in done.text
    assert [] == project.judge.bodies


def test_another_dataset_is_refused(project: Project) -> None:
    """By its digest, before a folder is made."""
    parent = project.recorded().run()
    config = another(project)
    lines = (project.folder / "cases.jsonl").read_text("utf-8").splitlines(keepends=True)
    (project.folder / "more.jsonl").write_text("".join(lines[:-1]), "utf-8")
    config["dataset"] = "more.jsonl"
    done = score(project, parent.folder.path, config)
    assert ExitCode.USAGE == done.code
    assert "not the questions that these answers are about" in done.text
    assert not done.folder.path.exists()


def test_a_scorer_cannot_look_deeper_than_the_run_retrieved(project: Project) -> None:
    """The depth is that of the run, whatever the new config says."""
    parent = project.recorded().run()
    config = another(project)
    config["target"]["k"] = 9
    config["scorers"] = ["recall@5"]
    config["gates"] = []
    done = score(project, parent.folder.path, config)
    assert ExitCode.USAGE == done.code
    assert "looks deeper than the target retrieves (k: 2)" in done.text


def test_broken_and_lost_answers_stay_what_they_are(project: Project) -> None:
    """An answer whose chain was broken is not graded by scoring it again."""
    project.break_bot("edited", "Where")
    parent = project.run("--record")
    assert ExitCode.PROVENANCE == parent.code, parent.text
    done = score(project, parent.folder.path, another(project), "--record")
    assert ExitCode.PROVENANCE == done.code
    assert parent.errors == done.errors
    assert parent.errors


def test_a_part_of_a_run_stays_a_part(project: Project) -> None:
    """Filtered once, filtered for good: no gates."""
    parent = project.recorded().run("--limit", "3")
    done = score(project, parent.folder.path, another(project), "--record")
    assert "--limit 3" == done.folder.header.partial
    assert {} == done.decisions
    assert 3 == done.folder.header.dataset.cases


def test_answers_that_were_changed_are_refused(project: Project) -> None:
    """A run whose journal is not the one it wrote."""
    parent = project.recorded().run()
    path = parent.folder.file("draws")
    path.write_bytes(path.read_bytes().replace(b"Graz", b"Wien"))
    done = score(project, parent.folder.path, another(project))
    assert ExitCode.USAGE == done.code
    assert "not the file that the run wrote" in done.text


def test_verify_tells_answers_that_are_not_the_parents(project: Project) -> None:
    """The link to the parent is a link of the chain."""
    parent = project.recorded().run()
    config = another(project)
    del config["judge"]
    config |= {"scorers": ["recall@1"], "gates": []}
    done = score(project, parent.folder.path, config)
    header = done.folder.path / "run.json"
    value = json.loads(header.read_text("utf-8"))
    value["origin"]["draws"] = value["origin"]["digest"]
    header.write_text(json.dumps(value), "utf-8")
    found = CliRunner().invoke(main, ["verify", str(done.folder.path)])
    assert ExitCode.PROVENANCE == found.exit_code
    assert "not the answers of the run 'small'" in found.output


def test_a_run_is_scored_by_a_config(project: Project) -> None:
    """Without one there is nothing to score it by."""
    parent = project.recorded().run()
    done = score(project, parent.folder.path)
    assert ExitCode.USAGE == done.code
    assert "--config" in done.text
