"""The wires that bots and judges speak to their models: what a request asks and what a reply says.

Owns one reader for each wire (Ollama's API, OpenAI's, Bedrock's Converse) and which call makes a model write.
Pure functions over paths, bodies and texts; what a call proves belongs to :mod:`evalrun.provenance`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from evalrun.digest import read_json, utf8

EVENT_STREAM = "application/vnd.amazon.eventstream"
"""Media type of Converse's streams. They are binary: a recording holds them as base64."""
_NO_TEXT = re.compile(
    r"embed|rerank|token|moderat|/(show|tags|models|version|ps|pull|load|health\w*)/?\Z", re.IGNORECASE
)
"""Paths of a model's server that make no model write."""
_VERSION = re.compile(r"/v[0-9][^/]*(/|\Z)")


@dataclass(frozen=True)
class Asked:
    """What a model call asks. ``window`` is None where it is not sent; ``limit`` is in tokens of answer."""

    model: str = ""
    prompt: tuple[str, ...] = ()
    seed: int | None = None
    window: int | None = None
    limit: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """What a model call returned: text, why it stopped (``length``: it was cut), tokens."""

    text: str
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Wire:
    """One way to call a model: the ends of its paths, and how a request and a reply are read."""

    name: str
    ends: tuple[str, ...]
    asked: Callable[[str, dict[str, Any]], Asked]
    said: Callable[[Iterable[dict[str, Any]]], Output]


def wire_of(path: str) -> Wire | None:
    """The wire of a call that makes a model write; None for any other call."""
    plain = path.rstrip("/")
    return next((wire for wire in WIRES if plain.endswith(wire.ends)), None)


def is_generation(path: str) -> bool:
    """Whether a call of this path makes a model write."""
    return wire_of(path) is not None


def may_be_generation(path: str) -> bool:
    """Whether a call of this path may make a model write in a way that is not known here."""
    return not (is_generation(path) or _NO_TEXT.search(path))


def asked(path: str, body: Any) -> Asked:
    """What a request asks; nothing where its path or its body is of no known wire."""
    wire = wire_of(path)
    return wire.asked(path, body) if wire and isinstance(body, dict) else Asked()


def system_of(body: Any) -> str | None:
    """The system text of a request, whether it stands among the messages or beside them; None without one."""
    fields = _mapping(body)
    messages = fields.get("messages")
    said = [_content({"content": fields.get("system")})]
    for message in messages if isinstance(messages, list) else []:
        if _mapping(message).get("role") in ("system", "developer"):
            said.append(_content(message))
    return "\n".join(filter(None, said)) or None


def output_of(path: str, reply: str) -> Output:
    """What a reply says, whole or streamed; no text where its path is of no known wire.

    Half of a character is U+FFFD, as in every answer.
    """
    wire = wire_of(path)
    said = wire.said(_values(reply)) if wire else Output("")
    return replace(said, text=utf8(said.text).decode())


def same_path(path: str) -> str:
    """``path`` as a recording keys it: OpenAI's with ``/v1``, whether that stood in the base URL or not."""
    wire = wire_of(path)
    versioned = wire is None or wire.name != "openai" or _VERSION.search(path)
    return path if versioned else f"/v1{path}"


def with_version(base_url: str) -> str:
    """The base URL of an OpenAI-compatible server, with ``/v1`` where it names no version.

    Whoever copies the address of the endpoint itself means the same server.
    """
    root, mark, query = base_url.partition("?")
    base = root.rstrip("/").removesuffix("/chat/completions")
    return (base if _VERSION.search(urlsplit(base).path) else f"{base}/v1") + mark + query


@lru_cache(maxsize=64)  # a service sends the same one with each reply
def charset_of(content_type: str) -> str:
    """The encoding that a ``Content-Type`` names; UTF-8 where it names none."""
    message = Message()
    message["content-type"] = content_type
    return message.get_content_charset() or "utf-8"


def text_of(content: bytes, media_type: str, encoding: str = "utf-8") -> str:
    """The body of a reply as text, and as a recording holds it; UTF-8 where its encoding is none of text."""
    if media_type == EVENT_STREAM:
        return base64.b64encode(content).decode()
    try:
        text = content.decode(encoding, "replace")
    except (LookupError, ValueError):
        text = content.decode("utf-8", "replace")
    return text


def bytes_of(text: str, media_type: str) -> bytes:
    """The body that :func:`text_of` recorded."""
    return base64.b64decode(text) if media_type == EVENT_STREAM else text.encode()


# ---------------------------------------------------------------- reading, for all


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    """A count; what no count can be is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _prompt(messages: Any) -> tuple[str, ...]:
    """The texts of a list of messages, in order."""
    return tuple(_content(message) for message in messages) if isinstance(messages, list) else ()


def _content(message: Any) -> str:
    """The text of a message: as it stands, or the texts of its parts joined."""
    content = _mapping(message).get("content")
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(_mapping(part).get("text"), str))
    return content if isinstance(content, str) else ""


def _values(reply: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a reply: one, NDJSON lines, SSE events, or the events of a binary stream."""
    try:
        value = read_json(reply)
    except ValueError:
        for line in reply.split("\n"):
            text = line.removeprefix("data:").strip()
            if text.startswith("{"):
                yield from _parsed(text)
        yield from _events(reply)
        return
    if isinstance(value, dict):
        yield value


def _parsed(text: str | bytes) -> Iterator[dict[str, Any]]:
    try:
        value = read_json(text)
    except ValueError:
        return
    if isinstance(value, dict):
        yield value


def _events(reply: str) -> Iterator[dict[str, Any]]:
    """The payloads of an event stream in base64: frames of length, header length, CRC, headers, JSON, CRC."""
    try:
        data = base64.b64decode(reply, validate=True)
    except (binascii.Error, ValueError):
        return
    while len(data) >= 16:
        size, headers = (int.from_bytes(data[at : at + 4], "big") for at in (0, 4))
        if not 16 <= size <= len(data):
            return
        yield from _parsed(data[12 + headers : size - 4])
        data = data[size:]


def _joined(
    values: Iterable[dict[str, Any]], read: Callable[[dict[str, Any]], Output], plain: dict[str, str]
) -> Output:
    """The pieces of a reply as one; of finish reasons (in plain words) and counts the last one holds."""
    whole = Output("")
    for piece in map(read, values):
        whole = Output(
            whole.text + piece.text,
            plain.get(piece.finish or "", piece.finish) or whole.finish,
            whole.prompt_tokens if piece.prompt_tokens is None else piece.prompt_tokens,
            whole.completion_tokens if piece.completion_tokens is None else piece.completion_tokens,
        )
    return whole


def _reason(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# ---------------------------------------------------------------- Ollama


def _ollama_asked(path: str, body: dict[str, Any]) -> Asked:
    options = _mapping(body.get("options"))
    texts = (body.get("system"), body.get("prompt"))
    return Asked(
        str(body.get("model", "")),
        _prompt(body["messages"]) if "messages" in body else tuple(str(text) for text in texts if text),
        _whole(options.get("seed")),
        _whole(options.get("num_ctx")),
        _whole(options.get("num_predict")) or 0,
        {name: value for name, value in options.items() if name != "seed"},
    )


def _ollama_said(values: Iterable[dict[str, Any]]) -> Output:
    def piece(value: dict[str, Any]) -> Output:
        texts = (_mapping(value.get("message")).get("content"), value.get("response"))
        return Output(
            next((text for text in texts if isinstance(text, str)), ""),
            _reason(value.get("done_reason")),
            _whole(value.get("prompt_eval_count")),
            _whole(value.get("eval_count")),
        )

    return _joined(values, piece, {})


# ---------------------------------------------------------------- OpenAI and all who speak like it


def _openai_asked(path: str, body: dict[str, Any]) -> Asked:
    prompt = body.get("prompt")
    texts = prompt if isinstance(prompt, list) else [prompt]
    limits = ("max_completion_tokens", "max_tokens")
    return Asked(
        str(body.get("model", "")),
        _prompt(body["messages"]) if "messages" in body else tuple(str(text) for text in texts if text),
        _whole(body.get("seed")),
        None,
        next((found for name in limits if (found := _whole(body.get(name))) is not None), 0),
        {name: body[name] for name in ("temperature", *limits) if name in body},
    )


def _openai_said(values: Iterable[dict[str, Any]]) -> Output:
    def piece(value: dict[str, Any]) -> Output:
        choices = value.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        message = _mapping(choice.get("message") or choice.get("delta"))
        texts = (message.get("content"), choice.get("text"), message.get("refusal"))
        usage = _mapping(value.get("usage"))
        return Output(
            next((text for text in texts if isinstance(text, str)), ""),
            _reason(choice.get("finish_reason")),
            _whole(usage.get("prompt_tokens")),
            _whole(usage.get("completion_tokens")),
        )

    return _joined(values, piece, {})


# ---------------------------------------------------------------- Bedrock's Converse

_CONVERSE_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


def _converse_asked(path: str, body: dict[str, Any]) -> Asked:
    inference = _mapping(body.get("inferenceConfig"))
    system = _content({"content": body.get("system")})
    return Asked(
        unquote(path.rstrip("/").split("/")[-2]),
        (*([system] if system else []), *_prompt(body.get("messages"))),
        _converse_seed(body),
        None,
        _whole(inference.get("maxTokens")) or 0,
        dict(inference),
    )


def _converse_seed(body: dict[str, Any]) -> int | None:
    """Converse has no seed of its own: one of the model's own fields, or one in the request's metadata."""
    told = _mapping(body.get("requestMetadata")).get("seed")
    if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) < 20:
        return int(told)
    return _whole(_mapping(body.get("additionalModelRequestFields")).get("seed"))


def _converse_said(values: Iterable[dict[str, Any]]) -> Output:
    def piece(value: dict[str, Any]) -> Output:
        usage = _mapping(value.get("usage"))
        read = [_whole(usage.get(name)) for name in _CONVERSE_READ]
        return Output(
            "".join(_converse_texts(value)),
            _reason(value.get("stopReason")),
            sum(count or 0 for count in read) if read[0] is not None else None,
            _whole(usage.get("outputTokens")),
        )

    return _joined(values, piece, _CONVERSE_REASONS)


_CONVERSE_READ = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")  # they exclude each other


def _converse_texts(value: dict[str, Any]) -> Iterator[str]:
    """Texts of a whole message or of one event; the input of a tool is what a forced tool call says."""
    content = _mapping(_mapping(value.get("output")).get("message")).get("content")
    for block in [*(content if isinstance(content, list) else []), value.get("delta")]:
        part = _mapping(block)
        used = _mapping(part.get("toolUse")).get("input")
        if isinstance(part.get("text"), str):
            yield part["text"]
        elif used is not None:
            yield used if isinstance(used, str) else json.dumps(used, ensure_ascii=False)


WIRES = (
    Wire("ollama", ("/api/chat", "/api/generate"), _ollama_asked, _ollama_said),
    Wire("openai", ("/chat/completions", "/completions"), _openai_asked, _openai_said),
    Wire("bedrock", ("/converse", "/converse-stream"), _converse_asked, _converse_said),
)
