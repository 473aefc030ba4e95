"""The OpenAI judge against a server that takes the documented wire only, and ones that take less of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from evalrun.cassette import Cassette, CassetteTransport
from evalrun.errors import UnavailableError, UserError
from evalrun.models import Completion, model
from evalrun.models.openai import OpenAIModel
from evalrun.records import Exchange, Message
from fakes.model_servers import OpenAIServer

SCHEMA = {
    "type": "object",
    "required": ["b", "a"],
    "properties": {
        "b": {"type": "array", "maxItems": 4, "items": {"enum": ["yes", "no"]}},
        "a": {"type": "string"},
    },
}
PROMPT = [Message(role="system", content="Judge."), Message(role="user", content="Hi")]
SAID = '{"b": ["yes"], "a": "x"}'
Serve = Callable[..., OpenAIServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers and stops them."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    started: list[OpenAIServer] = []

    def start(**how: Any) -> OpenAIServer:
        server = OpenAIServer(lambda body: SAID, **how)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def ask(url: str, key_env: str | None = None, times: int = 1) -> tuple[Completion, list[Exchange]]:
    """What the judge at ``url`` replies, and what a recording would hold."""

    async def work() -> tuple[Completion, list[Exchange]]:
        seen: list[Exchange] = []
        upstream = OpenAIModel.upstream(url, 4, key_env)
        transport = CassetteTransport(Cassette(None, "live"), "judge", upstream, seen.append)
        judge = OpenAIModel("m", url, transport)
        for at in range(times):
            reply = await judge.complete(PROMPT, SCHEMA, float(at), 0, 400, 8192)
        await judge.close()
        return reply, seen

    return asyncio.run(work())


def test_the_request_is_the_documented_one_and_the_reply_is_taken_apart(serve: Serve) -> None:
    """Seed, limit and a closed, typed schema in its own order of keys; what the server counted; no window."""
    server = serve()
    reply, seen = ask(server.url)
    assert Completion(SAID, "stop", 3, 4, None) == reply
    [body] = server.bodies
    assert ("m", "0.0", 0, 400) == (body["model"], str(body["temperature"]), body["seed"], body["max_tokens"])
    assert [turn.model_dump() for turn in PROMPT] == body["messages"]
    shape = body["response_format"]["json_schema"]
    assert (["b", "a"], True) == (list(shape["schema"]["properties"]), shape["strict"])
    assert {"type": "string", "enum": ["yes", "no"]} == shape["schema"]["properties"]["b"]["items"]
    assert ("/v1/chat/completions", ()) == (seen[0].path, seen[0].adapted)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_the_base_url_may_name_the_version_or_not(serve: Serve, path: str) -> None:
    """NW-04: the same place, and the same line of a recording."""
    _, seen = ask(serve().url + path)
    assert "/v1/chat/completions" == seen[0].path


@pytest.mark.parametrize(
    ("formats", "adapted", "sent"),
    [
        (("json_schema", "none"), (), "json_schema"),
        (("json_object", "none"), ("response_format: json_object",), "json_object"),
        (("none",), ("response_format: json_object", "response_format: none"), None),
    ],
)
def test_a_server_that_refuses_a_schema_is_asked_more_simply(
    serve: Serve, formats: tuple[str, ...], adapted: tuple[str, ...], sent: str | None
) -> None:
    """json_object, then plain text, with the schema in words; the recording holds what was meant."""
    server = serve(formats=formats)
    reply, seen = ask(server.url, times=2)
    assert SAID == reply.text
    assert [adapted] * 2 == [line.adapted for line in seen]
    assert ["json_schema"] * 2 == [line.request["response_format"]["type"] for line in seen]
    assert [sent] * 2 == [body.get("response_format", {}).get("type") for body in server.bodies]
    told = "JSON Schema" in server.bodies[0]["messages"][0]["content"]
    assert bool(adapted) == told
    assert len(adapted) == len(server.refused), "what was refused once is not asked for again"


def test_a_server_that_renamed_the_limit_gets_the_new_name(serve: Serve) -> None:
    """Newer models of OpenAI refuse ``max_tokens`` and say what they take."""
    server = serve(newer=True)
    _, seen = ask(server.url)
    assert (400, ("max_completion_tokens",)) == (server.bodies[0]["max_completion_tokens"], seen[0].adapted)


def test_another_refusal_is_told_as_it_is(serve: Serve) -> None:
    """A server that refuses everything else is not asked again and again."""
    server = serve(formats=())
    with pytest.raises(UnavailableError, match=r"judge model 'm' at http://127.0.0.1:.* answered 400"):
        ask(server.url)
    assert 3 == len(server.refused)


def test_the_key_comes_from_the_environment_and_stays_out_of_the_recording(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``OPENAI_API_KEY``, or the variable that the config names."""
    server = serve(key="sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    _, seen = ask(server.url)
    assert "sk-secret" not in seen[0].model_dump_json()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("MINE", "sk-secret")
    ask(server.url, "MINE")
    with pytest.raises(UnavailableError, match="answered 401"):
        ask(server.url)


@pytest.mark.parametrize(("url", "key_env"), [("https://api.openai.com/v1", None), ("http://h:1", "MINE")])
def test_a_missing_key_is_told_before_anything_is_asked(
    url: str, key_env: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI itself needs one, and so does a config that names one; a key is one line of plain letters."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match=f"{key_env or 'OPENAI_API_KEY'} is not set"):
        OpenAIModel.upstream(url, 1, key_env)
    monkeypatch.setenv(key_env or "OPENAI_API_KEY", "two\nlines")
    with pytest.raises(UserError, match="holds what no key holds"):
        OpenAIModel.upstream(url, 1, key_env)


def _raise(error: Exception) -> httpx.Response:
    raise error


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (lambda request: _raise(httpx.ConnectError("refused")), "could not be reached"),
        (lambda request: _raise(httpx.ReadTimeout("slow")), "could not be reached"),
        (lambda request: httpx.Response(404, json={"error": "no model"}), "404"),
        (lambda request: httpx.Response(200, text="<html>"), "no chat reply"),
        (lambda request: httpx.Response(200, json={"error": "busy"}), "no chat reply"),
    ],
)
async def test_trouble_is_never_a_reply(answer: Callable[[httpx.Request], httpx.Response], part: str) -> None:
    """No connection, a timeout, a status and a body of another kind say which model is missing."""
    judge = OpenAIModel("m", "http://127.0.0.1:9/v1", httpx.MockTransport(answer))
    with pytest.raises(UnavailableError, match="judge model 'm'") as caught:
        await judge.complete(PROMPT, SCHEMA, 0.0, 0, 400, 8192)
    assert part in str(caught.value)
    await judge.close()


async def test_a_refusal_in_words_and_a_cut_reply_reach_the_parser() -> None:
    """What the model said instead of a verdict is for the judge's parser to refuse."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot."}
    said = {"choices": [{"message": message, "finish_reason": "length"}]}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=said))
    judge = OpenAIModel("m", "http://127.0.0.1:9", transport)
    reply = await judge.complete(PROMPT, SCHEMA, 0.0, 0, 400, 8192)
    assert ("I cannot.", "length") == (reply.text, reply.finish_reason)
    await judge.close()


def test_the_provider_is_found_by_name_and_knows_its_server() -> None:
    """``OPENAI_BASE_URL``, else OpenAI's own."""
    assert OpenAIModel is model.get("openai")
    assert "https://api.openai.com/v1" == OpenAIModel.default_url({})
    assert "http://h/v1" == OpenAIModel.default_url({"OPENAI_BASE_URL": "http://h/v1"})
