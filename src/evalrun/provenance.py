"""Proof that a graded context is the one the model was given.

Owns what counts as proof: one observed model call whose prompt holds this context's block exactly once, no
other block beside it, and whose output is this answer. Pure functions over exchanges; the tap observes, the
sampler and ``verify`` ask, :mod:`evalrun.wires` reads requests and replies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalrun.digest import context_block, context_digest
from evalrun.records import Case, Context, Exchange, Message
from evalrun.wires import Asked, Output, asked, is_generation, output_of

_OPENING = re.compile(r"<<context [0-9a-f]{16}>>")
_CHARACTERS_PER_TOKEN = 10


class ChainBroken(Exception):
    """The chain question → context → prompt → answer does not hold; the text says where."""


class PromptCut(Exception):
    """The model's server dropped a part of the prompt or cut the answer: an error of this draw."""


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


def check_whole(call: Asked, output: Output, *, whole: bool = True) -> None:
    """Nothing was cut off the prompt or, where it must be ``whole``, the answer.

    Ollama drops the oldest part of a prompt that exceeds its window, without an error.

    Raises:
        PromptCut: the window was full, far fewer tokens were read than sent, or the answer hit its limit.
    """
    read = output.prompt_tokens
    sent = sum(len(text) for text in call.prompt)
    if read is not None and call.window is not None and read + call.limit >= call.window:
        fill = f"{read} prompt tokens and {call.limit} for the answer fill the window of {call.window}"
        raise PromptCut(f"prompt cut: {fill}")
    if read is not None and read < sent / _CHARACTERS_PER_TOKEN:
        raise PromptCut(f"prompt cut: the model read {read} tokens of a prompt of {sent} characters")
    if output.finish == "length" and whole:
        raise PromptCut("the answer was cut at its length limit")


def prove_observed(
    exchanges: Sequence[Exchange], case: Case, context: Context, answer: str, *, whole: bool = True
) -> Exchange:
    """The one exchange that proves a draw.

    ``whole``: an answer that was cut at its length limit proves nothing.

    Raises:
        ChainBroken: no exchange, or none whose prompt holds the context and whose output is the answer,
            or several.
        PromptCut: the call that made the answer was cut.
    """
    calls = [call for call in exchanges if is_generation(call.path) and 200 <= call.status < 300]
    if not calls:
        raise ChainBroken("no model call of this draw was seen on the wire")
    said = [call for call in calls if output_of(call.path, call.reply).text.strip() == answer.strip()]
    if not said:
        raise ChainBroken("the answer is not what the model said: it was changed after the model")
    if len(said) > 1:
        raise ChainBroken(f"{len(said)} model calls gave this answer; one draw is proved by one call")
    proof, request = said[0], asked(said[0].path, said[0].request)
    check_block(request.prompt, context, case)
    check_whole(request, output_of(proof.path, proof.reply), whole=whole)
    return proof


def prove_on_wire(
    exchanges: Sequence[Exchange],
    case: Case,
    context: Context,
    answer: str,
    *,
    fenced: bool,
    whole: bool = True,
) -> Exchange | None:
    """The one exchange that proves a draw; None where a bot without our fence leaves it open.

    ``fenced``: the bot promises the fence. One that does not, and whose prompts hold none, is proved by its
    chunks: each stands verbatim in the prompt of the one call that gave this answer. ``whole``: an answer
    that was cut at its length limit proves nothing.

    Raises:
        ChainBroken: the fence says that the model was given something else.
        PromptCut: the call that made the answer was cut.
    """
    calls = [call for call in exchanges if is_generation(call.path) and 200 <= call.status < 300]
    if fenced or any(
        _OPENING.search(_foreign(asked(call.path, call.request).prompt, case)) for call in calls
    ):
        return prove_observed(exchanges, case, context, answer, whole=whole)
    said = [call for call in calls if output_of(call.path, call.reply).text.strip() == answer.strip()]
    if len(said) != 1:
        return None
    request = asked(said[0].path, said[0].request)
    check_whole(request, output_of(said[0].path, said[0].reply), whole=whole)
    prompt = _foreign(request.prompt, case)
    texts = [_foreign([chunk.text], case).strip() for chunk in context.chunks]
    return said[0] if texts and all(text and text in prompt for text in texts) else None


def _foreign(prompt: Sequence[str], case: Case) -> str:
    """A text without the user's own words, which are no context."""
    text = "\n".join(prompt)
    for own in (case.question, *(turn.content for turn in case.history)):
        text = text.replace(own, "")
    return text


def prove_reported(prompt: Sequence[Message], case: Case, context: Context) -> None:
    """The prompt that the bot returned holds the context; as good as the bot's word.

    Raises:
        ChainBroken: it does not.
    """
    check_block([message.content for message in prompt], context, case)
