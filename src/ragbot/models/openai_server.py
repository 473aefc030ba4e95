"""Where a server of OpenAI's API is and how its troubles are told; for chat and embeddings alike.

Owns the environment's ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. A key is a header and shown nowhere.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ragbot.errors import ModelError, RagbotError

OFFICIAL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class OpenAIServer:
    """``url`` ends with the API's version; ``headers`` hold the key, if there is one."""

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of_environment(cls) -> OpenAIServer:
        """The server that the environment names.

        Raises:
            RagbotError: OpenAI's own needs a key and there is none; or the key is no header.
        """
        url = with_version(os.environ.get("OPENAI_BASE_URL", "").strip() or OFFICIAL)
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and url == OFFICIAL:
            raise RagbotError(
                "OPENAI_API_KEY is not set", "set it, or OPENAI_BASE_URL to a server without keys"
            )
        if not (key.isascii() and key.isprintable()):
            raise RagbotError("OPENAI_API_KEY holds what no key holds", "set it to the key alone")
        return cls(url, {"authorization": f"Bearer {key}"} if key else {})

    def silent(self, error: Exception) -> ModelError:
        """No reply, or one that broke off."""
        hint = f"is it running at {self.url}? (OPENAI_BASE_URL)"
        return ModelError("the model server did not answer", hint, f"{type(error).__name__}: {error}")

    def refusal(self, status: int, text: str) -> ModelError:
        """A reply with another status than 200."""
        hints = {401: "is OPENAI_API_KEY right?", 404: "does it have this model? is OPENAI_BASE_URL right?"}
        return ModelError(f"the model server answered with status {status}", hints.get(status, ""), text)


def with_version(base_url: str) -> str:
    """``base_url`` with ``/v1`` where it names no version."""
    base = base_url.rstrip("/")
    return base if re.search(r"/v[0-9][^/]*(/|\Z)", urlsplit(base).path) else f"{base}/v1"
