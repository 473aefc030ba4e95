"""A tap that listens beyond loopback: what is refused at load, and that its token stands nowhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.config import load_config
from evalrun.errors import ExitCode, InputError
from fakes.project import Project

TOKEN = "token-5f1c0a9e77d24b"
ELSEWHERE = {"bind": "127.0.0.2", "token": "${TAP_TOKEN}"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose tap listens on another address of this machine, and wants a token."""
    monkeypatch.setenv("TAP_TOKEN", TOKEN)
    project = Project(tmp_path)
    project.config["tap"] = dict(ELSEWHERE)
    return project


def traces(folder: Path) -> list[str]:
    """The files below a folder that hold the token."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_a_bot_with_nothing_but_a_base_url_brings_the_token(project: Project) -> None:
    """Recorded and replayed through it, proof included; the token is in no file and on no screen."""
    first = project.run("--record")
    project.stop()
    second = project.run()
    assert {"observed": 32} == second.folder.header.levels
    assert first.draws == second.draws
    assert 0 == second.folder.meta.refused
    assert [] == traces(project.folder)
    assert TOKEN not in first.text + second.text


def test_a_bot_that_loses_the_token_is_refused_and_reported(project: Project) -> None:
    """Nothing is forwarded; the terminal, the report and the summary say how many calls that were."""
    project.run("--record")
    launch = project.config["target"]["launch"]
    bare = "import os, sys; h = os.environ['OLLAMA_HOST'].rsplit('/', 1)[0]; "
    start = "os.environ['OLLAMA_HOST'] = h; print(h, flush=True); os.execv(sys.executable, sys.argv[1:])"
    launch["command"] = [launch["command"][0], "-c", bare + start, *launch["command"]]
    asked = len(project.model.bodies)
    done = project.run("--live")
    project.stop()
    assert asked == len(project.model.bodies)
    assert 32 == done.folder.meta.refused
    files = [(done.folder.path / name).read_text("utf-8") for name in ("report.html", "summary.md")]
    for text in (done.text, *files):
        assert "the tap refused 32 calls without its token" in text


def test_what_a_bot_prints_of_its_address_is_hidden(project: Project) -> None:
    """Its last words, when it does not start, and the command that is told to try."""
    program = "import os, sys; sys.exit('cannot reach ' + os.environ['OLLAMA_HOST'])"
    launch = project.config["target"]["launch"]
    launch["command"] = [launch["command"][0], "-c", program, "{tap}", "{port}"]
    done = project.run("--live")
    assert ExitCode.UNAVAILABLE == done.code
    assert "cannot reach http://127.0.0.2:" in done.text
    assert TOKEN not in done.text
    assert [] == traces(project.folder)


def test_what_a_bot_answers_of_its_address_is_hidden_and_still_verified(project: Project) -> None:
    """A key in an answer is hidden before the answer gets its digest."""
    project.model.say = lambda body: f"I live at {TOKEN}."
    done = project.run("--record")
    project.stop()
    assert {"I live at [hidden]."} == {draw.answer for draw in done.draws}
    assert [] == traces(project.folder)
    checked = CliRunner().invoke(main, ["verify", str(done.folder.path)])
    assert ExitCode.OK == checked.exit_code, checked.output


def test_the_documented_config_of_a_container_is_one(project: Project) -> None:
    """What docs/guides/own-bot.md shows is read as it stands, and refused without the variable."""
    project.stop()
    guide = Path(__file__).parent.parent / "docs" / "guides" / "own-bot.md"
    block = re.search(r"```yaml\n(tap:.*?)```", guide.read_text("utf-8"), re.DOTALL)
    assert block is not None
    path = project.write()
    rest = "name: x\ndataset: cases.jsonl\nscorers: [latency]\nprovenance: none\n"
    path.write_text(rest + block[1], "utf-8")
    config = load_config(path, env={"TAP_TOKEN": TOKEN})
    assert ("0.0.0.0", "host.docker.internal", TOKEN) == tuple(config.tap.model_dump().values())
    assert config.tapped
    assert TOKEN in config.secrets
    assert "tap" not in config.public()
    with pytest.raises(InputError, match="TAP_TOKEN"):
        load_config(path, env={})


@pytest.mark.parametrize(
    ("tap", "told"),
    [
        ({"bind": "0.0.0.0", "host": "h"}, "opens 0.0.0.0 to the network without a 'token'"),
        ({"bind": "192.168.0.7"}, "opens 192.168.0.7 to the network without a 'token'"),
        ({"bind": "::", "token": "${TAP_TOKEN}"}, "needs a 'host' beside bind: ::"),
        ({"bind": "localhost"}, "is no IP address to listen on"),
        ({"bind": "127.0.0.2", "token": TOKEN}, "'tap.token' stands in the open"),
        (
            {"bind": "127.0.0.2", "token": "${SHORT}"},
            "16 to 128 of A-Z, a-z, 0-9 and . _ ~ -, and this one has 3",
        ),
        ({"bind": "127.0.0.2", "host": "a b", "token": "${TAP_TOKEN}"}, "tap.host"),
    ],
)
def test_an_open_tap_is_refused_at_load(
    project: Project, tap: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is started, with file, line and column."""
    project.stop()
    monkeypatch.setenv("SHORT", "abc")
    project.config["tap"] = tap
    done = CliRunner().invoke(main, ["validate", str(project.write())])
    assert ExitCode.USAGE == done.exit_code
    assert told in done.output
    assert "config.yaml:" in done.output
    assert TOKEN not in done.output or "${" not in json.dumps(tap)
