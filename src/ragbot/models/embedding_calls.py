"""Texts sent to an embedding server in batches, and what every such server's reply must be.

Owns the request, its faults, and that all vectors have one size. What the body is called and how its rows
belong to the texts is known to each provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbot.errors import ModelError
from ragbot.models import is_loopback

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 64
"""Texts in one request."""
TIMEOUT = 300.0
Rows = list[list[float]]


def rows_of(
    texts: Sequence[str], ask: Callable[[list[str]], Rows], dims: int | None = None
) -> NDArray[np.floating]:
    """A row for each text, from as many calls of ``ask`` as it takes; of size ``dims``, if that is known.

    Raises:
        ModelError: rows of several sizes, or of another than was asked for.
    """
    import numpy as np

    rows = [row for at in range(0, len(texts), BATCH) for row in ask(list(texts[at : at + BATCH]))]
    sizes = sorted({len(row) for row in rows})
    if len(sizes) != 1 or (dims is not None and sizes != [dims]):
        wanted = "" if dims is None else f", {dims} were asked for"
        raise ModelError(f"the embedding server returned vectors of {sizes} dimensions in one reply{wanted}")
    return np.array(rows, dtype=np.float64)


def reply_to(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    """The JSON that a server answers to one request.

    Raises:
        ModelError: no reply, another status than 200, or no JSON.
    """
    import httpx

    try:
        with httpx.Client(timeout=TIMEOUT, trust_env=not is_loopback(url), headers=headers) as client:
            reply = client.post(url, json=body)
    except httpx.HTTPError as error:
        hint = f"is it running at {url}?"
        raise ModelError("the embedding server did not answer", hint, type(error).__name__) from error
    if reply.status_code != 200:
        raise ModelError(f"the embedding server answered with status {reply.status_code}", detail=reply.text)
    try:
        return reply.json()
    except ValueError as error:
        raise no_vectors() from error


def no_vectors() -> ModelError:
    """A reply that is something else."""
    return ModelError("the embedding server returned something else than vectors")
