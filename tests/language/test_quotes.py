"""A quote is found whatever its quote marks, spaces, dashes and case, and only if it stands there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.language import holds_quote, one_sentence_holds, shares_words

TEXT = (
    "The talk was called “A Range Is an Answer”.\nI didn’t   know, and have been measuring it since – slowly."
)


@pytest.mark.parametrize(
    "quote",
    [
        'called "A Range is an Answer"',
        "i didn't know, and have",
        "know,\nand have",
        "since - slowly",
        "The talk was called … measuring it since.",
        "“The talk was called”",
    ],
)
def test_the_same_words_are_found(quote: str) -> None:
    """Typography is no difference, and an ellipsis stands for what was left out."""
    assert holds_quote(TEXT, quote)


def test_small_words_and_one_other_in_six_may_be_copied_wrong() -> None:
    """A slip in copying is no invention."""
    assert holds_quote("I sang for two years in a shanty group.", "I sang two years with a shanty group")
    assert holds_quote(
        "The plan was drawn by a deaf clerk of the port.", "plan was drawn by deaf clerk at the port"
    )
    assert holds_quote(
        "In 2024 I mended 58 of the 83 things I was handed.",
        "In 2024, I mended 58 of the 83 things I were handed",
    )


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


@pytest.mark.parametrize("quote", ["", "  ", "...", "The talk is named", "since … The talk was called"])
def test_other_words_are_not(quote: str) -> None:
    """Nothing, one word changed, and pieces in another order are no quotes."""
    assert not holds_quote(TEXT, quote)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("sings in a choir of 24 voices", True),
        ("in a choir, singing with 24 voices", True),
        ("sings in a choir of 25 voices", False),
        ("does not sing in a choir of 24 voices", False),
        ("sings with Mussel in a choir", False),
        ("never owned a car", True),
        ("owned a car", False),
        ("a choir", False),
        ("", False),
    ],
)
def test_one_sentence_must_hold_the_words_of_a_claim(claim: str, expected: bool) -> None:
    """Inflection and order are free; numbers, negations and words of another sentence are not."""
    text = "I sing alto in a chamber choir of 24 voices. My kayak is called Mussel. I have never owned a car."
    assert expected is one_sentence_holds(text, claim)


def test_words_of_the_question_do_not_count() -> None:
    """An answer repeats the question's words; its numbers must still stand in the sentence."""
    text, question = (
        "The largest instance in my care held six terabytes.",
        "How big was the installation of 2019?",
    )
    assert one_sentence_holds(text, "the largest installation held six terabytes", question)
    assert not one_sentence_holds(text, "the installation of 2019 held six terabytes", question)


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("the largest weighed nine kilos", True),
        ("My heaviest books", True),
        ("five of the nine", False),
        ("", False),
    ],
)
def test_a_quote_must_be_about_its_claim(quote: str, expected: bool) -> None:
    """A third of the claim's words, in any inflection, ties a quote to it."""
    assert expected is shares_words(quote, "heaviest book was nine kilos by weight")


WORDS = st.lists(st.sampled_from("walk walked dog cat not the 3 can't mouse's shelf".split()), max_size=30)


@given(WORDS, WORDS, WORDS)
def test_what_stands_there_is_found(before: list[str], said: list[str], after: list[str]) -> None:
    """Any run of words of a text is a quote of it, and so are two runs in their order."""
    text = " ".join([*before, *said, *after])
    assert holds_quote(text, " ".join(said)) is bool(said)
    assert holds_quote(text, f"{' '.join(before)} ... {' '.join(after)}") is bool(before or after)


@given(WORDS, WORDS, st.integers(0, 30))
def test_one_slip_in_six_is_allowed_and_two_are_not(before: list[str], after: list[str], place: int) -> None:
    """One word more in a quote of six to eleven that count is a slip; two are another text."""
    said = "walk dog cat mouse shelf book lamp".split()
    slip, other = said.copy(), said.copy()
    slip.insert(place % 8, "window")
    other[place % 6 : place % 6 + 2] = ["window", "door"]
    text = " ".join([*before, *said, *after])
    assert holds_quote(text, " ".join(slip))
    assert not holds_quote(" ".join(said), " ".join(other))


@pytest.mark.parametrize(
    ("text", "quote", "stands"),
    [
        ("I ran 3.5 km", "5 km", False),
        ("I ran 3.5 km", "3.5 km.", True),
        ("version 1.5", "version 1", False),
        ("version 1. Then", "version 1", True),
        ("a footnote", "foot", False),
        ("foot, then note", "foot, then note", True),
    ],
)
def test_what_stands_there_letter_by_letter_begins_and_ends_at_words(
    text: str, quote: str, stands: bool
) -> None:
    """A part of a word or of a number is no quote."""
    assert stands == holds_quote(text, quote)
