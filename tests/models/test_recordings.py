"""A whole run with each provider as its judge: recorded, replayed without server and library, verified."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.errors import ExitCode
from evalrun.jsonl import read_lines
from evalrun.records import Exchange
from fakes.model_servers import ACCESS, REGION, SECRET, BedrockServer, ModelServer, OpenAIServer
from fakes.project import Project, fair
from fakes.servers import Json

WITHOUT_BOTO = "import sys; sys.modules['boto3'] = sys.modules['botocore'] = None; "


def fair_in_parts(body: Json) -> str:
    """The fair judge of a prompt in Converse's form."""
    turns = [{"role": turn["role"], "content": turn["content"][0]["text"]} for turn in body["messages"]]
    return fair({"messages": turns})


def refusing() -> ModelServer:
    """A server that takes no schema."""
    return OpenAIServer(fair, key="sk-secret", formats=("none",))


def converse() -> ModelServer:
    """Bedrock, with a model that takes a tool only."""
    return BedrockServer(fair_in_parts, takes=("toolConfig",))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose keys stand in the environment."""
    for name, value in {
        "OPENAI_API_KEY": "sk-secret",
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    made = Project(tmp_path)
    yield made
    made.model.stop()
    made.judge.stop()


@pytest.mark.parametrize(
    ("spec", "made", "adapted"),
    [
        ("openai/judge-model", refusing, ("response_format: json_object", "response_format: none")),
        ("bedrock/a.judge-v1:0", converse, ("toolConfig",)),
    ],
)
def test_a_judge_of_each_provider_is_recorded_replayed_and_verified(
    project: Project, spec: str, made: Callable[[], ModelServer], adapted: tuple[str, ...]
) -> None:
    """What a server made simpler replays as it was asked; no key is stored; the replay needs no boto3."""
    if spec.startswith("bedrock"):
        pytest.importorskip("botocore")
    server = made()
    project.config["judge"] |= {"model": spec, "base_url": server.start()}
    recorded = project.run("--record")
    assert (ExitCode.OK, {}) == (recorded.code, recorded.errors), recorded.text
    lines = list(read_lines(project.folder / "cassette" / "judge.jsonl", Exchange))
    assert {adapted} == {line.adapted for line in lines}
    stored = b"".join(path.read_bytes() for path in (project.folder / "cassette").iterdir())
    assert not any(secret.encode() in stored for secret in ("sk-secret", ACCESS, SECRET))
    assert spec.partition("/")[0].encode() in (project.folder / "cassette" / "source.json").read_bytes()
    server.stop()
    del project.config["judge"]["base_url"]
    replay = project.folder / "replay"
    program = WITHOUT_BOTO + "from evalrun.cli import main; main()"
    command = [sys.executable, "-c", program, "run", str(project.write()), "--output", str(replay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert recorded.files()["scores.jsonl"] == (replay / "scores.jsonl").read_bytes()
    checked = CliRunner().invoke(main, ["verify", str(replay)])
    assert 0 == checked.exit_code, checked.output


def test_an_unknown_provider_is_refused_with_the_nearest_name(project: Project) -> None:
    """Before anything is asked, with the place in the file."""
    project.config["judge"]["model"] = "opnai/gpt"
    done = project.run()
    assert ExitCode.USAGE == done.code
    assert "'judge.model' names an unknown provider 'opnai'" in done.text
    assert "did you mean 'openai'?" in done.text
    assert [] == project.judge.bodies


def test_a_key_for_a_provider_without_keys_is_refused(project: Project) -> None:
    """Ollama takes none and AWS has credentials of its own: the line would mean nothing."""
    project.config["judge"]["key_env"] = "MINE"
    done = project.run()
    assert ExitCode.USAGE == done.code
    assert "'judge.key_env' is for providers that take a key" in done.text


def test_a_live_judge_without_its_extra_is_refused_before_a_draw(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2, with what to install; the bot was asked nothing."""
    monkeypatch.setitem(sys.modules, "botocore", None)
    project.config["judge"] |= {"model": "bedrock/a.judge-v1:0", "base_url": "http://127.0.0.1:9"}
    done = project.run("--live")
    assert ExitCode.USAGE == done.code
    assert 'pip install "boto3>=' in done.text
    assert [] == [body for body in project.model.bodies if "messages" in body]
