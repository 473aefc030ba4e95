"""The commands: what they print, import and refuse."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from ragbot_fakes import PROFILE, FakeOllama

from ragbot.cli import main


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile of four sections."""
    file = tmp_path / "me.md"
    file.write_text(PROFILE)
    return file


def run(*arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    result = CliRunner().invoke(main, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of a ``ragbot serve`` on a free port, for as long as the block lasts."""
    command = [sys.executable, "-m", "ragbot.cli", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"http://\S+", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        try:
            yield found[0]
        finally:
            process.terminate()


def imported(code: str) -> set[str]:
    """The heavy modules that running ``code`` imports."""
    heavy = {
        "numpy",
        "pydantic",
        "fastapi",
        "httpx",
        "ollama",
        "wordllama",
        "markdown_it",
        "uvicorn",
        "aiohttp",
    }
    code = f"import sys\n{code}\nprint(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_help_imports_click_only() -> None:
    """--help and --version of every command cost no more than click."""
    for arguments in (["--help"], ["--version"], ["serve", "--help"], ["ask", "--help"]):
        code = f"from ragbot.cli import main\nmain({arguments}, standalone_mode=False)"
        assert set() == imported(code)


def test_serving_imports_no_model_library() -> None:
    """Ollama's client and WordLlama wait for the first question."""
    found = imported(
        "import ragbot.service\n"
        "from ragbot.models import chat_model, embedder\n"
        "chat_model('m'), embedder('wordllama')"
    )
    assert {"ollama", "wordllama", "httpx"}.isdisjoint(found)
    assert "fastapi" in found


def test_index_lists_the_sections(profile: Path) -> None:
    """Ids and titles on stdout, so that a dataset can be written against them."""
    code, out, err = run("index", "--profile", str(profile))
    assert 0 == code
    assert ["_preamble\t", "work\tWork", "study\tStudy", "salary\tSalary"] == out.splitlines()
    assert "4 sections" in err


def test_headings_cannot_drive_the_terminal(profile: Path) -> None:
    """A title, a warning's title and an id come without escape sequences and without turned text."""
    profile.write_text("# x\n\n## A\x1b[2J\u202eb\n\ntext\n\n## \x1b]0;owned\x07gap\n")
    code, out, err = run("index", "--profile", str(profile))
    assert 0 == code
    assert "A[2Jb" in out
    assert "gap' is empty" in err
    assert not {"\x1b", "\x07", "\u202e"} & set(out + err)


def test_index_tells_empty_sections(profile: Path) -> None:
    """A section without text is a warning with its line."""
    profile.write_text(PROFILE + "\n## Gap\n")
    code, _, err = run("index", "--profile", str(profile))
    assert 0 == code
    assert f"warning: {profile}:17: section 'Gap' is empty and is not indexed" in err


def test_serve_answers_and_stops(profile: Path) -> None:
    """--build makes the index; the service then answers on the address it printed."""
    with (
        serving("--build", "--trace", "--profile", str(profile)) as url,
        httpx.Client(trust_env=False) as client,
    ):
        assert {"ready": True} == client.get(f"{url}/healthz").json()
        context = client.post(
            f"{url}/retrieve", json={"question": "Where did you study physics?", "k": 1}
        ).json()
    assert ["study"] == [chunk["id"] for chunk in context["chunks"]]


def test_serve_refuses_a_missing_and_a_stale_index(profile: Path) -> None:
    """Without --build nothing is guessed: the sections that changed are named."""
    code, _, err = run("serve", "--port", "0", "--profile", str(profile))
    assert (2, True) == (code, "this profile has no index yet" in err)
    run("index", "--profile", str(profile))
    profile.write_text(PROFILE.replace("Graz", "Wien"))
    code, _, err = run("serve", "--port", "0", "--profile", str(profile))
    assert 2 == code
    assert "is stale: changed: study" in err
    assert "ragbot serve --build" in err
    assert gc.isenabled()  # it was paused for the time of loading


def test_serve_build_replaces_a_stale_or_damaged_index(profile: Path, cache: Path) -> None:
    """A changed profile and half a file are both built anew."""
    run("index", "--profile", str(profile))
    (file,) = cache.iterdir()
    whole = file.read_text()
    file.write_text(whole[:100])
    with serving("--build", "--profile", str(profile)):
        assert whole == file.read_text()


def test_port_in_use_is_told_at_once(profile: Path) -> None:
    """No traceback, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = run("serve", "--port", str(taken.getsockname()[1]), "--profile", str(profile))
    assert 2 == code
    assert "choose another --port" in err


async def test_ask_prints_answer_and_sources(profile: Path, ollama: FakeOllama) -> None:
    """The answer on stdout as it comes, without control characters; the sources on stderr."""
    ollama.pieces = ["I studied\x1b[2J ", "physics."]
    code, out, err = await asyncio.to_thread(
        run, "ask", "--build", "--profile", str(profile), "What did you study?"
    )
    assert (0, "I studied[2J physics.\n") == (code, out)
    assert "sources: study" in err


async def test_ask_without_a_model_server(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 4 says that a service is missing."""
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    code, out, err = await asyncio.to_thread(run, "ask", "--build", "--profile", str(profile), "Study?")
    assert (4, "") == (code, out)
    assert "the model server did not answer" in err
    assert "Unclosed" not in err


def test_ask_refuses_a_blank_question(profile: Path) -> None:
    """A question of spaces is a usage error, not a traceback."""
    code, _, err = run("ask", "--build", "--profile", str(profile), "  ")
    assert (2, True) == (code, "is blank" in err)
