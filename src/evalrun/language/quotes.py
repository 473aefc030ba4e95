"""Whether a quote stands in a text, however its quote marks, dashes, spaces and case are written.

Owns that comparison alone, and how far a copy may stray: a small model that copies a line changes a word now
and then, and that is no invention.
"""

from __future__ import annotations

import re
from collections import Counter

from evalrun.language.text import folded

_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…|\[…\]|\[\.\.\.\])\s*")
_WORD = re.compile(r"[\w'+#]+(?:[.,:]\d+)*")
_NEGATIONS = frozenset("no not never nothing none neither nor without nicht kein keine keinen nie ne pas jamais sin nunca".split())
SLACK = 8
"""One word in this many may differ."""


def holds_quote(text: str, quote: str) -> bool:
    """Whether every piece of ``quote`` (pieces are split at an ellipsis) stands in ``text``, in order.

    Words are compared, so that punctuation does not matter. One word in :data:`SLACK` may be another, or be
    missing or added; numbers and negations may not. An empty quote stands nowhere.
    """
    words, start = _words(text), 0
    pieces = [found for piece in _ELLIPSIS.split(folded(quote)) if (found := _words(piece))]
    for piece in pieces:
        end = _end(words, piece, start)
        if end is None:
            return False
        start = end
    return bool(pieces)


def _words(text: str) -> list[str]:
    return [word.strip("'") for word in _WORD.findall(folded(text)) if word.strip("'")]


def _end(words: list[str], piece: list[str], start: int) -> int | None:
    """Index after the first place where ``piece`` stands: exactly, else nearly."""
    size = len(piece)
    for begin in range(start, len(words) - size + 1):
        if words[begin : begin + size] == piece:
            return begin + size
    slack = size // SLACK
    for begin in range(start, len(words)) if slack else ():
        for length in range(size - slack, size + slack + 1):
            if _near(words[begin : begin + length], piece, slack):
                return begin + length
    return None


def _near(window: list[str], piece: list[str], slack: int) -> bool:
    if Counter(filter(_firm, window)) != Counter(filter(_firm, piece)):
        return False
    return (Counter(piece) - Counter(window)).total() <= slack and _distance(window, piece) <= slack


def _firm(word: str) -> bool:
    """Words that a copy may not change: what they say hangs on them alone."""
    return word[0].isdigit() or word in _NEGATIONS or word.endswith("n't")


def _distance(one: list[str], two: list[str]) -> int:
    """Words to replace, drop or add to turn one list into the other (Levenshtein)."""
    row = list(range(len(two) + 1))
    for index, word in enumerate(one, start=1):
        previous, row[0] = row[0], index
        for column, other in enumerate(two, start=1):
            previous, row[column] = row[column], min(
                row[column] + 1, row[column - 1] + 1, previous + (word != other)
            )
    return row[-1]
