"""The vector store: a JSON file of sections and their vectors, and the search over it.

Owns building, storing, checking and ranking. Vectors have unit length, are rounded to int16 and dotted in
integers, so that every CPU ranks alike. Who may search is decided elsewhere: only ``answer`` does.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbot.contract import Chunk, short, tagged
from ragbot.errors import QuestionError, RagbotError
from ragbot.models import Embedder
from ragbot.profile import Profile, Section

FORMAT = "ragbot-index.v1"
UNIT = 32_767
"""The integer that stands for 1.0 in a stored vector."""
REBUILD = "rebuild the index: ragbot index --profile PROFILE, or ragbot serve --build"


@dataclass(frozen=True)
class Index:
    """Sections in profile order with their vectors, shape (sections, dims), int16."""

    embedder: str
    dims: int
    profile: str
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.int16]

    def search(self, query: NDArray[np.int16], k: int) -> tuple[Chunk, ...]:
        """The ``k`` chunks nearest to a :func:`query_vector` by cosine, ties in profile order."""
        dots = self.vectors.astype(np.int64) @ query.astype(np.int64)
        order = np.argsort(-dots, kind="stable")[:k]
        return tuple(
            self.chunks[at].model_copy(update={"similarity": round(int(dots[at]) / UNIT**2, 6)})
            for at in order
        )

    def plus(self, sections: Sequence[Section], embedder: Embedder) -> Index:
        """This index with ``sections`` after its own, for one question.

        Raises:
            QuestionError: an id that is taken.
        """
        if not sections:
            return self
        ids = {chunk.id for chunk in self.chunks} | {section.id for section in sections}
        if len(ids) < len(self.chunks) + len(sections):
            raise QuestionError("a planted section has an id that is taken")
        chunks, vectors = _embedded(sections, embedder)
        return replace(self, chunks=self.chunks + chunks, vectors=np.vstack([self.vectors, vectors]))


def build(profile: Profile, embedder: Embedder) -> Index:
    """Embed every section of ``profile``.

    Raises:
        RagbotError: the embedder returned too few, unusable or zero vectors.
    """
    chunks, vectors = _embedded(profile.sections, embedder)
    return Index(embedder.name, vectors.shape[1], profile.digest, chunks, vectors)


def query_vector(text: str, embedder: Embedder, dims: int) -> NDArray[np.int16]:
    """The unit vector of a question.

    Raises:
        QuestionError: nothing in it can be searched for.
        RagbotError: its size is not that of the index.
    """
    raw = embedder.embed([text])
    if raw.shape != (1, dims):
        raise RagbotError(f"the embedder returned {raw.shape[-1]} dimensions, the index has {dims}", REBUILD)
    if not np.any(raw):
        raise QuestionError("nothing in this question can be searched for", "ask in words")
    vector: NDArray[np.int16] = unit_rows(raw, ["the question"])[0]
    return vector


def unit_rows(raw: NDArray[Any], names: Sequence[str]) -> NDArray[np.int16]:
    """Rows of ``raw`` at unit length, rounded to int16 (1.0 is 32767); ``names`` stand in errors.

    Raises:
        RagbotError: a row that is zero or not finite.
    """
    wide = np.asarray(raw, dtype=np.float64)
    for name, row in zip(names, wide, strict=True):
        if not np.isfinite(row).all() or not row.any():
            raise RagbotError(f"the vector of '{name}' is {'not finite' if row.any() else 'zero'}")
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.sqrt((wide * wide).sum(axis=1))
    odd = ~((lengths > 1e-150) & (lengths < 1e150))  # squares that are no numbers any more
    if odd.any():
        wide = np.where(odd[:, None], wide / np.abs(wide).max(axis=1, keepdims=True), wide)
        lengths = np.sqrt((wide * wide).sum(axis=1))
    rows: NDArray[np.int16] = np.rint(wide / lengths[:, None] * UNIT).astype(np.int16)
    return rows


def _embedded(sections: Sequence[Section], embedder: Embedder) -> tuple[tuple[Chunk, ...], NDArray[np.int16]]:
    raw = embedder.embed([section.text for section in sections])
    if raw.ndim != 2 or len(raw) != len(sections):
        raise RagbotError(f"the embedder returned {len(raw)} vectors for {len(sections)} sections")
    vectors = unit_rows(raw, [section.id for section in sections])
    return tuple(Chunk(id=section.id, text=section.text) for section in sections), vectors


# ---------------------------------------------------------------- the file


def cache_folder() -> Path:
    """``RAGBOT_CACHE``, or the folder this platform keeps a user's caches in."""
    if chosen := os.environ.get("RAGBOT_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ragbot"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ragbot" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragbot"


def index_path(profile: Path) -> Path:
    """Where the index of the profile at ``profile`` is kept: one file a profile."""
    return cache_folder() / f"index-{short(tagged('profile-path', [str(profile.resolve())]))}.json"


def save(index: Index, path: Path) -> None:
    """Write ``index`` whole or not at all: a reader sees the old file or the new one."""
    rows = [
        {"id": chunk.id, "text": chunk.text, "vector": vector.tolist()}
        for chunk, vector in zip(index.chunks, index.vectors, strict=True)
    ]
    embedder = {"name": index.embedder, "dims": index.dims}
    text = json.dumps({"format": FORMAT, "embedder": embedder, "profile": index.profile, "chunks": rows})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            fresh = Path(folder) / path.name
            fresh.write_text(text, "utf-8")
            os.replace(fresh, path)
    except OSError as error:
        raise RagbotError(
            f"{path}: {error.strerror}", "set RAGBOT_CACHE to a folder you may write to"
        ) from error


def load(path: Path) -> Index:
    """The index at ``path``.

    Raises:
        RagbotError: there is none, or it is not whole; says what is wrong with it.
    """
    try:
        data = json.loads(path.read_bytes())
        if data.get("format") != FORMAT:
            raise RagbotError(f"{path}: format {data.get('format')!r}, wanted {FORMAT}", REBUILD)
        rows, dims = data["chunks"], data["embedder"]["dims"]
        for row in rows:
            if len(row["vector"]) != dims:
                found = len(row["vector"])
                raise RagbotError(f"{path}: '{row['id']}' has {found} dimensions, the index {dims}", REBUILD)
        vectors = np.array([row["vector"] for row in rows], dtype=np.int16)
        if not len(rows) or not vectors.any(axis=1).all():
            raise RagbotError(f"{path}: no vectors, or a zero one", REBUILD)
        chunks = tuple(Chunk(id=row["id"], text=row["text"]) for row in rows)
        return Index(data["embedder"]["name"], dims, data["profile"], chunks, vectors)
    except FileNotFoundError as error:
        raise RagbotError("this profile has no index yet", REBUILD) from error
    except (
        OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise RagbotError(f"{path}: not a readable index ({type(error).__name__})", REBUILD) from error


def stale(index: Index, profile: Profile, embedder: Embedder) -> str:
    """What has changed since ``index`` was built, in words; empty where it is fresh."""
    if index.embedder != embedder.name:
        return f"the embedder was {index.embedder} ({index.dims} dimensions), now it is {embedder.name}"
    if index.profile == profile.digest:
        return ""
    old = {chunk.id: chunk.text for chunk in index.chunks}
    new = {section.id: section.text for section in profile.sections}
    changes = {
        "new": [id for id in new if id not in old],
        "gone": [id for id in old if id not in new],
        "changed": [id for id in new if id in old and old[id] != new[id]],
    }
    words = [f"{what}: {', '.join(ids)}" for what, ids in changes.items() if ids]
    return "; ".join(words) or "the order of its sections changed"
