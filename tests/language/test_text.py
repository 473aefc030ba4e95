"""A text has one normal form, however it was typed, and its sentences are the same for every rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.language.text import folded, plain, sentences, straight

TYPED = st.text(st.sampled_from("aB1.)-+•*_#>;!?…\"'´‘“–\u2011\u0301 \t\u00a0\u2028\r\n"), max_size=40)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("\u2018a\u2019 \u00b4b\u00b4 `c`", "'a' 'b' 'c'"),
        ("\u201ea\u201c \u00abb\u00bb", '"a" "b"'),
        ("a \u2013 b\u2011c \u22121", "a - b-c -1"),
        (" a\u00a0 \t b\u2028c \n\n d ", "a b c \n\n d"),
        ("\uff21 \ufb01x", "A fix"),
        ("", ""),
    ],
)
def test_typography_is_no_difference(typed: str, expected: str) -> None:
    """Quotes, dashes, spaces and forms of a letter are told apart by no rule; line breaks are kept."""
    assert expected == straight(typed)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("**a** _b_ # c", "a b # c"),
        ("- a\n2. b\n  \u2022 c", "a\nb\nc"),
        ("-\n- a", "a"),
        ("a\n\n- b", "a\nb"),
        ("a - b 2. c", "a - b 2. c"),
    ],
)
def test_marks_of_lists_and_of_emphasis_are_left_out(marked: str, expected: str) -> None:
    """A bullet counts at the start of a line alone."""
    assert expected == plain(marked)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('He left. "Really?" Yes! ', ["He left.", '"Really?', "Yes!"]),
        ("a; b;\n\n1. c", ["a", "b", "c"]),
        ("version 3.5 is a.b", ["version 3.5 is a.b"]),
        (" \n ", []),
    ],
)
def test_sentences_end_at_stops_breaks_and_semicolons(text: str, expected: list[str]) -> None:
    """A stop within a word or number ends nothing."""
    assert expected == sentences(text)


@given(TYPED)
def test_what_is_normal_stays_so(text: str) -> None:
    """Each form is its own form, and holds no space twice."""
    assert straight(text) == straight(straight(text))
    assert folded(text) == folded(straight(text))
    assert folded(text) == " ".join(folded(text).split())
    assert "  " not in straight(text)


@given(TYPED)
def test_a_sentence_is_one_line_of_the_plain_text(text: str) -> None:
    """None is empty or has space around it, and all of them stand in the text, in order."""
    found, rest = sentences(text), plain(text)
    for sentence in found:
        assert sentence == sentence.strip() != ""
        assert not {"\n", ";"} & set(sentence)
        _, there, rest = rest.partition(sentence)
        assert there
