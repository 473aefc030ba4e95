"""Proof that a graded context is the one the model was given.

Owns what counts as proof: one observed model call whose prompt holds this context's block exactly once, no
other block beside it, and whose output is this answer. Pure functions over exchanges; the tap observes, the
sampler and ``verify`` ask.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evalrun.digest import context_block, context_digest
from evalrun.records import Case, Context, Exchange, Message

GENERATIONS = ("/api/chat", "/api/generate", "/chat/completions", "/completions")
_OPENING = re.compile(r"<<context [0-9a-f]{16}>>")
_CHARACTERS_PER_TOKEN = 10


class ChainBroken(Exception):
    """The chain question → context → prompt → answer does not hold; the text says where."""


class PromptCut(Exception):
    """The model's server dropped a part of the prompt or cut the answer: an error of this draw."""


@dataclass(frozen=True)
class Output:
    """What a model call returned: text, why it stopped, tokens."""

    text: str
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def is_generation(path: str) -> bool:
    """Whether a call of this path makes a model write."""
    return path.rstrip("/").endswith(GENERATIONS)


def prompt_messages(body: Any) -> tuple[str, ...]:
    """The texts of a model call's prompt, in order, as they stand in its body."""
    if not isinstance(body, dict):
        return ()
    if isinstance(body.get("messages"), list):
        return tuple(_content(message) for message in body["messages"])
    return tuple(str(body[key]) for key in ("system", "prompt") if body.get(key))


def _content(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def seed_of(body: Any) -> int | None:
    """The seed of a model call, in Ollama's or OpenAI's place."""
    if not isinstance(body, dict):
        return None
    options = body.get("options")
    found = options.get("seed") if isinstance(options, dict) else body.get("seed")
    return found if isinstance(found, int) else None


def window_of(body: Any) -> tuple[int | None, int]:
    """(``num_ctx``, ``num_predict``) of a model call; the first None where it is not sent."""
    options = body.get("options") if isinstance(body, dict) else None
    options = options if isinstance(options, dict) else {}
    window, predicted = options.get("num_ctx"), options.get("num_predict")
    return window if isinstance(window, int) else None, predicted if isinstance(predicted, int) else 0


def output_of(reply: str) -> Output:
    """Text, finish reason and tokens of a reply: one JSON object, or NDJSON lines joined."""
    parts: list[str] = []
    finish: str | None = None
    tokens: list[int | None] = [None, None]
    for value in _values(reply):
        choices = value.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        said = _mapping(value.get("message") or choice.get("message") or choice.get("delta"))
        texts = (said.get("content"), value.get("response"), choice.get("text"))
        parts.append(next((text for text in texts if isinstance(text, str)), ""))
        reason = value.get("done_reason") or choice.get("finish_reason")
        finish = reason if isinstance(reason, str) else finish
        usage = _mapping(value.get("usage"))
        counts = (
            value.get("prompt_eval_count", usage.get("prompt_tokens")),
            value.get("eval_count", usage.get("completion_tokens")),
        )
        tokens = [new if isinstance(new, int) else old for new, old in zip(counts, tokens, strict=True)]
    return Output("".join(parts), finish, tokens[0], tokens[1])


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _values(reply: str) -> Iterable[dict[str, Any]]:
    try:
        value = json.loads(reply)
    except ValueError:
        lines = [line.removeprefix("data:").strip() for line in reply.split("\n")]
        for line in lines:
            if line.startswith("{"):
                try:
                    yield json.loads(line)
                except ValueError:
                    continue
        return
    if isinstance(value, dict):
        yield value


def check_block(prompt: Sequence[str], context: Context, case: Case) -> None:
    """The prompt holds this context's block exactly once, and no other block.

    Raises:
        ChainBroken: it does not; or the context's digest is not that of its chunks.
    """
    if context.digest != context_digest(context.chunks):
        raise ChainBroken("the reported context's digest is not that of its chunks")
    block = context_block(context.chunks, context.digest)
    text = "\n".join(prompt)
    count = text.count(block)
    if count != 1:
        raise ChainBroken(
            f"the prompt holds the graded context {count} times instead of once"
            + ("" if count else ": the model was given another context")
        )
    rest = text.replace(block, "")
    for own in (case.question, *(turn.content for turn in case.history)):
        if _OPENING.search(own):  # the user's own words, which are no context
            rest = rest.replace(own, "")
    if _OPENING.search(rest):
        raise ChainBroken("the prompt holds a second context beside the graded one")


def check_whole(body: Any, output: Output) -> None:
    """Nothing was cut off the prompt or the answer.

    Ollama drops the oldest part of a prompt that exceeds its window, without an error.

    Raises:
        PromptCut: the window was full, far fewer tokens were read than sent, or the answer hit its limit.
    """
    window, predicted = window_of(body)
    read = output.prompt_tokens
    sent = sum(len(text) for text in prompt_messages(body))
    if read is not None and window is not None and read + predicted >= window:
        raise PromptCut(
            f"prompt cut: {read} prompt tokens and {predicted} for the answer fill the window of {window}"
        )
    if read is not None and read < sent / _CHARACTERS_PER_TOKEN:
        raise PromptCut(f"prompt cut: the model read {read} tokens of a prompt of {sent} characters")
    if output.finish == "length":
        raise PromptCut("the answer was cut at its length limit")


def prove_observed(exchanges: Sequence[Exchange], case: Case, context: Context, answer: str) -> Exchange:
    """The one exchange that proves a draw.

    Raises:
        ChainBroken: no exchange, or none whose prompt holds the context and whose output is the answer,
            or several.
        PromptCut: the call that made the answer was cut.
    """
    calls = [call for call in exchanges if is_generation(call.path) and 200 <= call.status < 300]
    if not calls:
        raise ChainBroken("no model call of this draw was seen on the wire")
    said = [call for call in calls if output_of(call.reply).text.strip() == answer.strip()]
    if not said:
        raise ChainBroken("the answer is not what the model said: it was changed after the model")
    if len(said) > 1:
        raise ChainBroken(f"{len(said)} model calls gave this answer; one draw is proved by one call")
    check_block(prompt_messages(said[0].request), context, case)
    check_whole(said[0].request, output_of(said[0].reply))
    return said[0]


def prove_reported(prompt: Sequence[Message], case: Case, context: Context) -> None:
    """The prompt that the bot returned holds the context; as good as the bot's word.

    Raises:
        ChainBroken: it does not.
    """
    check_block([message.content for message in prompt], context, case)
