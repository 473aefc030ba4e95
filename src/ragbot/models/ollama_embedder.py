"""Embeddings from an Ollama server, by its OpenAI-compatible endpoint.

Owns where that server is. Unlike ``/api/embed`` that endpoint numbers its rows; asking it and pairing rows
with texts belong to ``openai_embedder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbot.errors import RagbotError
from ragbot.models import embed_provider, ollama_host
from ragbot.models.openai_embedder import numbered_rows
from ragbot.models.openai_server import OpenAIServer

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
        self._server = OpenAIServer(f"{ollama_host()}/v1")

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, dims). Raises ModelError where the reply does not hold one row for each text."""
        return numbered_rows(self._server, {"model": self._model}, texts)
