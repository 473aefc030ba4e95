"""Proof that a graded context is the one the model was given.

Owns what counts as proof: one observed model call whose prompt holds this context's block exactly once, no
other block beside it, and whose output is this answer; and what stands for the block where a bot has none.
Pure functions over exchanges; the tap observes, the sampler and ``verify`` ask, :mod:`evalrun.wires` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from evalrun.digest import context_block, context_digest
from evalrun.language.text import folded, plain
from evalrun.records import Case, Chunk, Context, Exchange, Message, Record
from evalrun.wires import Asked, Output, asked, is_generation, output_of

AnswerMatch = Literal["exact", "normalised", "contains"]
_Mark = Annotated[str, Field(min_length=1)]
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_OPENING = re.compile(r"<<context [0-9a-f]{16}>>")
_CHARACTERS_PER_TOKEN = 10


class ChainBroken(Exception):
    """The chain question → context → prompt → answer does not hold; the text says where."""


class PromptCut(Exception):
    """The model's server dropped a part of the prompt or cut the answer: an error of this draw."""


class NoContext(Exception):
    """What was to be cut out of the prompt is not there exactly once: an error of this draw."""


class Cut(Record):
    """Where the graded context stands in a prompt: between two texts that are there once.

    ``split`` stands between its chunks; without it all of it is one chunk.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    source: Literal["tap"] = Field(alias="from")
    between: tuple[_Mark, _Mark]
    split: _Mark | None = None


class Rule(Record):
    """What proves a draw of one bot.

    ``fenced``: it promises the fence around its context. ``match``: how what the model said relates to the
    bot's answer. ``cut``: where in the prompt the context stands, of a bot that returns none.
    """

    fenced: bool = False
    match: AnswerMatch = "exact"
    cut: Cut | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any], *, fenced: bool) -> Rule:
        """The rule of a ``target`` as it stands in a run folder."""
        cut = settings.get("context")
        return cls(
            fenced=fenced,
            match=settings.get("answer_match", "exact"),
            cut=None if cut is None else Cut.model_validate(cut),
        )


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
    calls = _generations(exchanges)
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
    rule: Rule,
    *,
    whole: bool = True,
) -> Exchange | None:
    """The one exchange that proves a draw; None where a bot without our fence leaves it open.

    A bot that does not promise the fence, and whose prompts hold none, is proved by the one call whose prompt
    holds the context (each chunk verbatim, or as the rule cuts it out) and whose output is the answer, as the
    rule matches them. ``whole``: an answer that was cut at its length limit proves nothing.

    Raises:
        ChainBroken: the fence says that the model was given something else.
        PromptCut: the call that made the answer was cut.
    """
    calls = _generations(exchanges)
    if rule.cut is None and (rule.fenced or any(_has_fence(call, case) for call in calls)):
        return prove_observed(exchanges, case, context, answer, whole=whole)
    said = _that_said(calls, answer, rule)
    proofs = [call for call in said if _holds(asked(call.path, call.request).prompt, context, case, rule)]
    for call in proofs if len(proofs) == 1 else said if len(said) == 1 else ():
        check_whole(asked(call.path, call.request), output_of(call.path, call.reply), whole=whole)
    return proofs[0] if len(proofs) == 1 else None


def context_on_wire(exchanges: Sequence[Exchange], case: Case, answer: str, rule: Rule) -> Context:
    """The context that stood in the prompt of the call that made the answer, as the rule cuts it out.

    Where no call that holds a context made the answer, that of any call: a context, if no proof.

    Raises:
        NoContext: none is there, a mark is there more than once, or calls hold different ones; or the user
            wrote a mark, and so might have written a context.
    """
    assert rule.cut is not None
    calls = _generations(exchanges)
    start, end = rule.cut.between
    own = "\n".join([case.question, *(turn.content for turn in case.history)])
    for mark in filter(own.__contains__, (start, end)):
        raise NoContext(f"the question or its history holds {mark!r} itself")
    for some in (_that_said(calls, answer, rule), calls):
        cuts = (context_between(asked(call.path, call.request).prompt, rule.cut) for call in some)
        found = {cut.digest: cut for cut in cuts if cut is not None}
        if len(found) > 1:
            raise NoContext(f"{len(found)} different contexts stand between {start!r} and {end!r}")
        if found:
            return found.popitem()[1]
    raise NoContext(
        f"no prompt of this draw holds {start!r}" if calls else "no model call of this draw was seen"
    )


def context_between(prompt: Sequence[str], cut: Cut) -> Context | None:
    """What stands between the two marks; None where the first is not there. Chunks are numbered.

    Raises:
        NoContext: a mark is there more than once, or the second is missing.
    """
    text, (start, end) = "\n".join(prompt), cut.between
    starts = _places(text, start)
    if not starts:
        return None
    if start != end and len(starts) > 1:
        raise NoContext(f"the prompt holds {start!r} {len(starts)} times instead of once")
    rest = text[starts[0] + len(start) :]
    ends = _places(rest, end)
    if len(ends) != 1:
        raise NoContext(f"after {start!r} the prompt holds {end!r} {len(ends)} times instead of once")
    inner = rest[: ends[0]]
    pieces = filter(None, (piece.strip() for piece in (inner.split(cut.split) if cut.split else [inner])))
    chunks = tuple(Chunk(id=str(number), text=piece) for number, piece in enumerate(pieces, start=1))
    return Context.of(chunks).model_copy(update={"numbered": True})


def _places(text: str, mark: str) -> list[int]:
    """Where ``mark`` stands in ``text``; places may overlap."""
    return [found.start() for found in re.finditer(f"(?={re.escape(mark)})", text)]


def answers_match(output: str, answer: str, match: AnswerMatch) -> bool:
    """Whether what a model said is a bot's answer.

    ``exact``: but for space around it. ``normalised``: but for space, case, quotes' shape and Markdown marks.
    ``contains``: so, or one of the two stands in the other, as whole words.
    """
    if match == "exact":
        return output.strip() == answer.strip()
    one, other = sorted((_bare(output), _bare(answer)), key=len)
    if match == "normalised" or not one:
        return one == other
    return re.search(rf"(?<!\w){re.escape(one)}(?!\w)", other) is not None


def _bare(text: str) -> str:
    """A text as its reader sees it: no emphasis, list marks, headings, code marks or targets of links."""
    return folded(plain(_LINK.sub(r"\1", text.replace("`", ""))))


def _generations(exchanges: Iterable[Exchange]) -> list[Exchange]:
    return [call for call in exchanges if is_generation(call.path) and 200 <= call.status < 300]


def _that_said(calls: Iterable[Exchange], answer: str, rule: Rule) -> list[Exchange]:
    return [
        call for call in calls if answers_match(output_of(call.path, call.reply).text, answer, rule.match)
    ]


def _has_fence(call: Exchange, case: Case) -> bool:
    return _OPENING.search(_foreign(asked(call.path, call.request).prompt, case)) is not None


def _holds(prompt: Sequence[str], context: Context, case: Case, rule: Rule) -> bool:
    """Whether a prompt holds the context: as the rule cuts it out, else each chunk verbatim."""
    if rule.cut is not None:
        try:
            found = context_between(prompt, rule.cut)
        except NoContext:
            return False
        return found is not None and found.digest == context.digest
    text = _foreign(prompt, case)
    chunks = [_foreign([chunk.text], case).strip() for chunk in context.chunks]
    return bool(chunks) and all(chunk and chunk in text for chunk in chunks)


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
