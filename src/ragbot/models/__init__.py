"""Chat and embedding providers: what the rest of ragbot asks of a model, and how one is found by name.

Owns the two protocols and the two registries. A provider is one file in this folder and one decorator; it
imports its library inside its functions, so that an unused provider costs nothing.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

from ragbot.contract import Message, Usage
from ragbot.errors import RagbotError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One call of a chat model; ``window`` and ``max_tokens`` count tokens."""

    messages: tuple[Message, ...]
    temperature: float
    max_tokens: int
    window: int
    seed: int | None = None


@dataclass(frozen=True)
class Completion:
    """A whole answer of a chat model; ``finish_reason`` is ``length`` where it was cut."""

    text: str
    model: str
    finish_reason: str | None
    usage: Usage


class ChatModel(Protocol):
    """Something that continues a conversation. Both ways raise ModelError for anything but a whole answer."""

    @property
    def name(self) -> str: ...

    async def complete(self, call: Call) -> Completion: ...

    def stream(self, call: Call) -> AsyncGenerator[str | Completion]:
        """Pieces of text as they come, then the whole as a :class:`Completion`."""
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Something that turns texts into vectors, one row a text, in the order of the texts."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, dims); rows need no unit length. Raises ModelError."""
        ...


@runtime_checkable
class Warmable(Protocol):
    """A provider that can get ready for its first call, asking nobody; else that call does it."""

    def warm(self) -> None: ...


class Opened(Generic[T]):
    """What a provider opens with its first call, in a thread: importing its library takes half a second, for
    which answers that are streaming must not wait."""

    def __init__(self, opening: Callable[[], T]) -> None:
        self.found: T | None = None
        self._opening = opening
        self._lock = asyncio.Lock()

    async def get(self) -> T:
        """The one there is."""
        async with self._lock:
            if self.found is None:
                self.found = await asyncio.to_thread(self._opening)
            return self.found


_chat: dict[str, Callable[[str], ChatModel]] = {}
_embedders: dict[str, Callable[[str], Embedder]] = {}
C = TypeVar("C", bound=Callable[[str], ChatModel])
E = TypeVar("E", bound=Callable[[str], Embedder])


def chat_provider(name: str) -> Callable[[C], C]:
    """Decorator that registers a chat provider; it is called with the model's name."""

    def register(factory: C) -> C:
        _chat[name] = factory
        return factory

    return register


def embed_provider(name: str) -> Callable[[E], E]:
    """Decorator that registers an embedding provider; it is called with the model's name, or ``""``."""

    def register(factory: E) -> E:
        _embedders[name] = factory
        return factory

    return register


def chat_model(spec: str) -> ChatModel:
    """The chat model of ``MODEL`` or ``PROVIDER/MODEL``; ``ollama`` where no provider is named."""
    _load()
    provider, _, model = spec.partition("/")
    if provider in _chat and model:
        return _chat[provider](model)
    return _chat["ollama"](spec)


def embedder(spec: str) -> Embedder:
    """The embedder of ``PROVIDER`` or ``PROVIDER/MODEL``.

    Raises:
        RagbotError: no such provider.
    """
    _load()
    provider, _, model = spec.partition("/")
    if provider not in _embedders:
        raise RagbotError(f"unknown embedder '{provider}'", f"known: {', '.join(sorted(_embedders))}")
    return _embedders[provider](model)


def split_dims(model: str) -> tuple[str, int | None]:
    """``MODEL@256`` → ``("MODEL", 256)``; None where no dimensions are named."""
    name, at, dims = model.rpartition("@")
    return (name, int(dims)) if at and dims.isascii() and dims.isdigit() else (model, None)


def _load() -> None:
    """Import every file of this folder, so that its decorators have run."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def ollama_host() -> str:
    """Base URL of the Ollama server, as its own tools read it from ``OLLAMA_HOST``."""
    host = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/") or "http://127.0.0.1:11434"
    if "://" in host:
        return host
    host, slash, path = host.partition("/")
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit() or (":" in name and not name.startswith("[")):
        name, port = host, "11434"
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    # A server that listens on every interface is reached on loopback.
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    return f"http://{name}:{port}{slash}{path}"


def is_loopback(url: str) -> bool:
    """Whether ``url`` leads to this machine, where no proxy of the environment has a say."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
