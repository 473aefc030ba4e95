"""A bot in another language whose only change is its model's base URL is proved by what it sends there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.journal import RunFolder
from fakes.servers import serving, there

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "node-bot"
PASSAGE = "passages:\n"


async def says(request: web.Request) -> web.Response:
    """A model of OpenAI's wire: search words first, then the first passage it was given."""
    prompt = (await request.json())["messages"][-1]["content"]
    said = prompt.partition(PASSAGE)[2].partition("\n")[0] if PASSAGE in prompt else "library"
    choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], "usage": {"prompt_tokens": len(prompt)}})


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bot's model server, where the config looks for it."""
    server = serving(says)
    monkeypatch.setenv("OLLAMA_HOST", there(server.__aenter__()))
    yield
    there(server.__aexit__(None, None, None))


def run(folder: Path, *args: str) -> RunFolder:
    """One run of the example, which must go well, and verified."""
    output = folder / "runs" / str(len(args))
    config = str(folder / "config.yaml")
    done = CliRunner().invoke(main, ["run", config, "--output", str(output), *args])
    assert 0 == done.exit_code, done.output
    assert "every link holds" in CliRunner().invoke(main, ["verify", str(output)]).output
    return RunFolder(output)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the PATH")
@pytest.mark.usefixtures("model")
def test_the_node_bot_is_observed(tmp_path: Path) -> None:
    """Each draw by the second of its two calls, with both passages; and replayed from the recording."""
    folder = tmp_path / "node-bot"
    shutil.copytree(EXAMPLE, folder)
    recorded = run(folder, "--record")
    draws = list(recorded.draws())
    assert ["observed"] * 4 == [draw.level for draw in draws]
    assert all((draw.answer or "").endswith("Anything else?") for draw in draws)
    assert [2] * 4 == [len(context.chunks) for _, context in recorded.contexts()]
    assert 8 == len(list(recorded.exchanges()))
    assert draws == list(run(folder).draws())


def test_the_bot_is_small_and_knows_nothing_of_evalrun() -> None:
    """At most forty lines, without a package."""
    text = (EXAMPLE / "bot.mjs").read_text("utf-8")
    assert 40 >= len(text.splitlines())
    assert ["node:http"] == [line.split('"')[1] for line in text.splitlines() if line.startswith("import")]
    assert "evalrun" not in text
