"""The provider ``openai`` with a real server: llama.cpp's, with a small model. Run by ``nox -s live``.

``LLAMA_SERVER`` is the server's program and ``LLAMA_MODEL`` a GGUF file; without both nothing is run.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalrun.cassette import Cassette, CassetteTransport
from evalrun.models.openai import OpenAIModel
from evalrun.records import Exchange, Message

PROGRAM, MODEL = os.environ.get("LLAMA_SERVER", ""), os.environ.get("LLAMA_MODEL", "")
pytestmark = pytest.mark.skipif(not (PROGRAM and MODEL), reason="LLAMA_SERVER and LLAMA_MODEL are not set")
SCHEMA = {
    "type": "object",
    "required": ["words", "polite"],
    "properties": {
        "words": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
        "polite": {"enum": ["yes", "no"]},
    },
}
SECONDS = 600


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that has its model loaded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("llama") / "log"
    command = [PROGRAM, "-m", MODEL, "--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "1"]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process, log)
            yield url
        finally:
            process.kill()  # asked politely it waits for answers that nobody reads any more


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(log.read_text("utf-8", "replace")[-2000:])


async def test_a_schema_is_taken_as_it_is_and_kept(server: str) -> None:
    """No simpler form is needed, and even a small model's reply fits the schema; tokens are counted."""
    seen: list[Exchange] = []
    transport = CassetteTransport(
        Cassette(None, "live"), "judge", OpenAIModel.upstream(server, 1, None), seen.append
    )
    judge = OpenAIModel("m", server, transport, timeout=SECONDS)
    prompt = [Message(role="user", content="Say hello politely, as JSON.")]
    reply = await judge.complete(prompt, SCHEMA, 0.0, 0, 200, 4096)
    await judge.close()
    assert ("stop", ()) == (reply.finish_reason, seen[0].adapted)
    verdict: dict[str, Any] = json.loads(reply.text)
    assert ["words", "polite"] == list(verdict)
    assert verdict["polite"] in ("yes", "no")
    assert all(isinstance(word, str) for word in verdict["words"])
    assert (reply.prompt_tokens or 0) > 5 < (reply.completion_tokens or 0)


def test_ragbot_answers_through_it_and_each_draw_is_observed(server: str, tmp_path: Path) -> None:
    """Two questions of the shipped dataset through the tap, then the same from the recording."""
    config = Path(__file__).parents[2] / "configs" / "quality.yaml"
    launch = "target.launch.env={OPENAI_BASE_URL: '{tap}', RAGBOT_MODEL: openai/small}"
    shared = ["run", str(config), "--set", launch, "--set", f"cassette.path={tmp_path / 'cassette'}"]
    shared += ["--set", "scorers=[mrr]", "--set", "gates=[]", "--set", "judge=null", "--set", "labels=[]"]
    shared += ["--set", "target.limits={concurrency: 1, timeout: 600}", "--set", "draws=1", "--limit", "2"]
    for mode, output in ((["--record", "--set", f"cassette.upstream={server}"], "first"), ([], "again")):
        program = [sys.executable, "-c", "from evalrun.cli import main; main()"]
        command = [*program, *shared, *mode, "--output", str(tmp_path / output), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2, check=False)
        assert 0 == done.returncode, done.stdout + done.stderr
    first, again = (
        [json.loads(line) for line in (tmp_path / name / "draws.jsonl").read_text("utf-8").splitlines()]
        for name in ("first", "again")
    )
    assert {"observed"} == {draw["level"] for draw in first if draw.get("error") is None}
    assert first == again
