"""What must not be written down: the words of keys, and what a config takes out of replies.

Owns which names say that a value is a key, and how a text reads without it. Who is asked with which key
belongs to targets and models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "[hidden]"
SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|passw|session|credential", re.IGNORECASE)
_SECRET_LENGTH = 6


def secrets_of(values: Mapping[str, str]) -> tuple[str, ...]:
    """The words of those values whose names say that they are keys, the longest first."""
    texts = [text for name, text in values.items() if SECRET_NAME.search(name)]
    words = {word for text in texts for word in (text, *text.split()) if len(word) >= _SECRET_LENGTH}
    return tuple(sorted(words - {"Bearer", "Digest"}, key=lambda word: (-len(word), word)))


def without(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every secret in it hidden."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def open_query(query: str) -> str:
    """The query of a URL without the parameters whose names say that they are keys."""
    parts = (part for part in query.split("&") if not SECRET_NAME.search(part.partition("=")[0]))
    return "&".join(parts)
