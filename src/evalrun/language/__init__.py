"""Rules on plain text that need no model: does an answer only decline, what does it name that nobody gave it.

Owns the phrases and the normalisation; pure functions of strings. What a finding means for a score is the
business of the judge and of the scorers.
"""

from evalrun.language.novel import novel_terms
from evalrun.language.quotes import holds_quote, one_sentence_holds, shares_words
from evalrun.language.refusal import refusal_rule

__all__ = ["holds_quote", "novel_terms", "one_sentence_holds", "refusal_rule", "shares_words"]
