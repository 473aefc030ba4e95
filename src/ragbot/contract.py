"""The wire of ragbot: questions, contexts and replies, the digest of a context and its fence in a prompt.

Owns the JSON shapes and the bytes that a grader must be able to re-derive by itself; golden vectors in the
tests hold them still. Leaves retrieving and prompting to ``answer``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

MAX_QUESTION = 4_000
MAX_TURNS = 40
MAX_K = 100

# ---------------------------------------------------------------- digest and fence


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def utf8(text: str) -> bytes:
    """UTF-8 bytes of ``text``; a lone surrogate becomes U+FFFD, so that no text is without bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def tagged(name: str, parts: Any) -> str:
    """Digest of a tuple: sha256 of ``NAME.v1\\n`` and the canonical JSON of ``parts``."""
    return "sha256:" + hashlib.sha256(utf8(f"{name}.v1\n{canonical_json(parts)}")).hexdigest()


def short(digest: str) -> str:
    """The first 16 hex digits, as they stand in a fence."""
    return digest.removeprefix("sha256:")[:16]


def context_digest(chunks: Iterable[Chunk]) -> str:
    """Digest of the chunks in rank order, ids and texts only; similarities stay outside."""
    return tagged("context", [{"id": chunk.id, "text": chunk.text} for chunk in chunks])


def context_block(chunks: Sequence[Chunk], digest: str) -> str:
    """The block that carries a context in a prompt, opened and closed by its own digest."""
    body = "\n\n".join(f"[{chunk.id}]\n{chunk.text}" for chunk in chunks)
    return f"<<context {short(digest)}>>\n{body}\n<<end {short(digest)}>>"


# ---------------------------------------------------------------- values


class Wire(BaseModel):
    """A frozen value with no field that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


QuestionText = Annotated[
    str,
    Field(max_length=MAX_QUESTION, json_schema_extra={"pattern": r"\S"}),
    AfterValidator(_not_blank),
]


# No `true` for 1, no "5" for 5: what the schema of a call refuses is refused.
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]


class Chunk(Wire):
    """One retrieved passage; ``similarity`` is the cosine in [-1, 1]."""

    id: str
    text: str
    similarity: Number | None = None


class Context(Wire):
    """What retrieval returned: the chunks in rank order and their digest, which must be theirs."""

    chunks: tuple[Chunk, ...]
    digest: str

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Self:
        """A context with the digest its chunks have."""
        return cls(chunks=tuple(chunks), digest=context_digest(chunks))

    @property
    def ids(self) -> list[str]:
        """Chunk ids in rank order."""
        return [chunk.id for chunk in self.chunks]

    @model_validator(mode="after")
    def _same_digest(self) -> Self:
        if self.digest != context_digest(self.chunks):
            raise ValueError("the digest is not that of these chunks")
        return self


class Turn(Wire):
    """One earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=8_000)


class Message(Wire):
    """One message of a prompt, as the model call received it."""

    role: Literal["system", "user", "assistant"]
    content: str


class PlantedSection(Wire):
    """A section that stands in the index for one question only."""

    id: str = Field(min_length=1, max_length=200)
    title: str = Field(max_length=200)
    text: str = Field(min_length=1, max_length=20_000)


class Overlay(Wire):
    """What a tester plants for one question: sections in the index, a suffix of the system prompt."""

    system_suffix: str | None = Field(default=None, max_length=20_000)
    sections: tuple[PlantedSection, ...] = Field(default=(), max_length=20)


class ChatRequest(Wire):
    """What a person asks: a question after ``history``."""

    question: QuestionText
    history: tuple[Turn, ...] = Field(default=(), max_length=MAX_TURNS)


class Question(ChatRequest):
    """A question with the overlay a tester may lay over it."""

    overlay: Overlay | None = None


class RetrieveRequest(Question):
    """Body of ``POST /retrieve``; ``k`` chunks, or as many as the service gives by default."""

    k: Whole | None = Field(default=None, ge=1, le=MAX_K)


class AnswerRequest(Question):
    """Body of ``POST /answer``: one draw of an answer to ``question`` from ``context``.

    ``temperature`` in [0, 2]; an answer longer than ``max_tokens`` is cut: its finish reason is ``length``.
    """

    context: Context
    seed: Whole | None = Field(default=None, ge=0, lt=2**32)
    temperature: Number = Field(default=0.0, ge=0, le=2)
    max_tokens: Whole = Field(default=320, ge=1, le=2_048)


class Usage(Wire):
    """Tokens of one model call, as the server counted them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Reply(Wire):
    """An answer with what it was made from: context, prompt, model. ``finish_reason`` is the model's own."""

    answer: str
    context: Context
    prompt: tuple[Message, ...]
    model: str
    finish_reason: str | None = None
    usage: Usage = Usage()


class Problem(Wire):
    """Why a call was refused or failed."""

    error: str
