"""Normal forms of text: one quote mark, one space, one case; sentences and words.

Owns what the rules of this package agree on before they look at anything. Keeps no list of phrases.
"""

from __future__ import annotations

import re
import unicodedata

_ALIKE = {"'": "‘’‚‛ʼ′´`", '"': "“”„«»", "-": "‐‑‒–—−", " ": "\t\v\f\r\x1c\x1d\x1e\x1f\x85\u1680\u2028\u2029"}
_MARKS = [(other, mark) for mark, others in _ALIKE.items() for other in others]
_ASCII_MARKS = [(other, mark) for other, mark in _MARKS if other.isascii()]
_EMPHASIS = re.compile(r"[*_#>](?:[*_#>]*(?=\S)|(?<=\S[*_])[*_]*)")  # before a word, or behind one
_BULLET = r"(?:[-+•]|\d+[.)])\s+"
# From the first of some line ends on: looked for from each, a bullet would take the square of their number.
_LISTED = re.compile(rf"\n(?<!\n\n)(?<!\n \n)\s*{_BULLET}(?:(?<=\n){_BULLET})*")
_STOP = re.compile(r"([.!?…])[\"')\]]*\s")


def straight(text: str) -> str:
    """NFKC, straight quotes and dashes, single spaces; case and line breaks are kept."""
    text = _alike(text)
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()


def _alike(text: str) -> str:
    """NFKC, and one mark for each kind of quote, dash and space."""
    marks = _ASCII_MARKS
    if not text.isascii():
        # First: NFKC makes a space and a mark of its own of the accent that some keyboards have for a quote.
        text, marks = unicodedata.normalize("NFKC", text.replace("´", "'")), _MARKS
    for other, mark in marks:
        text = text.replace(other, mark)
    return text


def plain(text: str) -> str:
    """:func:`straight`, without Markdown emphasis, bullets and list numbers."""
    text = _LISTED.sub("\n", "\n" + straight(text))[1:]
    return _EMPHASIS.sub("", text)


def folded(text: str) -> str:
    """:func:`straight` on one line and in one case: equal texts for a reader are equal strings."""
    return " ".join(_alike(text).casefold().split())


def sentences(text: str) -> list[str]:
    """The sentences of ``text``, markup removed; line breaks and semicolons end one too."""
    lines = _STOP.sub(r"\1\n", plain(text)).replace(";", "\n").split("\n")
    return [line for part in lines if (line := part.strip())]
