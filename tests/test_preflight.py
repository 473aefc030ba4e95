"""A model server that is not there is told before anything is spent."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from evalrun.errors import ExitCode
from evalrun.network import why_silent
from fakes.project import Project


def nobody() -> str:
    """An address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


async def test_a_listening_server_is_reachable_and_a_proxy_would_know(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is in words."""
    assert "" == await why_silent(project.model.url)
    assert "Connection refused" == await why_silent(nobody())
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "" == await why_silent("http://models.invalid:11434")


def limited(project: Project, soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    """A live run of a process that may open so many files; a hard limit cannot be raised again."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))"
    program = [sys.executable, "-c", f"{code}; from evalrun.cli import main; main()"]
    options = ["--live", "--output", str(project.folder / "limited")]
    return subprocess.run(
        [*program, "run", str(project.write()), *options], capture_output=True, text=True, check=False
    )


def test_as_many_files_may_be_open_as_calls_are_made_at_once(project: Project) -> None:
    """Each takes three connections. A shell's limit is raised; past the system's own the run is refused."""
    project.config["draws"] = 8
    for asked in ("target", "judge"):
        project.config[asked]["limits"]["concurrency"] = 64
    project.model.delay = 0.3  # all of them are in flight together
    refused = limited(project, 100, 200)
    assert ExitCode.USAGE == refused.returncode, refused.stderr
    assert "128 calls at once need 352 open files, this system allows 200" in refused.stderr
    assert "write a limits.concurrency of 26 for target and judge" in refused.stderr
    assert [] == project.model.bodies
    done = limited(project, 100, 352)
    assert ExitCode.OK == done.returncode, done.stderr
    assert "Too many open files" not in done.stderr


def test_a_live_run_without_its_model_server_asks_nothing(project: Project) -> None:
    """The address, and what to do; with a recording also how to do without. No run folder stays."""
    url, upstream = nobody(), project.config["cassette"]["upstream"]
    project.config["cassette"]["upstream"] = url
    done = project.run("--live")
    assert ExitCode.UNAVAILABLE == done.code
    assert f"the model server at {url} does not answer: Connection refused" in done.text
    assert "OLLAMA_HOST" in done.text
    assert "leave out --live" not in done.text
    assert not done.folder.path.exists()
    project.config["cassette"]["upstream"] = upstream
    assert ExitCode.OK == project.run("--record").code
    project.config["cassette"]["upstream"] = url
    assert "leave out --live" in project.run("--live").text
    assert ExitCode.OK == project.run("--record").code


def test_so_does_one_without_its_judge(project: Project) -> None:
    """Answers that nobody can read are not asked for."""
    project.config["judge"]["base_url"] = url = nobody()
    done = project.run("--live")
    assert f"the model server at {url} does not answer" in done.text
    assert [] == project.model.bodies


def test_only_a_server_that_is_ollama_is_started_as_ollama(project: Project) -> None:
    """What to do about another one is not said in Ollama's words."""
    project.config["cassette"]["upstream"] = nobody()
    project.config["target"]["launch"]["env"] = {"MODEL_URL": "{tap}"}
    done = project.run("--live")
    assert "start it, or mend its address in the config" in done.text
    assert "ollama serve" not in done.text
