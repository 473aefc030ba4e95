"""Judge providers: things that complete a conversation into JSON of a given schema.

Owns the protocol and the registry ``model``; each module of this folder registers one provider. Leaves what
is asked, and what the reply means, to the judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evalrun.errors import UserError
from evalrun.records import Message
from evalrun.registry import Registry


@dataclass(frozen=True)
class Completion:
    """What a model replied. ``finish_reason`` is ``stop``, ``length`` or the provider's own word."""

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class JudgeModel(Protocol):
    """A model that can be a judge. ``name`` is its name at the provider, ``digest`` its weights' if known."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str | None: ...

    async def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        temperature: float,
        seed: int,
        max_tokens: int,
        num_ctx: int,
    ) -> Completion:
        """One reply, shaped by ``schema`` where the provider can do so.

        Raises:
            UnavailableError: the model could not be had.
        """
        ...

    async def close(self) -> None:
        """Give back what the provider holds open."""
        ...


model: Registry[Any] = Registry("model", "evalrun.models")


def split_spec(spec: str) -> tuple[str, str]:
    """``ollama/qwen2.5-coder:1.5b`` → ``("ollama", "qwen2.5-coder:1.5b")``.

    Raises:
        UserError: the text is not PROVIDER/MODEL.
    """
    provider, slash, name = spec.partition("/")
    if not (provider and slash and name):
        raise UserError(f"'{spec}' names no model", "write PROVIDER/MODEL, like ollama/qwen2.5-coder:1.5b")
    return provider, name
