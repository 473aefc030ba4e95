"""Chat and Titan's embeddings through boto3, against a server that checks each signature."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakes.model_servers import ACCESS, REGION, SECRET, BedrockServer
from ragbot.contract import Message, Usage
from ragbot.errors import ModelError, RagbotError
from ragbot.models import Call, Completion, chat_model, embedder

CALL = Call((Message(role="system", content="s"), Message(role="user", content="SECRET")), 0.7, 320, 4096, 5)
NAME = "eu.some-vendor.model-v1:0"
WHOLE = Completion("I studied physics.", NAME, "stop", Usage(prompt_tokens=400, completion_tokens=5))
TITAN = "amazon.titan-embed-text-v2:0"
Serve = Callable[..., BedrockServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers that boto3 is led to, with the account they know, and stops them."""
    pytest.importorskip("boto3")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    known = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
    known |= {"AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"}
    known |= {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    started: list[BedrockServer] = []

    def start(**how: Any) -> BedrockServer:
        server = BedrockServer(lambda body: "I studied physics.", **how)
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.start())
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


async def test_an_answer_whole_and_streamed(serve: Serve) -> None:
    """System apart, limit and temperature, the seed in the metadata; both ways give the same."""
    server = serve()
    model = chat_model(f"bedrock/{NAME}")
    assert WHOLE == await model.complete(CALL)
    assert ["I ", "studied ", "physics.", WHOLE] == [part async for part in model.stream(CALL)]
    await model.close()
    expected = {
        "system": [{"text": "s"}],
        "messages": [{"role": "user", "content": [{"text": "SECRET"}]}],
        "inferenceConfig": {"maxTokens": 320, "temperature": 0.7},
        "requestMetadata": {"seed": "5"},
    }
    assert [expected] * 2 == server.bodies
    assert [NAME] * 2 == server.models


async def test_an_answer_cut_at_its_limit_says_so(serve: Serve) -> None:
    """Converse's ``max_tokens`` is the contract's ``length``."""
    serve().cut = True
    model = chat_model(f"bedrock/{NAME}")
    last = [part async for part in model.stream(CALL)][-1]
    assert isinstance(last, Completion)
    assert ("length", "length") == ((await model.complete(CALL)).finish_reason, last.finish_reason)
    await model.close()


async def test_trouble_is_told_without_the_servers_text(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal, a server that is gone and missing credentials each say what to look at; asked once."""
    server = serve()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    model = chat_model(f"bedrock/{NAME}")
    with pytest.raises(ModelError, match="status 403") as caught:
        await model.complete(CALL)
    assert "signature" not in str(caught.value)
    assert "signature" in caught.value.detail
    assert 1 == len(server.refused)
    server.stop()
    with pytest.raises(ModelError, match="did not answer"):
        [part async for part in model.stream(CALL)]
    await model.close()


async def test_a_region_is_needed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3's own words, and what to set."""
    serve()
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.delenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
    model = chat_model(f"bedrock/{NAME}")
    with pytest.raises(RagbotError, match="region"):
        await model.complete(CALL)


@pytest.mark.parametrize("dims", [256, 512, 1024])
async def test_titan_embeds_each_text_in_the_size_asked_for(serve: Serve, dims: int) -> None:
    """EM-03: one text a call, so each row is that of its own text, however the calls overlap."""
    server = serve()
    found = embedder(f"bedrock/{TITAN}@{dims}")
    texts = [f"text {at}" for at in range(20)]
    rows = await asyncio.to_thread(found.embed, texts)
    assert (20, dims) == rows.shape
    for at in (0, 7, 19):
        assert rows[at].tolist() == (await asyncio.to_thread(found.embed, [texts[at]]))[0].tolist()
    body = server.bodies[0]
    assert (dims, True) == (body["dimensions"], body["normalize"])
    assert {TITAN} == set(server.models)
    assert f"bedrock/{TITAN}@{dims}" == found.name


def test_other_models_and_sizes_are_refused(serve: Serve) -> None:
    """Titan V2 has three sizes, and other models another wire; without a size it is the largest."""
    for spec in ("bedrock/cohere.embed-v4:0", f"bedrock/{TITAN}@300"):
        with pytest.raises(RagbotError, match="no embedder"):
            embedder(spec)
    assert f"bedrock/{TITAN}@1024" == embedder("bedrock").name


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, for chat and embeddings; nothing else of ragbot needs boto3."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    for make in (lambda: chat_model("bedrock/m"), lambda: embedder("bedrock")):
        with pytest.raises(RagbotError, match="needs boto3") as caught:
            make()
        assert caught.value.hint.startswith('pip install "boto3>=')
    chat_model("m")
