"""Chat and embeddings through a server that takes OpenAI's documented wire only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.model_servers import OpenAIServer
from fakes.servers import scripted, serving
from ragbot.contract import Message, Usage
from ragbot.errors import ModelError, RagbotError
from ragbot.models import Call, Completion, chat_model, embedder, split_dims
from ragbot.models.openai_server import with_version

CALL = Call((Message(role="system", content="s"), Message(role="user", content="SECRET")), 0.7, 320, 4096, 5)
WHOLE = Completion("I studied physics.", "m", "stop", Usage(prompt_tokens=2, completion_tokens=3))
Serve = Callable[..., OpenAIServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers that ``OPENAI_BASE_URL`` leads to, and stops them."""
    started: list[OpenAIServer] = []

    def start(**how: Any) -> OpenAIServer:
        server = OpenAIServer(lambda body: "I studied physics.", **how)
        monkeypatch.setenv("OPENAI_BASE_URL", server.start())
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


async def streamed(spec: str = "openai/m") -> list[str | Completion]:
    """Every part of one streamed answer."""
    model = chat_model(spec)
    try:
        return [part async for part in model.stream(CALL)]
    finally:
        await model.close()


async def completed(spec: str = "openai/m") -> Completion:
    """One whole answer."""
    model = chat_model(spec)
    try:
        return await model.complete(CALL)
    finally:
        await model.close()


@pytest.mark.parametrize("key", ["", "sk-secret"])
async def test_an_answer_whole_and_streamed(serve: Serve, key: str) -> None:
    """Model, messages, limit, temperature and seed are sent, and the key; both ways give the same."""
    server = serve(key=key)
    assert WHOLE == await completed()
    assert ["I ", "studied ", "physics.", WHOLE] == await streamed()
    expected = {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "SECRET"}],
        "temperature": 0.7,
        "max_tokens": 320,
        "seed": 5,
    }
    first, second = server.bodies
    assert expected | {"stream": False} == first
    assert expected | {"stream": True, "stream_options": {"include_usage": True}} == second


async def test_a_server_that_renamed_the_limit_is_asked_again(serve: Serve) -> None:
    """Newer models of OpenAI take ``max_completion_tokens`` only; the next call knows."""
    server = serve(newer=True)
    model = chat_model("openai/m")
    assert WHOLE == await model.complete(CALL)
    assert WHOLE == await model.complete(CALL)
    await model.close()
    assert [320, 320] == [body["max_completion_tokens"] for body in server.bodies]
    assert 1 == len(server.refused)


async def test_an_answer_cut_at_its_limit_says_so(serve: Serve) -> None:
    """The finish reason is ``length``, whole or streamed."""
    serve().cut = True
    assert "length" == (await completed()).finish_reason
    last = (await streamed())[-1]
    assert isinstance(last, Completion)
    assert "length" == last.finish_reason


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ('data: {"choices": [{"delta": {"content": "half"}}]}\n\n', 200, "broke off"),
        ("<html>", 200, "broke off"),
        ('{"error": "no model"}', 404, "status 404"),
    ],
)
async def test_half_an_answer_is_none(
    body: str, status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream without a finish reason, a page instead of JSON, another status; no text of it is shown."""
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    async with serving(handle) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        for ask in (completed, streamed):
            with pytest.raises(ModelError, match=message) as caught:
                await ask()
            assert "half" not in str(caught.value)


async def test_server_that_is_not_there(serve: Serve) -> None:
    """The address is told, and how to change it."""
    server = serve()
    server.stop()
    for ask in (completed, streamed):
        with pytest.raises(ModelError, match="did not answer") as caught:
            await ask()
        assert "OPENAI_BASE_URL" in caught.value.hint


def test_a_missing_or_odd_key_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's own server needs one; a key is one line of plain letters."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(RagbotError, match="OPENAI_API_KEY is not set"):
        chat_model("openai/m")
    monkeypatch.setenv("OPENAI_API_KEY", "two\nlines")
    with pytest.raises(RagbotError, match="holds what no key holds"):
        chat_model("openai/m")


def test_base_urls_with_and_without_a_version_lead_to_the_same_place(cases: Path) -> None:
    """NW-04: ``/v1`` is added once, where no version stands."""
    known = json.loads((cases / "nw-04-base-urls.json").read_text("utf-8"))
    for case in known["cases"]:
        assert case["url"] == with_version(case["base"]) + known["chat_path"]


# ---------------------------------------------------------------- embeddings


async def embedded(spec: str, texts: list[str]) -> list[list[float]]:
    """The rows of ``texts``."""
    rows = await asyncio.to_thread(embedder(spec).embed, texts)
    found: list[list[float]] = rows.tolist()
    return found


async def test_rows_belong_to_their_texts(serve: Serve) -> None:
    """EM-03: the server numbers its rows and may send them in any order; 64 texts go into a request."""
    server = serve()
    server.shuffle = True
    texts = ["x" * size for size in range(1, 71)]
    assert [[float(size), 1.0, 0.0] for size in range(1, 71)] == await embedded("openai/e", texts)
    assert [64, 6] == [len(body["input"]) for body in server.bodies]


async def of_a_reply(reply: Any, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The rows of ``texts`` from a server that says just this."""
    async with serving(scripted([{"json": reply}])) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        return await embedded("openai/e", texts)


async def test_rows_are_put_in_the_order_of_the_texts(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EM-03: a reply in another order is put right by its numbers; one with a gap is named with the count."""
    case = json.loads((cases / "em-03-batch-order.json").read_text("utf-8"))
    found = await of_a_reply(case["replies"][0], case["inputs"], monkeypatch)
    assert [[1, 0, 0], [0, 1, 0], [0, 0, 1]] == found
    with pytest.raises(ModelError, match="returned 2 vectors for 3 texts"):
        await of_a_reply(case["replies"][1], case["inputs"], monkeypatch)


@pytest.mark.parametrize(
    "reply",
    [
        [],
        {"data": [{"index": 0, "embedding": [1, 0]}, {"index": 0, "embedding": [0, 1]}]},
        {"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": None}]},
    ],
)
async def test_other_broken_rows_are_errors(reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No list, a number given twice, two sizes, or no numbers: never a guess."""
    with pytest.raises(ModelError, match="the embedding server returned"):
        await of_a_reply(reply, ["a", "b"], monkeypatch)


async def test_a_missing_row_is_named_with_the_count(serve: Serve) -> None:
    """EM-03: nothing is paired by position."""
    serve().drop = True
    with pytest.raises(ModelError, match="returned 2 vectors for 3 texts"):
        await embedded("openai/e", ["a", "b", "c"])


async def test_dimensions_are_asked_for_and_part_of_the_name(serve: Serve) -> None:
    """An index of 2 dimensions is another one than of 3; a server that ignores the wish is noticed."""
    server = serve()
    assert [[1.0, 1.0]] == await embedded("openai/e@2", ["a"])
    assert {"model": "e", "input": ["a"], "dimensions": 2} == server.bodies[0]
    assert ("openai/e@2", "openai/e") == (embedder("openai/e@2").name, embedder("openai/e").name)
    server.vectors = lambda text: [1.0]
    with pytest.raises(ModelError, match=r"vectors of \[1\] dimensions in one reply, 2 were asked for"):
        await embedded("openai/e@2", ["a"])


def test_dimensions_are_a_number_at_the_end() -> None:
    """Another ``@`` belongs to the name."""
    assert ("m", 256) == split_dims("m@256")
    assert ("m@main", None) == split_dims("m@main")
    assert ("m", None) == split_dims("m")
