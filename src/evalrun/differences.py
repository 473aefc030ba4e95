"""Where two JSON values differ, place by place.

Owns the places. What the values are, and how a difference reads, is decided by others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def differing(old: Any, new: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(place, old, new) of each part that is not the same; a key that is missing is None.

    A place is written ``gates[0].min``. Lists of other lengths differ as a whole.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differing(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differing(one, other, f"{where}[{number}]")
    elif old != new:
        yield where, old, new
