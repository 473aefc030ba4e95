"""WordLlama as the embedder that needs no server and no network.

Owns loading the weights from inside the wheel and pooling them. Leaves unit length and rounding to ``index``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragbot.errors import RagbotError
from ragbot.models import embed_provider

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@embed_provider("wordllama")
class WordLlamaEmbedder:
    """256 dimensions, mean of static token vectors."""

    name = "wordllama/l2_supercat"

    def __init__(self, model: str = "") -> None:
        if model not in ("", "l2_supercat"):
            raise RagbotError(f"wordllama has no model '{model}' in its wheel", "use --embedder wordllama")
        self._loaded: Any = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, 256), float32. The row of a text does not depend on the texts beside it."""
        self.warm()
        vectors: NDArray[np.floating] = self._loaded.embed(list(texts), norm=False)
        return vectors

    def warm(self) -> None:
        """Load the weights, once."""
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()


def _load() -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    import wordllama

    # When imported it turns on INFO for every logger of the process.
    root.handlers[:] = handlers
    root.setLevel(level)
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
