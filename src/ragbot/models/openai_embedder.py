"""Embeddings from any server that speaks ``/v1/embeddings``.

Owns the request and the pairing of rows with texts: that endpoint numbers its rows, so a reply in another
order is put right, and one with a row missing is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbot.errors import ModelError, RagbotError
from ragbot.models import embed_provider, is_loopback, split_dims
from ragbot.models.openai_server import OpenAIServer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 64
"""Texts in one request."""
TIMEOUT = 300.0


@embed_provider("openai")
class OpenAIEmbedder:
    """``MODEL`` or ``MODEL@DIMENSIONS`` of the server at ``OPENAI_BASE_URL``."""

    def __init__(self, model: str) -> None:
        if not model:
            raise RagbotError(
                "which embedding model?", "for example --embedder openai/text-embedding-3-small"
            )
        self.name = f"openai/{model}"
        self._model, self._dims = split_dims(model)
        self._server = OpenAIServer.of_environment()

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, dims). Raises ModelError where the reply does not hold one row for each text."""
        wanted = {} if self._dims is None else {"dimensions": self._dims}
        body = {"model": self._model, **wanted}
        return numbered_rows(self._server, body, texts, self._dims)


def numbered_rows(
    server: OpenAIServer, body: Mapping[str, Any], texts: Sequence[str], dims: int | None = None
) -> NDArray[np.floating]:
    """A row for each text, from as many requests as it takes; ``dims`` is the size they must have, if known.

    Raises:
        ModelError: no reply, another status, or not one row of one size for each text.
    """
    import numpy as np

    batches = [list(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
    rows = [row for batch in batches for row in _batch(server, {**body, "input": batch}, len(batch))]
    sizes = sorted({len(row) for row in rows})
    if len(sizes) != 1 or (dims is not None and sizes != [dims]):
        wanted = "" if dims is None else f", {dims} were asked for"
        raise ModelError(f"the embedding server returned vectors of {sizes} dimensions in one reply{wanted}")
    return np.array(rows, dtype=np.float64)


def _batch(server: OpenAIServer, body: Mapping[str, Any], count: int) -> list[list[float]]:
    import httpx

    try:
        with httpx.Client(
            timeout=TIMEOUT, trust_env=not is_loopback(server.url), headers=server.headers
        ) as client:
            reply = client.post(f"{server.url}/embeddings", json=body)
    except httpx.HTTPError as error:
        hint = f"is it running at {server.url}?"
        raise ModelError("the embedding server did not answer", hint, type(error).__name__) from error
    if reply.status_code != 200:
        raise ModelError(f"the embedding server answered with status {reply.status_code}", detail=reply.text)
    return _in_order(reply, count)


def _in_order(reply: Any, count: int) -> list[list[float]]:
    """The rows of a reply in the order of the texts."""
    try:
        found = [
            (int(row["index"]), [float(number) for number in row["embedding"]])
            for row in reply.json()["data"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError("the embedding server returned something else than vectors") from error
    if sorted(at for at, _ in found) != list(range(count)):
        raise ModelError(
            f"the embedding server returned {len(found)} vectors for {count} texts, or misnumbered them"
        )
    rows = dict(found)
    return [rows[at] for at in range(count)]
