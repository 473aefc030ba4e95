"""The twin over its own wire: retrieve once a case, answer once a draw with that context."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

import httpx
from pydantic import BaseModel, Field, ValidationError

from evalrun.addresses import BotUrl
from evalrun.digest import read_json, utf8
from evalrun.errors import UnavailableError
from evalrun.http import Service, Watch, refusal
from evalrun.jsonl import first_fault
from evalrun.network import network
from evalrun.records import Attack, Case, Context, Reply
from evalrun.targets import TARGETS, BadReply, Offers, Setting, Target, TargetOptions

R = TypeVar("R", bound=BaseModel)


class RagbotOptions(TargetOptions):
    """``target`` of a config for a ragbot; ``k`` chunks are retrieved for each question."""

    kind: Literal["ragbot"]
    k: int = Field(default=5, ge=1, le=100)
    url: BotUrl | None = None

    @property
    def offers(self) -> Offers:
        """Everything."""
        return Offers(
            retrieval=True,
            contexts=True,
            ids=True,
            prompt=True,
            history=True,
            seed=True,
            sampling=True,
            overlay=True,
            usage=True,
        )


@TARGETS("ragbot")
class Ragbot(Target):
    """A running ``ragbot serve --trace``."""

    Options = RagbotOptions
    fenced = True

    def __init__(self, options: RagbotOptions, setting: Setting) -> None:
        self.offers = options.offers
        self._options = options
        self._service = Service(
            "the bot",
            setting.url,
            setting.limits,
            transport=setting.carried(lambda: network(setting.url, setting.limits.concurrency)),
            launched=setting.launched,
        )
        self._sampling = {"temperature": setting.temperature, "max_tokens": setting.max_tokens}

    @property
    def retries(self) -> int:
        """How many calls were made again."""
        return self._service.retries

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def about(self) -> dict[str, Any]:
        """``GET /about``."""
        response = await self._service.call("GET", "/about")
        if response.status_code != 200:
            raise _refused("/about", response)
        try:
            value = read_json(response.content)
        except ValueError:
            raise BadReply("/about: the reply is not JSON", "is it a ragbot that listens there?") from None
        return value if isinstance(value, dict) else {}

    async def retrieve(self, case: Case) -> Context:
        """``POST /retrieve``."""
        body = {
            "question": case.question,
            "k": self._options.k,
            "history": [turn.model_dump() for turn in case.history],
            **_overlay(case.attack),
        }
        response = await self._service.call("POST", "/retrieve", body)
        return _parsed("/retrieve", response, Context)

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """``POST /answer`` with the context that was retrieved for the case."""
        assert context is not None
        body = {
            "question": case.question,
            "context": context.model_dump(exclude={"numbered"}),
            "history": [turn.model_dump() for turn in case.history],
            "seed": seed,
            **_overlay(case.attack),
            **{name: value for name, value in self._sampling.items() if value is not None},
        }
        response = await self._service.call("POST", "/answer", body, watch=watch)
        return _parsed("/answer", response, Reply)


def _overlay(attack: Attack | None) -> dict[str, Any]:
    """What an attack plants; nothing at all for a question that plants nothing."""
    if attack is None or not attack.needs_overlay:
        return {}
    sections = [section.model_dump() for section in attack.planted]
    return {"overlay": {"system_suffix": attack.system_suffix, "sections": sections}}


def _refused(path: str, response: httpx.Response) -> UnavailableError:
    if response.status_code == 404 and path in ("/retrieve", "/answer"):
        return UnavailableError(f"{path}: HTTP 404", "start the bot with: ragbot serve --trace")
    return refusal(response)(f"{path}: HTTP {response.status_code}: {response.text[:200]}")


def _parsed(path: str, response: httpx.Response, record: type[R]) -> R:
    if response.status_code != 200:
        raise _refused(path, response)
    try:
        # By way of Python's reader: pydantic's takes no half of a character, which a model may well say.
        value = json.dumps(read_json(response.content), ensure_ascii=False)
        return record.model_validate_json(utf8(value))
    except ValidationError as error:
        raise BadReply(f"{path}: not a {record.__name__.lower()}: {first_fault(error)}") from None
    except ValueError as error:
        raise BadReply(f"{path}: not a {record.__name__.lower()}: not valid JSON: {error}") from None
