"""Novel terms are the numbers and names of an answer that nobody gave it, however they are spelt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.language import novel_terms

KNOWN = (
    "I worked at Vindlage in Aarhus from 2012 to 2015, with 1,200 turbines, and took natural language "
    "processing. Nine people. In Norway I learnt Kafka, C++ and GitLab CI. What is your salary in Canada?"
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I worked at Vindlage until 2015.", ()),
        ("I worked at Vindlage until 2016.", ("2016",)),
        ("I used ActiveMQ at Vindlage.", ("ActiveMQ",)),
        ("My salary is approximately $20,000.", ("20,000",)),
        ("There were 1200 turbines and 9 people.", ()),
        ("Vindlage's turbines, my NLP course and the Norwegians.", ()),
        ("Afterwards I moved. Everything changed.", ()),
        ("I lived in Canada.", ()),
        ("We used Kafka/RabbitMQ and Gitlab-CI.", ("RabbitMQ",)),
        ("1. I write C++.\n2. I write Java.", ("Java",)),
        ("I know Java, and Java knows me.", ("Java",)),
        ("Ich arbeitete in der Firma Vindlage mit Turbinen und ActiveMQ.", ("ActiveMQ",)),
    ],
)
def test_terms_that_stand_nowhere_are_listed(answer: str, expected: tuple[str, ...]) -> None:
    """Spelling, inflection, number words and the start of a sentence make no term novel."""
    assert expected == novel_terms(answer, KNOWN)


def test_a_number_word_is_its_number() -> None:
    """ "nine" in the context gives the 9 of the answer, 90 it does not."""
    assert ("90",) == novel_terms("I had 9 or 90.", "nine")


WORDS = st.lists(
    st.sampled_from("Kafka C++ 1,200 7.5 I'm NLP Node.js O'Neill's Gitlab-CI R2D2 straße (Ab 3rd is.".split())
)


@given(WORDS, WORDS)
def test_what_was_given_is_not_novel(said: list[str], more: list[str]) -> None:
    """Any part of what is known names nothing new, and more knowledge makes nothing novel."""
    answer = " ".join(said)
    assert () == novel_terms(answer, " ".join([*more, *said, *more]))
    assert set(novel_terms(answer, " ".join(more))) >= set(novel_terms(answer, " ".join([*more, "Kafka"])))


def test_a_short_name_must_stand_as_a_word() -> None:
    """Letters inside another word are no name; of a long one they are, for it may be written in parts."""
    assert ("Go",) == novel_terms("I write Go.", "She has a golden key.")
    assert () == novel_terms("I use Gitlab.", "It is a git-lab.")
    assert () == novel_terms("I met the Goes.", "Goe's")
