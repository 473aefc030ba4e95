"""``evalrun init``: what it writes runs as it stands, it asks for what is missing, and overwrites nothing."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalrun.cli import main
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.labels import load_labels
from evalrun.starter import CONFIG, JOBS, KINDS, LABELS, QUESTIONS, RUBRIC, SCHEMA, Answers, Ci, files_of
from evalrun.yamlfile import parse_yaml
from fakes.jobs import commands_in, fault_of
from fakes.model_servers import OpenAIServer
from fakes.servers import Json
from paired_runs import write_run

ROOT = Path(__file__).parent.parent
WORKFLOW = JOBS["github"]
BROKEN = ("--target", "http", "--url", "http://127.0.0.1:1", "--answer", "a[")
BOT = Path(__file__).parent / "fakes" / "odd_bot.py"


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a FastAPI bot of twenty lines, whose JSON has a shape of its own."""
    ready = tmp_path_factory.mktemp("bot") / "ready"
    with subprocess.Popen([sys.executable, str(BOT), str(ready)]) as process:
        try:
            while not ready.exists() and process.poll() is None:
                time.sleep(0.1)
            yield ready.read_text("utf-8")
        finally:
            process.terminate()


def call(*args: str) -> Result:
    """``evalrun`` in this process."""
    return CliRunner().invoke(main, list(args))


def test_what_it_writes_for_a_bot_of_any_shape_runs_as_it_stands(bot: str, tmp_path: Path) -> None:
    """In an empty folder, from the address alone: valid, and a report with intervals at the end."""
    where = {"cwd": tmp_path, "capture_output": True, "encoding": "utf-8"}
    program = [sys.executable, "-c", "from evalrun.cli import main; main()"]
    begun = subprocess.run([*program, "init", "--target", "http", "--url", bot], check=False, **where)  # type: ignore[call-overload]
    assert 0 == begun.returncode, begun.stderr
    assert {CONFIG, QUESTIONS, WORKFLOW, SCHEMA} == {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
    valid = subprocess.run([*program, "validate", CONFIG], check=False, **where)  # type: ignore[call-overload]
    assert 0 == valid.returncode, valid.stderr
    done = subprocess.run([*program, "run", CONFIG, "--output", "out"], check=False, **where)  # type: ignore[call-overload]
    assert 0 == done.returncode, done.stderr
    header = RunFolder(tmp_path / "out").header
    rates = {(e.metric, e.group): e for e in header.estimates}
    assert {"claimed": 30} == header.levels
    assert 1.0 == rates["novel_terms", "all"].value
    assert 0.7 < (rates["novel_terms", "all"].low or 0) < 1.0
    assert re.search(r"\[\.\d+, 1\.0\]", done.stdout)


class Mute(BaseHTTPRequestHandler):
    """A bot that answers nothing."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"took": 3, "answer": null}')

    def log_message(self, *args: object) -> None:
        """Nothing."""


def test_a_reply_without_an_answer_is_told_in_words(tmp_path: Path) -> None:
    """What was seen is told before it is refused: the answer nowhere, and no None."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Mute) as server:
        threading.Thread(target=server.serve_forever).start()
        done = call(
            "init", str(tmp_path), "--target", "http", "--url", f"http://127.0.0.1:{server.server_port}"
        )
        server.shutdown()
    assert 2 == done.exit_code
    assert "the answer nowhere" in done.output
    assert "nothing in its reply looks like an answer" in done.output
    assert "None" not in done.output


def test_flags_in_place_of_the_question_to_the_bot(tmp_path: Path) -> None:
    """With --answer nothing is asked: what the options say stands in the config, a $ as a $."""
    done = call(
        "init", str(tmp_path), "--target", "http", "--url", "http://127.0.0.1:1/chat", "--request",
        '{"q": "{question}", "cost": "$5"}', "--answer", "out[0]", "--header", "X-Key=${TEST_KEY:-none}",
    )  # fmt: skip
    assert 0 == done.exit_code, done.output
    text = (tmp_path / CONFIG).read_text("utf-8")
    assert '"cost": "$$5"' in text
    assert "TEST_KEY: ${{ secrets.TEST_KEY }}" in (tmp_path / WORKFLOW).read_text("utf-8")
    assert "provenance: none" in text


def test_nothing_is_overwritten_and_the_bot_not_asked_in_vain(tmp_path: Path) -> None:
    """Every file that is there is named; none of the others is written."""
    (tmp_path / QUESTIONS).write_text("mine", "utf-8")
    (tmp_path / CONFIG).symlink_to(tmp_path / "elsewhere")
    done = call("init", str(tmp_path), "--target", "http", "--url", "http://127.0.0.1:1")
    assert ExitCode.USAGE == done.exit_code
    assert 2 == done.output.count("is there already")
    assert "mine" == (tmp_path / QUESTIONS).read_text("utf-8")
    assert not (tmp_path / WORKFLOW).exists()


def test_answers_that_make_no_config_leave_nothing_behind(tmp_path: Path) -> None:
    """A JMESPath that is none is told at its place, and files and folders are taken away again."""
    done = call("init", str(tmp_path), *BROKEN)
    assert ExitCode.USAGE == done.exit_code
    assert "JMESPath" in done.output
    assert [] == list(tmp_path.iterdir())
    assert ExitCode.USAGE == call("init", str(tmp_path / "a" / "b"), *BROKEN).exit_code
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "--target is missing"),
        (("--url", "http://127.0.0.1:1"), "127.0.0.1:1"),
        (("--target", "http"), "--url is missing"),
        (("--target", "http", "--url", "http://127.0.0.1:1"), "127.0.0.1:1"),
        (("--target", "http", "--url", "http://127.0.0.1:1"), "start the bot"),
        (
            ("--target", "http", "--url", "notaurl"),
            "--url notaurl: is not the address of a bot, it does not begin with http or https",
        ),
        (
            ("--target", "http", "--url", "http://h", "--answer", "a", "--header", "X-Key=sk-123456"),
            "--header X-Key: its value looks like a key",
        ),
        # In double quotes the shell would put the key itself there.
        (("--target", "http", "--url", "http://h", "--header", "X"), "like --header 'X-Key=${BOT_KEY}'"),
        (("--target", "command", "--command", 'bot "x'), "no closing quotation"),
        (("--target", "ragbot", "--answer", "x"), "--answer is not for --target ragbot"),
        (("--target", "http", "--request", "{", "--answer", "x"), "--request: not valid JSON"),
        (("--target", "http", "--request", '{"q": 1}', "--answer", "x"), "the question has no place"),
        (("--target", "http", "--url", "http://h", "--answer", "x", "--judge", "ollama/m"), "contexts"),
    ],
)  # fmt: skip
def test_what_is_missing_or_strange_is_said(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Without a terminal nobody is asked: the option is named."""
    done = call("init", str(tmp_path), *args)
    assert done.exit_code in (ExitCode.USAGE, ExitCode.UNAVAILABLE)
    assert said in done.output
    assert [] == list(tmp_path.iterdir())


def test_a_terminal_is_asked(bot: str, tmp_path: Path) -> None:
    """Kind, address, and whether what the bot's reply shows is right."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from evalrun.cli import main; main()", "init"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, text=True)
    os.write(ours, f"http\n{bot}\n\n-\n".encode())
    shown = process.communicate(timeout=120)[0]
    os.close(ours)
    os.close(theirs)
    assert 0 == process.returncode, shown
    text = (tmp_path / CONFIG).read_text("utf-8")
    assert 'answer: "data.bot_says"' in text
    assert "# contexts:" in text


def test_with_a_judge_the_rubric_and_the_way_to_labels_are_there(tmp_path: Path) -> None:
    """The rubric is the shipped one, byte for byte."""
    done = call(
        "init", str(tmp_path), "--target", "http", "--url", "http://127.0.0.1:1", "--answer", "a",
        "--contexts", "c", "--judge", "ollama/small",
    )  # fmt: skip
    assert 0 == done.exit_code, done.output
    assert (ROOT / "configs" / "rubrics" / "claims.yaml").read_bytes() == (tmp_path / RUBRIC).read_bytes()
    assert "evalrun label" in (tmp_path / CONFIG).read_text("utf-8")


def test_the_label_file_waits_for_what_evalrun_label_puts_in(tmp_path: Path) -> None:
    """The config names it as it is: that nothing is known of the judge is said until answers were read."""
    where = tmp_path / "mine"
    begun = call(
        "init", str(where), "--target", "http", "--url", "http://127.0.0.1:1", "--answer", "a",
        "--contexts", "c", "--judge", "ollama/small",
    )  # fmt: skip
    assert 0 == begun.exit_code, begun.output
    config, labels = str(where / CONFIG), where / LABELS
    ready = call("validate", config)
    assert 0 == ready.exit_code, ready.output
    assert "no labels in faithful.jsonl yet" in " ".join(ready.output.split())
    empty = call("agree", "--dimension", "faithful", "--labels", str(labels))
    assert ExitCode.USAGE == empty.exit_code
    assert "evalrun label RUN --dimension faithful" in empty.output
    run = write_run(tmp_path / "run", {f"q{n}": ["grounded"] for n in range(5)})
    asked = ["label", str(run.path), "--dimension", "faithful", "--random", "3", "--output", str(labels)]
    read = CliRunner().invoke(main, asked, input="yny")
    assert 0 == read.exit_code, read.output
    assert [True, False, True] == [row.label for row in load_labels(labels).rows]
    assert "one answer at a time" in load_labels(labels).header.raters["r1"].how.lower()
    assert "no labels in" not in call("validate", config).output


def test_jobs_for_gitlab_or_for_nobody(tmp_path: Path) -> None:
    """One service's file, or none; the other's may be there already."""
    (tmp_path / WORKFLOW).parent.mkdir(parents=True)
    (tmp_path / WORKFLOW).write_text("mine", "utf-8")
    http = ("--target", "http", "--url", "http://127.0.0.1:1", "--answer", "a")
    done = call("init", str(tmp_path), *http, "--ci", "gitlab")
    assert 0 == done.exit_code, done.output
    assert (tmp_path / JOBS["gitlab"]).exists()
    assert "mine" == (tmp_path / WORKFLOW).read_text("utf-8")
    again = call("init", str(tmp_path), *http, "--ci", "none")
    assert f"{JOBS['gitlab']}: is there already" not in again.output
    assert 0 == call("init", str(tmp_path / "bare"), *http, "--ci", "none").exit_code
    assert {CONFIG, QUESTIONS, SCHEMA} == {
        path.relative_to(tmp_path / "bare").as_posix()
        for path in (tmp_path / "bare").rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ci", JOBS)
def test_the_jobs_are_yaml_and_never_hold_a_key(ci: Ci, kind: str, tmp_path: Path) -> None:
    """For each service and kind of bot; a key comes from the secrets, by the name of its variable; every
    command of evalrun in them is one that there is.
    """
    answers = Answers.model_validate(
        {"name": "n", "kind": kind, "url": "http://h", "body": {"question": "{question}"}, "answer": "a",
         "headers": {"A": "Bearer ${MY_KEY}"}, "key_env": "OTHER_KEY", "model": "m", "command": ["x"],
         "function": "a:b", "ci": ci}
    )  # fmt: skip
    text = files_of(answers)[JOBS[ci]]
    document = parse_yaml(text, Path("jobs.yaml"))
    assert [] == document.problems
    commands = list(commands_in(document.value))
    assert {"validate", "run"} == {command.split()[1] for command in commands}
    assert [] == [found for command in commands if (found := fault_of(command, tmp_path))]
    if ci == "gitlab":
        assert "MY_KEY, OTHER_KEY" in text
        return
    steps = document.value["jobs"]["evalrun"]["steps"]
    [asks] = [step for step in steps if "evalrun run" in step.get("run", "")]
    assert {"MY_KEY": "${{ secrets.MY_KEY }}", "OTHER_KEY": "${{ secrets.OTHER_KEY }}"}.items() <= asks[
        "env"
    ].items()


@pytest.mark.parametrize("ci", JOBS)
@pytest.mark.parametrize(
    ("judge", "names"),
    [
        ("openai/m", ("OPENAI_BASE_URL", "OPENAI_API_KEY")),
        ("ollama/m", ("OLLAMA_HOST",)),
        ("bedrock/m", ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "boto3")),
    ],
)
def test_the_jobs_know_where_the_judge_is_and_its_key(ci: Ci, judge: str, names: tuple[str, ...]) -> None:
    """Without them the first run in CI could only fail."""
    answers = Answers(
        name="n", kind="http", url="http://h", body={}, answer="a", contexts="c", judge=judge, ci=ci
    )
    text = files_of(answers)[JOBS[ci]]
    assert [] == [name for name in names if name not in text]
    assert "BOT_URL" in text
    assert [] == parse_yaml(text, Path("jobs.yaml")).problems


def test_an_address_with_a_brace_stands_by_itself() -> None:
    """It could not be the default of a variable."""
    answers = Answers(name="n", kind="http", url="http://h/{x}?a=$1", body={}, answer="a")
    assert 'url: "http://h/{x}?a=$$1"' in files_of(answers)[CONFIG]


def test_the_ten_questions_are_cases_of_both_kinds() -> None:
    """Answerable and unanswerable, each once."""
    answers = Answers(name="n", kind="ragbot", url="http://h")
    lines = [json.loads(line) for line in files_of(answers)[QUESTIONS].splitlines()]
    assert 10 == len({line["id"] for line in lines})
    assert 4 == sum(line.get("expect") == "refuse" for line in lines)


PROGRAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "answer": "I don't have information about that."}), flush=True)
"""
FUNCTION = "async def answer(question):\n    return {'answer': 'The library is open from ten to six.'}\n"


@pytest.mark.parametrize(
    ("kind", "options", "name", "source"),
    [
        ("command", ["--command", f"'{sys.executable}' bot.py"], "bot.py", PROGRAM),
        ("python", ["--function", "odd_function:answer"], "odd_function.py", FUNCTION),
    ],
)
def test_what_it_writes_for_a_program_or_a_function_runs(
    kind: str, options: list[str], name: str, source: str, tmp_path: Path
) -> None:
    """From DIR, where bot and config lie."""
    (tmp_path / name).write_text(source, "utf-8")
    begun = call("init", str(tmp_path), "--target", kind, *options)
    assert 0 == begun.exit_code, begun.output
    done = call("run", str(tmp_path / CONFIG), "--output", str(tmp_path / "out"), "--draws", "1")
    assert 0 == done.exit_code, done.output
    rates = {(e.metric, e.group): e.value for e in RunFolder(tmp_path / "out").header.estimates}
    assert (1.0 if kind == "command" else 0.0) == rates["refusal_rule", "all"]


def test_what_it_writes_for_a_model_runs(tmp_path: Path) -> None:
    """Behind OpenAI's wire; its key is named, never written."""
    asked = []

    def say(body: Json) -> str:
        asked.append(body)
        return "I don't have information about that."

    model = OpenAIServer(say)
    url = model.start()
    try:
        begun = call("init", str(tmp_path), "--target", "openai", "--url", url, "--model", "small")
        assert 0 == begun.exit_code, begun.output
        done = call("run", str(tmp_path / CONFIG), "--output", str(tmp_path / "out"), "--draws", "1")
    finally:
        model.stop()
    assert 0 == done.exit_code, done.output
    assert {"small"} == {body["model"] for body in asked}


def test_what_it_writes_for_a_ragbot_is_valid(tmp_path: Path) -> None:
    """Its contexts are claimed at the least, and new numbers and names are looked for."""
    done = call("init", str(tmp_path), "--target", "ragbot", "--url", "http://127.0.0.1:8765")
    assert 0 == done.exit_code, done.output
    assert "\n  - novel_terms" in (tmp_path / CONFIG).read_text("utf-8")
