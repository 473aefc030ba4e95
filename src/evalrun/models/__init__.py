"""Judge providers: things that complete a conversation into JSON of a given schema.

Owns the protocol and the registry ``model``; each module of this folder registers one provider. Leaves what
is asked, and what the reply means, to the judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from evalrun.errors import UnavailableError, UserError
from evalrun.http import JSON, carried, json_request, lost, reason_of, refusal
from evalrun.network import deadlines
from evalrun.records import Message
from evalrun.registry import Registry
from evalrun.wires import output_of


@dataclass(frozen=True)
class Completion:
    """What a model replied. ``finish_reason`` is ``stop``, ``length`` or the provider's own word.

    ``window`` is the one that was sent; None where the server keeps its own and refuses what exceeds it.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    window: int | None = None


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


class Provider(Protocol):
    """What is registered: a class that makes judges, and knows its server and what connects to it.

    ``takes_key``: whether the variable that ``judge.key_env`` names means something to it.
    """

    takes_key: bool

    def __call__(
        self,
        name: str,
        base_url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout: float = 120.0,
        digest: str | None = None,
    ) -> JudgeModel:
        """The judge ``name`` at ``base_url``; ``transport`` carries its requests (default: the network)."""
        ...

    @staticmethod
    def default_url(env: Mapping[str, str]) -> str | None:
        """Where the server is, if a config does not say; None where the environment does not either."""
        ...

    @staticmethod
    def upstream(base_url: str, concurrency: int, key_env: str | None) -> httpx.AsyncBaseTransport:
        """What connects, below the recording: keys and signatures are added here and stored nowhere."""
        ...


model: Registry[Provider] = Registry("model", "evalrun.models")


def split_spec(spec: str) -> tuple[str, str]:
    """``ollama/qwen2.5-coder:1.5b`` → ``("ollama", "qwen2.5-coder:1.5b")``.

    Raises:
        UserError: the text is not PROVIDER/MODEL.
    """
    provider, slash, name = spec.partition("/")
    if not (provider and slash and name):
        raise UserError(f"'{spec}' names no model", "write PROVIDER/MODEL, like ollama/qwen2.5-coder:1.5b")
    return provider, name


def strict(schema: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
    """``schema`` as servers want it that enforce one: objects closed, words typed, no key of ``without``.

    The order of properties stays: it is the order in which a model writes them.
    """
    made = {key: _strict(value, without) for key, value in schema.items() if key not in without}
    if made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    if "type" not in made and made.get("enum") and all(isinstance(word, str) for word in made["enum"]):
        made = {"type": "string"} | made
    return made


def _strict(value: Any, without: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        if "properties" in value or "type" in value or "enum" in value or "items" in value:
            return strict(value, without)
        return {name: _strict(part, without) for name, part in value.items()}
    return value


class OverHttp:
    """A judge that makes its requests itself, all to one URL; a subclass is a :class:`Provider`."""

    def __init__(
        self,
        name: str,
        base_url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout: float = 120.0,
        digest: str | None = None,
    ) -> None:
        self.name = name
        self.digest = digest
        self._url = httpx.URL(self.url_of(base_url, name))
        self._transport = transport or self.upstream(base_url, 4, None)
        self._deadlines = deadlines(timeout)

    @staticmethod
    def url_of(base_url: str, name: str) -> str:
        """Where the requests of the model ``name`` go."""
        raise NotImplementedError

    @staticmethod
    def upstream(base_url: str, concurrency: int, key_env: str | None) -> httpx.AsyncBaseTransport:
        """What connects, as in :class:`Provider`."""
        raise NotImplementedError

    async def asked(self, body: Mapping[str, Any], holds: str) -> Completion:
        """The reply to one request, which must be a JSON object with the key ``holds``.

        Raises:
            UnavailableError: no connection, a timeout, a status other than 2xx, or another kind of body.
        """
        request = json_request("POST", self._url, _HEADERS, body)
        request.extensions["timeout"] = self._deadlines
        return await _asked(self._transport, request, self.name, holds)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


async def _asked(
    transport: httpx.AsyncBaseTransport, request: httpx.Request, name: str, holds: str
) -> Completion:
    who = f"judge model '{name}' at {request.url.scheme}://{request.url.netloc.decode()}"
    try:
        reply = await carried(transport, request)
    except httpx.RequestError as fault:
        raise lost(fault)(
            f"{who} could not be reached: {reason_of(fault)}", "is judge.base_url right?"
        ) from fault
    if not reply.is_success:
        raise refusal(reply)(
            f"{who} answered {reply.status_code}: {reply.text[:300]}", _HINTS.get(reply.status_code, "")
        )
    if f'"{holds}"'.encode() not in reply.content or not reply.content.lstrip().startswith(b"{"):
        raise UnavailableError(f"{who} sent something that is no chat reply", "is judge.base_url right?")
    said = reply.extensions.get("said") or output_of(request.url.path, reply.text)
    return Completion(said.text, said.finish, said.prompt_tokens, said.completion_tokens)


_HEADERS = httpx.Headers(JSON)
_HINTS = {
    401: "is the key right, and is it set here?",
    403: "may this key or these credentials use the model?",
    404: "does the server have this model, and is judge.base_url right?",
}
