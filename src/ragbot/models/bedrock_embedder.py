"""Embeddings from Amazon Titan Text Embeddings V2 on Bedrock.

Owns the body of a call: Titan takes one text at a time, so several calls are in flight, and each row comes
back to its own text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragbot.errors import ModelError, RagbotError
from ragbot.models import embed_provider, split_dims
from ragbot.models.bedrock_runtime import need_boto3, runtime, trouble

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TITAN = "amazon.titan-embed-text-v2:0"
DIMS = (256, 512, 1024)
AT_ONCE = 8


@embed_provider("bedrock")
class BedrockEmbedder:
    """``amazon.titan-embed-text-v2:0``, with ``@256``, ``@512`` or ``@1024`` (the default) dimensions."""

    def __init__(self, model: str) -> None:
        name, dims = split_dims(model or TITAN)
        if name != TITAN or dims not in (None, *DIMS):
            raise RagbotError(
                f"no embedder 'bedrock/{model}'", f"known: bedrock/{TITAN}@256, @512 and @1024 dimensions"
            )
        need_boto3()
        self._dims = dims or 1024
        self.name = f"bedrock/{TITAN}@{self._dims}"
        self._client: Any = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Shape (texts, dims). Raises ModelError where a text gets no row of that size."""
        import numpy as np

        with self._lock:
            if self._client is None:
                self._client = runtime()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return np.array(list(threads.map(self._row, texts)), dtype=np.float64)

    def _row(self, text: str) -> list[float]:
        body = json.dumps({"inputText": text, "dimensions": self._dims, "normalize": True})
        try:
            reply = self._client.invoke_model(modelId=TITAN, body=body, contentType="application/json")
            found = json.loads(reply["body"].read())
        except Exception as error:
            raise trouble(error) from error
        row = found.get("embedding") if isinstance(found, dict) else None
        if not isinstance(row, list) or len(row) != self._dims:
            raise ModelError(f"Bedrock returned no vector of {self._dims} dimensions")
        return [float(number) for number in row]
