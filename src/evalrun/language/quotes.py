"""Whether a quote, or the words of a claim, stand in a text, however quote marks, spaces and case are.

Owns these comparisons alone, and how far a copy may stray: a small model that copies a line changes a word
now and then, and that is no invention.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from evalrun.language.phrases import FUNCTION_WORDS, SHARED_WORDS
from evalrun.language.text import folded, sentences

_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…|\[…\]|\[\.\.\.\])\s*")
_WORD = re.compile(r"[\w'+#]+(?:[.,:]\d+)*")
_NEGATIONS = frozenset(
    "no not never nothing none neither nor without nicht kein keine nie ne pas sin nunca".split()
)
_LIGHT = SHARED_WORDS.union(*FUNCTION_WORDS.values()) - _NEGATIONS - {"can't"}
SLACK = 6
"""One content word of a quote in this many may differ."""
LOOSE = 5
"""One word of a claim in this many may be missing from the sentence that holds the others."""


def holds_quote(text: str, quote: str) -> bool:
    """Whether every piece of ``quote`` (pieces are split at an ellipsis) stands in ``text``, in order.

    Words are compared, so that punctuation does not matter, and articles, pronouns and the like are skipped.
    Of the others one in :data:`SLACK` may be another, or be missing or added; numbers and negations may not.
    An empty quote stands nowhere.
    """
    words, light = _words(text), _content(_words(text))
    pieces = [found for piece in _ELLIPSIS.split(folded(quote)) if (found := _words(piece))]
    return bool(pieces) and (
        _stand(words, pieces, exact=True) or _stand(light, [*map(_content, pieces)], exact=False)
    )


def shares_words(quote: str, claim: str) -> bool:
    """Whether ``quote`` holds a third of the content words of ``claim``: else it is about something else."""
    stems = {_stem(word) for word in _content(_words(quote))}
    wanted = _content(_words(claim))
    return 3 * sum(_stem(word) in stems for word in wanted) >= len(wanted) > 0


def one_sentence_holds(text: str, claim: str, question: str = "") -> bool:
    """Whether one sentence of ``text`` holds the content words of ``claim``, in any order and inflection.

    Words of the question do not count, numbers and negations aside: an answer repeats them. Fewer than two
    words that count are too few to tell; of more, one in :data:`LOOSE` may be missing, but no number; and a
    sentence with a negation holds only claims that have one too.
    """
    asked = {_stem(word) for word in _content(_words(question)) if not _firm(word)}
    wanted = [word for word in _content(_words(claim)) if _stem(word) not in asked]
    if len(wanted) < 2:
        return False
    return any(_holds_all(_content(_words(sentence)), wanted, claim) for sentence in _sentences(text))


@lru_cache(maxsize=16)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentences(text))


def _holds_all(sentence: list[str], wanted: list[str], claim: str) -> bool:
    stems = {_stem(word) for word in sentence}
    missing = [word for word in wanted if _stem(word) not in stems]
    negated = any(map(_negates, sentence)) == any(map(_negates, _words(claim)))
    return negated and len(missing) <= len(wanted) // LOOSE and not any(map(_firm, missing))


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """A word without its ending: enough to find ``mended`` beside ``mend``; numbers stay whole."""
    if word[0].isdigit():
        return word
    for ending in (r"'s$", r"(?<!s)s$", r"(?:ing|ed|e)$"):
        bare = re.sub(ending, "", word)
        word = bare if len(bare) >= 3 else word
    return word


@lru_cache(maxsize=32)  # each claim of an answer is held against the same context
def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip("'") for word in _WORD.findall(folded(text)) if word.strip("'"))


def _content(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in _LIGHT]


def _stand(words: Sequence[str], pieces: Sequence[Sequence[str]], exact: bool) -> bool:
    start = 0
    for piece in pieces:
        end = _end(words, piece, start, 0 if exact else len(piece) // SLACK) if piece else None
        if end is None:
            return False
        start = end
    return True


def _end(words: Sequence[str], piece: Sequence[str], start: int, slack: int) -> int | None:
    """Index after the first place where ``piece`` stands, ``slack`` words aside."""
    size = len(piece)
    for begin in range(start, len(words)):
        for length in sorted(range(size - slack, size + slack + 1), key=lambda length: abs(length - size)):
            if _near(words[begin : begin + length], piece, slack):
                return begin + length
    return None


def _near(window: Sequence[str], piece: Sequence[str], slack: int) -> bool:
    if not slack:
        return window == piece
    if Counter(filter(_firm, window)) != Counter(filter(_firm, piece)):
        return False
    return (Counter(piece) - Counter(window)).total() <= slack and _distance(window, piece) <= slack


def _firm(word: str) -> bool:
    """Words that a copy may not change: what they say hangs on them alone."""
    return word[0].isdigit() or _negates(word)


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _distance(one: Sequence[str], two: Sequence[str]) -> int:
    """Words to replace, drop or add to turn one list into the other (Levenshtein)."""
    row = list(range(len(two) + 1))
    for index, word in enumerate(one, start=1):
        previous, row[0] = row[0], index
        for column, other in enumerate(two, start=1):
            previous, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, previous + (word != other)),
            )
    return row[-1]
