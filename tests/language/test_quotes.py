"""A quote is found whatever its quote marks, spaces, dashes and case, and only if it stands there."""

from __future__ import annotations

import pytest

from evalrun.language import holds_quote

TEXT = "The talk was called “A Range Is an Answer”.\nI didn’t   know, and we have been measuring it since – slowly."


@pytest.mark.parametrize(
    "quote",
    [
        'called "A Range is an Answer"',
        "i didn't know, and we have",
        "know,\nand we",
        "since - slowly",
        "The talk was called … measuring it since.",
        "“The talk was called”",
    ],
)
def test_the_same_words_are_found(quote: str) -> None:
    """Typography is no difference, and an ellipsis stands for what was left out."""
    assert holds_quote(TEXT, quote)


def test_one_word_in_eight_may_be_copied_wrong() -> None:
    """A slip in copying is no invention."""
    assert holds_quote("In 2024 I mended 58 of the 83 things I was handed.", "In 2024, I mended 58 of the 83 things I were handed")


@pytest.mark.parametrize(
    "quote",
    [
        "In 2024 I mended 57 of the 83 things I was handed",
        "In 2024 I never mended 58 of the 83 things I was handed",
        "In 2024 I burnt 58 of the 83 toys I was handed",
    ],
)
def test_numbers_and_negations_may_not(quote: str) -> None:
    """What the quote is there to prove must stand as it is, and two slips are one too many."""
    assert not holds_quote("In 2024 I mended 58 of the 83 things I was handed.", quote)


@pytest.mark.parametrize("quote", ["", "  ", "...", "The talk is called", "since … The talk was called"])
def test_other_words_are_not(quote: str) -> None:
    """Nothing, one word changed, and pieces in another order are no quotes."""
    assert not holds_quote(TEXT, quote)
