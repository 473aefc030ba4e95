"""Chat through Ollama's client: the body on the wire and only whole answers."""

from __future__ import annotations

from typing import Any

import pytest
from ragbot_fakes import FakeOllama

from ragbot.contract import Message
from ragbot.errors import ModelError
from ragbot.models import Call, Completion, chat_model, is_loopback, ollama_host

CALL = Call((Message(role="system", content="s"), Message(role="user", content="SECRET")), 0.7, 320, 4096, 5)


async def streamed(model: Any) -> list[str | Completion]:
    return [part async for part in model.stream(CALL)]


async def test_body_on_the_wire(ollama: FakeOllama) -> None:
    """Model, messages, the window and the limit are sent; stream is off for a draw and on for a chat."""
    model = chat_model("ollama/m:1b")
    await model.complete(CALL)
    await streamed(model)
    await model.close()
    expected = {
        "model": "m:1b",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "SECRET"}],
        "options": {"num_ctx": 4096, "num_predict": 320, "seed": 5, "temperature": 0.7},
    }
    bodies = [
        {key: value for key, value in body.items() if value not in (None, [])} for body in ollama.bodies
    ]
    assert [expected | {"stream": False}, expected | {"stream": True}] == bodies


async def test_whole_answer_with_its_counts(ollama: FakeOllama) -> None:
    """Text, finish reason and tokens are the server's, streamed or not."""
    ollama.finish |= {"done_reason": "length"}
    model = chat_model("m")
    whole = await model.complete(CALL)
    assert ("I studied physics.", "length", 90, 7) == (
        whole.text,
        whole.finish_reason,
        whole.usage.prompt_tokens,
        whole.usage.completion_tokens,
    )
    assert ["I studied ", "physics.", whole] == await streamed(model)


async def test_stream_that_breaks_off_is_an_error(ollama: FakeOllama) -> None:
    """Pieces without a closing line are no answer."""
    ollama.finish = {}
    with pytest.raises(ModelError, match="broke off"):
        await streamed(chat_model("m"))


async def test_reply_that_is_not_done_is_an_error(ollama: FakeOllama) -> None:
    """A body without 'done' is no answer either."""
    ollama.finish = {"done": False}
    with pytest.raises(ModelError, match="broke off"):
        await chat_model("m").complete(CALL)


@pytest.mark.parametrize(
    ("status", "words"), [(404, "has no model 'm'"), (500, "status 500"), (302, "status 302")]
)
async def test_refusals_keep_the_prompt_out_of_the_message(
    ollama: FakeOllama, status: int, words: str
) -> None:
    """What the server said, which may hold the prompt, stays in the detail."""
    ollama.status = status
    for ask in (chat_model("m").complete(CALL), streamed(chat_model("m"))):
        with pytest.raises(ModelError, match=words) as caught:
            await ask
        assert "SECRET" not in str(caught.value)


async def test_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the address and the variable that sets it."""
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match=r"(?s)did not answer.*127\.0\.0\.1:9.*OLLAMA_HOST"):
        await chat_model("m").complete(CALL)


async def test_proxy_of_the_environment_is_not_asked_for_loopback(
    ollama: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy variable does not send a call to this machine over a proxy."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert "I studied physics." == (await chat_model("m").complete(CALL)).text


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:5/", "http://127.0.0.1:5"),
        ("https://models.example/ollama", "https://models.example/ollama"),
        ("box:1234", "http://box:1234"),
        ("box", "http://box:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        (":5", "http://127.0.0.1:5"),
        ("[::1]:11434", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::]:5", "http://[::1]:5"),
        ("box/ollama", "http://box:11434/ollama"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(
    monkeypatch: pytest.MonkeyPatch, value: str, url: str
) -> None:
    """With or without scheme and port; a listen-everywhere address is reached on loopback."""
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert url == ollama_host()


@pytest.mark.parametrize(
    ("expected", "url"),
    [
        (True, "http://127.0.0.1:1"),
        (True, "http://[::1]:1"),
        (True, "http://localhost"),
        (True, "http://127.9.9.9"),
        (False, "http://127.0.0.1.example"),
    ],
)
def test_loopback_is_told_by_the_whole_name(expected: bool, url: str) -> None:
    """A name that begins like loopback is not loopback."""
    assert expected is is_loopback(url)


def test_model_names_may_hold_slashes() -> None:
    """Only a known provider in front of a slash is one."""
    assert "hf.co/org/model" == chat_model("hf.co/org/model").name
    assert "qwen2.5-coder:1.5b" == chat_model("ollama/qwen2.5-coder:1.5b").name
