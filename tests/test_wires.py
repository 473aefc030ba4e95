"""What is read of requests and replies on each wire that a model server speaks."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalrun.wires import (
    EVENT_STREAM,
    Asked,
    asked,
    bytes_of,
    is_generation,
    output_of,
    same_path,
    text_of,
    wire_of,
    with_version,
)
from fakes.model_servers import frame

OLLAMA, OPENAI, CONVERSE = "/api/chat", "/v1/chat/completions", "/model/a.b-v1%3A0/converse"
CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize(
    ("path", "reply", "text", "finish"),
    [
        (OLLAMA, {"message": {"content": "hi"}, "done_reason": "stop", "eval_count": 2}, "hi", "stop"),
        ("/api/generate", {"response": "hi", "done_reason": "length"}, "hi", "length"),
        (OPENAI, {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}, "hi", "stop"),
        (OPENAI, {"choices": [{"message": {"content": None, "refusal": "No."}}]}, "No.", None),
        ("/v1/completions", {"choices": [{"text": "hi", "finish_reason": None}]}, "hi", None),
        (CONVERSE, {"output": {"message": {"content": [{"text": "h"}, {"text": "i"}]}}}, "hi", None),
        (
            CONVERSE,
            {"output": {"message": {"content": [{"toolUse": {"input": {"a": 1}}}]}}},
            '{"a": 1}',
            None,
        ),
        (CONVERSE, {"output": {"message": {"content": []}}, "stopReason": "max_tokens"}, "", "length"),
        (CONVERSE, {"stopReason": "end_turn"}, "", "stop"),
        (CONVERSE, {"stopReason": "content_filtered", "output": 1}, "", "content_filtered"),
        (OLLAMA, {"message": {"content": None}}, "", None),
        (OLLAMA, {"message": "hi"}, "", None),
        (OPENAI, {"choices": ["hi"]}, "", None),
        (OPENAI, {"choices": {}, "usage": [], "finish_reason": {}}, "", None),
        (OLLAMA, {"response": ["hi"], "done_reason": {}}, "", None),
        (OLLAMA, ["hi"], "", None),
        (CONVERSE, "hi", "", None),
        ("/api/embed", {"message": {"content": "hi"}}, "", None),
        (OLLAMA, {"choices": [{"message": {"content": "hi"}}]}, "", None),
    ],
)
def test_a_reply_is_read_in_each_form_and_nonsense_is_empty(
    path: str, reply: Any, text: str, finish: str | None
) -> None:
    """Each wire has its form; a reply of another form says nothing, and breaks nothing."""
    found = output_of(path, json.dumps(reply))
    assert (text, finish) == (found.text, found.finish)


def test_streamed_replies_are_joined() -> None:
    """NDJSON lines and server-sent events; what is no JSON between them is left out."""
    ndjson = '{"message": {"content": "In "}}\n{"message": {"content": "Lyon"}, "done_reason": "stop"}\n'
    assert ("In Lyon", "stop") == (output_of(OLLAMA, ndjson).text, output_of(OLLAMA, ndjson).finish)
    parts = [json.dumps({"choices": [{"delta": {"content": text}}]}) for text in ("In ", "Lyon")]
    last = json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    events = "".join(f"data: {part}\r\n\r\n" for part in [*parts, last])
    found = output_of(OPENAI, events + ": ping\n\ndata: {half\n\ndata: [DONE]\n\n")
    assert ("In Lyon", 7, 2) == (found.text, found.prompt_tokens, found.completion_tokens)
    assert "" == output_of(OPENAI, "<html>").text


def test_a_binary_stream_is_kept_byte_for_byte_and_read() -> None:
    """Converse streams frames with checksums; the recording holds them as base64 and gives them back."""
    frames = [
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "In "}}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Lyon"}}),
        frame("messageStop", {"stopReason": "end_turn"}),
        frame("metadata", {"usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}}),
    ]
    content = b"".join(frames)
    text = text_of(content, EVENT_STREAM)
    assert content == bytes_of(text, EVENT_STREAM)
    found = output_of("/model/m/converse-stream", text)
    assert ("In Lyon", "stop", 7, 2) == (
        found.text,
        found.finish,
        found.prompt_tokens,
        found.completion_tokens,
    )
    cut = text_of(content[:-9], EVENT_STREAM)
    assert ("In Lyon", None) == (
        output_of("/model/m/converse-stream", cut).text,
        output_of("/model/m/converse-stream", cut).prompt_tokens,
    )


@settings(deadline=None)
@given(content=st.binary(), text=st.text())
def test_a_stream_of_any_bytes_breaks_nothing(content: bytes, text: str) -> None:
    """A server may send anything."""
    assert content == bytes_of(text_of(content, EVENT_STREAM), EVENT_STREAM)
    for path in (OLLAMA, OPENAI, CONVERSE):
        assert isinstance(output_of(path, base64.b64encode(content).decode()).text, str)
        assert isinstance(output_of(path, text).text, str)


def test_tokens_are_read_from_the_place_of_each_wire() -> None:
    """Ollama counts beside the message, the others in ``usage``; Bedrock leaves out what it had cached."""
    assert (7, 2) == _tokens(OLLAMA, {"prompt_eval_count": 7, "eval_count": 2})
    assert (7, 2) == _tokens(OPENAI, {"usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    usage = {"inputTokens": 4, "outputTokens": 2, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 1}
    assert (7, 2) == _tokens(CONVERSE, {"usage": usage})
    for path in (OLLAMA, OPENAI, CONVERSE):
        nonsense = {"prompt_eval_count": "seven", "usage": {"prompt_tokens": True, "inputTokens": "7"}}
        assert (None, None) == _tokens(path, nonsense)


def _tokens(path: str, reply: Any) -> tuple[int | None, int | None]:
    found = output_of(path, json.dumps(reply))
    return found.prompt_tokens, found.completion_tokens


def test_a_request_of_ollama_is_read() -> None:
    """Chat messages, or a plain prompt with a system text; seed and window in the options."""
    body = {
        "model": "m",
        "messages": [{"content": "a"}, {"content": None}, "x"],
        "options": {"seed": 4, "num_ctx": 4096, "num_predict": 64},
    }
    assert Asked("m", ("a", "", ""), 4, 4096, 64, {"num_ctx": 4096, "num_predict": 64}) == asked(OLLAMA, body)
    assert ("S", "P") == asked("/api/generate", {"system": "S", "prompt": "P"}).prompt
    odd = asked(OLLAMA, {"options": {"seed": "4", "num_ctx": "4096", "num_predict": None}})
    assert (None, None, 0) == (odd.seed, odd.window, odd.limit)


def test_a_request_of_openai_is_read() -> None:
    """Messages with text or parts, the seed beside them, the limit under either of its names; no window."""
    parts = [{"content": [{"type": "text", "text": "a"}, {"text": "b"}, {"image_url": "x"}]}]
    body = {"model": "m", "messages": parts, "seed": 5, "max_tokens": 9, "temperature": 0}
    assert Asked("m", ("ab",), 5, None, 9, {"temperature": 0, "max_tokens": 9}) == asked(OPENAI, body)
    assert 8 == asked(OPENAI, {"messages": [], "max_completion_tokens": 8}).limit
    assert ("P", "Q") == asked("/v1/completions", {"prompt": ["P", "Q"]}).prompt
    assert (None, None) == (asked(OPENAI, {"seed": "5"}).seed, asked(OPENAI, {"seed": True}).seed)


def test_a_request_of_converse_is_read() -> None:
    """The model stands in the path, the system text beside the messages, the seed where a bot can put one."""
    body = {
        "system": [{"text": "S"}],
        "messages": [{"role": "user", "content": [{"text": "a"}, {"image": {}}]}],
        "inferenceConfig": {"maxTokens": 9, "temperature": 0.5},
        "requestMetadata": {"seed": "5"},
    }
    assert Asked("a.b-v1:0", ("S", "a"), 5, None, 9, {"maxTokens": 9, "temperature": 0.5}) == asked(
        CONVERSE, body
    )
    assert 6 == asked(CONVERSE, {"additionalModelRequestFields": {"seed": 6}}).seed
    assert None is asked(CONVERSE, {"requestMetadata": {"seed": "five"}}).seed
    assert () == asked(CONVERSE, {"system": 1, "messages": 2}).prompt


@pytest.mark.parametrize("path", [OLLAMA, OPENAI, CONVERSE, "/api/tags"])
@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_a_body_that_is_no_object_asks_nothing(path: str, body: Any) -> None:
    """Whatever a bot sends is read without a fault."""
    assert Asked() == asked(path, body)


def test_generations_are_known_by_their_path() -> None:
    """What makes a model write, under any prefix; embeddings and lists of models do not."""
    writing = {
        "/api/chat": "ollama",
        "/api/generate": "ollama",
        "/v1/chat/completions": "openai",
        "/openai/v1/completions/": "openai",
        CONVERSE: "bedrock",
        "/model/m/converse-stream": "bedrock",
    }
    assert writing == {path: wire.name for path in writing if (wire := wire_of(path))}
    for path in ("/api/embed", "/api/tags", "/v1/models", "/v1/embeddings", "/model/m/invoke"):
        assert not is_generation(path)


def test_a_recording_does_not_depend_on_where_the_version_stands() -> None:
    """Base URLs with and without ``/v1`` give one path; paths of other wires stay."""
    assert "/v1/chat/completions" == same_path("/chat/completions") == same_path("/v1/chat/completions")
    assert "/openai/v1/chat/completions" == same_path("/openai/v1/chat/completions")
    assert ["/api/chat", "/v2/x"] == [same_path("/api/chat"), same_path("/v2/x")]


def test_base_urls_with_and_without_a_version_lead_to_the_same_place() -> None:
    """NW-04: ``/v1`` is added once, where no version stands."""
    known = json.loads((CASES / "nw-04-base-urls.json").read_text("utf-8"))
    for case in known["cases"]:
        assert case["url"] == with_version(case["base"]) + known["chat_path"]
    assert "https://h/v1beta/openai" == with_version("https://h/v1beta/openai/")
    assert "https://h/v1" == with_version("https://h/v1/chat/completions")
