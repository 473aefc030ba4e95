"""Things that answer questions. To add one: a file here with a class under ``@TARGETS("name")``.

Owns what a target must offer. How often and in which order it is asked belongs to the sampler.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import httpx

from evalrun.cassette import CassetteTransport
from evalrun.digest import utf8
from evalrun.errors import UnavailableError
from evalrun.http import Limits, Watch
from evalrun.provenance import Rule
from evalrun.records import Case, Context, Record, Reply
from evalrun.registry import Registry


class Offers(Record):
    """What a bot can tell of itself and be told; what it cannot lowers the level of proof, and is said.

    ``retrieval``: it retrieves apart from answering, so that one context serves all draws. ``contexts``: it
    returns what it retrieved. ``ids``: its chunks have ids of their own, as far as that is known before it
    is asked. ``prompt``: it returns the prompt it sent. ``history``: it is given the turns before a question.
    ``seed``: it passes a seed on to its model. ``sampling``: it takes temperature and max_tokens.
    ``overlay``: a question may plant sections in its index and text after its system prompt. ``usage``: its
    replies say how many tokens they took, also where no tap counts them.
    """

    retrieval: bool = False
    contexts: bool = False
    ids: bool = False
    prompt: bool = False
    history: bool = False
    seed: bool = False
    sampling: bool = False
    overlay: bool = False
    usage: bool = False


class TargetOptions(Record):
    """The keys of ``target`` that belong to one kind."""

    @property
    def offers(self) -> Offers:
        """What a bot with these options offers."""
        return Offers()

    @property
    def tapped(self) -> bool:
        """Whether these options lead the bot's model calls through the tap."""
        return False


class BadReply(UnavailableError):
    """A reply that is not what this target promises; an error of the draw."""


@dataclass(frozen=True)
class Setting:
    """What a target is made in: where the bot listens, if it does, and how hard it may be driven.

    ``launched``: its port is one of this run only. ``tap``: URL of the tap, or empty. ``folder``: that of the
    config. ``replies``: what records the bot's own replies, where that is asked for. ``secrets``: words that
    no text of the bot may bring.
    """

    url: str
    limits: Limits
    folder: Path
    launched: bool = False
    tap: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    replies: CassetteTransport | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def asks(self) -> bool:
        """Whether the bot itself may be asked; in a replay of its own replies nothing of it runs."""
        return self.replies is None or self.replies.cassette.mode != "replay"

    def carried(self, upstream: Callable[[], httpx.AsyncBaseTransport]) -> CassetteTransport | None:
        """What carries the calls to the bot where its replies are recorded; it may ask ``upstream``."""
        if self.replies is not None and self.asks:
            self.replies.connect(upstream())
        return self.replies


class Calling(httpx.AsyncBaseTransport):
    """A bot that speaks no HTTP, as a recording can carry it: one JSON value goes in, one comes out."""

    def __init__(self, ask: Callable[[Any], Awaitable[Any]]) -> None:
        self._ask = ask

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One call.

        Raises:
            BadReply: what the bot returns is no JSON, and so cannot be recorded.
        """
        value = await self._ask(json.loads(await request.aread()))
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadReply(f"what the bot returned cannot be recorded: {error}") from None
        return httpx.Response(200, headers={"content-type": "application/json"}, content=utf8(text))


async def called(carrier: CassetteTransport, name: str, value: Any) -> Any:
    """What a bot that speaks no HTTP, of the kind ``name``, says to ``value``, recorded or asked."""
    request = httpx.Request("POST", f"http://bot/{name}", json=value)
    return (await carrier.handle_async_request(request)).json()


class Target(ABC):
    """A bot under test.

    ``fenced``: it promises the fence around its context, so that a prompt without it is a broken chain.
    ``is_model``: it is a model's server itself, and evalrun its only client.
    """

    Options: ClassVar[type[TargetOptions]]
    fenced: ClassVar[bool] = False
    is_model: ClassVar[bool] = False
    offers: Offers

    @property
    def rule(self) -> Rule:
        """What proves a draw."""
        return Rule(fenced=self.fenced)

    @property
    def retries(self) -> int:
        """How many calls were made again."""
        return 0

    async def about(self) -> dict[str, Any]:
        """What the bot says it is: model, versions, digests; empty where it says nothing.

        Raises:
            UserError: it cannot be asked at all.
        """
        return {}

    async def retrieve(self, case: Case) -> Context | None:
        """The context of a case; None where the bot retrieves on each answer.

        Raises:
            UnavailableError: there is none to be had.
        """
        return None

    @abstractmethod
    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One answer.

        Raises:
            UnavailableError: there is none to be had.
        """

    def ended(self) -> str:
        """How the bot ended for good, with its last output; empty while it can be asked."""
        return ""

    async def close(self) -> None:  # noqa: B027  most hold nothing
        """Let go of what it holds; it is not asked again."""


TARGETS: Registry[Any] = Registry("target", "evalrun.targets")
__all__ = ["TARGETS", "BadReply", "Calling", "Offers", "Setting", "Target", "TargetOptions", "called"]
