"""Embeddings from an Ollama server, or any other that speaks ``/v1/embeddings``.

Owns the request and the pairing of rows with texts. That endpoint numbers its rows, unlike ``/api/embed``: a
reply in another order is put right, and one with a row missing is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragbot.errors import ModelError, RagbotError
from ragbot.models import embed_provider, is_loopback, ollama_host

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 64
"""Texts in one request."""
TIMEOUT = 300.0


@embed_provider("ollama")
class OllamaEmbedder:
    """One embedding model of the server at ``OLLAMA_HOST``."""

    def __init__(self, model: str) -> None:
        if not model:
            raise RagbotError("which embedding model?", "for example --embedder ollama/nomic-embed-text")
        self.name = f"ollama/{model}"
        self._model = model
        self._host = ollama_host()

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, dims). Raises ModelError where the reply does not hold one row for each text."""
        import numpy as np

        rows = [
            row for at in range(0, len(texts), BATCH) for row in self._batch(list(texts[at : at + BATCH]))
        ]
        sizes = sorted({len(row) for row in rows})
        if len(sizes) != 1:
            raise ModelError(f"the embedding server returned vectors of {sizes} dimensions in one reply")
        return np.array(rows, dtype=np.float64)

    def _batch(self, texts: list[str]) -> list[list[float]]:
        import httpx

        body = {"model": self._model, "input": texts}
        try:
            with httpx.Client(timeout=TIMEOUT, trust_env=not is_loopback(self._host)) as client:
                reply = client.post(f"{self._host}/v1/embeddings", json=body)
        except httpx.HTTPError as error:
            hint = f"is Ollama running at {self._host}? (OLLAMA_HOST)"
            raise ModelError("the embedding server did not answer", hint, type(error).__name__) from error
        if reply.status_code != 200:
            raise ModelError(
                f"the embedding server answered with status {reply.status_code}", detail=reply.text
            )
        return _in_order(reply, len(texts))


def _in_order(reply: Any, count: int) -> list[list[float]]:
    """The rows of a reply in the order of the texts."""
    try:
        rows = {
            int(row["index"]): [float(number) for number in row["embedding"]] for row in reply.json()["data"]
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError("the embedding server returned something else than vectors") from error
    if sorted(rows) != list(range(count)):
        raise ModelError(
            f"the embedding server returned {len(rows)} vectors for {count} texts, or misnumbered them"
        )
    return [rows[at] for at in range(count)]
