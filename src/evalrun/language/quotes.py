"""Whether a quote, or the words of a claim, stand in a text, however quote marks, spaces and case are.

Owns these comparisons alone, and how far a copy may stray: a small model that copies a line changes a word
now and then, and that is no invention.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

from evalrun.language.phrases import FUNCTION_WORDS, SHARED_WORDS
from evalrun.language.text import folded, sentences

_ELLIPSIS = "..."  # of a folded text; brackets around it are no words
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
    asked, known = folded(quote), _folded(text)
    pieces = [found for piece in asked.split(_ELLIPSIS) if (found := _words(piece))]
    heavy = [_content(piece) for piece in pieces]
    if not pieces or any(_lacks(known, piece) > len(piece) // SLACK for piece in heavy):
        return False
    if _stands_whole(known, asked) or _in_order(_row(_words(text)), pieces):
        return True
    return all(heavy) and _stand(_content(_words(text)), heavy)


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
    may_miss, negated = len(wanted) // LOOSE, any(map(_negates, _words(claim)))
    looked_for = [(_stem(word), may_miss + 1 if _firm(word) else 1) for word in wanted]
    for sentence in _sentences(text):
        # A stem is the beginning of its word: most sentences are done with before their words are looked at.
        if sum(weight for stem, weight in looked_for if stem not in sentence) > may_miss:
            continue
        words = _content(_words_of(sentence))
        stems = {_stem(word) for word in words}
        missing = sum(weight for stem, weight in looked_for if stem not in stems)
        if missing <= may_miss and negated == any(map(_negates, words)):
            return True
    return False


@lru_cache(maxsize=8)  # each claim of an answer is held against the same context
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(map(folded, sentences(text)))


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """A word without its ending: enough to find ``mended`` beside ``mend``; numbers stay whole."""
    if word[0].isdigit():
        return word
    for ending in (r"'s$", r"(?<!s)s$", r"(?:ing|ed|e)$"):
        bare = re.sub(ending, "", word)
        word = bare if len(bare) >= 3 else word
    return word


def _lacks(known: str, words: Iterable[str]) -> int:
    """How many of the words are nowhere in a folded text, whatever its words are."""
    return sum(word not in known for word in words)


_folded = lru_cache(maxsize=32)(folded)  # each claim of an answer is held against the same context


@lru_cache(maxsize=32)
def _words(text: str) -> tuple[str, ...]:
    return _words_of(_folded(text))


def _words_of(text: str) -> tuple[str, ...]:
    """The words of a folded text, which it would change to fold once more."""
    words = _WORD.findall(text)
    return tuple([bare for word in words if (bare := word.strip("'"))] if "'" in text else words)


def _stands_whole(known: str, asked: str) -> bool:
    """Whether ``asked`` stands in a folded text as it is, from the beginning of a word to the end of one.

    So does nearly every quote, and the text need not be taken apart for it.
    """
    start = known.find(asked)
    if start < 0 or _ELLIPSIS in asked:
        return False
    before, after = known[start - 1 : start] if start else "", known[start + len(asked) :][:2]
    return not before.strip() and (not after.lstrip(".,;:!?") or after.lstrip(".,;:!?")[0].isspace())


def _content(words: Iterable[str]) -> list[str]:
    return [word for word in words if word not in _LIGHT]


def _row(words: Iterable[str]) -> str:
    """Words side by side, a space before and behind each: a part of them is a part of this text."""
    return f" {' '.join(words)} "


def _in_order(row: str, pieces: Iterable[Sequence[str]]) -> bool:
    """Whether each piece stands behind the one before it, word by word."""
    start = 0
    for piece in map(_row, pieces):
        found = row.find(piece, start)
        if found < 0:
            return False
        start = found + len(piece) - 1
    return True


def _stand(words: Sequence[str], pieces: Iterable[Sequence[str]]) -> bool:
    """Whether each piece stands behind the one before it, one word in :data:`SLACK` aside."""
    start = 0
    for piece in pieces:
        end = _end(words, piece, start, len(piece) // SLACK)
        if end is None:
            return False
        start = end
    return True


def _end(words: Sequence[str], piece: Sequence[str], start: int, slack: int) -> int | None:
    """Index after the first place where ``piece`` stands, ``slack`` words aside."""
    size, known, firm = len(piece), set(piece), Counter(filter(_firm, piece))
    shared = list(accumulate((word in known for word in words), initial=0))
    for begin in range(start, len(words)):
        # Every word of the piece but `slack` has an equal one in its place: most need no comparison.
        end = min(begin + size + slack, len(words))
        if shared[end] - shared[begin] < size - slack:
            continue
        window = words[begin:end]
        for length in _near_lengths(window, piece, slack):
            if Counter(filter(_firm, window[:length])) == firm:
                return begin + length
    return None


def _firm(word: str) -> bool:
    """Words that a copy may not change: what they say hangs on them alone."""
    return word[0].isdigit() or _negates(word)


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _near_lengths(window: Sequence[str], piece: Sequence[str], slack: int) -> list[int]:
    """How many of the window's first words are ``piece`` but for ``slack`` words, the likest length first.

    Words are replaced, dropped or added (Levenshtein).
    """
    found, row = list[int](), list(range(len(piece) + 1))
    for index, word in enumerate(window, start=1):
        previous, row[0] = row[0], index
        for column, other in enumerate(piece, start=1):
            previous, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, previous + (word != other)),
            )
        if row[-1] <= slack:
            found.append(index)
        if min(row) > slack:
            break
    return sorted(found, key=lambda length: abs(length - len(piece)))
