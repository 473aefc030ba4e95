"""The phrases of a refusal are looked for together, and found as each of them alone would be."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.language.phrases import COURTESY, DECLINES, Phrases, either

PATTERNS = tuple(chain.from_iterable(DECLINES.values()))
ALONE = [re.compile(pattern.replace("ß", "ss")) for pattern in PATTERNS]
TOGETHER = Phrases.of(PATTERNS)
WORDS = (
    "i we can't do not know share have no information is private profile nothing about kann nichts keine "
    "keinen sagen habe auskunft weiss nicht spreche profil text je ne n'ai pas aucune n'est dans public est "
    "no puedo decir no tengo datos texto menciona sorry leider , . works"
).split()


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_together_they_find_what_each_finds_alone(words: list[str]) -> None:
    """Neither one expression for many nor the search part by part finds more or less."""
    text = " ".join(words)
    assert any(pattern.search(text) for pattern in ALONE) is TOGETHER.stand_in(text)


@given(st.sampled_from(COURTESY), st.data())
def test_a_courtesy_is_one_of_many(pattern: str, data: st.DataObject) -> None:
    """What one of them is as a whole, all of them together are."""
    text = data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True))
    alone = any(re.fullmatch(one, text) for one in COURTESY)
    assert alone is (either(COURTESY).fullmatch(text) is not None)


@pytest.mark.parametrize("text", ["a sagen nichts kann", "nichts kann sagen", "kann kann sagen"])
def test_parts_out_of_order_are_no_phrase(text: str) -> None:
    """Each part is looked for behind the one before it."""
    assert not Phrases.of([r"\bkann\b.*\bnichts\b.*\bsagen\b"]).stand_in(text)
    assert Phrases.of([r"\bkann\b.*\bnichts\b.*\bsagen\b"]).stand_in(f"{text} nichts sagen")
