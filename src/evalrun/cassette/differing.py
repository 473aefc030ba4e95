"""How two request bodies of one path differ, told in a line: why a recording is stale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from evalrun.wires import asked, wire_of

_FENCE = re.compile(r"^(<<(?:context|end) )[0-9a-f]{16}(>>)$", re.MULTILINE)


def difference(path: str, old: Any, new: Any) -> str:
    """What differs between two request bodies of one path, in one line for people."""
    if wire_of(path) is None and (told := next(_changed_texts(old, new), "")):
        return told
    old_prompt, new_prompt = asked(path, old).prompt, asked(path, new).prompt
    if len(old_prompt) != len(new_prompt):
        return f"{len(new_prompt)} prompt messages instead of {len(old_prompt)}"
    for number, (before, after) in enumerate(zip(old_prompt, new_prompt, strict=True), start=1):
        if before != after:
            return f"prompt message {number}: {_first_line(before, after)}"
    changed = sorted(_changed(old, new))
    return "request fields: " + ", ".join(changed) if changed else "the same request, asked once more"


def _first_line(before: str, after: str) -> str:
    """The first line that differs; the digest in a fence differs with any text, and so tells nothing."""
    was, now = (_FENCE.sub(r"\1…\2", text).split("\n") for text in (before, after))
    for old, new in zip_longest(was, now, fillvalue=""):
        if old != new:
            return _around(old, new)
    return _around(before, after)


def _around(before: str, after: str, context: int = 24) -> str:
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    tail = 0
    while tail < min(len(before), len(after)) - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    cut = max(0, start - context)
    was, now = (text[cut : max(start, len(text) - tail) + context] for text in (before, after))
    return f"{_clip(was)!r} became {_clip(now)!r}"


def _clip(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _changed_texts(old: Any, new: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changed_texts(old.get(key), new.get(key), f"{prefix}{key}.")
    elif isinstance(old, str) and isinstance(new, str) and old != new:
        yield f"{prefix.rstrip('.') or 'the body'}: {_first_line(old, new)}"


def _changed(old: Any, new: Any, prefix: str = "") -> Iterable[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {*old, *new}:
            yield from _changed(old.get(key), new.get(key), f"{prefix}{key}.")
    elif old != new:
        yield prefix.rstrip(".")
