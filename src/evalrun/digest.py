"""Canonical JSON, tagged sha256 and the fences that carry a context or an answer in a prompt.

Owns the bytes that both packages must agree on; golden vectors in the tests hold them still. Leaves to
others what is digested and why.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol


class HasIdAndText(Protocol):
    """A chunk, as far as a digest is concerned."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: one text for one value.

    Raises:
        ValueError: the value holds a NaN or an infinity.
    """
    return _canonical(value)


_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


MAX_DEPTH = 100
"""Levels of lists and objects in a value that others wrote: each walk over it takes a few calls a level."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text that others sent.

    Raises:
        ValueError: it is no JSON, or nested deeper than :data:`MAX_DEPTH`.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _opened(text) > MAX_DEPTH and is_deep(value):  # few need a walk over them
        raise ValueError("nested too deeply")
    return value


def _opened(text: str | bytes) -> int:
    """How many brackets a text opens, at least those of its lists and objects."""
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def is_deep(value: Any) -> bool:
    """Whether ``value`` is nested deeper than :data:`MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def utf8(text: str) -> bytes:
    """UTF-8 bytes of ``text``; a lone surrogate becomes U+FFFD, so that no text is without bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def sha256_bytes(data: bytes) -> str:
    """``sha256:`` and 64 hex digits of ``data``."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tagged(name: str, parts: Any) -> str:
    """Digest of a tuple: sha256 of ``NAME.v1\\n`` and the canonical JSON of ``parts``."""
    return sha256_bytes(utf8(f"{name}.v1\n{canonical_json(parts)}"))


def short(digest: str) -> str:
    """The first 16 hex digits, as they stand in a fence."""
    return digest.removeprefix("sha256:")[:16]


def context_digest(chunks: Iterable[HasIdAndText]) -> str:
    """Digest of the chunks in rank order, ids and texts only; similarities stay outside."""
    return tagged("context", [{"id": chunk.id, "text": chunk.text} for chunk in chunks])


def context_block(chunks: Sequence[HasIdAndText], digest: str) -> str:
    """The block that carries a context in a prompt, opened and closed by its own digest."""
    body = "\n\n".join(f"[{chunk.id}]\n{chunk.text}" for chunk in chunks)
    return f"<<context {short(digest)}>>\n{body}\n<<end {short(digest)}>>"


def draw_digest(question: str, history: Sequence[Any], context: str | None, answer: str) -> str:
    """What labels hold on to: question, history, context digest and answer, nothing else."""
    turns = [turn if isinstance(turn, Mapping) else turn.model_dump() for turn in history]
    return tagged("draw", [question, turns, context, answer])


def fenced(label: str, text: str, tag: str) -> str:
    """``text``, literal, in a fence that it cannot close: ``tag`` is derived from what it encloses."""
    return f"<<{label} {tag}>>\n{text}\n<<end {label} {tag}>>"


def exchange_tag(question: str, context: str | None, answer: str) -> str:
    """The 16 hex digits that fence question and answer in a judge's prompt."""
    return short(tagged("judged", [question, context, answer]))
