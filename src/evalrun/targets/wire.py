"""What is sent to a bot that speaks JSON of its own shape, and how its reply is read.

Owns the template of a request, in which a string that is exactly a slot becomes a value, and the JMESPath
that finds answer and contexts in a reply. How a request gets to the bot belongs to each target.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Self

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import Field, ValidationInfo, field_validator

from evalrun.digest import read_json, utf8
from evalrun.provenance import AnswerMatch, Cut, Rule
from evalrun.records import Case, Chunk, Context, Reply
from evalrun.registry import nearest
from evalrun.targets import BadReply, Offers, TargetOptions

_SLOT = re.compile(r"\{([a-z]+)\}\Z")
_SHOWN = 200
_DONE = "[DONE]"
_LAST_CHILD = {
    "projection": 1,
    "filter_projection": 1,
    "value_projection": 1,
    "subexpression": -1,
    "pipe": -1,
}
"""Kind of node in a parsed JMESPath → which of its children makes what is selected."""


SLOTS = ("question", "history", "seed")


def slot_faults(template: Any) -> list[str]:
    """Why a template never sends the question: nothing in it is ``"{question}"``; what was meant to be."""
    texts = list(_texts(template))
    if "{question}" in texts:
        return []
    meant = []
    for text in texts:
        alone = _SLOT.match(text)
        if alone and alone[1] not in SLOTS:
            meant.append(f"'{text}' is no slot; {nearest(alone[1], SLOTS) or 'known: ' + ', '.join(SLOTS)}")
        elif "{question}" in text:
            meant.append(f"'{text}': a slot is the whole of a text and is never filled within one")
    return ['nothing in it is "{question}": the bot would be asked nothing', *meant]


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, dict | list):
        for part in template.values() if isinstance(template, dict) else template:
            yield from _texts(part)


class WireOptions(TargetOptions):
    """Where a reply holds what."""

    answer: str = "answer"
    contexts: str | None = None
    k: int | None = Field(default=None, ge=1)

    @field_validator("answer", "contexts")
    @classmethod
    def _is_jmespath(cls, text: str | None) -> str | None:
        try:
            if text is not None:
                jmespath.compile(text)
        except JMESPathError as error:
            raise ValueError(f"not a JMESPath expression: {error}") from None
        return text

    @property
    def template(self) -> Any:
        """What is sent, slots unfilled."""
        return None

    @property
    def offers(self) -> Offers:
        """Read off the template and the expressions."""
        named = self.contexts is not None and may_have_ids(self.contexts)
        return Offers(
            contexts=self.contexts is not None,
            ids=named,
            seed=has_slot(self.template, "seed"),
            history=has_slot(self.template, "history"),
        )


class BotOptions(WireOptions):
    """Options of a bot that calls a model itself: how what is seen on that wire proves its answers.

    ``context`` cuts what the bot answered from out of its prompt, of a bot that returns no contexts.
    """

    context: Cut | None = None
    answer_match: AnswerMatch = "exact"

    @field_validator("context")
    @classmethod
    def _one_source(cls, cut: Cut | None, info: ValidationInfo) -> Cut | None:
        if cut is not None and info.data.get("contexts") is not None:
            raise ValueError("stands beside 'contexts': keep one of them")
        return cut

    @property
    def offers(self) -> Offers:
        """Contexts also where they are cut out of the prompt."""
        found = super().offers
        return found.model_copy(update={"contexts": True}) if self.context else found

    @property
    def rule(self) -> Rule:
        """What proves a draw."""
        return Rule(match=self.answer_match, cut=self.context)


# ---------------------------------------------------------------- requests


def filled(template: Any, values: dict[str, Any]) -> Any:
    """``template`` with each string that is exactly a slot of ``values`` replaced by its value."""
    if isinstance(template, dict):
        return {key: filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [filled(item, values) for item in template]
    if isinstance(template, str) and (slot := _SLOT.match(template)):
        return values.get(slot[1], template)
    return template


def has_slot(template: Any, name: str) -> bool:
    """Whether any string of ``template`` is exactly this slot."""
    if isinstance(template, dict):
        return any(has_slot(item, name) for item in template.values())
    if isinstance(template, list):
        return any(has_slot(item, name) for item in template)
    return isinstance(template, str) and template == f"{{{name}}}"


def values_of(case: Case, seed: int) -> dict[str, Any]:
    """The value of each slot for one draw."""
    history = [turn.model_dump() for turn in case.history]
    return {"question": case.question, "history": history, "seed": seed}


# ---------------------------------------------------------------- replies


class Reading:
    """Finds the answer and the contexts of a reply.

    A reply is one value, or the events of a stream: then the texts found in them are joined, and the last
    list of contexts counts.
    """

    def __init__(self, answer: str, contexts: str | None) -> None:
        self._answer = jmespath.compile(answer)
        self._contexts = jmespath.compile(contexts) if contexts else None

    @classmethod
    def of(cls, options: WireOptions) -> Self:
        """The reading that options ask for."""
        return cls(options.answer, options.contexts)

    def reply(self, values: Sequence[Any], streamed: bool = False) -> Reply:
        """The reply in ``values``.

        Raises:
            BadReply: an expression finds nothing, or something else; shows what is there.
        """
        for value in values:
            if streamed and isinstance(value, dict) and value.get("error"):
                raise BadReply(f"the stream holds an error: {shown(value)}")
        texts = [text for value in values if isinstance(text := _search(self._answer, value), str)]
        if not texts:
            raise self._nothing("text", "answer", self._answer.expression, values)
        return Reply(answer=utf8("".join(texts)).decode(), context=self._context(values))

    def _context(self, values: Sequence[Any]) -> Context | None:
        if self._contexts is None:
            return None
        found = [item for value in values if isinstance(item := _search(self._contexts, value), list)]
        if not found:
            raise self._nothing("list", "contexts", self._contexts.expression, values)
        return context_of(found[-1])

    def _nothing(self, kind: str, key: str, path: str, values: Sequence[Any]) -> BadReply:
        there = shown(values[0]) if values else "an empty stream"
        more = f" and {len(values) - 1} more events" if len(values) > 1 else ""
        return BadReply(
            f"no {kind} at '{path}' in the reply: {there}{more}; "
            f"set target.{key} to the JMESPath of the {kind} there"
        )


def _search(expression: Any, value: Any) -> Any:
    try:
        return expression.search(value)
    except JMESPathError as error:
        told = str(error)[:_SHOWN]
        raise BadReply(f"{expression.expression}: {told}, in the reply: {shown(value)}") from None


def context_of(items: Sequence[Any]) -> Context:
    """Chunks from texts, or from objects with a ``text`` and, best of all, an ``id``.

    Where one has no id, none counts: then they are numbered, and the context says so.

    Raises:
        BadReply: an item is neither.
    """
    named = all(isinstance(item, dict) and item.get("id") is not None for item in items)
    chunks = tuple(_chunk(number, item, named) for number, item in enumerate(items, start=1))
    return Context.of(chunks).model_copy(update={"numbered": not named})


def _chunk(number: int, item: Any, named: bool) -> Chunk:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise BadReply(
            f"context {number} is neither text nor an object with a text: {shown(item)}; "
            "write target.contexts like sources[].{id: key, text: body}"
        )
    name = item["id"] if named else number
    if isinstance(name, dict | list):
        raise BadReply(f"context {number} has an id that is no text: {shown(name)}")
    return Chunk(
        id=utf8(str(name)).decode(),
        text=utf8(item["text"]).decode(),
        similarity=_similarity(item.get("similarity")),
    )


def _similarity(value: Any) -> float | None:
    """A finite number, or nothing: what a bot says of it decides nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    with contextlib.suppress(OverflowError):
        return float(value) if math.isfinite(value) else None
    return None


def may_have_ids(expression: str) -> bool:
    """Whether what ``expression`` selects can have ids: False where it makes objects of other keys only."""
    node = jmespath.compile(expression).parsed
    while node["type"] in _LAST_CHILD:
        node = node["children"][_LAST_CHILD[node["type"]]]
    return node["type"] != "multi_select_dict" or any(pair["value"] == "id" for pair in node["children"])


def shown(value: Any) -> str:
    """``value`` as JSON, shortened: long texts cut, of long lists the beginning."""
    text = json.dumps(_shortened(value), ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value[:2]] + (["…"] if len(value) > 2 else [])
    return value[:39] + "…" if isinstance(value, str) and len(value) > 40 else value


# ---------------------------------------------------------------- streams


def body_values(text: str, media_type: str) -> tuple[list[Any], bool]:
    """(the values in a body, whether it is a stream): one JSON text, NDJSON lines, or server-sent events.

    Raises:
        BadReply: it is none of these.
    """
    text = text.removeprefix("\ufeff")
    if media_type == "text/event-stream" or text.startswith(("data:", "event:", ":")):
        return list(_events(text)), True
    try:
        return [read_json(text)], False
    except ValueError:
        pass
    try:
        return [read_json(line) for line in text.split("\n") if line.strip()], True
    except ValueError:
        raise BadReply(f"the reply is no JSON: {text[:_SHOWN]!r}") from None


def _events(text: str) -> Iterator[Any]:
    """The data of server-sent events, as JSON where it is that, else as text.

    Lines end as they like, and an empty one ends an event
    (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream); the last event
    counts also where the stream stops before that.
    """
    event: list[str] = []
    for line in (*re.split(r"\r\n|\n|\r", text), ""):
        if line:
            event.append(line)
            continue
        data = "\n".join(one[5:].removeprefix(" ") for one in event if one.startswith("data:"))
        if any(one.replace(" ", "") == "event:error" for one in event):
            raise BadReply(f"the stream holds an error: {data[:_SHOWN]}")
        event = []
        if not data or data == _DONE:
            continue
        try:
            yield read_json(data)
        except ValueError:
            yield data
