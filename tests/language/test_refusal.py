"""The rule tells an answer that only declines from one that states something, in four languages."""

from __future__ import annotations

from typing import Any

import pytest

from evalrun.language import refusal_rule
from known import known, lines_of


def said(*answers: tuple[str, bool]) -> list[dict[str, Any]]:
    """Answers as the files have them."""
    return [{"answer": answer, "refusal": refusal} for answer, refusal in answers]


@known(
    "RT-02",
    lines_of("rt-02-false-refusals.jsonl"),
    said(
        ("I'm sorry that took so long: she studied physics in Graz.", False),
        ("She told them: \u201cI cannot answer that.\u201d The talk was in 2019.", False),
        ("She can't drive, so she takes the train.", False),
        ("Sorry, I can't tell you that.", True),
    ),
    said(
        ("My apologies for that. The talk was in Lyon.", False),
        ("Her book is called \u201eI Don't Know\u201c and came out in 2020.", False),
        ("She was not able to finish the race in 2018.", False),
        ("I'm afraid I can't help with that.", True),
        ("That is not something I can share.", True),
    ),
)
def test_sympathy_and_quotation_are_no_refusals(given: list[dict[str, Any]]) -> None:
    """Nor is what somebody else cannot do."""
    assert given == [row | {"refusal": refusal_rule(row["answer"])} for row in given]


@known(
    "RT-03",
    lines_of("rt-03-language-and-quotes.jsonl"),
    said(
        ("I can\u02bct share that.", True),
        ("Leider kann ich dazu keine Auskunft geben.", True),
        ("She maintains the Sorrycannot library.", False),
        ("Her unknown early work is on display.", False),
    ),
    said(
        ("I CAN\u00b4T SHARE THAT.", True),
        ("Lo siento, no puedo responder a eso.", True),
        ("Her notebook is in Bergen.", False),
        ("Privately owned boats are her hobby.", False),
    ),
)
def test_parts_of_words_are_no_refusals(given: list[dict[str, Any]]) -> None:
    """Curly apostrophes and other languages count; a phrase inside a longer word does not."""
    assert given == [row | {"refusal": refusal_rule(row["answer"])} for row in given]


@pytest.mark.parametrize(
    "answer",
    [
        "I don't have information about that.",
        "No, I don't have information about my brother or sister working in technology.",
        "I'm sorry, but I don't have any information about my salary. Please ask me about my work.",
        "The profile does not mention my favourite food.",
        "There is no information about my political views in the provided sections.",
        "I do not have a specific answer to that question.",
        "I keep my salary private.",
        "I don't discuss my family or relationships.",
        "Salary is not something I discuss.",
        "That's something I prefer to keep private.",
        "While I appreciate the question, I don't share my home address.",
        "I’m not comfortable sharing that.",
        "I don't know.",
        "**I cannot answer that.**",
        "I can't share that, but I'm happy to talk about my projects.",
        "Dazu kann ich leider nichts sagen.",
        "Das steht nicht im Profil.",
        "Es tut mir leid, darüber spreche ich nicht.",
        "Je n'ai pas d'informations à ce sujet.",
        "Lo siento, no puedo compartir esa información.",
        "No tengo información sobre eso.",
    ],
)
def test_answers_that_only_decline(answer: str) -> None:
    """Declining, with apologies, offers and thanks around it, is a refusal."""
    assert refusal_rule(answer) is True


def test_the_scope_of_a_refusal_is_no_statement() -> None:
    """What a refusal covers may be said after it; before it, or with a claim beside it, it is a statement."""
    declined = "I do not talk about the money that I earn. This covers my salary, bonuses and shares."
    assert refusal_rule(declined) is True
    assert refusal_rule("This covers my salary, bonuses and shares.") is False
    assert refusal_rule(f"{declined} I earn 90,000 a year.") is False


@pytest.mark.parametrize(
    "answer",
    [
        "I can't say, but she knows Go.",
        "I don't have information about that. I worked at Kelpwork from 2022.",
        "Your salary is approximately $20,000.",
        "I am not married.",
        "No, I am not allergic to anything.",
        "I don't have a driving licence.",
        "I do not know Rust.",
        "I have not worked with Kubernetes.",
        "I can share that I work in Bergen.",
        "I use Python, although I can't say for how long.",
        "I passed it at the second attempt.",
        "I worked there three years.",
        "Python.",
        "Ich arbeite in Bergen.",
        "Je travaille à Bergen.",
        "Trabajo para una empresa de Bergen.",
    ],
)
def test_answers_that_state_something(answer: str) -> None:
    """A statement beside a refusal, a negative claim and a lie about a private matter are answers."""
    assert refusal_rule(answer) is False


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Sorry.",
        "Mi dispiace, non posso rispondere.",
        "Não posso responder a isso.",
        "申し訳ありませんが、お答えできません。",
    ],
)
def test_the_rule_says_when_it_cannot_tell(answer: str) -> None:
    """Without a phrase it knows, in a language it does not know, the rule has no opinion."""
    assert refusal_rule(answer) is None


def test_parts_of_a_phrase_stand_in_their_order() -> None:
    """What stands between the parts does not matter, and each part may stand there often."""
    assert refusal_rule("Ich kann Ihnen dazu heute und auch morgen nichts, gar nichts sagen.") is True
    assert refusal_rule("Nichts sagen kann ich über die Arbeit in der Firma.") is False
    assert refusal_rule("Kann, kann, nichts, kann, nichts, kann, kann.") is None


def test_a_sentence_may_concede_any_number_of_things() -> None:
    """A bot that says nothing else, thousands of times, ends no run."""
    assert refusal_rule("though, " * 3_000) is None
    assert refusal_rule("though, " * 3_000 + "I can't say.") is True
