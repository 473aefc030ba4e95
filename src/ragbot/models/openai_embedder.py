"""Embeddings from any server that speaks ``/v1/embeddings``.

Owns the request and the pairing of rows with texts: that endpoint numbers its rows, so a reply in another
order is put right, and one with a row missing is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragbot.errors import ModelError, RagbotError
from ragbot.models import embed_provider, split_dims
from ragbot.models.embedding_calls import Rows, no_vectors, reply_to, rows_of
from ragbot.models.openai_server import OpenAIServer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        return rows_of(texts, self._rows, self._dims)

    def _rows(self, texts: list[str]) -> Rows:
        wanted = {} if self._dims is None else {"dimensions": self._dims}
        body = {"model": self._model, **wanted, "input": texts}
        return _in_order(reply_to(f"{self._server.url}/embeddings", body, self._server.headers), len(texts))


def _in_order(reply: Any, count: int) -> Rows:
    """The rows of a reply in the order of the texts."""
    try:
        found = [(int(row["index"]), [float(number) for number in row["embedding"]]) for row in reply["data"]]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise no_vectors() from error
    if sorted(at for at, _ in found) != list(range(count)):
        raise ModelError(
            f"the embedding server returned {len(found)} vectors for {count} texts, or misnumbered them"
        )
    rows = dict(found)
    return [rows[at] for at in range(count)]
