"""``cassette.at: bot``: the bot's own replies are recorded, a replay runs nothing of it, and says so."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from evalrun.cli import main
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.records import Exchange
from fakes.project import Outcome, Project
from fakes.servers import FakeModel, serving, there

BOT = Path(__file__).parent / "fakes" / "plain_bot.py"
NOWHERE = "http://127.0.0.1:9"
QUESTIONS = [
    {"id": "hours", "question": "When is it open?", "category": "x", "relevant_ids": ["opening"]},
    {"id": "price", "question": "What does a card cost?", "category": "x", "relevant_ids": ["cards"]},
]


def at_bot(folder: Path) -> Project:
    """The small project, whose bot speaks to its model directly, and whose own replies are recorded."""
    project = Project(folder)
    project.config["cassette"] = {"path": "cassette", "at": "bot"}
    project.config["target"]["launch"]["env"] = {"OLLAMA_HOST": project.model.url}
    project.config["provenance"] = "reported"
    return project


def without_its_bot(project: Project) -> Outcome:
    """A replay where no bot could be started and no server answers."""
    project.stop()
    project.config["target"]["launch"]["command"] = ["no-such-program", "{port}"]
    return project.run()


def test_a_replay_needs_no_bot_and_comes_to_the_same(tmp_path: Path) -> None:
    """Draws, scores and gates are those of the run that recorded; the proof is what the bot reported."""
    project = at_bot(tmp_path)
    first = project.run("--record")
    second = without_its_bot(project)
    assert first.draws == second.draws
    assert list(first.folder.scores()) == list(second.folder.scores())
    assert (first.code, first.decisions) == (second.code, second.decisions)
    assert {"reported": 32} == second.folder.header.levels
    assert {("/answer", True), ("/retrieve", False), ("/about", False)} == {
        (line.path, line.case is not None) for line in project.lines()
    }
    for command in (["verify", str(second.folder.path)], ["cassette", "verify", str(project.write())]):
        assert ExitCode.OK == CliRunner().invoke(main, command).exit_code


def test_a_run_says_plainly_that_the_bot_was_not_exercised(tmp_path: Path) -> None:
    """On the terminal, in the report, in the summary and in run.json; not where the bot was asked."""
    project = at_bot(tmp_path)
    first = project.run("--record")
    second = without_its_bot(project)
    told = "not exercised, its recorded replies stood in"
    for done, stood_in in ((first, 0), (second, 32)):
        files = [(done.folder.path / name).read_text("utf-8") for name in ("report.html", "summary.md")]
        assert [stood_in > 0] * 3 == [told in text for text in (done.text, *files)]
        assert stood_in == done.folder.header.not_exercised
        noted = any("the bot was not exercised" in note for note in done.folder.header.notes)
        assert noted is (stood_in > 0)
    again = project.run().files()
    journals = [name for name in again if name.endswith((".jsonl", ".json"))]
    assert [second.files()[name] for name in journals] == [again[name] for name in journals]


def test_what_is_recorded_is_not_asked_again(tmp_path: Path) -> None:
    """A new question costs its own calls; the run says for how many draws the recording stood in."""
    project = at_bot(tmp_path)
    project.config["gates"] = []
    *known, last = project.cases
    project.cases = known
    project.run("--record")
    asked = len(project.model.bodies)
    project.cases = [*known, last]
    done = project.run("--record")
    assert 2 == len(project.model.bodies) - asked
    assert 30 == done.folder.header.not_exercised
    assert "not exercised in 30 of 32 draws" in done.text
    project.stop()


def test_a_missing_and_a_stale_recording_are_exit_4(tmp_path: Path) -> None:
    """As with a model's replies: which cases, what differs, what a refresh costs."""
    project = at_bot(tmp_path)
    project.config["gates"] = []
    gone = project.cases.pop()
    project.run("--record")
    project.cases.append(gone)
    project.cases[0]["question"] = "Where did you talk?"
    done = without_its_bot(project)
    assert ExitCode.UNAVAILABLE == done.code
    assert {"talks", gone["id"]} == set(done.errors)
    assert all(error.startswith("recording: no recording of /retrieve") for error in done.errors["talks"])
    assert "a refresh costs" in done.text
    project.cases[0]["question"] = "Where did you speak?"
    project.config["temperature"] = 0.1
    stale = project.run()
    assert "recording: a stale recording of /answer: request fields: temperature" in stale.errors["talks"][0]


@pytest.mark.parametrize(
    ("change", "told", "hint"),
    [
        ({"provenance": "observed"}, "the proof is 'reported' at best", "set provenance: reported"),
        ({"provenance": None}, "'observed' is demanded", "or write at: model"),
        ({"tap": True}, "'{tap}' beside 'cassette.at: bot'", "name the model's server in its place"),
    ],
)
def test_what_a_recorded_bot_cannot_show_is_refused_at_load(
    tmp_path: Path, change: dict[str, Any], told: str, hint: str
) -> None:
    """A demanded proof that it cannot give, and a tap that would see nothing."""
    project = at_bot(tmp_path)
    project.stop()
    if "tap" in change:
        project.config["target"]["launch"]["env"] = {"OLLAMA_HOST": "{tap}"}
    elif change["provenance"]:
        project.config |= change
    else:
        del project.config["provenance"]
    done = CliRunner().invoke(main, ["validate", str(project.write())])
    assert ExitCode.USAGE == done.exit_code
    assert told in done.output
    assert hint in done.output
    assert "config.yaml:" in done.output


# ---------------------------------------------------------------- redacted and packed


def test_a_redacted_run_is_the_same_when_recorded_and_replayed(tmp_path: Path) -> None:
    """A name in an answer is blanked before anybody reads it: the runs agree, and every link holds."""
    project = Project(tmp_path)
    project.config["cassette"] |= {"redact": [r"\bGraz\b"], "compress": True}
    first = project.run("--record")
    project.stop()
    second = project.run()
    assert first.draws == second.draws
    assert list(first.folder.scores()) == list(second.folder.scores())
    assert {"observed": 32} == second.folder.header.levels
    said = {draw.answer for draw in second.draws if draw.case == "city"}
    assert said <= {"I live in [redacted].", "My home is [redacted]."}
    verify = CliRunner().invoke(main, ["verify", str(second.folder.path)])
    assert ExitCode.OK == verify.exit_code, verify.output
    checked = CliRunner().invoke(main, ["cassette", "verify", str(project.write())]).output
    assert "every line is as it was recorded" in checked
    assert re.search(r"redacted: \d+ replies, in \d+ places", checked)
    assert re.search(r"note: what cassette.redact takes out of replies stands in \d+ requests", checked)
    shown = CliRunner().invoke(main, ["cassette", "show", str(project.write()), "--case", "city"]).output
    assert "1 redacted" in shown


def test_a_line_from_before_a_pattern_is_found_and_mended(tmp_path: Path) -> None:
    """`verify` names it, a replay reads through it, and recording again writes it anew without asking."""
    shutil.copy(BOT, tmp_path / "plain_bot_copy.py")
    target = {"kind": "python", **kinds("")["python"]}
    run(written(tmp_path, target), "a", "--record")
    config = written(tmp_path, target, cassette={"path": "cassette", "at": "bot", "redact": ["five euros"]})
    told = CliRunner().invoke(main, ["cassette", "verify", str(config)])
    assert ExitCode.PROVENANCE == told.exit_code
    assert ": its reply holds what must not be written down" in told.output
    (tmp_path / "plain_bot_copy.py").write_text("def answer(question, history): raise SystemExit\n", "utf-8")
    assert ExitCode.OK == run(config, "b", "--record")[0].exit_code
    assert ExitCode.OK == CliRunner().invoke(main, ["cassette", "verify", str(config)]).exit_code


def test_a_recorded_bot_keeps_a_datum_out_of_everything(tmp_path: Path) -> None:
    """Answer and contexts are its reply: no file of the cassette or of a run holds it."""
    shutil.copy(BOT, tmp_path / "plain_bot_copy.py")
    target = {"kind": "python", **kinds("")["python"]}
    cassette = {"path": "cassette", "at": "bot", "redact": ["five euros"]}
    config = written(tmp_path, target, cassette=cassette)
    run(config, "a", "--record")
    run(config, "b")
    files = [path for name in ("a", "b", "cassette") for path in (tmp_path / name).iterdir()]
    held = [path.name for path in files if "card costs five euros" in path.read_text("utf-8")]
    assert [] == held
    assert list(RunFolder(tmp_path / "a").draws()) == list(RunFolder(tmp_path / "b").draws())
    assert any("costs [redacted] a year" in line.reply for line in lines_of(tmp_path))


def test_a_reply_that_redaction_would_break_is_exit_4(tmp_path: Path) -> None:
    """Told once with the reason and how often; nothing of it is stored."""
    shutil.copy(BOT, tmp_path / "plain_bot_copy.py")
    target = {"kind": "python", **kinds("")["python"]}
    config = written(tmp_path, target, cassette={"path": "cassette", "at": "bot", "redact": ["sources"]})
    done, folder = run(config, "a", "--record")
    assert ExitCode.UNAVAILABLE == done.exit_code
    assert any(
        "name of a field, 'sources'" in error and "(4 times)" in error for error in folder.header.errors
    )
    assert all(str(draw.error).startswith("recording: the reply of /python") for draw in folder.draws())
    assert not (tmp_path / "cassette" / "bot.jsonl").exists()


@pytest.mark.parametrize(
    ("pattern", "told"),
    [("(", "is not a regular expression"), ("x*", "an empty text"), ("[a-z]+", "matches '[redacted]'")],
)
def test_a_bad_pattern_is_refused_at_load(tmp_path: Path, pattern: str, told: str) -> None:
    """With its place."""
    cassette = {"path": "cassette", "redact": [pattern]}
    config = written(tmp_path, {"kind": "http", "url": NOWHERE}, cassette=cassette, provenance="none")
    done = CliRunner().invoke(main, ["validate", str(config)])
    assert ExitCode.USAGE == done.exit_code
    assert told in done.output
    assert "config.yaml:1:" in done.output


def test_packed_files_are_read_like_others(tmp_path: Path) -> None:
    """Dataset, cassette and the journals of a finished run, which still verifies."""
    project = at_bot(tmp_path)
    done = project.run("--record")
    plain = without_its_bot(project)
    config = project.write()
    whole = json.loads(config.read_text("utf-8")) | {"dataset": "cases.jsonl.gz"}
    config.write_text(json.dumps(whole), "utf-8")
    journals = [*(tmp_path / "cassette").glob("*.jsonl"), *plain.folder.path.glob("*.jsonl")]
    for path in [*journals, tmp_path / "cases.jsonl"]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    verify = CliRunner().invoke(main, ["verify", str(plain.folder.path)])
    assert ExitCode.OK == verify.exit_code, verify.output
    assert done.draws == list(plain.folder.draws())
    again, folder = run(config, "packed")
    assert done.code == again.exit_code, again.output
    assert done.draws == list(folder.draws())
    assert done.folder.header.dataset == folder.header.dataset


# ---------------------------------------------------------------- bots of every kind


def kinds(server: str) -> dict[str, dict[str, Any]]:
    """The plain bot as each kind of target."""
    found = {"answer": "text", "contexts": "sources"}
    line = {"question": "{question}", "history": "{history}"}
    http = {"path": "ask", "body": {"q": "{question}", "turns": "{history}"}}
    return {
        "http": {"url": server, **http, "answer": "reply.text", "contexts": "reply.sources"},
        "openai": {"url": server, "model": "m", "contexts": "sources"},
        "command": {"command": [sys.executable, "-S", str(BOT), "lines"], "body": line, **found},
        "python": {"function": "plain_bot_copy:answer", "args": line, **found},
    }


def written(folder: Path, target: dict[str, Any], **more: Any) -> Path:
    """A config for one target."""
    lines = "".join(json.dumps(one) + "\n" for one in QUESTIONS)
    (folder / "cases.jsonl").write_text(lines, "utf-8")
    whole = {
        "name": "small",
        "dataset": "cases.jsonl",
        "target": target,
        "draws": 2,
        "cassette": {"path": "cassette", "at": "bot"},
        "scorers": ["recall@1", "latency"],
        "provenance": "claimed",
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(whole | more), "utf-8")
    return path


def run(config: Path, name: str, *args: str) -> tuple[Result, RunFolder]:
    """One run into a folder of its own."""
    output = config.parent / name
    done = CliRunner().invoke(main, ["run", str(config), "--output", str(output), *args])
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done, RunFolder(output)


def lines_of(folder: Path) -> list[Exchange]:
    """The bot's lines."""
    path = folder / "cassette" / "bot.jsonl"
    return [Exchange.model_validate_json(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["http", "openai", "command", "python"])
def test_a_bot_of_any_kind_is_recorded_and_then_gone(tmp_path: Path, kind: str) -> None:
    """The same draws, seconds included, from a line each; the program does not start, nothing is imported."""
    shutil.copy(BOT, tmp_path / "plain_bot_copy.py")
    with subprocess.Popen(
        [sys.executable, "-S", str(BOT), "serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        target = kinds(f"http://127.0.0.1:{int(server.stdout.readline())}")[kind]
        config = written(tmp_path, {"kind": kind, **target})
        _, first = run(config, "a", "--record")
        server.terminate()
    gone: dict[str, dict[str, Any]] = {
        "http": {"url": NOWHERE},
        "openai": {"url": NOWHERE},
        "command": {"command": ["no-such"]},
    }
    (tmp_path / "plain_bot_copy.py").write_text("raise SystemExit('imported')\n", "utf-8")
    config = written(tmp_path, {"kind": kind, **target, **gone.get(kind, {})})
    done, second = run(config, "b")
    assert ExitCode.OK == done.exit_code, done.output
    assert list(first.draws()) == list(second.draws())
    assert list(first.scores()) == list(second.scores())
    assert {"claimed": 4} == second.header.levels
    assert [("hours", 0), ("hours", 1), ("price", 0), ("price", 1)] == [
        (line.case, line.draw) for line in lines_of(tmp_path)
    ]
    shown = CliRunner().invoke(main, ["cassette", "show", str(config), "--full"]).output
    assert "When is it open?" in shown
    assert "open from ten" in shown
    assert "2 questions, 4 draws" in CliRunner().invoke(main, ["cassette", "stats", str(config)]).output


def test_draws_of_one_question_keep_their_own_replies(tmp_path: Path) -> None:
    """A bot that takes no seed is asked the same twice, and its two answers stay apart."""
    count = iter(range(100))

    async def handle(request: web.Request) -> web.Response:
        return web.json_response({"answer": f"answer {next(count)}"})

    async def recorded() -> None:
        async with serving(handle) as url:
            config = written(tmp_path, {"kind": "http", "url": url}, provenance="none", scorers=["latency"])
            await asyncio.to_thread(run, config, "a", "--record")

    there(recorded())
    _, replayed = run(tmp_path / "config.yaml", "b")
    answers = [draw.answer for draw in replayed.draws()]
    assert 4 == len(set(answers))
    assert answers == [draw.answer for draw in RunFolder(tmp_path / "a").draws()]


def test_the_query_of_a_url_counts_and_its_keys_are_not_written(tmp_path: Path) -> None:
    """Another parameter is another request; one that is named like a key may change, and is nowhere."""
    model = FakeModel(lambda body: "yes").start()
    found = {"answer": "message.content", "body": {"model": "m", "messages": [], "q": "{question}"}}

    def target(query: str) -> dict[str, Any]:
        return {"kind": "http", "url": model.url, "path": f"/api/chat?{query}", **found}

    plain = {"provenance": "none", "scorers": ["latency"]}
    run(written(tmp_path, target("mode=a&api_key=FAKE-KEY-1111"), **plain), "a", "--record")
    model.stop()
    assert {"/api/chat?mode=a"} == {line.path for line in lines_of(tmp_path)}
    assert ExitCode.OK == run(written(tmp_path, target("mode=a"), **plain), "b")[0].exit_code
    assert ExitCode.UNAVAILABLE == run(written(tmp_path, target("mode=b"), **plain), "c")[0].exit_code


def test_a_plan_counts_what_is_recorded_of_the_bot(tmp_path: Path) -> None:
    """Each answer is one call; what is there is not asked for again."""
    shutil.copy(BOT, tmp_path / "plain_bot_copy.py")
    config = written(tmp_path, {"kind": "python", **kinds("")["python"]})
    run(config, "a", "--record")
    planned = json.loads(CliRunner().invoke(main, ["plan", str(config), "--json"]).output)
    assert (4, 4) == (planned["bot"]["planned"], planned["bot"]["recorded"])


def test_a_value_that_is_no_json_is_an_error_of_its_draw(tmp_path: Path) -> None:
    """What a function returns must fit a line; that it does not is said, and nothing is stored."""
    (tmp_path / "pooling_function.py").write_text(
        "def answer(question):\n    return {'answer': 'yes', 'more': object()}\n", "utf-8"
    )
    config = written(
        tmp_path,
        {"kind": "python", "function": "pooling_function:answer"},
        provenance="none",
        scorers=["latency"],
    )
    done, folder = run(config, "a", "--record")
    assert all("what the bot returned cannot be recorded" in str(draw.error) for draw in folder.draws())
    assert ExitCode.UNAVAILABLE == done.exit_code
    assert not (tmp_path / "cassette" / "bot.jsonl").exists()
