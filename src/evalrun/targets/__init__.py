"""Things that answer questions. To add one: a file here with a class under ``@TARGETS("name")``.

Owns what a target must offer. How often and in which order it is asked belongs to the sampler.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from evalrun.errors import UnavailableError
from evalrun.http import Service, Watch
from evalrun.records import Case, Context, Record, Reply
from evalrun.registry import Registry


class Offers(Record):
    """What a bot can tell of itself; what it cannot lowers the level of proof, and is said.

    ``retrieval``: it retrieves apart from answering, so that one context serves all draws. ``contexts``: it
    returns what it retrieved. ``ids``: its chunks have ids of their own. ``seed``: it passes a seed on to its
    model. ``prompt``: it returns the prompt it sent. ``overlay``: a question may plant sections in its index
    and text after its system prompt.
    """

    retrieval: bool = False
    contexts: bool = False
    ids: bool = False
    seed: bool = False
    prompt: bool = False
    overlay: bool = False


class BadReply(UnavailableError):
    """A reply that is not what this target promises; an error of the draw."""


class Target(Protocol):
    """A bot under test, bound to a service."""

    Options: ClassVar[type[BaseModel]]
    offers: Offers

    async def about(self) -> dict[str, Any]:
        """What the bot says it is: model, versions, digests; empty where it says nothing."""

    async def retrieve(self, case: Case) -> Context | None:
        """The context of a case; None where the bot retrieves on each answer.

        Raises:
            UnavailableError: there is none to be had.
        """

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One answer.

        Raises:
            UnavailableError: there is none to be had.
        """


TARGETS: Registry[Any] = Registry("target", "evalrun.targets")
__all__ = ["TARGETS", "BadReply", "Offers", "Service", "Target"]
