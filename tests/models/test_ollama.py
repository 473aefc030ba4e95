"""The Ollama judge sends one whole chat request and tells every kind of trouble apart from a reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from evalrun.errors import UnavailableError, UserError
from evalrun.models import model, split_spec
from evalrun.models.ollama import OllamaModel
from evalrun.records import Message

REPLY = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "{}"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 11,
    "eval_count": 2,
}
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}


async def ask(answer: Callable[[httpx.Request], httpx.Response]) -> Any:
    judge = OllamaModel("m", "http://127.0.0.1:9", transport=httpx.MockTransport(answer))
    try:
        return await judge.complete([Message(role="user", content="Hi")], SCHEMA, 0.0, 0, 400, 8192)
    finally:
        await judge.close()


async def test_the_request_is_whole_and_the_reply_is_taken_apart() -> None:
    """Window, seed, limit and schema are always sent, the schema's order of keys untouched."""
    bodies: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, json=REPLY)

    found = await ask(answer)
    assert ("{}", "stop", 11, 2) == (
        found.text,
        found.finish_reason,
        found.prompt_tokens,
        found.completion_tokens,
    )
    path, body = bodies[0]
    assert ("/api/chat", "m", False) == (path, body["model"], body["stream"])
    assert {"temperature": 0.0, "seed": 0, "num_predict": 400, "num_ctx": 8192} == body["options"]
    assert ["b", "a"] == list(body["format"]["properties"])
    assert [{"role": "user", "content": "Hi"}] == body["messages"]


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def slow(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("slow")


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (refused, "could not be reached"),
        (slow, "could not be reached"),
        (lambda request: httpx.Response(404, json={"error": "model 'm' not found"}), "404"),
        (lambda request: httpx.Response(200, text="<html>"), "no chat reply"),
        (lambda request: httpx.Response(200, json={"error": "busy"}), "no chat reply"),
    ],
)
async def test_trouble_is_never_a_reply(answer: Callable[[httpx.Request], httpx.Response], part: str) -> None:
    """No connection, a timeout, a status and a body of another kind say which model is missing."""
    with pytest.raises(UnavailableError, match="judge model 'm'") as caught:
        await ask(answer)
    assert part in str(caught.value)


def test_the_provider_is_found_by_name() -> None:
    """``ollama/NAME`` names the provider and the model, slashes in the name included."""
    assert ("ollama", "hf.co/a/b:q4") == split_spec("ollama/hf.co/a/b:q4")
    assert OllamaModel is model.get("ollama")
    with pytest.raises(UserError, match="names no model"):
        split_spec("qwen2.5-coder:1.5b")
