"""Embeddings from an Ollama server, by its own ``/api/embed``.

Owns the request and that the reply holds a row for each text, in their order, as that call promises. A text
longer than the model's window is refused there, never cut: what was cut off could not be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbot.errors import ModelError, RagbotError
from ragbot.models import embed_provider, ollama_host
from ragbot.models.embedding_calls import Rows, no_vectors, reply_to, rows_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@embed_provider("ollama")
class OllamaEmbedder:
    """One embedding model of the server at ``OLLAMA_HOST``."""

    def __init__(self, model: str) -> None:
        if not model:
            raise RagbotError("which embedding model?", "for example --embedder ollama/nomic-embed-text")
        self.name = f"ollama/{model}"
        self._model = model
        self._url = f"{ollama_host()}/api/embed"

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, dims). Raises ModelError where the reply does not hold one row for each text."""
        return rows_of(texts, self._rows)

    def _rows(self, texts: list[str]) -> Rows:
        reply = reply_to(self._url, {"model": self._model, "input": texts, "truncate": False}, {})
        try:
            rows = [[float(number) for number in row] for row in reply["embeddings"]]
        except (ValueError, TypeError, KeyError) as error:
            raise no_vectors() from error
        if len(rows) != len(texts):
            raise ModelError(f"the embedding server returned {len(rows)} vectors for {len(texts)} texts")
        return rows
