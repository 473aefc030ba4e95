"""Numbers and names of an answer that nobody gave it: cheap evidence of invention that a reader can check.

Owns what counts as a number or a name and when two spellings are the same. That a term is novel does not say
that it is false, and an invention without names or numbers is not seen here.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from evalrun.language.phrases import FUNCTION_WORDS
from evalrun.language.text import sentences, straight

_ANY_NUMBER = re.compile(r"\d\d*(?:[.,:]\d+)*")  # a text is searched faster for one digit than for \d+
_NUMBER = re.compile(r"\d(?<![\w.]\d)\d*(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_ZEROS = re.compile(r"\.0+$")
_NAME = re.compile(r"[^\W\d_][\w+#]*(?:[-'.&/][\w+#]+)*[+#]*")
_WORD = re.compile(r"[\w+#]+")
_PARTS = re.compile(r"[-/]")
_SQUEEZED = re.compile(r"[\W_]+")
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen".split()
_UNITS += "fifteen sixteen seventeen eighteen nineteen twenty".split()
_WORD_NUMBERS = {word: str(value) for value, word in enumerate(_UNITS)} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80",
    "ninety": "90",
    "first": "1", "second": "2", "third": "3", "once": "1", "twice": "2", "dozen": "12", "hundred": "100",
}  # fmt: skip
_NUMBER_WORDS: dict[str, list[str]] = {}
for _word, _value in _WORD_NUMBERS.items():
    _NUMBER_WORDS.setdefault(_value, []).append(_word)
_NEVER_NOVEL = frozenset("i i'm i've i'd i'll ai ok okay mr mrs ms dr".split())
_GERMAN = FUNCTION_WORDS["de"]


def novel_terms(answer: str, known: str) -> tuple[str, ...]:
    """Terms of ``answer`` that do not stand in ``known`` (context and question), in order, each once.

    A term is a number in digits, or a word with a capital that does not merely begin a sentence, or a word
    that holds a digit or an inner capital. Equal: other case, plural, possessive, a name of about the same
    length with the same first four letters (Norway, Norwegian), a number word, the initials of some words.
    """
    vocabulary = _vocabulary(known)
    found: dict[str, str] = {}
    for term in _terms(answer):
        if not vocabulary.holds(term):
            found.setdefault(term.casefold(), term)
    return tuple(found.values())


@lru_cache(maxsize=8)  # the judge's checks and the scorer hold the same answer against two texts
def _terms(answer: str) -> tuple[str, ...]:
    found: list[str] = []
    for sentence in sentences(answer):
        found += _NUMBER.findall(sentence)
        found += _names(sentence)
    return tuple(dict.fromkeys(found))


def _names(sentence: str) -> list[str]:
    every_noun = not _GERMAN.isdisjoint(sentence.casefold().split())
    opening = len(sentence) - len(sentence.lstrip(" \"'([:"))
    names: list[str] = []
    for found in _NAME.finditer(sentence):
        word, start = found[0], found.start()
        if word.islower() and word.isalpha():  # most are no name, whatever stands before
            continue
        plain_case = every_noun or start <= opening or _last_solid(sentence, start) in ':"'
        names += [part for part in _PARTS.split(word) if part and _is_name(part, plain_case)]
    return names


def _last_solid(sentence: str, end: int) -> str:
    """The last character before ``end`` that is no space; empty without one."""
    while end and sentence[end - 1].isspace():
        end -= 1
    return sentence[end - 1 : end] if end else ""


def _is_name(word: str, plain_case: bool) -> bool:
    """``plain_case``: a capital alone means nothing here, it opens a sentence or the language does so."""
    inner = any(char.isupper() or char.isdigit() for char in word[1:].split("'")[0])
    return (
        len(word) > 1
        and (inner or (word[0].isupper() and not plain_case))
        and word.casefold() not in _NEVER_NOVEL
    )


class _Vocabulary:
    """The words, numbers and initials of the text that is known; each found when it is first needed."""

    def __init__(self, text: str) -> None:
        self.text = straight(text)
        self.folded = self.text.casefold()

    @cached_property
    def words(self) -> set[str]:
        pieces = " ".join(set(self.folded.split()))  # no word goes beyond a space, and most stand there often
        return set(map(_bare, {*_WORD.findall(pieces), *_NAME.findall(pieces)}))

    def has(self, word: str) -> bool:
        """Whether it is a word of the text, bare of its ending; most that are none stand nowhere in it."""
        return word in self.folded and word in self.words

    @cached_property
    def names(self) -> set[str]:
        names = {word for word in _NAME.findall(self.text) if word[0].isupper() and len(word) > 4}
        return {_bare(word.casefold()) for word in names}

    @cached_property
    def squeezed(self) -> str:
        return _SQUEEZED.sub("", "".join(self.folded.split()))

    @cached_property
    def numbers(self) -> set[str]:
        numbers = {_digits(number) for number in _ANY_NUMBER.findall(self.text)}
        return numbers | {part for number in numbers for part in re.split(r"[.:]", number)}

    @cached_property
    def initials(self) -> str:
        skipped = {"of", "and", "the", "for"}
        return "".join(word[0] for word in _WORD.findall(self.folded) if word not in skipped)

    def holds(self, term: str) -> bool:
        if term[0].isdigit():
            number = _digits(term)
            return number in self.numbers or any(map(self.has, _NUMBER_WORDS.get(number, ())))
        word = _bare(term.casefold())
        if len(word) > 4:
            if word in self.folded or _SQUEEZED.sub("", word) in self.squeezed:
                return True
        elif self.has(word):
            return True
        if term.isupper() and 2 <= len(word) <= 5 and word in self.initials:
            return True
        return (
            len(word) > 4
            and word[:4] in self.folded
            and any(known[:4] == word[:4] and abs(len(known) - len(word)) <= 4 for known in self.names)
        )


@lru_cache(maxsize=8)  # of one answer each claim, and of one question each answer, is held against the same
def _vocabulary(known: str) -> _Vocabulary:
    return _Vocabulary(known)


@lru_cache(maxsize=4096)
def _bare(word: str) -> str:
    word = re.sub(r"'s?$", "", word).strip(".'-")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _digits(number: str) -> str:
    """``1,000`` and ``1000`` are one number, so are ``7.0`` and ``7``."""
    whole = _THOUSANDS.sub("", number) if "," in number else number
    return _ZEROS.sub("", whole) if "." in whole else whole
