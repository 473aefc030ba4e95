"""Which exchange a line of a cassette is: its address in the run, its key, its place among the others.

Owns what makes two requests the same. The host is no part of it, nor are headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

from evalrun.digest import tagged
from evalrun.records import Exchange
from evalrun.wires import is_generation

Mode = Literal["replay", "record", "live"]
Book = Literal["bot", "judge"]
BOOKS: tuple[Book, ...] = ("bot", "judge")
_MOST_OCCURRENCES = 8


class Address(NamedTuple):
    """Which turn of which draw of which case a model call belongs to."""

    case: str
    draw: int
    turn: int = 0


ADDRESS: ContextVar[Address | None] = ContextVar("address", default=None)


@contextmanager
def addressed(address: Address | None) -> Iterator[None]:
    """Model calls made inside belong to ``address``."""
    token = ADDRESS.set(address)
    try:
        yield
    finally:
        ADDRESS.reset(token)


def address_of(line: Exchange) -> Address | None:
    """The address of a line; None for a call that is no generation."""
    if line.case is None or line.draw is None or line.turn is None:
        return None
    return Address(line.case, line.draw, line.turn)


def without_empty(value: Any) -> Any:
    """``value`` without nulls and empty lists in its mappings: absent and empty ask for the same.

    Its keys are in order, as they are in a line that was stored.
    """
    if isinstance(value, dict):
        return {
            key: without_empty(item) if isinstance(item, dict | list | tuple) else item
            for key in sorted(value)
            if (item := value[key]) not in (None, [], ())
        }
    if isinstance(value, list | tuple):
        return [without_empty(item) for item in value]
    return value


def blanked(value: Any, ignore: Sequence[re.Pattern[str]]) -> Any:
    """``value`` with every match of ``ignore`` blanked in its strings."""
    if not ignore:
        return value
    if isinstance(value, dict):
        return {key: blanked(item, ignore) for key, item in value.items()}
    if isinstance(value, list):
        return [blanked(item, ignore) for item in value]
    if isinstance(value, str):
        for pattern in ignore:
            value = pattern.sub("", value)
    return value


def exchange_key(
    method: str, path: str, body: Any, occurrence: int = 0, ignore: Sequence[re.Pattern[str]] = ()
) -> str:
    """Digest of method, path, body and occurrence; the host is no part of it."""
    return key_for(method, path, without_empty(body), occurrence, ignore)


def key_for(
    method: str, path: str, body: Any, occurrence: int, ignore: Sequence[re.Pattern[str]] = ()
) -> str:
    """The key of a request whose body has gone through :func:`without_empty`; ``occurrence`` from 0."""
    return tagged("exchange", [method, path, blanked(body, ignore), occurrence])


def has_own_key(line: Exchange, ignore: Sequence[re.Pattern[str]] = ()) -> bool:
    """Whether the key of a line is that of its own request, at an occurrence that a draw may have."""
    return any(
        line.key == exchange_key(line.method, line.path, line.request, occurrence, ignore)
        for occurrence in range(_MOST_OCCURRENCES)
    )


def belongs_to_a_draw(line: Exchange) -> bool:
    """Whether a line is of a call that makes an answer: a model's, or the bot's own."""
    return address_of(line) is not None or is_generation(line.path)


def line_order(line: Exchange) -> tuple[Any, ...]:
    """Calls that are no generations first, then by case, draw, turn and key."""
    return (line.case is not None, line.case or "", line.draw or 0, line.turn or 0, line.key)


def named(book: Book, line: Exchange) -> str:
    """How people are told of a line: whose it is, of which draw, or of which path."""
    return f"{book}, {line.path if line.case is None else f'{line.case}, draw {(line.draw or 0) + 1}'}"
