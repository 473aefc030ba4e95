"""Code corrects the model's reading, and every change is written down."""

from __future__ import annotations

from typing import Any

import pytest

from evalrun.judge.checks import Reading, corrected, unread
from evalrun.judge.verdict import Parsed, ReadClaim
from evalrun.records import Chunk, Context

CONTEXT = Context.of((Chunk(id="work", text="I worked at Vindlage for three years and write Go."),))
ALL: Any = ("refusal_rule", "quotes", "novel_terms")
GO = ReadClaim("writes Go", "write Go", True)


def reading(answer: str, *claims: ReadClaim, refusal: bool = False, checks: Any = ALL) -> Reading:
    parsed = Parsed(refusal, all(claim.supported for claim in claims), claims)
    return corrected(parsed, checks, "Which languages do you write?", answer, CONTEXT)


def test_a_sound_reading_is_left_alone() -> None:
    """Where model and rules agree nothing is corrected."""
    found = reading("I write Go.", GO)
    assert (False, True, ()) == (found.refusal, found.faithful, found.corrections)
    assert ["model"] == [claim.decided_by for claim in found.claims]


@pytest.mark.parametrize("quote", ["I write Rust", "", None])
def test_a_quote_that_is_not_in_the_context_supports_nothing(quote: str | None) -> None:
    """The model's "yes" falls with its quote."""
    found = reading("I write Go.", ReadClaim("writes Go", quote, True))
    assert (False, ("quotes: writes Go",)) == (found.faithful, found.corrections)
    assert ["quotes"] == [claim.decided_by for claim in found.claims]


def test_a_claim_in_the_words_of_the_context_needs_no_quote() -> None:
    """A model that copies the answer where the quote should stand is not held against a sound claim."""
    found = reading("I worked there for three years.", ReadClaim("worked three years", "the answer", True))
    assert (True, ()) == (found.faithful, found.corrections)


def test_a_novel_term_makes_its_claim_unsupported() -> None:
    """A name nobody gave the bot turns the claim that holds it."""
    found = reading("I write Go and COBOL.", ReadClaim("writes Go and COBOL", "write Go", True))
    assert (False, ("novel_terms: COBOL",)) == (found.faithful, found.corrections)
    assert [("writes Go and COBOL", "novel_terms")] == [(c.claim, c.decided_by) for c in found.claims]


def test_a_novel_term_in_no_claim_adds_its_sentence() -> None:
    """A number the model did not list is listed."""
    found = reading("I write Go. I earned 70,000 there.", GO)
    assert ["writes Go", "I earned 70,000 there."] == [claim.claim for claim in found.claims]
    assert (True, False) == tuple(claim.supported for claim in found.claims)


def test_a_novel_term_of_an_unsupported_claim_is_no_correction() -> None:
    """What the model saw itself is not counted as its mistake."""
    found = reading("I write COBOL.", ReadClaim("writes COBOL", "", False))
    assert (False, ()) == (found.faithful, found.corrections)


def test_the_rule_decides_what_is_a_refusal() -> None:
    """Where rule and model disagree the rule wins and the disagreement is counted."""
    found = reading("I don't have information about that.", refusal=False)
    assert (True, True, ("refusal_rule: answer -> refusal",)) == (
        found.refusal,
        found.faithful,
        found.corrections,
    )
    found = reading("I write Go.", GO, refusal=True)
    assert (False, ("refusal_rule: refusal -> answer",)) == (found.refusal, found.corrections)


def test_an_answer_that_only_declines_makes_no_claims() -> None:
    """What the model read into a refusal is dropped, and said so."""
    found = reading(
        "The profile does not mention languages.", ReadClaim("no languages", "", False), refusal=True
    )
    assert (True, ()) == (found.faithful, found.claims)
    assert ("refusal_rule: claims of a refusal dropped",) == found.corrections


def test_a_refusal_with_an_invented_figure_is_not_faithful() -> None:
    """Both fields stay plain: it declines, and it claims something."""
    found = reading("I can't share my salary of $90,000.")
    assert (True, False) == (found.refusal, found.faithful)


def test_where_the_rule_has_no_opinion_the_model_decides() -> None:
    """A language the rule does not know is left to the model."""
    assert reading("Mi dispiace, non posso rispondere.", refusal=True).refusal is True


def test_only_the_checks_of_the_rubric_run() -> None:
    """A rubric without checks leaves the model's reading as it is."""
    found = reading("I write COBOL.", ReadClaim("writes COBOL", "made up", True), refusal=True, checks=())
    assert (True, True, ()) == (found.refusal, found.faithful, found.corrections)


def test_a_name_that_only_the_question_holds_supports_nothing() -> None:
    """A quote that is sound does not carry a name beside it: the question is no evidence."""
    parsed = Parsed(False, True, (ReadClaim("worked at Vindlage with Kafka", "I worked at Vindlage", True),))
    found = corrected(parsed, ALL, "Did you use Kafka?", "I worked at Vindlage with Kafka.", CONTEXT)
    assert (False, ("quotes: worked at Vindlage with Kafka",)) == (found.faithful, found.corrections)


def test_a_sound_quote_about_something_else_supports_nothing() -> None:
    """A quote has to share words with its claim."""
    assert not reading(
        "I sing well.", ReadClaim("sings well in choirs", "I worked at Vindlage", True)
    ).faithful


@pytest.mark.parametrize(
    ("answer", "expected"), [("No, I am single.", False), ("I worked there three years.", True)]
)
def test_an_answer_taken_for_a_refusal_is_read_sentence_by_sentence(answer: str, expected: bool) -> None:
    """A lie that the model called a refusal without listing it is not faithful by default."""
    found = reading(answer, refusal=True)
    assert (False, expected) == (found.refusal, found.faithful)
    assert [answer] == [claim.claim for claim in found.claims]
    assert "quotes: the answer's sentences read as its claims" in found.corrections


def test_an_answer_of_which_no_claim_was_read_is_no_verdict() -> None:
    """No refusal and no claims is a contradiction, not a faithful answer."""
    parsed = Parsed(False, True, ())
    found = corrected(parsed, ALL, "Are you married?", "No, I am single.", CONTEXT)
    assert "no claim of it is listed" in (unread(found, parsed) or "")
    declined = corrected(parsed, ALL, "Are you married?", "I don't know.", CONTEXT)
    assert unread(declined, parsed) is None
