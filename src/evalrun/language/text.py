"""Normal forms of text: one quote mark, one space, one case; sentences and words.

Owns what the rules of this package agree on before they look at anything. Keeps no list of phrases.
"""

from __future__ import annotations

import re
import unicodedata

_QUOTES = str.maketrans(
    {
        "‘": "'",
        "’": "'",
        "‚": "'",
        "‛": "'",
        "ʼ": "'",
        "′": "'",
        "´": "'",
        "`": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "«": '"',
        "»": '"',
    }
)
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_MARKUP = re.compile(r"[*_#>]+(?=\S)|(?<=\S)[*_]+|^\s*(?:[-+•]|\d+[.)])\s+", re.MULTILINE)
_ABBREVIATION = r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\b[A-Z])"
_SENTENCE_END = re.compile(rf"{_ABBREVIATION}(?<=[.!?…])[\"')\]]*\s+|\n+|\s*;\s*")


def straight(text: str) -> str:
    """NFKC, straight quotes and dashes, single spaces; case and line breaks are kept."""
    # Quotes first: NFKC makes a space and a mark of its own of the accent that some keyboards have for one.
    text = unicodedata.normalize("NFKC", text.translate(_QUOTES)).translate(_QUOTES).translate(_DASHES)
    return re.sub(r"[^\S\n]+", " ", text).strip()


def plain(text: str) -> str:
    """:func:`straight`, without Markdown emphasis, bullets and list numbers."""
    return _MARKUP.sub("", straight(text))


def folded(text: str) -> str:
    """:func:`straight` on one line and in one case: equal texts for a reader are equal strings."""
    return " ".join(straight(text).casefold().split())


def sentences(text: str) -> list[str]:
    """The sentences of ``text``, markup removed; line breaks and semicolons end one too."""
    return [part.strip() for part in _SENTENCE_END.split(plain(text)) if part and part.strip()]
