"""Any bot that answers a JSON request with JSON: a body template, and JMESPath for answer and contexts."""

from __future__ import annotations

import re
from typing import Any, Literal

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import Field, field_validator

from evalrun.digest import utf8
from evalrun.errors import UnavailableError
from evalrun.http import Service, Watch
from evalrun.records import Case, Chunk, Context, Record, Reply
from evalrun.targets import TARGETS, BadReply, Offers

_SLOT = re.compile(r"\{(question|history|seed)\}\Z")
_USES_SEED = re.compile(r"\{seed\}")


class HttpOptions(Record):
    """``target`` of a config for an HTTP bot.

    ``body`` is JSON in which the strings ``"{question}"``, ``"{history}"`` and ``"{seed}"`` are replaced by
    the values, never by text in text. ``answer`` and ``contexts`` are JMESPath expressions on the reply;
    contexts give strings, or objects with ``id`` and ``text``.
    """

    kind: Literal["http"]
    url: str | None = None
    path: str = ""
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = Field(default_factory=lambda: {"question": "{question}"})
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


def filled(template: Any, values: dict[str, Any]) -> Any:
    """``template`` with each string that is exactly a slot replaced by its value."""
    if isinstance(template, dict):
        return {key: filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [filled(item, values) for item in template]
    if isinstance(template, str) and (slot := _SLOT.match(template)):
        return values[slot[1]]
    return template


def has_slot(template: Any, pattern: re.Pattern[str]) -> bool:
    """Whether any string of ``template`` matches."""
    if isinstance(template, dict):
        return any(has_slot(item, pattern) for item in template.values())
    if isinstance(template, list):
        return any(has_slot(item, pattern) for item in template)
    return isinstance(template, str) and bool(pattern.fullmatch(template))


@TARGETS("http")
class Http:
    """A bot behind one URL."""

    Options = HttpOptions

    def __init__(
        self, options: HttpOptions, service: Service, *, temperature: float | None, max_tokens: int | None
    ) -> None:
        self._options = options
        self._service = service
        self._answer = jmespath.compile(options.answer)
        self._contexts = jmespath.compile(options.contexts) if options.contexts else None
        self.offers = Offers(
            contexts=options.contexts is not None, ids=True, seed=has_slot(options.body, _USES_SEED)
        )

    async def about(self) -> dict[str, Any]:
        """Nothing is known of such a bot but its URL, which is no part of a run."""
        return {"kind": "http"}

    async def retrieve(self, case: Case) -> Context | None:
        """None: such a bot retrieves on each answer."""
        return None

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One request, one answer."""
        history = [turn.model_dump() for turn in case.history]
        body = filled(self._options.body, {"question": case.question, "history": history, "seed": seed})
        response = await self._service.call(self._options.method, self._options.path, body, watch=watch)
        if not 200 <= response.status_code < 300:
            where = self._service.shown(self._options.path)
            raise UnavailableError(f"{where}: HTTP {response.status_code}: {response.text[:200]}")
        try:
            value = response.json()
        except ValueError:
            raise BadReply(f"the reply is not JSON: {response.text[:80]!r}") from None
        return Reply(answer=self._said(value), context=self._found(value))

    def _said(self, value: Any) -> str:
        answer = _search(self._answer, value)
        if not isinstance(answer, str):
            known = ", ".join(sorted(value)) if isinstance(value, dict) else type(value).__name__
            raise BadReply(f"no answer at '{self._options.answer}'; the reply has: {known}")
        return utf8(answer).decode()

    def _found(self, value: Any) -> Context | None:
        if self._contexts is None:
            return None
        found = _search(self._contexts, value)
        if not isinstance(found, list):
            raise BadReply(f"no list of contexts at '{self._options.contexts}'")
        return Context.of(tuple(_chunk(number, item) for number, item in enumerate(found, start=1)))


def _search(expression: Any, value: Any) -> Any:
    try:
        return expression.search(value)
    except JMESPathError as error:
        raise BadReply(f"{expression.expression}: {error}") from None


def _chunk(number: int, item: Any) -> Chunk:
    if isinstance(item, str):
        return Chunk(id=str(number), text=utf8(item).decode())
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return Chunk(id=str(item.get("id", number)), text=utf8(item["text"]).decode())
    raise BadReply("a context is neither text nor an object with a text")
