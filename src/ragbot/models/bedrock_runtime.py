"""Bedrock's runtime through boto3, for chat and embeddings alike.

Owns the client, what makes one impossible, and how its troubles are told. Region, credentials and endpoint
are boto3's own business: ``AWS_REGION``, ``AWS_PROFILE``, ``AWS_ENDPOINT_URL_BEDROCK_RUNTIME`` and the like.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ragbot.errors import ModelError, RagbotError

TIMEOUT = 900
"""Seconds of silence."""
THREADS = 64
"""Calls at once: boto3 waits in threads."""


def need_boto3() -> None:
    """Raises RagbotError where the extra is not installed."""
    if find_spec("boto3") is None:
        raise RagbotError(
            "Bedrock needs boto3, which is not installed",
            'pip install "boto3>=1.42.42"; in a clone: uv sync --extra bedrock',
        )


def runtime() -> Any:
    """A client of Bedrock's runtime. It asks once: whoever called ragbot decides about asking again.

    Raises:
        RagbotError: no region is known, or the profile does not exist.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        connect_timeout=10,
        read_timeout=TIMEOUT,
        max_pool_connections=THREADS,
        retries={"total_max_attempts": 1},
    )
    try:
        # A session of its own: boto3's shared one keeps credentials, and may not be used in several threads.
        return boto3.session.Session().client("bedrock-runtime", config=config)
    except BotoCoreError as error:
        raise RagbotError(f"Bedrock cannot be called: {error}", "set AWS_REGION or AWS_PROFILE") from error


def trouble(error: Exception) -> ModelError:
    """What a failed call tells the user."""
    reply = getattr(error, "response", None)
    if isinstance(reply, dict):
        status = reply.get("ResponseMetadata", {}).get("HTTPStatusCode")
        hint = {403: "may these credentials use the model?", 404: "does this region have the model?"}
        return ModelError(f"Bedrock answered with status {status}", hint.get(status, ""), str(error))
    hint_ = "are AWS credentials, region and network right?"
    return ModelError("Bedrock did not answer", hint_, f"{type(error).__name__}: {error}")
